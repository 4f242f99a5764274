// SPDX-License-Identifier: BSD-2-Clause
// A program that contains its MPI (own_mpi.c). Each rank sends 20 messages to itself.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char **argv) {
    int sent = 0, received = 0;
    MPI_Request request;
    MPI_Init(&argc, &argv);
    while (sent < 20) {
        MPI_Irecv(&received, sizeof received, MPI_BYTE, 0, 7, MPI_COMM_WORLD, &request);
        sent++;
        MPI_Send(&sent, sizeof sent, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        if (received != sent) return 1;
    }
    MPI_Finalize();
    puts("20 messages");
    return 0;
}
