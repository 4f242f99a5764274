// SPDX-License-Identifier: BSD-2-Clause
// A peer is killed. Operations that wait for it fail within seconds, other operations continue, and
// its files in /dev/shm are removed. There are more peers than one periodic check covers, and the
// killed peer is the last of them. Only the endpoint that waits for this peer makes progress.
#include "card.h"
#include <signal.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)

enum { BYSTANDERS = 9 };
static char large[1 << 20];

// Another peer. It opens an endpoint and sleeps until the other end of a pipe is closed.
static void bystander(int until[2], int out) {
    char byte;
    close(until[1]);
    open_card(CAPS, NULL, 0);
    tell(out, &card);
    CHECK(read(until[0], &byte, 1) == 0, "read");
    close_card();
    exit(0);
}

// The peer that is killed. It opens an endpoint, sends its card and two messages, and polls.
static void victim(int in, int out) {
    struct card other = hear(in);
    open_card(CAPS, NULL, 0);
    fi_addr_t to = enter(&other);
    tell(out, &card);
    OK(fi_tinject(mine.ep, "hello", 5, to, 1));
    OK(fi_tsend(mine.ep, large, sizeof large, NULL, to, 2, NULL));
    for (;;) fi_cq_read(mine.cq, NULL, 0);
}

int main(void) {
    int to_victim[2], from_victim[2], from_others[2], until[2];
    char hello[5];
    CHECK(pipe(to_victim) == 0 && pipe(from_victim) == 0, "pipe");
    CHECK(pipe(from_others) == 0 && pipe(until) == 0, "pipe");
    for (int i = 0; i < BYSTANDERS; i++)
        if (!fork()) bystander(until, from_others[1]);
    pid_t pid = fork();
    if (!pid) victim(to_victim[0], from_victim[1]);

    open_card(CAPS, NULL, 0);
    for (int i = 0; i < BYSTANDERS; i++) {
        struct card other = hear(from_others[0]);
        OK(fi_tinject(mine.ep, "hello", 5, enter(&other), 1));
    }
    tell(to_victim[1], &card);
    struct card victims = hear(from_victim[0]);
    fi_addr_t peer = enter(&victims), self = enter(&card);

    OK(fi_trecv(mine.ep, hello, 5, NULL, peer, 1, 0, hello));
    next_ok(&mine, NULL, hello);
    // Operations that wait for the peer: a directed receive, and a long message that it will not receive.
    OK(fi_trecv(mine.ep, hello, 5, NULL, peer, 7, 0, hello));
    OK(fi_tsend(mine.ep, large, sizeof large, NULL, peer, 8, large));
    CHECK(leftovers(&victims) == 1, "the peer has no segment");
    CHECK(kill(pid, SIGKILL) == 0, "kill");

    double start = seconds();
    for (int i = 0; i < 2; i++) {
        struct fi_cq_err_entry failure = next_error(&mine, NULL, ECONNABORTED);
        CHECK(failure.op_context == hello || failure.op_context == large, "context");
    }
    CHECK(seconds() - start < within(5), "%.1f s", seconds() - start);
    CHECK(leftovers(&victims) == 0, "the dead left a segment");

    // Other operations continue; sends to the dead peer are refused, and no operation waits for it.
    OK(fi_trecv(mine.ep, hello, 5, NULL, self, 9, 0, hello));
    OK(fi_tinject(mine.ep, "again", 5, self, 9));
    next_ok(&mine, NULL, hello);
    FAILS(ECONNREFUSED, fi_tinject(mine.ep, "again", 5, peer, 9));
    OK(fi_trecv(mine.ep, hello, 5, NULL, peer, 7, 0, hello));
    start = seconds();
    next_error(&mine, NULL, ECONNABORTED);
    CHECK(seconds() - start < within(5), "%.1f s", seconds() - start);
    close_card();
    close(until[1]);
    waitpid(pid, NULL, 0);
    for (int i = 0; i < BYSTANDERS; i++) CHECK(wait(NULL) > 0, "wait");
    puts("death: ok");
}
