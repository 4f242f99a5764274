// SPDX-License-Identifier: BSD-2-Clause
// A benchmark: nanoseconds per message with 64 in flight, and half of a round trip, from one
// process to another through the provider that FI_PROVIDER names; 8 bytes each, medians of runs.
//     stream [bound] [beside]
// bound: each process is bound to a separate processor, as launchers do. beside: each process also
// polls another endpoint, to which no process sends.
#define _GNU_SOURCE
#include "fabric.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WINDOW = 64, WINDOWS = 1000, TRIPS = 10000, WARM_UP = 20, RUNS = 9, BATCH = 16 };
static const uint64_t STREAM = 5, ANSWER = 6;
static struct side side, quiet;
static struct fi_context2 contexts[WINDOW];
static char message[8], buffers[WINDOW][8];
static struct { char name[2][256]; volatile int known[2]; } *shared;

static void use_core(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    CHECK(!sched_setaffinity(0, sizeof cores, &cores), "two cores are needed");
}

static void complete(int count) {
    struct fi_cq_tagged_entry entries[BATCH];
    while (count > 0) {
        ssize_t read = fi_cq_read(side.cq, entries, BATCH);
        CHECK(read > 0 || read == -FI_EAGAIN, "%zd", read);
        if (read > 0) count -= (int)read;
        if (quiet.cq) fi_cq_read(quiet.cq, entries, BATCH);
    }
}

static void send(uint64_t tag) {
    ssize_t sent;
    while ((sent = fi_tinject(side.ep, message, sizeof message, side.peer, tag)) == -FI_EAGAIN)
        fi_cq_read(side.cq, NULL, 0);
    CHECK(sent == 0, "%zd", sent);
}

static void receive(int count, uint64_t tag) {
    for (int i = 0; i < count; i++)
        OK(fi_trecv(side.ep, buffers[i], sizeof buffers[i], NULL, side.peer, tag, 0, &contexts[i]));
}

static void window(int sends) {
    if (sends) {
        for (int i = 0; i < WINDOW; i++) send(STREAM);
        receive(1, ANSWER);
        complete(1);
    } else {
        receive(WINDOW, STREAM);
        complete(WINDOW);
        send(ANSWER);
    }
}

static void trip(int starts) {
    receive(1, ANSWER);
    if (starts) send(ANSWER);
    complete(1);
    if (!starts) send(ANSWER);
}

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

// Returns the median of the seconds per call of `one`.
static double time_of(void (*one)(int), int first, int count) {
    double times[RUNS];
    for (int run = 0; run < RUNS; run++) {
        for (int i = 0; i < WARM_UP; i++) one(first);
        double start = seconds();
        for (int i = 0; i < count; i++) one(first);
        times[run] = (seconds() - start) / count;
    }
    qsort(times, RUNS, sizeof *times, by_value);
    return times[RUNS / 2];
}

int main(int argc, char **argv) {
    const char *provider = getenv("FI_PROVIDER");
    int bound = 0, beside = 0;
    CHECK(provider, "FI_PROVIDER names the provider");
    for (int i = 1; i < argc; i++) {
        bound |= !strcmp(argv[i], "bound");
        beside |= !strcmp(argv[i], "beside");
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "mmap");
    pid_t pid = fork();
    int own = !pid;
    if (bound) use_core(own);
    open_named(provider, FI_THREAD_DOMAIN);
    open_side(&side, 0, 2);
    if (beside) open_side(&quiet, 0, 2);
    size_t len = sizeof shared->name[own];
    OK(fi_getname(&side.ep->fid, shared->name[own], &len));
    __atomic_store_n(&shared->known[own], 1, __ATOMIC_RELEASE);
    while (!__atomic_load_n(&shared->known[!own], __ATOMIC_ACQUIRE)) sched_yield();
    CHECK(fi_av_insert(side.av, shared->name[!own], 1, &side.peer, 0, NULL) == 1, "not inserted");

    double message_time = time_of(window, own, WINDOWS) / WINDOW;
    double trip_time = time_of(trip, own, TRIPS) / 2;
    close_side(&side);
    if (beside) close_side(&quiet);
    close_domain();
    if (!pid) return 0;
    printf("%s%s%s: %.0f ns a message, half a round trip %.0f ns\n", provider,
           bound ? ", bound" : "", beside ? ", beside a quiet endpoint" : "", message_time * 1e9,
           trip_time * 1e9);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%d", status);
    return 0;
}
