// SPDX-License-Identifier: BSD-2-Clause
// Tests a thread that polls, and whose polls sleep (FI_TCAM_IDLE=yield). A completion reported by
// another thread ends the sleep. If both threads alternate under a lock of the program, as in
// MPICH, no sleep of the first delays the second for long.
#include "fabric.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { SLEEPS = 21, POSTS = 101 };

static struct side side;
static _Atomic(void *) context;
static atomic_int over;
static double found;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int compare(const void *x, const void *y) {
    double one = *(const double *)x, other = *(const double *)y;
    return (one > other) - (one < other);
}

// Checks that the median is shorter than 250 us, a quarter of a sleep. On a busy machine a thread may
// wait longer than a sleep for a processor, so that the times tell nothing.
static void soon(double *times, size_t count, const char *what) {
    if (slowness > 1) return;
    qsort(times, count, sizeof *times, compare);
    CHECK(times[count / 2] < 250e-6, "%s after %.0f us", what, times[count / 2] * 1e6);
}

static void rest(long ns) {
    struct timespec time = {.tv_nsec = ns};
    nanosleep(&time, NULL);
}

// Posts a receive and polls until the receive is cancelled.
static void *receive(void *arg) {
    static char in[8];
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    OK(fi_trecv(side.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    while ((count = fi_cq_read(side.cq, &entry, 1)) == -FI_EAGAIN) atomic_store(&context, in);
    found = seconds();
    CHECK(count == -FI_EAVAIL, "%zd", count);
    return arg;
}

// A polling thread finds the completion of a cancel soon. The cancel is the first operation of another
// thread on the endpoint, and rings no doorbell.
static void a_report_ends_the_sleep(void) {
    double took[SLEEPS];
    pthread_t polls;
    for (int i = 0; i < SLEEPS; i++) {
        open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
        open_side(&side, 0, 1);
        atomic_store(&context, NULL);
        OK(pthread_create(&polls, NULL, receive, NULL));
        while (!atomic_load(&context)) rest(1000);
        rest(20000000 + i * 50000);
        double start = seconds();
        OK(fi_cancel(&side.ep->fid, atomic_load(&context)));
        OK(pthread_join(polls, NULL));
        took[i] = found - start;
        close_side(&side);
        close_domain();
    }
    soon(took, SLEEPS, "found");
}

static void *poll_locked(void *arg) {
    struct fi_cq_tagged_entry entry;
    while (!atomic_load(&over)) {
        pthread_mutex_lock(&turn);
        FAILS(FI_EAGAIN, fi_cq_read(side.cq, &entry, 1));
        pthread_mutex_unlock(&turn);
        sched_yield();
    }
    return arg;
}

// Posts a receive every `every` ns, while another thread polls.
static void no_sleep_keeps_the_other_waiting(long every) {
    static char in[POSTS];
    double took[POSTS];
    pthread_t polls;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    atomic_store(&over, 0);
    OK(pthread_create(&polls, NULL, poll_locked, NULL));
    for (int i = 0; i < POSTS; i++) {
        rest(every);
        double start = seconds();
        pthread_mutex_lock(&turn);
        took[i] = seconds() - start;
        OK(fi_trecv(side.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in[i]));
        pthread_mutex_unlock(&turn);
    }
    atomic_store(&over, 1);
    OK(pthread_join(polls, NULL));
    soon(took, POSTS, every > 1000000 ? "rare posts: the lock was free" : "the lock was free");
    close_side(&side);
    close_domain();
}

int main(void) {
    alarm((unsigned)within(50));
    a_report_ends_the_sleep();
    no_sleep_keeps_the_other_waiting(1000000);
    no_sleep_keeps_the_other_waiting(30000000);
    puts(slowness > 1 ? "naps: times skipped, the machine is busy" : "naps: ok");
}
