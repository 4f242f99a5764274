// SPDX-License-Identifier: BSD-2-Clause
// A forked child that exits does not affect its parent's endpoints.
#include "fabric.h"
#include <sys/wait.h>
#include <unistd.h>

static struct side a, b;

static void exchange(void) {
    uint64_t value = 0, sent = 42;
    OK(fi_trecv(b.ep, &value, 8, NULL, b.peer, 1, 0, &value));
    OK(fi_tinject(a.ep, &sent, 8, a.peer, 1));
    next_ok(&b, &a, &value);
    CHECK(value == sent, "%lu", value);
}

// A forked child has no thread for automatic progress. An endpoint that the child opens makes
// progress in the calls of the child, and the child can close it.
static void child_opens(void) {
    progress = FI_PROGRESS_AUTO;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_SAFE, 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        alarm((unsigned)within(20));
        open_pair(&a, &b, 0);
        exchange();
        struct fi_cq_tagged_entry entry;
        uint64_t value = 0, sent = 44;
        OK(fi_trecv(b.ep, &value, 8, NULL, b.peer, 3, 0, &value));
        OK(fi_tinject(a.ep, &sent, 8, a.peer, 3));
        CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, (int)within(10000)) == 1 && value == sent, "no message");
        close_side(&a);
        close_side(&b);
        exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "child with automatic progress: %x", status);
    close_domain();
    progress = FI_PROGRESS_MANUAL;
}

int main(void) {
    child_opens();
    open_domain(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    exchange();
    pid_t pid = fork();
    if (!pid) exit(0);
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && !WEXITSTATUS(status), "child");
    exchange();
    // An endpoint that is opened now still finds the segments of the others.
    struct side c;
    open_side(&c, 0, 2);
    fi_addr_t to = insert(&c, b.ep);
    uint64_t value = 0, sent = 43;
    OK(fi_trecv(b.ep, &value, 8, NULL, FI_ADDR_UNSPEC, 2, 0, &value));
    OK(fi_tinject(c.ep, &sent, 8, to, 2));
    next_ok(&b, &a, &value);
    CHECK(value == sent, "%lu", value);
    close_side(&c);
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("fork: ok");
}
