// SPDX-License-Identifier: BSD-2-Clause
// Measures operations of Figures 5 and 11 of the COL+PNP paper, for `papers/reproduce.sh colpnp`:
//     collectives gather|allreduce|iallgather|fds [steps]
//
//     gather      MPI_Gatherv of 8 bytes, which has no tree in MPICH; time at the root
//     allreduce   MPI_Allreduce of 8 bytes; mean time of all ranks
//     iallgather  16 MPI_Iallgather of 8 bytes at once; mean time of all ranks for one
//     fds         a step of a fire simulation: everything is gathered on rank 0
//
// Prints `collectives: ok ... us=T`, microseconds per operation or step. All data is verified.
#include "check.h"

// AHEAD: gathers by which the other ranks lead rank 0 in a step of fds. MESSAGES: messages per
// rank.
enum { WINDOW = 16, AHEAD = 32, MESSAGES = 4, WARM_UP = 3 };

static int *counts, *offsets;
static uint64_t *in;
static MPI_Comm apart[2];

static uint64_t value_of(int from, int call, int step) {
    return mix((uint64_t)from, (uint64_t)call, (uint64_t)step);
}

static void verify_gathered(const uint64_t *gathered, int call, int step) {
    for (int from = 0; from < ranks; from++)
        CHECK(gathered[from] == value_of(from, call, step), "call %d: wrong data from rank %d",
              call, from);
}

static void gather(int step) {
    uint64_t mine = value_of(rank, 0, step);
    MPI_Gatherv(&mine, 1, MPI_UINT64_T, in, counts, offsets, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    if (rank == 0) verify_gathered(in, 0, step);
}

static void allreduce(int step) {
    uint64_t mine = (uint64_t)(rank + step), sum;
    uint64_t expected = (uint64_t)ranks * (uint64_t)(2 * step + ranks - 1) / 2;
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == expected, "sum %llu", (unsigned long long)sum);
}

static void iallgather(int step) {
    uint64_t mine[WINDOW];
    MPI_Request requests[WINDOW];
    for (int call = 0; call < WINDOW; call++) {
        mine[call] = value_of(rank, call, step);
        MPI_Iallgather(&mine[call], 1, MPI_UINT64_T, in + (size_t)call * ranks, 1, MPI_UINT64_T,
                       MPI_COMM_WORLD, &requests[call]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; call < WINDOW; call++)
        verify_gathered(in + (size_t)call * ranks, call, step);
}

// Rank 0 posts two gathers before the other ranks send, so its queue of posted receives (PRQ)
// becomes long. Then the other ranks lead rank 0 by many gathers and some messages, so its queue of
// unexpected messages (UMQ) becomes long.
static void fds(int step) {
    uint64_t mine[2], out[MESSAGES];
    MPI_Request requests[2], sent[MESSAGES];
    int sends = rank % 4 == 1;
    if (rank > 0) MPI_Barrier(MPI_COMM_WORLD);
    for (int call = 0; call < 2; call++) {
        mine[call] = value_of(rank, call, step);
        MPI_Igatherv(&mine[call], 1, MPI_UINT64_T, in + (size_t)call * ranks, counts, offsets,
                     MPI_UINT64_T, 0, apart[call], &requests[call]);
    }
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; rank == 0 && call < 2; call++)
        verify_gathered(in + (size_t)call * ranks, call, step);

    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    for (int tag = 0; sends && tag < MESSAGES; tag++) {
        out[tag] = value_of(rank, tag, step);
        MPI_Isend(&out[tag], 1, MPI_UINT64_T, 0, tag, MPI_COMM_WORLD, &sent[tag]);
    }
    for (int call = 0; call < AHEAD; call++) {
        uint64_t profile = value_of(rank, call, step);
        MPI_Gatherv(&profile, 1, MPI_UINT64_T, in, counts, offsets, MPI_UINT64_T, 0,
                    MPI_COMM_WORLD);
        if (rank == 0) verify_gathered(in, call, step);
    }
    for (int tag = 0; rank == 0 && tag < MESSAGES; tag++)
        for (int from = 1; from < ranks; from += 4) {
            uint64_t message;
            MPI_Recv(&message, 1, MPI_UINT64_T, from, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(message == value_of(from, tag, step), "wrong message from rank %d", from);
        }
    if (sends) MPI_Waitall(MESSAGES, sent, MPI_STATUSES_IGNORE);
    // When the others reach this barrier, they have sent everything and rank 0 has received none of
    // it.
    if (rank > 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static const struct operation {
    const char *name;
    void (*call)(int step);
    int at_root, calls, steps;
} operations[] = {
    {"gather", gather, 1, 1, 100},
    {"allreduce", allreduce, 0, 1, 60},
    {"iallgather", iallgather, 0, WINDOW, 30},
    {"fds", fds, 1, 1, 30},
};

static const struct operation *find(const char *name) {
    for (size_t at = 0; at < sizeof operations / sizeof *operations; at++)
        if (strcmp(name, operations[at].name) == 0) return &operations[at];
    return NULL;
}

int main(int argc, char **argv) {
    const struct operation *operation = argc > 1 ? find(argv[1]) : NULL;
    int steps = argc > 2 ? atoi(argv[2]) : operation ? operation->steps : 0;
    if (!operation || argc > 3 || steps < 1 || steps > 1000000) {
        fputs("usage: collectives gather|allreduce|iallgather|fds [steps]\n", stderr);
        return 2;
    }
    app_start("collectives", &argc, &argv, MPI_THREAD_SINGLE);
    in = allocate((size_t)WINDOW * ranks * sizeof *in);
    counts = allocate(2 * ranks * sizeof *counts);
    offsets = counts + ranks;
    for (int from = 0; from < ranks; from++) counts[from] = 1, offsets[from] = from;
    for (int at = 0; at < 2; at++) MPI_Comm_dup(MPI_COMM_WORLD, &apart[at]);
    double time = 0, sum;
    for (int step = -WARM_UP; step < steps; step++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        operation->call(step + WARM_UP);
        if (step >= 0) time += MPI_Wtime() - start;
    }
    MPI_Allreduce(&time, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (!operation->at_root) time = sum / ranks;
    for (int at = 0; at < 2; at++) MPI_Comm_free(&apart[at]);
    free(counts);
    free(in);
    app_end("operation=%s steps=%d us=%.3f", operation->name, steps,
            time / steps / operation->calls * 1e6);
}
