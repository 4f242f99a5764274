// SPDX-License-Identifier: BSD-2-Clause
// A benchmark: messages per second from one or two threads of a process to one thread of another,
// through the provider that FI_PROVIDER names; 8 bytes each, medians of runs. The two threads share
// an endpoint or have one each. A stream consists of windows of 64 messages, which the receiver
// answers while the next thread sends; this takes three threads, for which two cores are too few. A
// burst is the maximum number of messages that can wait for a receiver, which sleeps meanwhile, so
// it measures sending alone. Checks every message and its order. Prints `PROVIDER: HOW: N ns a
// message`, of all threads together.
#define _GNU_SOURCE // CPU_SET, pthread_setaffinity_np
#include "fabric.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 2, WINDOW = 64, WINDOWS = 3000, RUNS = 9, BATCH = 16, NAME = 256, BURST = 240, BURSTS = 150 };
static const uint64_t STREAM = 5, ANSWER = 50;

struct op {
    struct fi_context2 context;
    atomic_int done;
    int thread;
};
static const struct how {
    const char *name;
    enum fi_threading level;
    int threads;
    // Number of endpoints of the sending process, and of the receiving one.
    int endpoints[2];
    bool bursts;
    // True if another thread polls.
    bool polled;
} hows[] = {
    {"one thread, FI_THREAD_DOMAIN", FI_THREAD_DOMAIN, 1, {1, 1}, false, false},
    {"one thread, FI_THREAD_SAFE", FI_THREAD_SAFE, 1, {1, 1}, false, false},
    {"two threads, one endpoint", FI_THREAD_SAFE, 2, {1, 1}, false, false},
    {"two threads, an endpoint each", FI_THREAD_SAFE, 2, {2, 2}, false, false},
    {"bursts, one thread", FI_THREAD_SAFE, 1, {1, 1}, true, false},
    {"bursts, one thread beside one that polls", FI_THREAD_SAFE, 1, {1, 1}, true, true},
    {"bursts, two threads, one endpoint", FI_THREAD_SAFE, 2, {1, 1}, true, false},
    {"bursts, two threads, one endpoint, a receiver each", FI_THREAD_SAFE, 2, {1, 2}, true, false},
    {"bursts, two threads, an endpoint each", FI_THREAD_SAFE, 2, {2, 2}, true, false},
};
enum { HOWS = sizeof hows / sizeof *hows };

static struct side sides[THREADS];
// The address to which each thread sends.
static fi_addr_t peers[THREADS];
static const struct how *how;
static struct op ops[THREADS][BURST];
static uint64_t buffers[THREADS][BURST];
// Memory shared by the two processes, through which each waits for the other.
static struct shared {
    char names[2][THREADS][NAME];
    atomic_int steps[2];
} *shared;

static void meet_other(int own) {
    int step = atomic_fetch_add(&shared->steps[own], 1) + 1;
    while (atomic_load(&shared->steps[!own]) < step) usleep(20);
}

static int process;

static struct side *side_of(int thread) {
    return &sides[how->endpoints[process] == 1 ? 0 : thread];
}

// Stores the operations that completed in `found`. If the endpoint is shared, they may be those of the
// other thread. Returns their number, or -FI_EAGAIN.
static ssize_t look(struct side *side, struct op **found) {
    struct fi_cq_tagged_entry entries[BATCH];
    ssize_t count = fi_cq_read(side->cq, entries, BATCH);
    CHECK(count > 0 || count == -FI_EAGAIN, "%zd", count);
    for (ssize_t i = 0; i < count; i++) found[i] = entries[i].op_context;
    return count;
}

static void send(int thread, uint64_t tag, uint64_t value) {
    struct side *side = side_of(thread);
    ssize_t sent;
    while ((sent = fi_tinject(side->ep, &value, sizeof value, peers[thread], tag + (uint64_t)thread)) == -FI_EAGAIN)
        fi_cq_read(side->cq, NULL, 0);
    CHECK(sent == 0, "%zd", sent);
}

static void receive(int thread, int place, uint64_t tag) {
    struct side *side = side_of(thread);
    struct op *op = &ops[thread][place];
    op->thread = thread;
    op->done = 0;
    OK(fi_trecv(side->ep, &buffers[thread][place], 8, NULL, peers[thread], tag + (uint64_t)thread, 0, op));
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    struct op *found[BATCH];
    for (uint64_t window = 0; window < WINDOWS; window++) {
        receive(thread, 0, ANSWER);
        for (uint64_t i = 0; i < WINDOW; i++) send(thread, STREAM, window * WINDOW + i);
        while (!ops[thread][0].done)
            for (ssize_t i = 0, count = look(side_of(thread), found); i < count; i++) found[i]->done = 1;
    }
    return NULL;
}

// Returns nanoseconds per message.
static double send_all(void) {
    pthread_t ids[THREADS];
    double start = seconds();
    for (int i = 0; i < how->threads; i++) OK(pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
    for (int i = 0; i < how->threads; i++) OK(pthread_join(ids[i], NULL));
    return (seconds() - start) * 1e9 / (WINDOWS * WINDOW * how->threads);
}

static void receive_all(void) {
    struct op *found[BATCH];
    uint64_t windows[THREADS] = {0};
    int missing[THREADS], left = how->threads;
    for (int thread = 0; thread < how->threads; thread++) {
        for (int i = 0; i < WINDOW; i++) receive(thread, i, STREAM);
        missing[thread] = WINDOW;
    }
    while (left > 0) {
        for (int endpoint = 0; endpoint < how->endpoints[process]; endpoint++)
            for (ssize_t i = 0, count = look(&sides[endpoint], found); i < count; i++) missing[found[i]->thread]--;
        for (int thread = 0; thread < how->threads; thread++) {
            if (missing[thread]) continue;
            for (uint64_t i = 0; i < WINDOW; i++)
                CHECK(buffers[thread][i] == windows[thread] * WINDOW + i, "window %lu, message %lu",
                      (unsigned long)windows[thread], (unsigned long)i);
            missing[thread] = WINDOW;
            if (++windows[thread] < WINDOWS)
                for (int i = 0; i < WINDOW; i++) receive(thread, i, STREAM);
            else
                left--;
            send(thread, ANSWER, 0);
        }
    }
}

static atomic_int gathered;
static atomic_bool polls;
static double starts[THREADS], ends[THREADS], all_bursts;

// Waits for all sending threads. This barrier spins, because a thread that must be woken would
// start its burst late.
static void gather(int *times) {
    int all = ++*times * how->threads;
    atomic_fetch_add(&gathered, 1);
    while (atomic_load(&gathered) < all) continue;
}

// Binds the calling thread to a separate core. On one core each thread would wait to be scheduled.
static void take_core(int number) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(number % (int)sysconf(_SC_NPROCESSORS_ONLN), &cores);
    pthread_setaffinity_np(pthread_self(), sizeof cores, &cores);
}

static void *poll_beside(void *unused) {
    struct op *found[BATCH];
    (void)unused;
    take_core(1);
    while (polls) look(&sides[0], found);
    return NULL;
}

static void *send_bursts(void *argument) {
    int thread = (int)(intptr_t)argument, times = 0;
    take_core(thread);
    for (uint64_t burst = 0; burst < BURSTS; burst++) {
        gather(&times);
        starts[thread] = seconds();
        for (uint64_t i = 0; i < BURST; i++) send(thread, STREAM, burst * BURST + i);
        ends[thread] = seconds();
        gather(&times);
        if (thread > 0) continue;
        double start = starts[0], end = ends[0];
        for (int other = 1; other < how->threads; other++) {
            if (starts[other] < start) start = starts[other];
            if (ends[other] > end) end = ends[other];
        }
        all_bursts += end - start;
        meet_other(0);
        meet_other(0);
    }
    return NULL;
}

static double send_all_bursts(void) {
    pthread_t ids[THREADS], poller;
    gathered = 0;
    all_bursts = 0;
    polls = how->polled;
    if (how->polled) OK(pthread_create(&poller, NULL, poll_beside, NULL));
    for (int i = 0; i < how->threads; i++) OK(pthread_create(&ids[i], NULL, send_bursts, (void *)(intptr_t)i));
    for (int i = 0; i < how->threads; i++) OK(pthread_join(ids[i], NULL));
    polls = false;
    if (how->polled) OK(pthread_join(poller, NULL));
    return all_bursts * 1e9 / (BURSTS * BURST * how->threads);
}

static void receive_all_bursts(void) {
    struct op *found[BATCH];
    ssize_t count;
    for (uint64_t burst = 0; burst < BURSTS; burst++) {
        meet_other(1);
        for (int thread = 0; thread < how->threads; thread++)
            for (int i = 0; i < BURST; i++) receive(thread, i, STREAM);
        for (int missing = how->threads * BURST; missing > 0;)
            for (int endpoint = 0; endpoint < how->endpoints[process]; endpoint++) if ((count = look(&sides[endpoint], found)) > 0) missing -= (int)count;
        for (int thread = 0; thread < how->threads; thread++)
            for (uint64_t i = 0; i < BURST; i++)
                CHECK(buffers[thread][i] == burst * BURST + i, "burst %lu, message %lu", (unsigned long)burst,
                      (unsigned long)i);
        meet_other(1);
    }
}

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

int main(void) {
    const char *provider = getenv("FI_PROVIDER");
    double times[RUNS];
    CHECK(provider, "FI_PROVIDER names the provider");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap");
    pid_t pid = fork();
    int own = process = !pid;
    // Kills the child with its parent. Otherwise it would wait for the parent without end.
    if (own) prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < HOWS; i++) {
        how = &hows[i];
        open_named(provider, how->level);
        for (int endpoint = 0; endpoint < how->endpoints[own]; endpoint++) {
            size_t len = NAME;
            open_side(&sides[endpoint], 0, 2);
            OK(fi_getname(&sides[endpoint].ep->fid, shared->names[own][endpoint], &len));
        }
        meet_other(own);
        for (int thread = 0; thread < how->threads; thread++) {
            const char *name = shared->names[!own][how->endpoints[!own] == 1 ? 0 : thread];
            CHECK(fi_av_insert(side_of(thread)->av, name, 1, &peers[thread], 0, NULL) == 1, "not inserted");
        }
        for (int run = 0; run < RUNS; run++) {
            if (pid)
                times[run] = how->bursts ? send_all_bursts() : send_all();
            else if (how->bursts)
                receive_all_bursts();
            else
                receive_all();
        }
        meet_other(own);
        for (int endpoint = 0; endpoint < how->endpoints[own]; endpoint++) close_side(&sides[endpoint]);
        close_domain();
        qsort(times, RUNS, sizeof *times, by_value);
        if (pid) printf("%s: %s: %.0f ns a message\n", provider, how->name, times[RUNS / 2]);
        fflush(stdout);
    }
    if (!pid) return 0;
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%d", status);
    return 0;
}
