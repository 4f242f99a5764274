// SPDX-License-Identifier: BSD-2-Clause
// 8 B MPI_Send beside a thread that waits: in each rank one thread waits in MPI_Recv for a
// message that comes last, while another one sends to the neighbour now and then.
// Prints `threads_latency ranks=R median_us=T p99_us=T max_us=T`, of the sends of all ranks.
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { WARM_UP = 100, ROUNDS = 1000, TALK = 1, LATE = 2 };

// What the other thread waits for elsewhere between two sends, a disk for one.
static const struct timespec ELSEWHERE = {.tv_nsec = 1000000};

static void *wait_for_late(void *argument) {
    int peer = *(int *)argument, value = -1;
    MPI_Recv(&value, 1, MPI_INT, peer, LATE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(value == peer, "%d, not %d", value, peer);
    return NULL;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    app_start("threads_latency", &argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(ranks % 2 == 0, "an even number of ranks is needed, not %d", ranks);
    int peer = rank ^ 1, total = ROUNDS * ranks;
    MPI_Request requests[WARM_UP + ROUNDS];
    uint64_t heard[WARM_UP + ROUNDS];
    double took[ROUNDS], *all = allocate(sizeof took * (size_t)ranks);
    pthread_t waits;
    for (int round = 0; round < WARM_UP + ROUNDS; round++)
        MPI_Irecv(&heard[round], 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD, &requests[round]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(pthread_create(&waits, NULL, wait_for_late, &peer) == 0, "no thread");
    for (int round = 0; round < WARM_UP + ROUNDS; round++) {
        uint64_t out = mix(rank, round, 0);
        nanosleep(&ELSEWHERE, NULL);
        double start = MPI_Wtime();
        MPI_Send(&out, 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD);
        if (round >= WARM_UP) took[round - WARM_UP] = (MPI_Wtime() - start) * 1e6;
    }
    MPI_Send(&rank, 1, MPI_INT, peer, LATE, MPI_COMM_WORLD);
    pthread_join(waits, NULL);
    MPI_Waitall(WARM_UP + ROUNDS, requests, MPI_STATUSES_IGNORE);
    for (int round = 0; round < WARM_UP + ROUNDS; round++)
        CHECK(heard[round] == mix(peer, round, 0), "wrong data in round %d", round);
    MPI_Gather(took, ROUNDS, MPI_DOUBLE, all, ROUNDS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    qsort(all, (size_t)(rank == 0 ? total : 0), sizeof *all, compare);
    if (rank == 0)
        printf("threads_latency ranks=%d median_us=%.2f p99_us=%.2f max_us=%.2f\n", ranks,
               all[total / 2], all[total / 100 * 99], all[total - 1]);
    free(all);
    MPI_Finalize();
}
