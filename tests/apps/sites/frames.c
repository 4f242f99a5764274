// SPDX-License-Identifier: BSD-2-Clause
// Posts ROUNDS receives by each of four functions of a library (solver.c), and none itself.
#include <mpi.h>

enum { ROUNDS = 50, ALL = 4 * ROUNDS };

void post_16(int from, MPI_Request *requests);
void post_24(int from, MPI_Request *requests);
void post_40(int from, MPI_Request *requests);
void post_56(int from, MPI_Request *requests);

int main(int argc, char **argv) {
    int rank, ranks;
    MPI_Request requests[ALL];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ROUNDS; i++) {
        int from = (rank + ranks - 1) % ranks;
        post_56(from, requests);
        post_40(from, requests);
        post_24(from, requests);
        post_16(from, requests);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < ALL; i++) MPI_Send(&rank, 1, MPI_INT, (rank + 1) % ranks, i, MPI_COMM_WORLD);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
    MPI_Finalize();
}
