// SPDX-License-Identifier: BSD-2-Clause
// A library of a program, with a wrapper of a function of MPI, and calls of its own. The frame of
// `post` is aligned, so that its callers are at different distances on the stack.
#include <mpi.h>

int MPI_Barrier(MPI_Comm of) { return PMPI_Barrier(of); }

static int values[1024], number;

__attribute__((noinline)) static void post(int from, MPI_Request *requests) {
    volatile double buffer[8] __attribute__((aligned(64)));
    buffer[0] = 0;
    MPI_Irecv(values + number, 1, MPI_INT, from, number, MPI_COMM_WORLD, requests + number);
    number++;
    buffer[1] = 1;
}

#define POST(name, size)                                                                           \
    void name(int from, MPI_Request *requests) {                                                   \
        volatile char space[size];                                                                 \
        space[0] = 0;                                                                              \
        post(from, requests);                                                                      \
        space[1] = 1;                                                                              \
    }

POST(post_16, 16)
POST(post_24, 24)
POST(post_40, 40)
POST(post_56, 56)
