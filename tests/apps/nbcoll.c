// SPDX-License-Identifier: BSD-2-Clause
// Tests nonblocking collectives that are in flight together, with point-to-point traffic and a
// second communicator between them.
#include "check.h"

enum { ROUNDS = 3, WORDS = 1500 };

static int share(int of) { return of % 3 * 200 + 1; }

static void overlap(MPI_Comm comm, int round) {
    enum { BARRIER, BCAST, REDUCE, GATHER, ALLTOALL, SEND, RECEIVE, ALL };
    MPI_Request requests[ALL];
    int root = round % ranks, next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;

    uint64_t *cast = allocate(WORDS * sizeof *cast);
    if (rank == root) fill(cast, WORDS * sizeof *cast, mix(root, round, 1));
    long *terms = allocate(2 * WORDS * sizeof *terms), *sums = terms + WORDS;
    for (int i = 0; i < WORDS; i++) terms[i] = (long)rank * i + round;
    int *counts = allocate(2 * ranks * sizeof *counts), *offsets = counts + ranks, total = 0;
    for (int r = 0; r < ranks; r++) {
        counts[r] = share(r);
        offsets[r] = total;
        total += counts[r];
    }
    char *mine = allocate(share(rank)), *gathered = allocate(total);
    fill(mine, share(rank), mix(rank, round, 2));
    int *out = allocate(2 * ranks * sizeof *out), *in = out + ranks;
    for (int r = 0; r < ranks; r++) out[r] = rank * 1000 + r + round;
    int to_next = rank + round, from_previous = -1;

    MPI_Irecv(&from_previous, 1, MPI_INT, previous, 77, comm, &requests[RECEIVE]);
    MPI_Ibarrier(comm, &requests[BARRIER]);
    MPI_Ibcast(cast, WORDS, MPI_UINT64_T, root, comm, &requests[BCAST]);
    MPI_Iallreduce(terms, sums, WORDS, MPI_LONG, MPI_SUM, comm, &requests[REDUCE]);
    MPI_Igatherv(mine, share(rank), MPI_BYTE, gathered, counts, offsets, MPI_BYTE, root, comm,
                 &requests[GATHER]);
    MPI_Ialltoall(out, 1, MPI_INT, in, 1, MPI_INT, comm, &requests[ALLTOALL]);
    MPI_Isend(&to_next, 1, MPI_INT, next, 77, comm, &requests[SEND]);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);

    verify(cast, WORDS * sizeof *cast, mix(root, round, 1), "ibcast");
    for (int i = 0; i < WORDS; i++) {
        long whole = (long)ranks * (ranks - 1) / 2 * i + (long)ranks * round;
        CHECK(sums[i] == whole, "iallreduce: sum %d is %ld, not %ld", i, sums[i], whole);
    }
    for (int r = 0; rank == root && r < ranks; r++)
        verify(gathered + offsets[r], counts[r], mix(r, round, 2), "igatherv");
    for (int r = 0; r < ranks; r++)
        CHECK(in[r] == r * 1000 + rank + round, "ialltoall: %d from %d", in[r], r);
    CHECK(from_previous == previous + round, "point-to-point: %d", from_previous);
    free(cast);
    free(terms);
    free(counts);
    free(mine);
    free(gathered);
    free(out);
}

int main(int argc, char **argv) {
    app_start("nbcoll", &argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm copy;
    MPI_Request barrier;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Ibarrier(copy, &barrier);
        overlap(MPI_COMM_WORLD, round);
        MPI_Wait(&barrier, MPI_STATUS_IGNORE);
        overlap(copy, round + 1);
    }
    MPI_Comm_free(&copy);
    app_end("rounds=%d", ROUNDS);
}
