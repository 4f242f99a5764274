// SPDX-License-Identifier: BSD-2-Clause
// Tests persistent requests that are started repeatedly, with a fixed partner for each tag and some
// any-source receives.
#include "check.h"

enum { REQUESTS = 10, ROUNDS = 8, SIZE = 3000 };

int main(int argc, char **argv) {
    app_start("persistent", &argc, &argv, MPI_THREAD_SINGLE);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    char *out = allocate(REQUESTS * SIZE), *in = allocate(REQUESTS * SIZE);
    MPI_Request requests[2 * REQUESTS];
    MPI_Status statuses[2 * REQUESTS];
    for (int i = 0; i < REQUESTS; i++) {
        int size = SIZE >> i, source = i % 4 == 1 ? MPI_ANY_SOURCE : previous;
        MPI_Recv_init(in + i * SIZE, size, MPI_BYTE, source, i, MPI_COMM_WORLD, &requests[i]);
        if (i % 3 == 2)
            MPI_Ssend_init(out + i * SIZE, size, MPI_BYTE, next, i, MPI_COMM_WORLD,
                           &requests[REQUESTS + i]);
        else
            MPI_Send_init(out + i * SIZE, size, MPI_BYTE, next, i, MPI_COMM_WORLD,
                          &requests[REQUESTS + i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        memset(in, 0, REQUESTS * SIZE);
        for (int i = 0; i < REQUESTS; i++) fill(out + i * SIZE, SIZE >> i, mix(rank, round, i));
        // Odd rounds start the sends first, so the messages arrive unexpected.
        int first = round % 2 ? REQUESTS : 0;
        MPI_Startall(REQUESTS, requests + first);
        if (round % 2) MPI_Barrier(MPI_COMM_WORLD);
        MPI_Startall(REQUESTS, requests + REQUESTS - first);
        MPI_Waitall(2 * REQUESTS, requests, statuses);
        for (int i = 0; i < REQUESTS; i++) {
            CHECK_STATUS(statuses[i], previous, i, SIZE >> i);
            verify(in + i * SIZE, SIZE >> i, mix(previous, round, i), "persistent");
        }
    }
    for (int i = 0; i < 2 * REQUESTS; i++) MPI_Request_free(&requests[i]);
    free(out);
    free(in);
    app_end("starts=%d", 2 * REQUESTS * ROUNDS);
}
