// SPDX-License-Identifier: BSD-2-Clause
// This process has no free descriptor for some time. Messages of a new peer arrive if the provider's
// reserve suffices, and otherwise when descriptors are free again. A send to a new peer returns
// -FI_EAGAIN. No message is lost.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#define SENDERS 3

static const size_t lengths[] = {8, 1000, 100000};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static unsigned char bytes[LENGTHS][100000];

// Sends one message of each length on request, and waits for their completions and an answer.
static void sender(int in, int out, unsigned number) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char go, answer[8];
    struct card of = hear(in);
    open_card(CAPS, NULL, 0);
    fi_addr_t to = enter(&of);
    tell(out, &card);
    CHECK(read(in, &go, 1) == 1, "read");
    OK(fi_trecv(mine.ep, answer, 8, NULL, to, 9, 0, answer));
    for (size_t i = 0; i < LENGTHS; i++) {
        memset(bytes[i], (int)(number * 10 + i), lengths[i]);
        OK(fi_tsend(mine.ep, bytes[i], lengths[i], NULL, to, i, bytes[i]));
    }
    for (size_t i = 0; i <= LENGTHS; i++) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        CHECK(next_entry(&mine, NULL, &entry, NULL, &failure) == 0, "error %d", failure.err);
    }
    close_card();
    exit(0);
}

static void post(void) {
    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < LENGTHS; i++)
        OK(fi_trecv(mine.ep, bytes[i], sizeof bytes[i], NULL, FI_ADDR_UNSPEC, i, 0, bytes[i]));
}

static void arrives(unsigned number) {
    for (size_t i = 0; i < LENGTHS; i++) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        CHECK(next_entry(&mine, NULL, &entry, NULL, &failure) == 0, "error %d", failure.err);
    }
    for (size_t i = 0; i < LENGTHS; i++)
        for (size_t at = 0; at < lengths[i]; at++)
            CHECK(bytes[i][at] == number * 10 + i, "byte %zu of %zu is %d", at, lengths[i], bytes[i][at]);
}

static void limit(rlim_t most) {
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "getrlimit");
    limit.rlim_cur = most ? most : limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
}

int main(void) {
    int to[SENDERS], from[SENDERS], taken[4096], count = 0;
    pid_t pids[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        int there[2], back[2];
        CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
        fflush(NULL);
        if (!(pids[i] = fork())) sender(there[0], back[1], i);
        to[i] = there[1], from[i] = back[0];
    }
    open_card(CAPS, NULL, 0);
    fi_addr_t peers[SENDERS];
    for (unsigned i = 0; i < SENDERS; i++) {
        tell(to[i], &card);
        struct card other = hear(from[i]);
        peers[i] = enter(&other);
    }

    // No descriptor is left, except those that the provider holds in reserve.
    limit(256);
    while (count < 4096 && (taken[count] = dup(0)) >= 0) count++;
    post();
    CHECK(write(to[0], "", 1) == 1, "write");
    arrives(0);
    while (count) close(taken[--count]);

    // No descriptor can be opened, not even after the provider has closed one.
    limit(3);
    post();
    CHECK(write(to[1], "", 1) == 1, "write");
    for (double end = seconds() + 0.5; seconds() < end;) nothing(&mine);
    FAILS(FI_EAGAIN, fi_tinject(mine.ep, "answer 2", 8, peers[2], 9));
    limit(0);
    arrives(1);

    // Repeats this with receives that are posted only after descriptors are free again.
    limit(3);
    CHECK(write(to[2], "", 1) == 1, "write");
    for (double end = seconds() + 0.2; seconds() < end;) nothing(&mine);
    limit(0);
    post();
    arrives(2);
    for (unsigned i = 0; i < SENDERS; i++) {
        ssize_t sent;
        while ((sent = fi_tinject(mine.ep, "answer 1", 8, peers[i], 9)) == -FI_EAGAIN) nothing(&mine);
        CHECK(sent == 0, "%zd", sent);
        int status;
        while (waitpid(pids[i], &status, WNOHANG) == 0) fi_cq_read(mine.cq, NULL, 0);
        CHECK(status == 0, "sender %u: %d", i, status);
    }
    close_card();
    puts("short: ok");
}
