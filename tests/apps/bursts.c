// SPDX-License-Identifier: BSD-2-Clause
// Measures, with MPI_THREAD_MULTIPLE, the time per send in threads of a rank while the receiver
// sleeps.
//
// Arguments: none, or the number of bursts (default 50)
//
// Rank 0 sends bursts of 96 messages of 8 B from each of its threads, on one communicator per
// thread. Rank 1 receives a burst after all of it has been sent. A host with two cores therefore
// has one core for each of two threads. Every message and its order are checked. Prints for 1 and 2
// threads
//   bursts threads=T ns_a_message=N
// where N is the median over the bursts, for all threads together.
#include "check.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 2, BURST = 96, UNTIMED = 5 };

static MPI_Comm own[MOST];
static int threads, bursts = 50;
static atomic_int gathered;
static double starts[MOST], ends[MOST], *times;
// The step that each rank has reached, in memory that both ranks share.
static atomic_int *steps;

static void meet(void) {
    int step = atomic_fetch_add(&steps[rank], 1) + 1;
    while (atomic_load(&steps[!rank]) < step) usleep(20);
}

// Waits until all sending threads are here, so that they start within less than a burst's time.
static void gather(int *rounds) {
    int all = ++*rounds * threads;
    atomic_fetch_add(&gathered, 1);
    while (atomic_load(&gathered) < all) continue;
}

static uint64_t message(int thread, int burst, int place) {
    return (uint64_t)thread << 48 | (uint64_t)burst << 16 | (uint64_t)place;
}

// Binds the thread to its own core, whatever core the launcher has bound the rank to. On one core
// each thread would wait until the scheduler preempts the other.
static void take_core(int thread) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(thread % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

static void *send_all(void *argument) {
    int thread = (int)(intptr_t)argument, rounds = 0;
    take_core(thread);
    for (int burst = 0; burst < UNTIMED + bursts; burst++) {
        gather(&rounds);
        starts[thread] = MPI_Wtime();
        for (int place = 0; place < BURST; place++) {
            uint64_t value = message(thread, burst, place);
            MPI_Send(&value, 8, MPI_BYTE, 1, 0, own[thread]);
        }
        ends[thread] = MPI_Wtime();
        gather(&rounds);
        if (thread > 0) continue;
        double start = starts[0], end = ends[0];
        for (int other = 1; other < threads; other++) {
            if (starts[other] < start) start = starts[other];
            if (ends[other] > end) end = ends[other];
        }
        if (burst >= UNTIMED) times[burst - UNTIMED] = end - start;
        meet();
        meet();
    }
    return NULL;
}

static void receive_all(void) {
    for (int burst = 0; burst < UNTIMED + bursts; burst++) {
        meet();
        for (int thread = 0; thread < threads; thread++)
            for (int place = 0; place < BURST; place++) {
                uint64_t found = 0;
                MPI_Recv(&found, 8, MPI_BYTE, 0, 0, own[thread], MPI_STATUS_IGNORE);
                CHECK(found == message(thread, burst, place), "thread %d, burst %d, message %d: %016llx", thread,
                      burst, place, (unsigned long long)found);
            }
        meet();
    }
}

// Maps memory that both ranks share, even if the MPI treats them as ranks of two hosts.
static atomic_int *map_shared(void) {
    char name[] = "/tmp/bursts-XXXXXX";
    int file = rank == 0 ? mkstemp(name) : -1;
    CHECK(rank > 0 || (file >= 0 && ftruncate(file, 2 * sizeof *steps) == 0), "no file in /tmp");
    MPI_Bcast(name, sizeof name, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank > 0) file = open(name, O_RDWR);
    void *memory = mmap(NULL, 2 * sizeof *steps, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(memory != MAP_FAILED, "%s cannot be mapped: the ranks run on two hosts?", name);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) unlink(name);
    close(file);
    return memory;
}

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(int argc, char **argv) {
    pthread_t ids[MOST];
    app_start("bursts", &argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(ranks == 2, "2 ranks are needed, not %d", ranks);
    if (argc > 1) bursts = atoi(argv[1]);
    CHECK(bursts > 0 && bursts <= 10000, "%s is not from 1 to 10000", argv[1]);
    times = allocate((size_t)bursts * sizeof *times);
    steps = map_shared();
    for (int i = 0; i < MOST; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    for (threads = 1; threads <= MOST; threads++) {
        MPI_Barrier(MPI_COMM_WORLD);
        gathered = 0;
        if (rank == 1) {
            receive_all();
            continue;
        }
        for (intptr_t i = 0; i < threads; i++)
            CHECK(pthread_create(&ids[i], NULL, send_all, (void *)i) == 0, "no thread");
        for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
        qsort(times, (size_t)bursts, sizeof *times, by_value);
        printf("bursts threads=%d ns_a_message=%.0f\n", threads, times[bursts / 2] * 1e9 / BURST / threads);
        fflush(stdout);
    }
    for (int i = 0; i < MOST; i++) MPI_Comm_free(&own[i]);
    MPI_Finalize();
}
