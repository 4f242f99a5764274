// SPDX-License-Identifier: BSD-2-Clause
// Tests forked children of a process with an endpoint. One child closes the inherited endpoint, one
// opens its own endpoint, and one outlives its parent. Peers must notice the death of this parent
// nevertheless.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[64];

static void exchange(void) {
    uint64_t value = 0, sent = 42;
    fi_addr_t self = insert(&mine, mine.ep);
    OK(fi_trecv(mine.ep, &value, 8, NULL, self, 1, 0, &value));
    OK(fi_tinject(mine.ep, &sent, 8, self, 1));
    next_ok(&mine, NULL, &value);
    CHECK(value == sent, "%lu", value);
}

static void well(pid_t child) {
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && !WEXITSTATUS(status), "child: %x", status);
}

// The parent. It opens an endpoint, forks children and waits to be killed.
static void parent(int out) {
    size_t len = sizeof name;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_side(&mine, 0, 4);
    OK(fi_getname(&mine.ep->fid, name, &len));
    exchange();
    pid_t child = fork();
    if (!child) {
        OK(fi_close(&mine.ep->fid));
        _exit(0);
    }
    well(child);
    exchange();
    child = fork();
    if (!child) {
        struct side other;
        open_side(&other, 0, 4);
        insert(&other, other.ep);
        OK(fi_close(&other.ep->fid));
        exit(0);
    }
    well(child);
    exchange();
    child = fork();
    if (!child) {
        alarm((unsigned)within(30));
        for (;;) pause();
    }
    CHECK(write(out, name, 16) == 16 && write(out, &child, sizeof child) == sizeof child, "write");
    for (;;) fi_cq_read(mine.cq, NULL, 0);
}

int main(void) {
    int from[2];
    struct card theirs;
    char byte[8];
    pid_t orphan;
    CHECK(pipe(from) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) {
        alarm((unsigned)within(30));
        parent(from[1]);
    }
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_side(&mine, 0, 4);
    CHECK(read(from[0], theirs.name, 16) == 16 && read(from[0], &orphan, sizeof orphan) == sizeof orphan, "read");
    fi_addr_t peer;
    CHECK(fi_av_insert(mine.av, theirs.name, 1, &peer, 0, NULL) == 1, "insert");
    OK(fi_tinject(mine.ep, "hello", 5, peer, 1));
    OK(fi_trecv(mine.ep, byte, 8, NULL, peer, 1, 0, byte));
    CHECK(kill(pid, SIGKILL) == 0, "kill");
    double start = seconds();
    CHECK(next_error(&mine, NULL, ECONNABORTED).op_context == byte, "context");
    CHECK(seconds() - start < within(5), "noticed after %.1f s", seconds() - start);
    CHECK(kill(orphan, 0) == 0, "the orphan is gone");
    FAILS(FI_ECONNREFUSED, fi_tinject(mine.ep, "again", 5, peer, 1));
    CHECK(leftovers(&theirs) == 0, "the dead left a segment");
    exchange();
    kill(orphan, SIGKILL);
    waitpid(pid, NULL, 0);
    close_side(&mine);
    close_domain();
    puts("orphan: ok");
}
