// SPDX-License-Identifier: BSD-2-Clause
// Posts receives at several lines: directly, by Sendrecv and by a persistent request.
#include "exchange.h"

__attribute__((noinline)) static void post(int from) {
    MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
    posted++;
}

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        EACH_OTHER(from) post(from);
        EACH_OTHER(from) {
            MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
            posted++;
        }
        send_all(2);
    }
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    MPI_Request persistent;
    MPI_Recv_init(bytes[0], 8, MPI_BYTE, last, 9, MPI_COMM_WORLD, &persistent);
    for (int round = 0; round < 10; round++) {
        MPI_Sendrecv("message", 8, MPI_BYTE, next, 8, bytes[1], 8, MPI_BYTE, last, 8, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Start(&persistent);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Send("message", 8, MPI_BYTE, next, 9, MPI_COMM_WORLD);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&persistent);
    MPI_Finalize();
}
