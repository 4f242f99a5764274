// SPDX-License-Identifier: BSD-2-Clause
// Tests threads that send on one endpoint while another thread polls it. They send short and long
// messages in every form, between writes into the peer's memory. The messages of each thread arrive
// in sending order and with the right bytes, and no message arrives before the write that precedes
// it. Each operation completes once and is counted once.
#include "fabric.h"
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { THREADS = 3, MESSAGES = 600, LARGEST = 40000, WRITTEN = 50000, DEPTH = 16, KEY = 7 };
static const uint64_t CAPS = FI_TAGGED | FI_MSG | FI_RMA | FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;

struct op {
    atomic_int told;
};
static struct side a, b;
static struct fid_cntr *counter, *writes;
static struct fid_mr *mr;
static unsigned char target[THREADS][WRITTEN];
static atomic_bool over;
static atomic_int answers[THREADS];

// Returns the length of a thread's message with this number.
static size_t length(int thread, int number) {
    static const size_t lengths[] = {8, 0, 24, 190, 200, 3000, 9000, 1, LARGEST, 64};
    return lengths[(number * 7 + thread) % 10];
}

static unsigned char byte(int thread, int number) {
    return (unsigned char)(thread * 77 + number * 13 + 1);
}

static void *poll_a(void *unused) {
    struct fi_cq_tagged_entry entries[8];
    (void)unused;
    while (!over) {
        ssize_t count = fi_cq_read(a.cq, entries, 8);
        CHECK(count > 0 || count == -FI_EAGAIN, "%zd", count);
        for (ssize_t i = 0; i < count; i++) {
            struct op *op = entries[i].op_context;
            CHECK(!atomic_exchange(&op->told, 1), "completed twice");
        }
    }
    return NULL;
}

static void until_told(struct op *op) {
    while (!op->told) continue;
}

#define AGAIN(call)                                       \
    do {                                                  \
        ssize_t status;                                   \
        while ((status = (call)) == -FI_EAGAIN) continue; \
        CHECK(status == 0, "%zd", status);                \
    } while (0)

static void *send_all(void *argument) {
    int thread = (int)(intptr_t)argument, sent = 0;
    static unsigned char buffers[THREADS][DEPTH][LARGEST], written[THREADS][WRITTEN];
    static struct op ops[THREADS][DEPTH];
    for (int number = 0; number < MESSAGES; number++) {
        int place = number % DEPTH;
        struct op *op = &ops[thread][place];
        unsigned char *buffer = buffers[thread][place];
        size_t len = length(thread, number);
        uint64_t flags = 0;
        if (number >= DEPTH) until_told(op);
        op->told = 0;
        memset(buffer, byte(thread, number), len);
        if (number % 50 == 49) {
            // Without the kernel's copy, the write has several pieces. The message must not overtake it.
            struct op write = {0};
            uint64_t base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)target[thread] : thread * (uint64_t)WRITTEN;
            memset(written[thread], byte(thread, number), WRITTEN);
            AGAIN(fi_write(a.ep, written[thread], WRITTEN, NULL, a.peer, base, fi_mr_key(mr), &write));
            AGAIN(fi_tsenddata(a.ep, buffer, len, NULL, (uint64_t)number, a.peer, (uint64_t)thread, op));
            until_told(&write);
            while (answers[thread] <= sent) continue;
            sent++;
            continue;
        }
        if (len <= 64 && number % 3 == 0) {
            AGAIN(fi_tinjectdata(a.ep, buffer, len, (uint64_t)number, a.peer, (uint64_t)thread));
            op->told = 1;
            continue;
        }
        if (number % 11 == 0) flags |= FI_DELIVERY_COMPLETE;
        if (number % 17 == 0) flags |= FI_FENCE;
        struct iovec part = {buffer, len};
        struct fi_msg_tagged message = {.msg_iov = &part,
                                        .iov_count = 1,
                                        .addr = a.peer,
                                        .tag = (uint64_t)thread,
                                        .context = op,
                                        .data = (uint64_t)number};
        if (flags)
            AGAIN(fi_tsendmsg(a.ep, &message, flags | FI_REMOTE_CQ_DATA | FI_COMPLETION));
        else
            AGAIN(fi_tsenddata(a.ep, buffer, len, NULL, (uint64_t)number, a.peer, (uint64_t)thread, op));
    }
    for (int place = 0; place < DEPTH; place++) until_told(&ops[thread][place]);
    return NULL;
}

static unsigned char rooms[THREADS][DEPTH][LARGEST];
struct receive {
    int thread, number;
    bool done;
};
static struct receive receives[THREADS][DEPTH];
// Number of each thread's oldest receive that is not done.
static int first[THREADS];

static void post(int thread, int number) {
    struct receive *receive = &receives[thread][number % DEPTH];
    *receive = (struct receive){thread, number, false};
    AGAIN(fi_trecv(b.ep, rooms[thread][number % DEPTH], LARGEST, NULL, b.peer, (uint64_t)thread, 0, receive));
}

static void take(const struct fi_cq_tagged_entry *entry) {
    struct receive *receive = entry->op_context;
    int thread = receive->thread, number = receive->number;
    unsigned char expected = byte(thread, number);
    const unsigned char *room = rooms[thread][number % DEPTH];
    CHECK(entry->data == (uint64_t)number, "thread %d: message %d, not %d", thread, (int)entry->data, number);
    CHECK(entry->len == length(thread, number), "%zu bytes", entry->len);
    for (size_t i = 0; i < entry->len; i++) CHECK(room[i] == expected, "byte %zu of message %d", i, number);
    if (number % 50 == 49) {
        for (int i = 0; i < WRITTEN; i++) CHECK(target[thread][i] == expected, "message %d passed byte %d", number, i);
        answers[thread]++;
    }
    // Long messages may complete after shorter ones that follow them; receives match in order.
    receive->done = true;
    while (first[thread] < MESSAGES && receives[thread][first[thread] % DEPTH].done) {
        int next = first[thread]++ + DEPTH;
        if (next < MESSAGES) post(thread, next);
        else receives[thread][next % DEPTH].done = false;
    }
}

static void receive_all(void) {
    struct fi_cq_tagged_entry entries[8];
    for (int thread = 0; thread < THREADS; thread++)
        for (int number = 0; number < DEPTH; number++) post(thread, number);
    for (int left = THREADS * MESSAGES; left > 0;) {
        ssize_t count = fi_cq_read(b.cq, entries, 8);
        CHECK(count > 0 || count == -FI_EAGAIN, "%zd", count);
        for (ssize_t i = 0; i < count; i++, left--) take(&entries[i]);
    }
}

// Default flags that are set, and counters that are bound, after fi_enable apply to later operations.
static void later(void) {
    struct fid_cntr *second;
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fi_cq_tagged_entry entry;
    struct op op = {0};
    uint64_t flags = FI_TRANSMIT | FI_DELIVERY_COMPLETE;
    int before = 0;
    OK(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
    AGAIN(fi_tsend(a.ep, &before, sizeof before, NULL, a.peer, 99, &op));
    for (int i = 0; i < 100; i++) CHECK(fi_cq_read(a.cq, &entry, 1) == -FI_EAGAIN, "a send completed too early");
    AGAIN(fi_trecv(b.ep, rooms[0][0], 8, NULL, b.peer, 99, 0, &op));
    while (fi_cq_read(b.cq, &entry, 1) != 1) continue;
    while (fi_cq_read(a.cq, &entry, 1) != 1) fi_cq_read(b.cq, NULL, 0);
    CHECK(entry.op_context == &op, "another's");
    flags = FI_TRANSMIT;
    OK(fi_control(&a.ep->fid, FI_SETOPSFLAG, &flags));
    OK(fi_cntr_open(domain, &attr, &second, NULL));
    OK(fi_ep_bind(b.ep, &second->fid, FI_SEND));
    AGAIN(fi_tinject(b.ep, &before, sizeof before, b.peer, 5));
    CHECK(fi_cntr_read(second) == 1, "%lu", (unsigned long)fi_cntr_read(second));
    AGAIN(fi_trecv(a.ep, rooms[0][0], 8, NULL, a.peer, 5, 0, &op));
    while (fi_cq_read(a.cq, &entry, 1) != 1) continue;
    close_side(&a);
    close_side(&b);
    OK(fi_close(&second->fid));
}

int main(void) {
    pthread_t threads[THREADS], poller;
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    open_unbound(&a, 0, 2);
    open_unbound(&b, 0, 2);
    OK(fi_cntr_open(domain, &attr, &counter, NULL));
    OK(fi_cntr_open(domain, &attr, &writes, NULL));
    OK(fi_ep_bind(a.ep, &counter->fid, FI_SEND));
    OK(fi_ep_bind(a.ep, &writes->fid, FI_WRITE));
    OK(fi_enable(a.ep));
    OK(fi_enable(b.ep));
    meet(&a, &b);
    OK(fi_mr_reg(domain, target, sizeof target, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &b.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    OK(pthread_create(&poller, NULL, poll_a, NULL));
    for (int i = 0; i < THREADS; i++) OK(pthread_create(&threads[i], NULL, send_all, (void *)(intptr_t)i));
    receive_all();
    for (int i = 0; i < THREADS; i++) OK(pthread_join(threads[i], NULL));
    CHECK(fi_cntr_read(counter) == THREADS * MESSAGES, "%lu sent", (unsigned long)fi_cntr_read(counter));
    CHECK(fi_cntr_read(writes) == THREADS * (MESSAGES / 50), "%lu written", (unsigned long)fi_cntr_read(writes));
    over = true;
    OK(pthread_join(poller, NULL));
    OK(fi_close(&mr->fid));
    later();
    OK(fi_close(&counter->fid));
    OK(fi_close(&writes->fid));
    close_domain();
    return 0;
}
