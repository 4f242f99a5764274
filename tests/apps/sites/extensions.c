// SPDX-License-Identifier: BSD-2-Clause
// Posts receives by functions that only MPICH has, after calls of MPI_Irecv (see streams.c).
#include "exchange.h"

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        EACH_OTHER(from) {
            MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
            posted++;
            MPIX_Stream_irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, 0, 0, &requests[posted]);
            posted++;
            MPIX_Stream_irecv_c(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, 0, 0, &requests[posted]);
            posted++;
            MPIX_Irecv_enqueue(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
            posted++;
        }
        send_all(4);
    }
    MPI_Finalize();
}
