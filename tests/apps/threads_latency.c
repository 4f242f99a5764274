// SPDX-License-Identifier: BSD-2-Clause
// Measures the latency of 8 B beside a waiting thread: in each rank one thread waits in MPI_Recv
// for rare messages, while another one exchanges messages with the neighbour.
//     threads_latency         the second thread sends every millisecond and MPI_Send is timed; the
//                             first waits for the neighbour, which sends once at the end
//     threads_latency trips   the second thread exchanges messages without a pause and half a round
//                             trip is timed; the first waits for another rank (of 4 or more), which
//                             sends every 100 round trips
// Prints `threads_latency ranks=R median_us=T p99_us=T max_us=T`, of the messages of all ranks.
#include "check.h"
#include <pthread.h>
#include <time.h>

enum { WARM_UP = 100, ROUNDS = 1000, ALL = WARM_UP + ROUNDS, TALK = 1, RARE = 2, EVERY = 100 };

// Pause between two sends; stands for a wait outside of MPI, such as a disk access.
static const struct timespec ELSEWHERE = {.tv_nsec = 1000000};

static int peer, waited_for, rare = 1;
static double took[ALL];

static void *wait_for_rare(void *unused) {
    for (int i = 0; i < rare; i++) {
        int value = -1;
        MPI_Recv(&value, 1, MPI_INT, waited_for, RARE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(value == waited_for + i, "%d, not %d", value, waited_for + i);
    }
    return unused;
}

static void send_rare(int place) {
    int value = rank + place;
    MPI_Send(&value, 1, MPI_INT, waited_for, RARE, MPI_COMM_WORLD);
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void check_heard(uint64_t heard, int round) {
    CHECK(heard == mix(peer, round, 0), "wrong data in round %d", round);
}

static void sends(void) {
    MPI_Request requests[ALL];
    uint64_t heard[ALL];
    pthread_t waits;
    for (int round = 0; round < ALL; round++)
        MPI_Irecv(&heard[round], 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD, &requests[round]);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(pthread_create(&waits, NULL, wait_for_rare, NULL) == 0, "no thread");
    for (int round = 0; round < ALL; round++) {
        uint64_t out = mix(rank, round, 0);
        nanosleep(&ELSEWHERE, NULL);
        double start = MPI_Wtime();
        MPI_Send(&out, 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD);
        took[round] = (MPI_Wtime() - start) * 1e6;
    }
    send_rare(0);
    pthread_join(waits, NULL);
    MPI_Waitall(ALL, requests, MPI_STATUSES_IGNORE);
    for (int round = 0; round < ALL; round++) check_heard(heard[round], round);
}

static void trips(void) {
    pthread_t waits;
    CHECK(pthread_create(&waits, NULL, wait_for_rare, NULL) == 0, "no thread");
    for (int round = 0; round < ALL; round++) {
        uint64_t out = mix(rank, round, 0), in = 0;
        double start = MPI_Wtime();
        if (rank < peer) MPI_Send(&out, 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD);
        MPI_Recv(&in, 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank > peer) MPI_Send(&out, 8, MPI_BYTE, peer, TALK, MPI_COMM_WORLD);
        took[round] = (MPI_Wtime() - start) * 1e6 / 2;
        check_heard(in, round);
        if (round % EVERY == EVERY - 1) send_rare(round / EVERY);
    }
    pthread_join(waits, NULL);
}

int main(int argc, char **argv) {
    app_start("threads_latency", &argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(ranks % 2 == 0, "an even number of ranks is needed, not %d", ranks);
    CHECK(argc == 1 || !strcmp(argv[1], "trips"), "%s: only trips is known", argv[1]);
    waited_for = peer = rank ^ 1;
    if (argc == 1) {
        sends();
    } else {
        CHECK(ranks % 4 == 0, "4, 8, ... ranks are needed, not %d", ranks);
        waited_for = rank ^ 2;
        rare = ALL / EVERY;
        trips();
    }
    int total = ROUNDS * ranks;
    double *all = allocate(ROUNDS * sizeof *all * (size_t)ranks);
    MPI_Gather(took + WARM_UP, ROUNDS, MPI_DOUBLE, all, ROUNDS, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    qsort(all, (size_t)(rank == 0 ? total : 0), sizeof *all, compare);
    if (rank == 0)
        printf("threads_latency ranks=%d median_us=%.2f p99_us=%.2f max_us=%.2f\n", ranks,
               all[total / 2], all[total / 100 * 99], all[total - 1]);
    free(all);
    MPI_Finalize();
}
