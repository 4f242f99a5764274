// SPDX-License-Identifier: BSD-2-Clause
// Tests receives that name a peer without earlier communication. They fail if the peer is killed,
// before or after they are posted, or if it closed before this process had checked it; its last
// message still arrives. They stay posted if this process had checked the peer before it closed, or
// if the peer never existed. A loop that reads a counter notices a dead peer, too.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#define LIMIT 5.0 // seconds until all operations with the dead peer have ended

static char bytes[8][8];

// The action of a peer after it has sent its card.
enum role { STILL, CLOSES };

static pid_t spawn(enum role role, int *from, int *to) {
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm((unsigned)within(30));
        open_card(CAPS, NULL, 0);
        tell(back[1], &card);
        if (role == STILL) for (;;) pause();
        struct card other = hear(there[0]);
        OK(fi_tinject(mine.ep, "goodbye", 8, enter(&other), 1));
        close_card();
        _exit(0);
    }
    *from = back[0], *to = there[1];
    return pid;
}

static void kill_it(pid_t pid) {
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "kill");
}

static void post(fi_addr_t from, int count) {
    for (int i = 0; i < count; i++)
        if (i % 2) OK(fi_trecv(mine.ep, bytes[i], 8, NULL, from, 1, 0, bytes[i]));
        else OK(fi_recv(mine.ep, bytes[i], 8, NULL, from, bytes[i]));
}

static void all_fail(int count) {
    double start = seconds();
    for (int i = 0; i < count; i++) next_error(&mine, NULL, ECONNABORTED);
    CHECK(seconds() - start < within(LIMIT), "%.1f s", seconds() - start);
}

static void nothing_for(double length) {
    for (double start = seconds(); seconds() - start < length;) nothing(&mine);
}

// Opens a domain in another process, which removes the files of dead processes.
static void clean_up(void) {
    pid_t pid = fork();
    if (!pid) {
        open_domain(CAPS, FI_THREAD_SAFE, 0);
        close_domain();
        _exit(0);
    }
    waitpid(pid, NULL, 0);
}

// A loop that only reads a counter ends when the peer is dead.
static void counted(const struct card *of, pid_t pid) {
    struct side side;
    struct fid_cntr *receives;
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    fi_addr_t from;
    open_unbound(&side, 0, 4);
    OK(fi_cntr_open(domain, &attr, &receives, NULL));
    OK(fi_ep_bind(side.ep, &receives->fid, FI_RECV));
    OK(fi_enable(side.ep));
    CHECK(fi_av_insert(side.av, of->name, 1, &from, 0, NULL) == 1, "insert");
    OK(fi_trecv(side.ep, bytes[0], 8, NULL, from, 1, 0, bytes[0]));
    kill_it(pid);
    double start = seconds();
    while (!fi_cntr_read(receives) && !fi_cntr_readerr(receives))
        CHECK(seconds() - start < within(LIMIT), "the counter does not notice it");
    CHECK(fi_cntr_readerr(receives) == 1, "%lu", fi_cntr_readerr(receives));
    close_side(&side);
    OK(fi_close(&receives->fid));
}

int main(void) {
    enum { BEFORE, AFTER, CLEANED, COUNTED };
    int from, to, to_leaving, none;
    // Forked first: a child must not have an endpoint of its parent.
    pid_t pids[4];
    struct card cards[6];
    for (int i = 0; i < 4; i++) pids[i] = spawn(STILL, &from, &none), cards[i] = hear(from);
    pid_t closing = spawn(CLOSES, &from, &to);
    cards[4] = hear(from);
    pid_t leaving = spawn(CLOSES, &from, &to_leaving);
    cards[5] = hear(from);
    open_card(CAPS, NULL, 0);
    fi_addr_t peers[3];
    for (int i = 0; i < 3; i++) peers[i] = enter(&cards[i]);

    post(peers[BEFORE], 8);
    nothing_for(0.2);
    kill_it(pids[BEFORE]);
    all_fail(8);
    kill_it(pids[AFTER]);
    post(peers[AFTER], 8);
    all_fail(8);
    kill_it(pids[CLEANED]);
    clean_up();
    CHECK(leftovers(&cards[CLEANED]) == 0, "the dead left a segment");
    post(peers[CLEANED], 8);
    all_fail(8);
    post(peers[BEFORE], 2);
    all_fail(2);

    // This peer sends a message and closes before this process checks it.
    fi_addr_t gone = enter(&cards[4]);
    tell(to, &card);
    CHECK(waitpid(closing, NULL, 0) == closing, "wait");
    post(gone, 2);
    next_ok(&mine, NULL, bytes[1]);
    if (progress == FI_PROGRESS_AUTO) {
        // The progress thread may have checked the peer before it closed. Then the receive stays posted.
        fi_cancel(&mine.ep->fid, bytes[0]);
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        int error = next_entry(&mine, NULL, &entry, NULL, &failure);
        CHECK(error == FI_ECANCELED || error == ECONNABORTED, "%d", error);
    } else {
        all_fail(1);
    }

    // This peer closes after this process has checked it.
    fi_addr_t leaver = enter(&cards[5]);
    post(leaver, 2);
    // On a busy machine the first check of the peer takes longer.
    nothing_for(within(0.2));
    tell(to_leaving, &card);
    CHECK(waitpid(leaving, NULL, 0) == leaving, "wait");
    next_ok(&mine, NULL, bytes[1]);
    nothing_for(0.2);
    post(leaver, 2);
    nothing_for(0.2);
    for (int i = 0; i < 3; i++) {
        OK(fi_cancel(&mine.ep->fid, bytes[i % 2]));
        next_error(&mine, NULL, FI_ECANCELED);
    }

    // An address without an endpoint.
    struct card early = card;
    early.name[2] = 0, early.name[3] = 99;
    post(enter(&early), 2);
    nothing_for(0.3);
    for (int i = 0; i < 2; i++) {
        OK(fi_cancel(&mine.ep->fid, bytes[i]));
        next_error(&mine, NULL, FI_ECANCELED);
    }
    counted(&cards[COUNTED], pids[COUNTED]);
    for (int i = 0; i < 4; i++) CHECK(leftovers(&cards[i]) == 0, "the dead left a segment");
    close_card();
    puts("silent: ok");
}
