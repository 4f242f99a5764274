// SPDX-License-Identifier: BSD-2-Clause
// A peer is killed after it sent a long and a short message with each of four tags, without posted
// receives. The first receive of a tag matches the long message, which is lost, and fails. The
// second receive gets the short message. Probes find the long message in its place.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)

enum { NAMED, ANY, CLAIMED, DISCARDED, TAGS, NEVER };
static char large[TAGS][1 << 20], short_one[8], into[1 << 20];

static void victim(int in, int out) {
    struct card other = hear(in);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_card(CAPS, NULL, 0);
    fi_addr_t to = enter(&other);
    tell(out, &card);
    for (uint64_t tag = 0; tag < TAGS; tag++) {
        OK(fi_tsend(mine.ep, large[tag], sizeof large[tag], NULL, to, tag, NULL));
        snprintf(short_one, sizeof short_one, "short %d", (int)tag);
        OK(fi_tinject(mine.ep, short_one, sizeof short_one, to, tag));
    }
    for (;;) fi_cq_read(mine.cq, NULL, 0);
}

// Returns true if a probe finds a message, and stores the message's length.
static int probe(uint64_t tag, uint64_t flags, fi_addr_t source, size_t *len) {
    struct fi_msg_tagged msg = {.addr = source, .tag = tag, .context = &into[tag]};
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t from;
    OK(fi_trecvmsg(mine.ep, &msg, FI_PEEK | flags));
    int error = next_entry(&mine, NULL, &entry, &from, &failure);
    CHECK(error == 0 || error == FI_ENOMSG, "%d", error);
    *len = entry.len;
    return error == 0;
}

static void is_lost(void *context, uint64_t tag) {
    struct fi_cq_err_entry failure = next_error(&mine, NULL, ECONNABORTED);
    CHECK(failure.op_context == context && failure.tag == tag, "another receive failed");
}

static void gets_short(fi_addr_t source, uint64_t tag) {
    OK(fi_trecv(mine.ep, into, sizeof into, NULL, source, tag, 0, into));
    struct fi_cq_tagged_entry entry = next_ok(&mine, NULL, into);
    snprintf(short_one, sizeof short_one, "short %d", (int)tag);
    CHECK(entry.len == sizeof short_one && !memcmp(into, short_one, sizeof short_one), "%s", into);
}

int main(void) {
    int to_victim[2], from_victim[2];
    size_t len = 0;
    CHECK(pipe(to_victim) == 0 && pipe(from_victim) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) victim(to_victim[0], from_victim[1]);

    open_card(CAPS, NULL, 0);
    tell(to_victim[1], &card);
    struct card victims = hear(from_victim[0]);
    fi_addr_t peer = enter(&victims);
    for (double end = seconds() + within(10); !probe(TAGS - 1, 0, peer, &len);)
        CHECK(seconds() < end, "no message came");
    CHECK(probe(CLAIMED, FI_CLAIM, peer, &len) && len == sizeof large[0], "%zu", len);

    // This receive names the peer, so it fails when the peer's death is noticed.
    OK(fi_trecv(mine.ep, into, sizeof into, NULL, peer, NEVER, 0, large));
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "kill");
    is_lost(large, NEVER);

    CHECK(probe(NAMED, 0, peer, &len) && len == sizeof large[0], "%zu", len);
    OK(fi_trecv(mine.ep, into, sizeof into, NULL, peer, NAMED, 0, large));
    is_lost(large, NAMED);
    gets_short(peer, NAMED);

    OK(fi_trecv(mine.ep, into, sizeof into, NULL, FI_ADDR_UNSPEC, ANY, 0, large));
    is_lost(large, ANY);
    gets_short(FI_ADDR_UNSPEC, ANY);

    struct iovec to = {into, sizeof into};
    struct fi_msg_tagged claimed = {
        .msg_iov = &to, .iov_count = 1, .addr = peer, .tag = CLAIMED, .context = &into[CLAIMED]};
    OK(fi_trecvmsg(mine.ep, &claimed, FI_CLAIM));
    is_lost(&into[CLAIMED], CLAIMED);
    gets_short(peer, CLAIMED);

    CHECK(probe(DISCARDED, FI_DISCARD, peer, &len) && len == sizeof large[0], "%zu", len);
    gets_short(peer, DISCARDED);
    CHECK(!probe(DISCARDED, 0, peer, &len), "a message came twice");
    close_card();
    puts("lost: ok");
}
