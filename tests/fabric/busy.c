// SPDX-License-Identifier: BSD-2-Clause
// Tests that a receiver that computes does not stop a sender that injects messages. The sender can
// inject more messages than there are buffers, and then messages to another endpoint. All messages
// arrive in order. Without the kernel's copy, messages to the other endpoint would wait for
// buffers, so they are not tested.
#include "fabric.h"

enum { COUNT = 300, LENGTH = 1000 };

static struct side from, computing, other;
static uint64_t out[LENGTH / 8], in[LENGTH / 8];

static void inject(fi_addr_t to, uint64_t number) {
    for (int i = 0; i < LENGTH / 8; i++) out[i] = number + (uint64_t)i;
    ssize_t status;
    double start = seconds();
    while ((status = fi_tinject(from.ep, out, LENGTH, to, 1)) == -FI_EAGAIN) {
        CHECK(seconds() - start < within(2), "message %lu waits for its receiver", number);
        fi_cq_read(from.cq, NULL, 0);
    }
    OK(status);
    memset(out, 0xff, LENGTH);
}

static void receive(struct side *side, uint64_t number) {
    OK(fi_trecv(side->ep, in, LENGTH, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    next_ok(side, &from, in);
    for (int i = 0; i < LENGTH / 8; i++)
        CHECK(in[i] == number + (uint64_t)i, "message %lu: %lu at %d", number, in[i], i);
}

int main(void) {
    open_domain(FI_MSG | FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_side(&from, 0, 3);
    open_side(&computing, 0, 3);
    open_side(&other, 0, 3);
    fi_addr_t to = insert(&from, computing.ep), to_other = insert(&from, other.ep);
    // Some receives are posted early, most are not.
    uint64_t early[4][LENGTH / 8];
    for (int i = 0; i < 4; i++)
        OK(fi_trecv(computing.ep, early[i], LENGTH, NULL, FI_ADDR_UNSPEC, 1, 0, early[i]));
    for (uint64_t i = 0; i < COUNT; i++) inject(to, i);
    const char *copy = getenv("FI_TCAM_KERNEL_COPY");
    if (!copy || strcmp(copy, "off")) {
        inject(to_other, 7);
        receive(&other, 7);
    }
    for (uint64_t i = 0; i < 4; i++) {
        next_ok(&computing, &from, early[i]);
        CHECK(early[i][1] == i + 1, "early message %lu: %lu", i, early[i][1]);
    }
    for (uint64_t i = 4; i < COUNT; i++) receive(&computing, i);
    // Injected messages have no completion, and their buffers are reused.
    nothing(&from);
    inject(to, 9);
    receive(&computing, 9);
    // No receive is posted for the following messages. fi_close of the sender must return nevertheless.
    for (uint64_t i = 0; i < COUNT; i++) inject(to_other, i);
    close_side(&from);
    close_side(&computing);
    close_side(&other);
    close_domain();
    puts("busy: ok");
}
