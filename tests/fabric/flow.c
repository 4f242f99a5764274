// SPDX-License-Identifier: BSD-2-Clause
// Tests FI_TCAM_OVERFLOW=flow-control. If no entry is free, a receive is refused until an entry
// becomes free. After a timeout the receive goes to the host or fails (argument `fail`). Messages
// that find neither a receive nor an entry hold back their sender; none is lost or reordered. Run
// with tables of 7 entries and FI_TCAM_FLOW_TIMEOUT=200.
#include "fabric.h"

enum { ENTRIES = 7, MESSAGES = 6000 };

static struct side a, b;

static void posts(int fail) {
    uint64_t buffers[ENTRIES + 1];
    for (int i = 0; i < ENTRIES; i++)
        OK(fi_trecv(b.ep, &buffers[i], 8, NULL, FI_ADDR_UNSPEC, i, 0, &buffers[i]));
    FAILS(FI_EAGAIN, fi_trecv(b.ep, &buffers[7], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &buffers[7]));

    // A receive for a waiting message needs no entry.
    uint64_t value = 9, got = 0;
    OK(fi_tinject(a.ep, &value, 8, a.peer, 9));
    nothing(&b);
    OK(fi_trecv(b.ep, &got, 8, NULL, FI_ADDR_UNSPEC, 9, 0, &got));
    next_ok(&b, &a, &got);

    // A match frees an entry.
    OK(fi_tinject(a.ep, &value, 8, a.peer, 3));
    next_ok(&b, &a, &buffers[3]);
    OK(fi_trecv(b.ep, &buffers[3], 8, NULL, FI_ADDR_UNSPEC, 3, 0, &buffers[3]));

    double start = seconds();
    long status;
    do
        status = fi_trecv(b.ep, &buffers[7], 8, NULL, FI_ADDR_UNSPEC, 7, 0, &buffers[7]);
    while (status == -FI_EAGAIN && seconds() < start + within(5));
    CHECK(status == (fail ? -FI_ENOSPC : 0), "%ld", status);
    CHECK(seconds() - start > 0.15, "after %g s", seconds() - start);

    for (int i = 0; i < ENTRIES + !fail; i++) {
        OK(fi_cancel(&b.ep->fid, &buffers[i]));
        next_error(&b, &a, FI_ECANCELED);
    }
}

// Sends more messages than the table and the ring of the receiver hold. Receives them from the
// highest tag to the lowest. Messages with equal tags must arrive in sending order.
static void messages(void) {
    int refused = 0;
    for (uint64_t i = 0; i < MESSAGES; i++) {
        long status;
        while ((status = fi_tinject(a.ep, &i, 8, a.peer, i % 16)) == -FI_EAGAIN) {
            refused++;
            nothing(&b);
        }
        OK(status);
    }
    CHECK(refused > 0, "the sender was never held back");
    for (uint64_t tag = 16; tag-- > 0;)
        for (uint64_t i = tag; i < MESSAGES; i += 16) {
            uint64_t got = 0;
            OK(fi_trecv(b.ep, &got, 8, NULL, FI_ADDR_UNSPEC, tag, 0, &got));
            next_ok(&b, &a, &got);
            CHECK(got == i, "%lu, not %lu", got, i);
        }
}

int main(int argc, char **argv) {
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    posts(argc > 1 && !strcmp(argv[1], "fail"));
    messages();
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("flow: ok");
}
