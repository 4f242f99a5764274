// SPDX-License-Identifier: BSD-2-Clause
// Tests MPI_THREAD_MULTIPLE with a communicator for each thread. With Open MPI's
//   --mca mtl_ofi_enable_sep 1 --mca mtl_ofi_thread_grouping 1 --mca mtl_ofi_num_ctxts 5
// each thread has its own context of a scalable endpoint. The communicators are not freed: Open MPI
// 5.0.11 would close the completion queues of their contexts and continue to poll them.
#include "check.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 50, LARGEST = 40000 };

static MPI_Comm comms[THREADS];

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
        // One tag for all threads: the communicators separate them.
        MPI_Irecv(in, LARGEST, MPI_BYTE, round % 2 ? previous : MPI_ANY_SOURCE, 1, comms[thread], &requests[0]);
        MPI_Isend(out, size, MPI_BYTE, next, 1, comms[thread], &requests[1]);
        MPI_Waitall(2, requests, statuses);
        CHECK_STATUS(statuses[0], previous, 1, size);
        verify(in, size, mix(previous, thread, round), "thread");
    }
    free(out);
    free(in);
    return NULL;
}

int main(int argc, char **argv) {
    app_start("contexts", &argc, &argv, MPI_THREAD_MULTIPLE);
    pthread_t threads[THREADS];
    for (int thread = 0; thread < THREADS; thread++) MPI_Comm_dup(MPI_COMM_WORLD, &comms[thread]);
    for (intptr_t thread = 0; thread < THREADS; thread++)
        CHECK(pthread_create(&threads[thread], NULL, talk, (void *)thread) == 0, "no thread");
    for (int thread = 0; thread < THREADS; thread++) pthread_join(threads[thread], NULL);
    app_end("threads=%d", THREADS);
}
