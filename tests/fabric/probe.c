// SPDX-License-Identifier: BSD-2-Clause
// Tests FI_PEEK, FI_CLAIM and FI_DISCARD, and completions only on request
// (FI_SELECTIVE_COMPLETION).
#include "fabric.h"

static struct side a, b;
static char out[100000], in[100000];

static struct fi_msg_tagged about(uint64_t tag, uint64_t ignore, struct fi_context *context) {
    return (struct fi_msg_tagged){
        .addr = FI_ADDR_UNSPEC, .tag = tag, .ignore = ignore, .context = context};
}

static void each_size(size_t len) {
    struct fi_context context, other;
    struct iovec to = {in, sizeof in};
    struct fi_msg_tagged msg = about(5, 0, &context);
    OK(fi_trecvmsg(b.ep, &msg, FI_PEEK));
    struct fi_cq_err_entry failure = next_error(&b, &a, FI_ENOMSG);
    CHECK(failure.op_context == &context, "context");

    for (int i = 0; i < 3; i++) {
        memset(out, 'a' + i, len);
        OK(fi_tsenddata(a.ep, out, len, NULL, 70 + i, a.peer, 5, out));
        if (len > 9000) break;
    }
    int messages = len > 9000 ? 1 : 3;
    // A peek finds the message and leaves it in place.
    for (int i = 0; i < 2; i++) {
        OK(fi_trecvmsg(b.ep, &msg, FI_PEEK));
        struct fi_cq_tagged_entry entry = next_ok(&b, &a, &context);
        CHECK(entry.len == len && entry.tag == 5 && entry.data == 70, "len %zu", entry.len);
        CHECK(entry.flags == (FI_RECV | FI_TAGGED | FI_REMOTE_CQ_DATA), "%#lx", entry.flags);
    }
    if (messages == 3) {
        struct fi_msg_tagged any = about(0, ~0UL, &other);
        OK(fi_trecvmsg(b.ep, &any, FI_PEEK | FI_DISCARD));
        CHECK(next_ok(&b, &a, &other).data == 70, "another was discarded");
    }
    // After a claim, only a receive with the context of the claim gets the message.
    OK(fi_trecvmsg(b.ep, &msg, FI_PEEK | FI_CLAIM));
    CHECK(next_ok(&b, &a, &context).data == (messages == 3 ? 71u : 70u), "another was claimed");
    if (messages == 3) {
        OK(fi_trecv(b.ep, in, sizeof in, NULL, FI_ADDR_UNSPEC, 5, 0, in));
        CHECK(next_ok(&b, &a, in).data == 72, "a claimed message was received");
        CHECK(len == 0 || in[0] == 'c', "%c", in[0]);
    }
    msg.msg_iov = &to;
    msg.iov_count = 1;
    msg.addr = 0;
    OK(fi_trecvmsg(b.ep, &msg, FI_CLAIM));
    CHECK(next_ok(&b, &a, &context).len == len, "len");
    CHECK(len == 0 || in[0] == (messages == 3 ? 'b' : 'a'), "%c", in[0]);
    FAILS(FI_ENOMSG, fi_trecvmsg(b.ep, &msg, FI_CLAIM));
    for (int i = 0; i < messages; i++) next_ok(&a, &b, out);

    // Claims and discards a message. Its sender gets a completion.
    OK(fi_tsend(a.ep, out, len, NULL, a.peer, 6, out));
    struct fi_msg_tagged six = about(6, 0, &context);
    OK(fi_trecvmsg(b.ep, &six, FI_PEEK | FI_CLAIM));
    next_ok(&b, &a, &context);
    // A context can hold one claimed message.
    OK(fi_tsend(a.ep, out, len, NULL, a.peer, 6, in));
    FAILS(FI_EBUSY, fi_trecvmsg(b.ep, &six, FI_PEEK | FI_CLAIM));
    OK(fi_trecvmsg(b.ep, &six, FI_CLAIM | FI_DISCARD));
    next_ok(&b, &a, &context);
    next_ok(&a, &b, out);
    OK(fi_trecvmsg(b.ep, &six, FI_PEEK | FI_DISCARD));
    next_ok(&b, &a, &context);
    next_ok(&a, &b, in);
}

static void selective(void) {
    char byte = 'x';
    struct iovec iov = {&byte, 1};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = a.peer, .tag = 1, .context = out};
    struct fi_msg_tagged to = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1, .context = in};
    OK(fi_tsend(a.ep, &byte, 1, NULL, a.peer, 1, out));
    OK(fi_trecv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    nothing(&b);
    nothing(&a);
    OK(fi_tsendmsg(a.ep, &msg, FI_COMPLETION));
    OK(fi_trecvmsg(b.ep, &to, FI_COMPLETION));
    next_ok(&a, &b, out);
    next_ok(&b, &a, in);
    // Errors are always reported.
    OK(fi_trecv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    OK(fi_cancel(&b.ep->fid, in));
    next_error(&b, &a, FI_ECANCELED);
}

int main(void) {
    open_domain(FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    each_size(0);
    each_size(8);
    each_size(4000);
    each_size(100000);
    close_side(&a);
    close_side(&b);
    open_pair(&a, &b, FI_SELECTIVE_COMPLETION);
    selective();
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("probe: ok");
}
