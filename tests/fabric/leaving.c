// SPDX-License-Identifier: BSD-2-Clause
// Tests closing. The application may reuse memory after an endpoint is closed or a buffer is given
// back. A peer that reopens at its address gets messages. A process can exit in any signal handler.
#include "fabric.h"
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONG = 1 << 20, KEY = 5, HALF_KEY = 6, NO_KEY = 99 };
static const uint64_t RMA = FI_TAGGED | FI_MSG | FI_RMA;

static struct side a, b;
static char buffer[4 * LONG], region[2 * LONG];

static size_t count(const char *in, size_t len, char value) {
    size_t found = 0;
    for (size_t i = 0; i < len; i++) found += in[i] == value;
    return found;
}

static void turn(int times) {
    for (int i = 0; i < times; i++) {
        fi_cq_read(a.cq, NULL, 0);
        fi_cq_read(b.cq, NULL, 0);
    }
}

// The initiator closes with an operation outstanding and reuses its memory.
static void outstanding(int writes) {
    struct fid_mr *mr;
    open_domain(RMA, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    OK(fi_mr_reg(domain, region, sizeof region, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, KEY, 0, &mr, NULL));
    OK(fi_write(a.ep, buffer, 8, NULL, a.peer, 0, KEY, NULL));
    next_ok(&a, &b, NULL);
    memset(region, 7, LONG);
    memset(buffer, 3, LONG);
    if (writes) OK(fi_write(a.ep, buffer, LONG, NULL, a.peer, 0, KEY, NULL));
    else OK(fi_read(a.ep, buffer, LONG, NULL, a.peer, 0, KEY, NULL));
    close_side(&a);
    size_t before = count(buffer, LONG, 7);
    memset(buffer, 9, LONG);
    for (int i = 0; i < 100; i++) fi_cq_read(b.cq, NULL, 0);
    size_t strange = writes ? count(region, LONG, 9) : count(buffer, LONG, 7);
    CHECK(strange == 0, "%zu bytes after fi_close, %zu before", strange, before);
    close_side(&b);
    OK(fi_close(&mr->fid));
    close_domain();
}

// A write that exceeds its region changes no byte. A write that fails in part has no remote
// completion and is not counted. A message that is sent after a write does not overtake the write.
static void whole(void) {
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *writes;
    struct fid_mr *mr, *half;
    open_domain(RMA, FI_THREAD_SAFE, 0);
    open_unbound(&a, 0, 2);
    open_unbound(&b, 0, 2);
    OK(fi_cntr_open(domain, &attr, &writes, NULL));
    OK(fi_ep_bind(b.ep, &writes->fid, FI_REMOTE_WRITE));
    OK(fi_enable(a.ep));
    OK(fi_enable(b.ep));
    meet(&a, &b);
    OK(fi_mr_reg(domain, region, sizeof region, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
    OK(fi_mr_reg(domain, region, LONG, FI_REMOTE_WRITE, 0, HALF_KEY, 0, &half, NULL));
    memset(region, 0, sizeof region);
    memset(buffer, 7, sizeof buffer);
    OK(fi_write(a.ep, buffer, 2 * LONG, NULL, a.peer, 0, HALF_KEY, NULL));
    next_error(&a, &b, FI_EFAULT);
    CHECK(count(region, sizeof region, 0) == sizeof region, "a write that fails wrote");

    struct iovec from = {buffer, LONG};
    struct fi_rma_iov to[] = {{0, LONG / 2, NO_KEY}, {0, LONG / 2, KEY}};
    struct fi_msg_rma msg = {.msg_iov = &from, .iov_count = 1, .addr = a.peer,
                             .rma_iov = to, .rma_iov_count = 2, .data = 4711};
    OK(fi_writemsg(a.ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA));
    next_error(&a, &b, FI_ENOKEY);
    turn(100);
    nothing(&b);
    CHECK(fi_cntr_read(writes) == 0, "a write that fails is counted");

    char go = 0, came;
    ssize_t sent;
    OK(fi_trecv(b.ep, &came, 1, NULL, FI_ADDR_UNSPEC, 3, 0, &came));
    OK(fi_write(a.ep, buffer, sizeof region, NULL, a.peer, 0, KEY, NULL));
    while ((sent = fi_tinject(a.ep, &go, 1, a.peer, 3)) == -FI_EAGAIN) turn(1);
    OK(sent);
    next_ok(&b, &a, &came);
    CHECK(region[sizeof region - 1] == 7, "a message came before what was written before it");
    next_ok(&a, &b, NULL);
    close_side(&a);
    close_side(&b);
    OK(fi_close(&writes->fid));
    OK(fi_close(&mr->fid));
    OK(fi_close(&half->fid));
    close_domain();
}

// The completion that gives back a multi-receive buffer is the last completion of the buffer. By
// then all messages in the buffer are complete, and their completions have been read.
static void given_back(void) {
    struct iovec room = {region, sizeof region};
    struct fi_msg msg = {.msg_iov = &room, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = region};
    struct fi_cq_tagged_entry entry, entries[4];
    struct fi_cq_err_entry failure = {0};
    ssize_t read;
    open_domain(FI_TAGGED | FI_MSG | FI_MULTI_RECV, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    OK(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    OK(fi_send(a.ep, buffer, LONG, NULL, a.peer, NULL));
    turn(1);
    OK(fi_cancel(&b.ep->fid, region));
    int released = 0;
    for (int ended = 0; ended < 2;) {
        read = fi_cq_read(b.cq, &entry, 1);
        if (read == -FI_EAVAIL) CHECK(fi_cq_readerr(b.cq, &failure, 0) == 1, "no error");
        if (read == 1 || read == -FI_EAVAIL) {
            CHECK(!released, "completed after the buffer was given back");
            released = !!((read == 1 ? entry.flags : failure.flags) & FI_MULTI_RECV);
            ended++;
        }
        turn(1);
    }
    CHECK(released, "never given back");
    next_ok(&a, &b, NULL);

    room.iov_len = 4096;
    OK(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    for (int i = 0; i < 3; i++) OK(fi_inject(a.ep, buffer, 2000, a.peer));
    turn(10);
    FAILS(FI_EAGAIN, fi_cq_readerr(b.cq, &failure, 0));
    CHECK(fi_cq_read(b.cq, entries, 4) == 2, "not what came first");
    FAILS(FI_EAVAIL, fi_cq_read(b.cq, &entry, 1));
    failure = next_error(&b, &a, FI_ETRUNC);
    CHECK(failure.flags & FI_MULTI_RECV, "%lx", failure.flags);
    close_side(&a);
    close_side(&b);
    close_domain();
}

// A peer closes its endpoint and opens another one at the same address. Messages sent after that
// arrive.
static void back_again(void) {
    struct fi_info *any;
    size_t len = 16;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_side(&a, 0, 4);
    open_side(&b, 0, 4);
    any = info;
    info = fi_dupinfo(any);
    free(info->src_addr);
    info->src_addr = calloc(1, len);
    info->src_addrlen = len;
    OK(fi_getname(&b.ep->fid, info->src_addr, &len));
    for (int i = 0; i < 20; i++) {
        char value = (char)i, came = 0;
        a.peer = insert(&a, b.ep);
        b.peer = insert(&b, a.ep);
        OK(fi_trecv(b.ep, &came, 1, NULL, b.peer, (uint64_t)i, 0, &came));
        OK(fi_tinject(a.ep, &value, 1, a.peer, (uint64_t)i));
        next_ok(&b, &a, &came);
        CHECK(came == value, "%d, not %d", came, value);
        close_side(&b);
        open_side(&b, 0, 4);
    }
    close_side(&a);
    close_side(&b);
    fi_freeinfo(info);
    info = any;
    close_domain();
}

// fi_close of a sender makes progress on the thread's other endpoints, because one of them still
// holds buffers of the sender. The messages arrive although their receives are posted later.
static void held(enum fi_threading level) {
    enum { MESSAGES = 3, LEN = 4000 };
    open_domain(FI_TAGGED, level, 0);
    open_pair(&a, &b, 0);
    memset(buffer, 5, LEN);
    for (int i = 0; i < MESSAGES; i++) OK(fi_tinject(a.ep, buffer, LEN, a.peer, 1));
    memset(buffer, 0, LEN);
    double start = seconds();
    close_side(&a);
    double took = seconds() - start;
    CHECK(took < within(0.2), "fi_close took %.2f s", took);
    for (int i = 0; i < MESSAGES; i++) {
        memset(region, 0, LEN);
        OK(fi_trecv(b.ep, region, LEN, NULL, FI_ADDR_UNSPEC, 1, 0, region));
        next_ok(&b, NULL, region);
        CHECK(count(region, LEN, 5) == LEN, "message %d is damaged", i);
    }
    close_side(&b);
    close_domain();
}

static void leave(int number) {
    (void)number;
    exit(0);
}

// Posts receives to a shared context of an endpoint and cancels them, until a signal comes. Writes
// to `ready` once calls allocate no more memory, because `exit` in an allocation can hang in the C
// library.
static void post_to_context(int ready) {
    static char in;
    struct fid_ep *srx, *ep;
    struct fi_cq_err_entry cancelled;
    OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &a.av->fid, 0));
    OK(fi_ep_bind(ep, &a.cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(ep, &srx->fid, 0));
    OK(fi_enable(ep));
    for (int i = 0;; i++) {
        if (i == 1000) CHECK(write(ready, "", 1) == 1, "write");
        OK(fi_trecv(srx, &in, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &in));
        OK(fi_cancel(&srx->fid, &in));
        while (fi_cq_readerr(a.cq, &cancelled, 0) != 1) fi_cq_read(a.cq, NULL, 0);
    }
}

// Signal handlers may end the process in the middle of a call.
static void in_a_call(int with_context) {
    for (int i = 0; i < (with_context ? 20 : 5); i++) {
        int status = 0, ready[2];
        char byte;
        OK(pipe(ready));
        pid_t child = fork();
        if (!child) {
            alarm((unsigned)within(10));
            signal(SIGTERM, leave);
            open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
            open_side(&a, 0, 4);
            if (with_context) post_to_context(ready[1]);
            CHECK(write(ready[1], "", 1) == 1, "write");
            for (;;) fi_cq_read(a.cq, NULL, 0);
        }
        CHECK(read(ready[0], &byte, 1) == 1, "read");
        usleep((useconds_t)(1000 + 500 * i));
        kill(child, SIGTERM);
        CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
        close(ready[0]);
        close(ready[1]);
    }
}

int main(void) {
    in_a_call(0);
    in_a_call(1);
    outstanding(0);
    outstanding(1);
    whole();
    given_back();
    back_again();
    held(FI_THREAD_DOMAIN);
    held(FI_THREAD_SAFE);
    puts("leaving: ok");
}
