// SPDX-License-Identifier: BSD-2-Clause
// Tests programs that poll for a message between the steps of a computation, if these steps are so
// short that tcam does not notice them. Such a program must not sleep in each poll. Runs one
// process alone, and then six processes on two processors.
#define _GNU_SOURCE
#include "fabric.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// BEFORE: polls that a process with a whole core may make before it first sleeps. LOOKS: polls after
// these, in which the number of sleeps is limited.
enum { BEFORE = 200000, LOOKS = 10000, PROCESSES = 6 };
static struct side side;

static void take_two_processors(void) {
    cpu_set_t all, set;
    int taken = 0;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0, "sched_getaffinity");
    CPU_ZERO(&set);
    for (int i = 0; i < CPU_SETSIZE && taken < PROCESSES / 3; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &set);
            taken++;
        }
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static long sleeps(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0, "getrusage");
    return usage.ru_nvcsw;
}

// Polls `before` + LOOKS times, once all processes have an endpoint, and checks the number of sleeps.
static void look(int before, int ready, int go) {
    struct fi_cq_tagged_entry entry;
    char byte = 0;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    CHECK(write(ready, &byte, 1) == 1, "write");
    CHECK(read(go, &byte, 1) == 1, "read");
    long slept = sleeps();
    for (int i = 0; i < before + LOOKS; i++)
        CHECK(fi_cq_read(side.cq, &entry, 1) == -FI_EAGAIN, "something came");
    slept = sleeps() - slept;
    // With ten processes per core, every second poll sleeps.
    CHECK(slept <= LOOKS * 2 / 3, "%ld sleeps", slept);
    close_side(&side);
    close_domain();
}

static void run(size_t processes, int before) {
    int ready[2], go[2], status;
    char bytes[PROCESSES] = {0};
    CHECK(pipe(ready) == 0 && pipe(go) == 0, "pipe");
    for (size_t i = 0; i < processes; i++) {
        pid_t child = fork();
        CHECK(child >= 0, "fork");
        if (child == 0) {
            look(before, ready[1], go[0]);
            exit(0);
        }
    }
    for (size_t i = 0; i < processes; i++) CHECK(read(ready[0], bytes, 1) == 1, "read");
    CHECK(write(go[1], bytes, processes) == (ssize_t)processes, "write");
    for (size_t i = 0; i < processes; i++)
        CHECK(wait(&status) > 0 && status == 0, "a process ended with status %d", status);
}

int main(void) {
    take_two_processors();
    run(1, BEFORE);
    run(PROCESSES, 0);
    printf("looks: ok\n");
    return 0;
}
