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

int main(void) {
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
