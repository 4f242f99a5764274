// SPDX-License-Identifier: BSD-2-Clause
// Tests automatic progress. Messages move while the program makes no calls. The progress thread
// sleeps when nothing arrives. It ends with its domain and with the process, but not with a forked
// child.
#include "fabric.h"
#include <dirent.h>
#include <pthread.h>
#include <rdma/fi_trigger.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 1 << 20 };
static struct side a, b;
static char out[LONG], in[LONG];

static int threads(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    while (readdir(tasks)) count++;
    closedir(tasks);
    return count - 2;
}

static void comes(volatile char *where, char what) {
    double end = seconds() + within(10);
    while (*where != what && seconds() < end) usleep(50);
    CHECK(*where == what, "nothing came");
}

// The receiver makes no call between posting and reading its completion.
static void moves(size_t len, int expected, char what) {
    memset(out, what, len);
    memset(in, 0, len);
    if (expected) OK(fi_trecv(b.ep, in, len, NULL, b.peer, 1, 0, in));
    OK(fi_tsend(a.ep, out, len, NULL, a.peer, 1, out));
    usleep(1000);
    if (!expected) OK(fi_trecv(b.ep, in, len, NULL, b.peer, 1, 0, in));
    comes(&in[len - 1], what);
    next_ok(&b, NULL, in);
    CHECK(!memcmp(in, out, len), "wrong bytes");
    next_ok(&a, NULL, out);
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec
        + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Receives messages in many rounds, alternately by polling and by sleeping.
static void rounds(void) {
    for (uint64_t i = 1; i <= 20000; i++) {
        uint64_t value = 0;
        struct fi_cq_tagged_entry entry;
        OK(fi_trecv(b.ep, &value, 8, NULL, b.peer, 2, 0, &value));
        OK(fi_tinject(a.ep, &i, 8, a.peer, 2));
        if (i % 2) next_ok(&b, NULL, &value);
        else CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, (int)within(10000)) == 1, "round %lu", i);
        CHECK(value == i, "%lu, not %lu", value, i);
    }
}

static void child_forked(int closes) {
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        alarm((unsigned)within(10));
        if (closes) {
            fi_close(&a.ep->fid);
            fi_close(&domain->fid);
        }
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
    moves(8, 1, 'x');
}

// A deferred send of `b` waits until a counter has counted one more send of `b`. It starts although
// `b` makes no call after that send, and no message wakes the progress thread.
static void starts_ripe_work(struct fid_cntr *sent) {
    char byte = 5;
    struct iovec bytes = {&byte, 1};
    for (int round = 0; round < 20; round++) {
        struct fi_triggered_context2 context = {.event_type = FI_TRIGGER_THRESHOLD};
        context.trigger.threshold.cntr = sent;
        context.trigger.threshold.threshold = fi_cntr_read(sent) + 1;
        struct fi_msg_tagged later = {.msg_iov = &bytes, .iov_count = 1, .addr = b.peer, .tag = 6, .context = &context};
        char first = 0, second = 0;
        OK(fi_trecv(a.ep, &first, 1, NULL, FI_ADDR_UNSPEC, 5, 0, &first));
        OK(fi_trecv(a.ep, &second, 1, NULL, FI_ADDR_UNSPEC, 6, 0, &second));
        OK(fi_tsendmsg(b.ep, &later, FI_TRIGGER | FI_COMPLETION));
        usleep((useconds_t)within(2000));
        OK(fi_tinject(b.ep, &byte, 1, b.peer, 5));
        double start = seconds();
        next_ok(&a, NULL, &first);
        next_ok(&a, NULL, &second);
        CHECK(seconds() - start < within(0.05), "ripe work started after %.3f s", seconds() - start);
        next_ok(&b, NULL, &context);
    }
}

// `b` makes no more calls while it has an answer that did not fit into the ring of `a`. The answer is
// sent as soon as `a` has made room.
static void answers_late(void) {
    char byte = 1, came = 0;
    struct iovec bytes = {&byte, 1};
    struct fi_cq_tagged_entry entry;
    unsetenv("AUTO_PROGRESS");
    progress = FI_PROGRESS_MANUAL;
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    open_side(&a, 0, 2);
    struct fi_info *other_info = info;
    struct fid_fabric *other_fabric = fabric;
    struct fid_domain *other_domain = domain;
    progress = FI_PROGRESS_AUTO;
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    struct fi_cntr_attr counts = {.wait_obj = FI_WAIT_NONE};
    struct fid_cntr *sends;
    OK(fi_cntr_open(domain, &counts, &sends, NULL));
    open_unbound(&b, 0, 2);
    OK(fi_ep_bind(b.ep, &sends->fid, FI_SEND));
    OK(fi_enable(b.ep));
    meet(&a, &b);
    struct fi_msg_tagged sent = {.msg_iov = &bytes, .iov_count = 1, .addr = a.peer, .tag = 3, .context = out};
    OK(fi_tsendmsg(a.ep, &sent, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    usleep((useconds_t)within(10000));
    int before = 0;
    while (fi_tinject(b.ep, &byte, 1, b.peer, 4) == 0) before++;
    // After a send that found no room, the progress thread wakes every 50 us, until a send succeeds.
    OK(fi_tinject(b.ep, &byte, 1, b.self, 4));
    usleep((useconds_t)within(10000));
    OK(fi_trecv(b.ep, &came, 1, NULL, FI_ADDR_UNSPEC, 3, 0, &came));
    CHECK(came == 1, "the message is not there");
    usleep((useconds_t)within(10000));
    double start = seconds();
    while (fi_cq_read(a.cq, &entry, 1) != 1) CHECK(seconds() < start + within(10), "no answer");
    // With a recording, 66,560 messages come before the answer. The time to handle them hides that of the
    // progress thread.
    CHECK(before > 2048 || seconds() - start < within(0.05), "an answer after %.3f s", seconds() - start);
    next_ok(&b, NULL, &came);
    starts_ripe_work(sends);
    close_side(&b);
    OK(fi_close(&sends->fid));
    close_domain();
    info = other_info;
    fabric = other_fabric;
    domain = other_domain;
    close_side(&a);
    close_domain();
}

int main(void) {
    answers_late();
    progress = FI_PROGRESS_AUTO;
    int before = threads();
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    CHECK(threads() == before + 1, "%d threads", threads() - before);
    static const size_t lengths[] = {1, 200, 4000, 100000, LONG};
    for (size_t i = 0; i < 5; i++)
        for (int expected = 0; expected < 2; expected++) moves(lengths[i], expected, (char)(i * 2 + (size_t)expected + 1));
    rounds();
    usleep(50000);
    double start = cpu();
    usleep(500000);
    CHECK(cpu() - start < 0.05, "idle, but %.3f s of processor time", cpu() - start);
    child_forked(0);
    child_forked(1);
    close_side(&a);
    close_side(&b);
    close_domain();
    // The kernel may list a thread for some time after pthread_join.
    for (double end = seconds() + within(10); threads() != before && seconds() < end;) usleep(1000);
    CHECK(threads() == before, "%d threads are left", threads() - before);
    // A child process exits with all its objects open.
    pid_t child = fork();
    if (!child) {
        alarm((unsigned)within(20));
        open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_SAFE, 0);
        open_pair(&a, &b, 0);
        moves(8, 1, 'y');
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
    puts("auto: ok");
}
