// SPDX-License-Identifier: BSD-2-Clause
// Runs twenty iterations of an exchange with the neighbours and an all-reduce. The argument is the
// number of elements of the all-reduce (default 1).

#include "check.h"

enum { ITERATIONS = 20 };

int main(int argc, char **argv) {
    app_start("phases", &argc, &argv, MPI_THREAD_SINGLE);
    int numbers = argc > 1 ? atoi(argv[1]) : 1;
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, from;
    int *mine = allocate(sizeof(int) * numbers), *sum = allocate(sizeof(int) * numbers);
    for (int number = 0; number < numbers; number++) mine[number] = rank + number;
    for (int iteration = 0; iteration < ITERATIONS; iteration++) {
        MPI_Sendrecv(&rank, 1, MPI_INT, next, 7, &from, 1, MPI_INT, previous, 7, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(from == previous, "from rank %d, not %d", from, previous);
        MPI_Allreduce(mine, sum, numbers, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        for (int number = 0; number < numbers; number++)
            CHECK(sum[number] == ranks * (ranks - 1) / 2 + ranks * number, "wrong sum");
    }
    free(sum);
    free(mine);
    app_end("iterations=%d", ITERATIONS);
}
