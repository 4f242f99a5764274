// SPDX-License-Identifier: BSD-2-Clause
// Tests triggered operations and deferred work, which wait for a counter: their order and their
// completions. Every call that reads a queue or a counter must start them.
#include "fabric.h"
#include <poll.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

static struct side a, b;
static struct fid_cntr *go, *done, *sent;
static char out = 'x', in;
static struct iovec iov = {&out, 1};

static struct fid_cntr *counter(enum fi_wait_obj wait_obj) {
    struct fi_cntr_attr attr = {.wait_obj = wait_obj};
    struct fid_cntr *cntr;
    OK(fi_cntr_open(domain, &attr, &cntr, NULL));
    return cntr;
}

// Queues a send that starts when `cntr` reaches the threshold. Returns the status of the call.
static ssize_t trigger(struct fi_triggered_context2 *context, struct fid_cntr *cntr,
                       size_t threshold, fi_addr_t to, uint64_t tag, uint64_t flags) {
    memset(context, 0, sizeof *context);
    context->event_type = FI_TRIGGER_THRESHOLD;
    context->trigger.threshold.cntr = cntr;
    context->trigger.threshold.threshold = threshold;
    struct fi_msg_tagged msg = {
        .msg_iov = &iov, .iov_count = 1, .addr = to, .tag = tag, .context = context};
    return fi_tsendmsg(a.ep, &msg, FI_TRIGGER | flags);
}

static uint64_t arrival(void) {
    OK(fi_trecv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 0, ~0ull, &in));
    return next_ok(&b, &a, &in).tag;
}

static void order(void) {
    static const size_t thresholds[] = {3, 1, 2, 1};
    static const uint64_t expected[] = {1, 3, 2, 0};
    struct fi_triggered_context2 contexts[4];
    for (int i = 0; i < 4; i++)
        OK(trigger(&contexts[i], go, thresholds[i], a.peer, (uint64_t)i, FI_COMPLETION));
    OK(fi_cntr_add(go, 3));
    for (int i = 0; i < 4; i++) {
        uint64_t tag = arrival();
        CHECK(tag == expected[i], "%lu, not %lu", tag, expected[i]);
        next_ok(&a, &b, &contexts[tag]);
    }
}

static void told(void) {
    struct fi_op_tagged send = {.ep = a.ep}, recv = {.ep = b.ep};
    struct iovec to = {&in, 1};
    send.msg = (struct fi_msg_tagged){.msg_iov = &iov, .iov_count = 1, .addr = a.peer, .tag = 9};
    recv.msg = (struct fi_msg_tagged){.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 9};
    struct fi_deferred_work work[2] = {
        {.threshold = 1, .triggering_cntr = go, .completion_cntr = done, .op_type = FI_OP_TRECV, .op.tagged = &recv},
        {.threshold = 1, .triggering_cntr = go, .completion_cntr = done, .op_type = FI_OP_TSEND, .op.tagged = &send},
    };
    for (int loud = 0; loud < 2; loud++) {
        uint64_t counted = fi_cntr_read(sent);
        OK(fi_cntr_set(go, 0));
        OK(fi_cntr_seterr(go, 0));
        OK(fi_cntr_set(done, 0));
        send.flags = recv.flags = loud ? FI_COMPLETION : 0;
        for (int i = 0; i < 2; i++) OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work[i]));
        // Errors of the counter count towards the threshold, too.
        OK(fi_cntr_adderr(go, 1));
        for (double start = seconds(); fi_cntr_read(done) < 2;)
            CHECK(seconds() - start < within(10), "%lu done", fi_cntr_read(done));
        if (loud) {
            next_ok(&a, &b, NULL);
            next_ok(&b, &a, NULL);
        }
        nothing(&a);
        nothing(&b);
        CHECK(fi_cntr_read(sent) == counted + (uint64_t)loud, "%lu sent", fi_cntr_read(sent) - counted);
    }
    OK(fi_cntr_set(go, 0));
    OK(fi_cntr_seterr(go, 0));
}

static void counted(struct fid_cntr *cntr, uint64_t count) {
    double end = seconds() + within(10);
    while (fi_cntr_read(cntr) < count) CHECK(seconds() < end, "%lu", fi_cntr_read(cntr));
}

// The completion counter of a deferred multi-receive counts each of its messages. The completion
// counter of another deferred receive counts none of them.
static void several(void) {
    static char room[4096];
    struct iovec to = {room, sizeof room}, other = {&in, 1};
    struct fi_op_msg many = {.ep = b.ep, .flags = FI_MULTI_RECV};
    struct fi_op_tagged one = {.ep = b.ep};
    struct fid_cntr *each = counter(FI_WAIT_NONE), *never = counter(FI_WAIT_NONE);
    many.msg = (struct fi_msg){.msg_iov = &to, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = room};
    one.msg = (struct fi_msg_tagged){.msg_iov = &other, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &in};
    struct fi_deferred_work work[2] = {
        {.triggering_cntr = go, .completion_cntr = each, .op_type = FI_OP_RECV, .op.msg = &many},
        {.triggering_cntr = go, .completion_cntr = never, .op_type = FI_OP_TRECV, .op.tagged = &one},
    };
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work[0]));
    OK(fi_inject(a.ep, &out, 1, a.peer));
    counted(each, 1);
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work[1]));
    OK(fi_inject(a.ep, &out, 1, a.peer));
    counted(each, 2);
    CHECK(fi_cntr_read(never) == 0, "counted for another receive");
    OK(fi_cancel(&b.ep->fid, &in));
    next_error(&b, &a, FI_ECANCELED);
    OK(fi_cancel(&b.ep->fid, room));
    next_error(&b, &a, FI_ECANCELED);
    OK(fi_close(&each->fid));
    OK(fi_close(&never->fid));
}

// A deferred probe ends after its search. Its completion counter counts a success if the probe
// found a message, and otherwise an error.
static void probed(void) {
    struct fi_op_tagged peek = {.ep = b.ep, .flags = FI_PEEK};
    peek.msg = (struct fi_msg_tagged){.addr = FI_ADDR_UNSPEC, .tag = 12, .context = &peek};
    struct fi_deferred_work work = {
        .triggering_cntr = go, .completion_cntr = done, .op_type = FI_OP_TRECV, .op.tagged = &peek};
    uint64_t errors = fi_cntr_readerr(done), found = fi_cntr_read(done);
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    CHECK(next_error(&b, &a, FI_ENOMSG).op_context == &peek, "context");
    CHECK(fi_cntr_readerr(done) == errors + 1, "%lu", fi_cntr_readerr(done));
    OK(fi_tinject(a.ep, &out, 1, a.peer, 12));
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    next_ok(&b, &a, &peek);
    CHECK(fi_cntr_read(done) == found + 1, "%lu", fi_cntr_read(done));
    OK(fi_trecv(b.ep, &in, 1, NULL, FI_ADDR_UNSPEC, 12, 0, NULL));
    next_ok(&b, &a, NULL);
}

// An operation that cannot be started fails like one that fails later.
static void failures(void) {
    static char big[100000];
    struct { uint16_t family, port; uint32_t host; char rest[8]; } nobody = {2, 0x0100, 0x0100007f, {0}};
    struct fi_triggered_context2 context;
    fi_addr_t nowhere;
    uint64_t errors = fi_cntr_readerr(sent);
    CHECK(fi_av_insert(a.av, &nobody, 1, &nowhere, 0, NULL) == 1, "not inserted");
    OK(trigger(&context, go, 1, nowhere, 1, 0));
    OK(fi_cntr_add(go, 1));
    struct fi_cq_err_entry failure = next_error(&a, &b, FI_ECONNREFUSED);
    CHECK(failure.op_context == &context && failure.flags == (FI_SEND | FI_TAGGED), "%#lx", failure.flags);
    iov = (struct iovec){big, sizeof big};
    OK(trigger(&context, go, 1, a.peer, 1, FI_INJECT));
    iov = (struct iovec){&out, 1};
    CHECK(next_error(&a, &b, FI_EMSGSIZE).op_context == &context, "context");
    CHECK(fi_cntr_readerr(sent) == errors + 2, "%lu", fi_cntr_readerr(sent));

    struct fi_op_tagged send = {.ep = a.ep};
    send.msg = (struct fi_msg_tagged){.msg_iov = &iov, .iov_count = 1, .addr = nowhere, .context = &send};
    struct fi_deferred_work work = {
        .threshold = 1, .triggering_cntr = go, .completion_cntr = done, .op_type = FI_OP_TSEND, .op.tagged = &send};
    errors = fi_cntr_readerr(done);
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    CHECK(next_error(&a, &b, FI_ECONNREFUSED).op_context == &send, "context");
    CHECK(fi_cntr_readerr(done) == errors + 1, "%lu", fi_cntr_readerr(done));
    OK(fi_cntr_set(go, 0));
}

// FI_FLUSH_WORK removes deferred work. Triggered operations stay.
static void flushed(void) {
    struct fi_triggered_context2 context;
    struct fi_op_cntr set = {done, 1000};
    struct fi_deferred_work work = {
        .threshold = 1, .triggering_cntr = go, .op_type = FI_OP_CNTR_SET, .op.cntr = &set};
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    OK(trigger(&context, go, 1, a.peer, 5, FI_COMPLETION));
    OK(fi_control(&domain->fid, FI_FLUSH_WORK, NULL));
    OK(fi_cntr_add(go, 1));
    next_ok(&a, &b, &context);
    CHECK(arrival() == 5, "another message");
    CHECK(fi_cntr_read(done) != 1000, "flushed work was done");
}

enum how { POLL_QUEUE, POLL_COUNTER, TRYWAIT_QUEUE, TRYWAIT_COUNTER };

// An endpoint in a separate domain answers b's writes and messages by a triggered operation. Only
// calls of the kind `how` make progress on this endpoint.
static void looks(enum how how) {
    struct fid_domain *first = domain;
    OK(fi_domain(fabric, info, &domain, NULL));
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_FD};
    struct fid_cntr *written = counter(FI_WAIT_FD), *received = counter(FI_WAIT_NONE);
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_triggered_context2 context;
    struct fid_poll *set;
    struct fid_mr *mr;
    struct side c;
    char memory[8] = {0}, got = 0;
    OK(fi_endpoint(domain, info, &c.ep, NULL));
    OK(fi_cq_open(domain, &cq_attr, &c.cq, NULL));
    OK(fi_av_open(domain, &av_attr, &c.av, NULL));
    OK(fi_ep_bind(c.ep, &c.av->fid, 0));
    OK(fi_ep_bind(c.ep, &c.cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
    OK(fi_ep_bind(c.ep, &received->fid, FI_RECV));
    OK(fi_enable(c.ep));
    OK(fi_mr_reg(domain, memory, 8, FI_REMOTE_WRITE, 0, 77, FI_RMA_EVENT, &mr, NULL));
    OK(fi_mr_bind(mr, &written->fid, FI_REMOTE_WRITE));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &c.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    uint64_t at = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    fi_addr_t there = insert(&b, c.ep);
    c.peer = insert(&c, b.ep);
    struct fid *fid = how == TRYWAIT_COUNTER || how == POLL_COUNTER ? &written->fid : &c.cq->fid;
    int is_counter = fid == &written->fid;
    context = (struct fi_triggered_context2){.event_type = FI_TRIGGER_THRESHOLD};
    context.trigger.threshold.cntr = is_counter ? written : received;
    context.trigger.threshold.threshold = 1;
    struct fi_msg_tagged msg = {
        .msg_iov = &iov, .iov_count = 1, .addr = c.peer, .tag = 3, .context = &context};
    OK(fi_tsendmsg(c.ep, &msg, FI_TRIGGER));
    char byte;
    OK(fi_trecv(c.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
    OK(fi_trecv(b.ep, &got, 1, NULL, FI_ADDR_UNSPEC, 3, 0, &got));
    if (is_counter) OK(fi_inject_write(b.ep, "y", 1, there, at, fi_mr_key(mr)));
    else OK(fi_tinject(b.ep, "y", 1, there, 2));
    OK(fi_poll_open(domain, &(struct fi_poll_attr){0}, &set));
    OK(fi_poll_add(set, fid, 0));
    struct pollfd poller = {.events = POLLIN};
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    struct fi_cq_tagged_entry entry;
    double start = seconds();
    while (fi_cq_read(b.cq, &entry, 1) != 1) {
        void *context;
        CHECK(seconds() - start < within(5), "no answer, way %d", how);
        if (how == POLL_QUEUE || how == POLL_COUNTER) fi_poll(set, &context, 1);
        else if (fi_trywait(fabric, &fid, 1) == 0) poll(&poller, 1, 10);
    }
    OK(fi_poll_del(set, fid, 0));
    OK(fi_close(&set->fid));
    OK(fi_close(&mr->fid));
    close_side(&c);
    OK(fi_close(&written->fid));
    OK(fi_close(&received->fid));
    OK(fi_close(&domain->fid));
    domain = first;
}

// A counter is bound only to a memory region. A sleep on the descriptor of the counter ends when
// the counter counts.
static void sleeps(void) {
    struct fid_cntr *written = counter(FI_WAIT_FD);
    struct pollfd poller = {.events = POLLIN};
    struct fid *fid = &written->fid;
    struct fid_mr *mr;
    char memory[8] = {0};
    OK(fi_mr_reg(domain, memory, 8, FI_REMOTE_WRITE, 0, 78, FI_RMA_EVENT, &mr, NULL));
    OK(fi_mr_bind(mr, fid, FI_REMOTE_WRITE));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &b.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    uint64_t at = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    int ready = fi_trywait(fabric, &fid, 1) == 0;
    OK(fi_inject_write(a.ep, "z", 1, a.peer, at, fi_mr_key(mr)));
    double start = seconds();
    if (ready) CHECK(poll(&poller, 1, (int)within(5000)) == 1, "slept through a write");
    while (fi_trywait(fabric, &fid, 1) == 0) {
        CHECK(seconds() - start < within(5), "not counted");
        poll(&poller, 1, 5000);
    }
    CHECK(fi_cntr_read(written) == 1 && memory[0] == 'z', "%lu", fi_cntr_read(written));
    OK(fi_close(&mr->fid));
    OK(fi_close(fid));
}

int main(void) {
    open_domain(FI_MSG | FI_TAGGED | FI_MULTI_RECV | FI_RMA | FI_RMA_EVENT | FI_TRIGGER, FI_THREAD_SAFE, 0);
    go = counter(FI_WAIT_NONE), done = counter(FI_WAIT_NONE), sent = counter(FI_WAIT_NONE);
    open_unbound(&a, 0, 4);
    OK(fi_ep_bind(a.ep, &sent->fid, FI_SEND));
    OK(fi_enable(a.ep));
    open_side(&b, 0, 4);
    meet(&a, &b);
    order();
    OK(fi_cntr_set(go, 0));
    told();
    several();
    probed();
    failures();
    flushed();
    for (enum how how = POLL_QUEUE; how <= TRYWAIT_COUNTER; how++) looks(how);
    sleeps();
    close_side(&a);
    close_side(&b);
    OK(fi_close(&go->fid));
    OK(fi_close(&done->fid));
    OK(fi_close(&sent->fid));
    close_domain();
    puts("trigger: ok");
}
