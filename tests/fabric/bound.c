// SPDX-License-Identifier: BSD-2-Clause
// Tests two processes, one of which waits for the other. If each is bound to a separate processor,
// the waiting process spins. If both are bound to the same processor, the waiting process sleeps,
// so that the other one can run.
#define _GNU_SOURCE
#include "fabric.h"
#include <glob.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300 };
struct name {
    size_t len;
    char bytes[64];
};
static const double WORK = 200e-6, SETTLE = 0.5;
static struct side side;
static struct fi_context context;

static void bind_to(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0, "processor %d", processor);
}

// Stores the numbers of the first two processors of this process. Returns how many it stored.
static int processors(int numbers[2]) {
    cpu_set_t set;
    int count = 0;
    CHECK(sched_getaffinity(0, sizeof set, &set) == 0, "sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE && count < 2; i++)
        if (CPU_ISSET(i, &set)) numbers[count++] = i;
    return count;
}

static void open_to(int to, int from) {
    struct name name = {.len = sizeof name.bytes};
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    OK(fi_getname(&side.ep->fid, name.bytes, &name.len));
    CHECK(write(to, &name, sizeof name) == sizeof name, "write");
    CHECK(read(from, &name, sizeof name) == sizeof name, "read");
    CHECK(fi_av_insert(side.av, name.bytes, 1, &side.peer, 0, NULL) == 1, "not inserted");
}

static uint64_t wait_for_one(void) {
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    OK(fi_trecv(side.ep, NULL, 0, NULL, side.peer, 0, 1, &context));
    while ((count = fi_cq_read(side.cq, &entry, 1)) == -FI_EAGAIN);
    CHECK(count == 1, "%zd", count);
    return entry.tag;
}

// Answers each message after some work, until one has tag 1.
static void answer(void) {
    while (wait_for_one() == 0) {
        double end = seconds() + WORK;
        while (seconds() < end);
        OK(fi_tinject(side.ep, NULL, 0, side.peer, 0));
    }
}

static void ask(void) {
    OK(fi_tinject(side.ep, NULL, 0, side.peer, 0));
    wait_for_one();
}

static long sleeps(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    return usage.ru_nvcsw;
}

// Runs both processes on the given processors. Returns how many times the asking process slept.
static long run(int asks, int answers) {
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = fork();
    bind_to(pid ? asks : answers);
    if (!pid) {
        open_to(back[1], there[0]);
        answer();
        close_side(&side);
        close_domain();
        exit(0);
    }
    open_to(there[1], back[0]);
    double settled = seconds() + SETTLE;
    while (seconds() < settled) ask();
    long before = sleeps();
    for (int i = 0; i < ROUNDS; i++) ask();
    long slept = sleeps() - before;
    OK(fi_tinject(side.ep, NULL, 0, side.peer, 1));
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "%d", status);
    close_side(&side);
    close_domain();
    return slept;
}

static int others(void) {
    char segments[64];
    glob_t found;
    snprintf(segments, sizeof segments, "/dev/shm/tcam.%u/segment.*", geteuid());
    int none = glob(segments, 0, NULL, &found);
    if (!none) globfree(&found);
    return !none;
}

int main(void) {
    int numbers[2];
    if (processors(numbers) < 2) return puts("bound: skipped, there is one processor") < 0;
    long together = run(numbers[0], numbers[0]);
    CHECK(together > ROUNDS / 2, "slept %ld times in %d rounds on one processor", together, ROUNDS);
    // Endpoints that other tests open meanwhile may make the process sleep.
    long apart = ROUNDS;
    for (int attempt = 0; attempt < 3 && apart >= ROUNDS / 4; attempt++) {
        if (others()) return puts("bound: skipped in part, others have endpoints here") < 0;
        apart = run(numbers[0], numbers[1]);
    }
    CHECK(apart < ROUNDS / 4, "slept %ld times in %d rounds on two processors", apart, ROUNDS);
    puts("bound: ok");
}
