// SPDX-License-Identifier: BSD-2-Clause
// MPI_THREAD_MULTIPLE: threads of neighbouring ranks talk at the same time,
// each pair on a tag of its own, one also with any-source receives.
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 20, LARGEST = 40000 };

static int size_of(int thread, int round) {
    static const int sizes[] = {8, 700, 12000, LARGEST};
    return sizes[(thread + round) % 4];
}

static void *talk(void *argument) {
    int thread = (int)(intptr_t)argument;
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    char *out = allocate(LARGEST), *in = allocate(LARGEST);
    for (int round = 0; round < ROUNDS; round++) {
        int size = size_of(thread, round);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        fill(out, size, mix(rank, thread, round));
        MPI_Irecv(in, LARGEST, MPI_BYTE, thread ? previous : MPI_ANY_SOURCE, thread,
                  MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, size, MPI_BYTE, next, thread, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        CHECK_STATUS(statuses[0], previous, thread, size);
        verify(in, size, mix(previous, thread, round), "thread");
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv) {
    app_start("threads", &argc, &argv, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (intptr_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, talk, (void *)thread) == 0, "no thread");
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    app_end("threads=%d", THREADS);
}
