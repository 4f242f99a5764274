// SPDX-License-Identifier: BSD-2-Clause
// Tests a thread that polls, and whose polls sleep (FI_TCAM_IDLE=yield). A completion reported by
// another thread ends the sleep. If both threads alternate under a lock of the program, as in
// MPICH, no sleep of the first delays the second for long.
#include "fabric.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

// Runs of each measurement, until one is below its limit: the load of the machine delays the wakeups
// of some runs, a defect of the provider those of every run.
enum { SLEEPS = 21, POSTS = 101, RUNS = 3 };

// The median time of a measurement and its limit, in seconds.
struct result {
    double half, most;
};

static struct side side;
static _Atomic(void *) context;
static atomic_int over;
static double found;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static int compare(const void *x, const void *y) {
    double one = *(const double *)x, other = *(const double *)y;
    return (one > other) - (one < other);
}

static double median(double *times, size_t count) {
    qsort(times, count, sizeof *times, compare);
    return times[count / 2];
}

// Sleeps for `ns`. Returns how many seconds late the sleep ended.
static double rest(long ns) {
    struct timespec time = {.tv_nsec = ns};
    double end = seconds() + (double)ns * 1e-9;
    nanosleep(&time, NULL);
    return seconds() - end;
}

// Returns the time limit of a thread in seconds: 250 us on a quiet machine. It is longer on a busy
// one, where all sleeps end late, not only the provider's.
static double limit(double *late, size_t count) {
    return slowness > 1 ? within(250e-6) + 3 * median(late, count) : 250e-6;
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

// Measures the time from a cancel until a polling thread has found its completion. The cancel is the
// first operation of another thread on the endpoint, and rings no doorbell. `unused` is not read.
static struct result until_found(long unused) {
    double took[SLEEPS], late[SLEEPS];
    pthread_t polls;
    for (int i = 0; i < SLEEPS; i++) {
        open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
        open_side(&side, 0, 1);
        atomic_store(&context, NULL);
        OK(pthread_create(&polls, NULL, receive, NULL));
        while (!atomic_load(&context)) rest(1000);
        late[i] = rest(20000000 + i * 50000);
        double start = seconds();
        OK(fi_cancel(&side.ep->fid, atomic_load(&context)));
        OK(pthread_join(polls, NULL));
        took[i] = found - start;
        close_side(&side);
        close_domain();
    }
    (void)unused;
    return (struct result){median(took, SLEEPS), limit(late, SLEEPS)};
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

// Posts a receive every `every` ns, while another thread polls. Measures how long a post waits for
// the lock of the program.
static struct result until_locked(long every) {
    static char in[POSTS];
    double took[POSTS], late[POSTS];
    pthread_t polls;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    atomic_store(&over, 0);
    OK(pthread_create(&polls, NULL, poll_locked, NULL));
    for (int i = 0; i < POSTS; i++) {
        late[i] = rest(every);
        double start = seconds();
        pthread_mutex_lock(&turn);
        took[i] = seconds() - start;
        OK(fi_trecv(side.ep, &in[i], 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in[i]));
        pthread_mutex_unlock(&turn);
    }
    atomic_store(&over, 1);
    OK(pthread_join(polls, NULL));
    close_side(&side);
    close_domain();
    return (struct result){median(took, POSTS), limit(late, POSTS)};
}

static void check(const char *name, struct result (*measure)(long every), long every) {
    struct result result;
    int run = 0;
    do result = measure(every);
    while (result.half >= result.most && ++run < RUNS);
    CHECK(run < RUNS, "%s: %.0f us, not %.0f", name, result.half * 1e6, result.most * 1e6);
}

int main(void) {
    alarm((unsigned)within(50));
    check("a cancel was found after", until_found, 0);
    check("every ms, the lock was free after", until_locked, 1000000);
    check("every 30 ms, the lock was free after", until_locked, 30000000);
    puts("naps: ok");
}
