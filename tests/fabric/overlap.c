// SPDX-License-Identifier: BSD-2-Clause
// A benchmark: which part of a long receive overlaps with computation, with automatic and with
// manual progress. Two processes; prints medians of many rounds.
//   overlap [BYTES [FACTOR]]: the computation is FACTOR times as long as the receive
#define _GNU_SOURCE
#include "fabric.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300, WARM_UP = 20 };
static size_t bytes = 1 << 20;
static double factor = 2;
static char *buffer;
static struct side side;
static struct { char name[2][16]; volatile int known[2]; } *shared;

static void await(void *context) {
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    double end = seconds() + within(20);
    while ((count = fi_cq_read(side.cq, &entry, 1)) == -FI_EAGAIN && seconds() < end);
    CHECK(count == 1 && entry.op_context == context, "%zd", count);
}

static void doze(void *context) {
    struct fi_cq_tagged_entry entry;
    ssize_t count = fi_cq_sread(side.cq, &entry, 1, NULL, 20000);
    CHECK(count == 1 && entry.op_context == context, "%zd", count);
}

static int by_value(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double median(double *values) {
    qsort(values, ROUNDS, sizeof *values, by_value);
    return values[ROUNDS / 2];
}

// Binds the calling thread to a core. The computation has the first core. The sender and the thread
// for automatic progress share the second.
static void use_core(int core) {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core, &cores);
    CHECK(!sched_setaffinity(0, sizeof cores, &cores), "two cores are needed");
}

static volatile uint64_t sink;

static void compute(uint64_t steps) {
    uint64_t value = sink;
    for (uint64_t i = 0; i < steps; i++) value = value * 6364136223846793005u + 1442695040888963407u;
    sink = value;
}

static void sender(void) {
    char go;
    for (;;) {
        OK(fi_trecv(side.ep, &go, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &go));
        doze(&go);
        if (go == 'e') return;
        memset(buffer, go, bytes);
        OK(fi_tsend(side.ep, buffer, bytes, NULL, side.peer, 2, buffer));
        doze(buffer);
    }
}

// Receives one message and computes `steps` meanwhile. Returns the seconds that both take together.
static double receive(int round, uint64_t steps) {
    char go = (char)('f' + (round + WARM_UP) % 16);
    double start = seconds();
    OK(fi_trecv(side.ep, buffer, bytes, NULL, side.peer, 2, 0, buffer));
    OK(fi_tinject(side.ep, &go, 1, side.peer, 1));
    compute(steps);
    await(buffer);
    double took = seconds() - start;
    CHECK(buffer[0] == go && !memcmp(buffer, buffer + 1, bytes - 1), "wrong bytes");
    // The sender needs this time to go back to sleep.
    usleep(200);
    return took;
}

static void receiver(const char *name) {
    static double alone[ROUNDS], computing[ROUNDS], both[ROUNDS];
    uint64_t steps = 100000;
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        double took = receive(round, 0);
        if (round >= 0) alone[round] = took;
    }
    double receiving = median(alone);
    for (int i = 0; i < 5; i++) {
        double start = seconds();
        compute(steps);
        steps = (uint64_t)((double)steps * factor * receiving / (seconds() - start)) + 1;
    }
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        double start = seconds();
        compute(steps);
        double took = seconds() - start;
        if (round >= 0) computing[round] = took;
        took = receive(round, steps);
        if (round >= 0) both[round] = took;
    }
    double hidden = (receiving + median(computing) - median(both)) / receiving;
    printf("overlap progress=%s bytes=%zu receive_us=%.1f compute_us=%.1f both_us=%.1f hidden=%.0f%%\n",
           name, bytes, receiving * 1e6, median(computing) * 1e6, median(both) * 1e6, hidden * 100);
    OK(fi_tinject(side.ep, "e", 1, side.peer, 1));
}

static void measure(enum fi_progress wanted, const char *name) {
    progress = wanted;
    memset((void *)shared, 0, sizeof *shared);
    fflush(stdout);
    pid_t child = fork();
    int me = child == 0;
    // A new thread inherits the affinity of its creator.
    use_core(1);
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 2);
    size_t len = 16;
    OK(fi_getname(&side.ep->fid, shared->name[me], &len));
    shared->known[me] = 1;
    while (!shared->known[!me]) usleep(100);
    CHECK(fi_av_insert(side.av, shared->name[!me], 1, &side.peer, 0, NULL) == 1, "not inserted");
    if (me) {
        sender();
    } else {
        use_core(0);
        receiver(name);
    }
    close_side(&side);
    close_domain();
    if (me) exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
}

int main(int argc, char **argv) {
    if (argc > 1) bytes = strtoul(argv[1], NULL, 10);
    if (argc > 2) factor = strtod(argv[2], NULL);
    alarm((unsigned)within(100));
    buffer = malloc(bytes);
    memset(buffer, 0, bytes);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    measure(FI_PROGRESS_MANUAL, "manual");
    measure(FI_PROGRESS_AUTO, "auto");
}
