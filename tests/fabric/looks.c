// SPDX-License-Identifier: BSD-2-Clause
// Processes that look for a message between steps of a computation that are too short for tcam to
// see, alone and three for each of two processors: such a program may neither be kept inside of
// its polls for long nor sleep in each of them.
#define _GNU_SOURCE
#include "fabric.h"
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

// More than tcam takes for a long wait.
enum { ALONE = 400000, CROWDED = 100000, PROCESSES = 6 };
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

// So many looks, once all that look have an endpoint.
static void look(int looks, int ready, int go) {
    struct fi_cq_tagged_entry entry;
    char byte = 0;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    CHECK(write(ready, &byte, 1) == 1, "write");
    CHECK(read(go, &byte, 1) == 1, "read");
    for (int i = 0; i < looks; i++)
        CHECK(fi_cq_read(side.cq, &entry, 1) == -FI_EAGAIN, "something came");
    close_side(&side);
    close_domain();
}

static void run(size_t processes, int looks) {
    int ready[2], go[2], status;
    char bytes[PROCESSES] = {0};
    CHECK(pipe(ready) == 0 && pipe(go) == 0, "pipe");
    for (size_t i = 0; i < processes; i++) {
        pid_t child = fork();
        CHECK(child >= 0, "fork");
        if (child == 0) {
            look(looks, ready[1], go[0]);
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
    run(1, ALONE);
    run(PROCESSES, CROWDED);
    printf("looks: ok\n");
    return 0;
}
