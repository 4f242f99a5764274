// SPDX-License-Identifier: BSD-2-Clause
// Tests the matching order. The earliest posted receive that matches wins, any-source or directed,
// tagged or untagged. Of the messages that have arrived, the earliest one that matches wins.
#include "fabric.h"

static struct side a, b;

static void post(int tagged, fi_addr_t source, uint64_t *buffer, void *context) {
    if (tagged)
        OK(fi_trecv(b.ep, buffer, 8, NULL, source, 5, 0, context));
    else
        OK(fi_recv(b.ep, buffer, 8, NULL, source, context));
}

static void send_value(int tagged, uint64_t value) {
    if (tagged)
        OK(fi_tinject(a.ep, &value, 8, a.peer, 5));
    else
        OK(fi_inject(a.ep, &value, 8, a.peer));
}

static void posted(int tagged, int any_first) {
    uint64_t first = 0, second = 0;
    post(tagged, any_first ? FI_ADDR_UNSPEC : b.peer, &first, &first);
    post(tagged, any_first ? b.peer : FI_ADDR_UNSPEC, &second, &second);
    send_value(tagged, 1);
    send_value(tagged, 2);
    next_ok(&b, &a, &first);
    next_ok(&b, &a, &second);
    CHECK(first == 1 && second == 2, "%lu %lu", first, second);
}

static void unexpected(int tagged, int any_first) {
    uint64_t first = 0, second = 0;
    send_value(tagged, 1);
    send_value(tagged, 2);
    nothing(&b);
    post(tagged, any_first ? FI_ADDR_UNSPEC : b.peer, &first, &first);
    post(tagged, any_first ? b.peer : FI_ADDR_UNSPEC, &second, &second);
    next_ok(&b, &a, &first);
    next_ok(&b, &a, &second);
    CHECK(first == 1 && second == 2, "%lu %lu", first, second);
}

// Posts a receive that matches after many that do not. The others stay posted.
static void standing(void) {
    enum { STANDING = 40 };
    uint64_t buffers[STANDING], value = 0;
    for (int i = 0; i < STANDING; i++)
        OK(fi_trecv(b.ep, &buffers[i], 8, NULL, i % 3 ? b.self : FI_ADDR_UNSPEC, 100 + i, 0, &buffers[i]));
    post(1, b.peer, &value, &value);
    send_value(1, 7);
    next_ok(&b, &a, &value);
    for (int i = 0; i < STANDING; i++) {
        OK(fi_cancel(&b.ep->fid, &buffers[i]));
        struct fi_cq_err_entry failure = next_error(&b, &a, FI_ECANCELED);
        CHECK(failure.op_context == &buffers[i], "another receive was cancelled");
    }
    FAILS(FI_ENOENT, fi_cancel(&b.ep->fid, &value));
}

int main(void) {
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    for (int tagged = 0; tagged < 2; tagged++)
        for (int any_first = 0; any_first < 2; any_first++) {
            posted(tagged, any_first);
            unexpected(tagged, any_first);
        }
    standing();
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("order: ok");
}
