// SPDX-License-Identifier: BSD-2-Clause
// A program polls at long intervals and finds a message in some of the polls. The error of a receive from a
// killed peer comes within two seconds.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)

// Returns the seconds from the kill until the error. The program sleeps for `pause_us` between polls. One
// poll in `one_in` finds a message, or no poll if `one_in` is 0.
static double until_told(int pause_us, int one_in) {
    int to[2], from[2];
    char byte = 0, got;
    CHECK(pipe(to) == 0 && pipe(from) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        struct card other = hear(to[0]);
        open_card(CAPS, NULL, 0);
        tell(from[1], &card);
        OK(fi_tinject(mine.ep, &byte, 1, enter(&other), 1));
        for (;;) pause();
    }
    open_card(CAPS, NULL, 0);
    tell(to[1], &card);
    struct card victims = hear(from[0]);
    fi_addr_t peer = enter(&victims), self = enter(&card);
    OK(fi_trecv(mine.ep, &byte, 1, NULL, peer, 1, 0, &byte));
    next_ok(&mine, NULL, &byte);
    // After many polls without a result, the provider reads the clock as rarely as possible.
    for (int i = 0; i < 20; i++) nothing(&mine);
    OK(fi_trecv(mine.ep, &byte, 1, NULL, peer, 2, 0, &byte));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "kill");
    double start = seconds();
    for (int i = 1;; i++) {
        struct timespec time = {.tv_nsec = pause_us * 1000};
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure = {0};
        if (one_in && i % one_in == 0) {
            OK(fi_trecv(mine.ep, &got, 1, NULL, self, 3, 0, &got));
            OK(fi_tinject(mine.ep, &got, 1, self, 3));
        }
        ssize_t count = fi_cq_read(mine.cq, &entry, 1);
        if (count == -FI_EAVAIL) {
            CHECK(fi_cq_readerr(mine.cq, &failure, 0) == 1, "no error entry");
            CHECK(failure.err == ECONNABORTED && failure.op_context == &byte, "%d", failure.err);
            break;
        }
        CHECK(count == 1 || count == -FI_EAGAIN, "%zd", count);
        CHECK(seconds() - start < within(30), "no error");
        nanosleep(&time, NULL);
    }
    double took = seconds() - start;
    close_card();
    return took;
}

int main(void) {
    static const int pauses[] = {20, 200, 5000}, finds[] = {0, 57, 7, 1};
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 4; k++) {
            double took = until_told(pauses[i], finds[k]);
            printf("a poll each %d us, one in %d finds something: %.2f s\n", pauses[i], finds[k], took);
            CHECK(took < within(2), "%.1f s", took);
        }
    puts("seldom: ok");
}
