// SPDX-License-Identifier: BSD-2-Clause
// Sends tokens of several sizes round the ring of all ranks, one at a time and all at once.
#include "check.h"

enum { ROUNDS = 3, LARGEST = 20000 };

static const int sizes[] = {0, 1, 8, 200, 5000, LARGEST};

int main(int argc, char **argv) {
    app_start("ring", &argc, &argv, MPI_THREAD_SINGLE);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    char *out = allocate(LARGEST), *in = allocate(LARGEST);
    MPI_Status status;
    long hops = 0;

    // One token: every rank adds its number and passes the token on.
    for (int round = 0; round < ROUNDS; round++) {
        long token = 0, whole = (long)ranks * (ranks + 1) / 2;
        if (rank == 0) {
            token = 1;
            MPI_Send(&token, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
            MPI_Recv(&token, 1, MPI_LONG, previous, round, MPI_COMM_WORLD, &status);
            CHECK(token == whole, "token %ld, not %ld", token, whole);
        } else {
            MPI_Recv(&token, 1, MPI_LONG, previous, round, MPI_COMM_WORLD, &status);
            token += rank + 1;
            MPI_Send(&token, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
        }
        CHECK_STATUS(status, previous, round, sizeof token);
        hops += ranks;
    }

    // Every rank shifts a block to its neighbour, forwards and backwards.
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int size = sizes[s];
        for (int round = 0; round < ROUNDS; round++) {
            fill(out, size, mix(rank, size, round));
            MPI_Sendrecv(out, size, MPI_BYTE, next, 7, in, size, MPI_BYTE, previous, 7,
                         MPI_COMM_WORLD, &status);
            CHECK_STATUS(status, previous, 7, size);
            verify(in, size, mix(previous, size, round), "forwards");

            MPI_Request requests[2];
            MPI_Irecv(in, size, MPI_BYTE, next, 8, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out, size, MPI_BYTE, previous, 8, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            verify(in, size, mix(next, size, round), "backwards");
            hops += 2 * ranks;
        }
    }
    free(out);
    free(in);
    app_end("hops=%ld", hops);
}
