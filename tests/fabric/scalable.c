// SPDX-License-Identifier: BSD-2-Clause
// Tests scalable endpoints: order per context, receives that name a scalable endpoint, different
// numbers of contexts, memory, contexts that close in any order, and invalid calls.
#include "fabric.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

enum { MOST = 4, BITS = 3, LARGEST = 150000 };

struct many {
    struct fid_ep *sep, *tx[MOST], *rx[MOST];
    struct fid_av *av;
    // By index: the completion queue of the transmit and the receive context with this index.
    struct side of[MOST];
    int tx_count, rx_count;
    fi_addr_t peer;
};

static const size_t lengths[] = {8, 0, 200, 3000, 15000, 60000, LARGEST};
enum { LENGTHS = sizeof lengths / sizeof *lengths };
static struct many a, b;
static char in[LARGEST], out[LARGEST], token[64];

static void open_tx(struct many *it, int index) {
    OK(fi_tx_context(it->sep, index, NULL, &it->tx[index], NULL));
    OK(fi_ep_bind(it->tx[index], &it->of[index].cq->fid, FI_TRANSMIT));
    OK(fi_enable(it->tx[index]));
}

static void open_rx(struct many *it, int index) {
    OK(fi_rx_context(it->sep, index, NULL, &it->rx[index], NULL));
    OK(fi_ep_bind(it->rx[index], &it->of[index].cq->fid, FI_RECV));
    OK(fi_enable(it->rx[index]));
}

static void open_sep(struct many *it, int tx_count, int rx_count) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .rx_ctx_bits = BITS};
    struct fi_info *own = fi_dupinfo(info);
    own->ep_attr->tx_ctx_cnt = (size_t)(it->tx_count = tx_count);
    own->ep_attr->rx_ctx_cnt = (size_t)(it->rx_count = rx_count);
    OK(fi_scalable_ep(domain, own, &it->sep, NULL));
    fi_freeinfo(own);
    OK(fi_av_open(domain, &av, &it->av, NULL));
    OK(fi_scalable_ep_bind(it->sep, &it->av->fid, 0));
    OK(fi_enable(it->sep));
    for (int i = 0; i < MOST; i++) {
        it->of[i].av = it->av;
        OK(fi_cq_open(domain, &cq, &it->of[i].cq, NULL));
        if (i < tx_count) open_tx(it, i);
        if (i < rx_count) open_rx(it, i);
    }
}

static void close_sep(struct many *it) {
    for (int i = 0; i < MOST; i++) {
        if (i < it->tx_count) OK(fi_close(&it->tx[i]->fid));
        if (i < it->rx_count) OK(fi_close(&it->rx[i]->fid));
        OK(fi_close(&it->of[i].cq->fid));
    }
    OK(fi_close(&it->sep->fid));
    OK(fi_close(&it->av->fid));
}

static void open_both(int tx_count, int rx_count) {
    open_sep(&a, tx_count, rx_count);
    open_sep(&b, rx_count, tx_count);
    a.peer = insert(&a.of[0], b.sep);
    b.peer = insert(&b.of[0], a.sep);
}

static void close_both(void) {
    close_sep(&a);
    close_sep(&b);
}

static fi_addr_t context_of(fi_addr_t address, int index) {
    return fi_rx_addr(address, index, BITS);
}

// Sends a message. While there is no room, the receiving context makes progress.
static void send_to(struct many *from, int tx, struct many *to, int rx, size_t len, uint64_t tag, void *context) {
    long status;
    do {
        status = fi_tsend(from->tx[tx], out, len, NULL, context_of(from->peer, rx), tag, context);
        if (status) fi_cq_read(to->of[rx].cq, NULL, 0);
    } while (status == -FI_EAGAIN);
    OK(status);
}

static void fill(size_t len, int seed) {
    for (size_t i = 0; i < len; i++) out[i] = (char)(i * 31 + (size_t)seed);
}

// Sends each length from each transmit context to each receive context.
static void messages(void) {
    for (int tx = 0; tx < a.tx_count; tx++) {
        for (int rx = 0; rx < b.rx_count; rx++) {
            for (int i = 0; i < LENGTHS; i++) {
                for (int first = 0; first < 2; first++) {
                    size_t len = lengths[i];
                    fill(len, tx * 50 + rx * 7 + i);
                    memset(in, 0xee, len);
                    // The receive is posted before or after the send.
                    if (first) OK(fi_trecv(b.rx[rx], in, len, NULL, b.peer, 5, 0, in));
                    send_to(&a, tx, &b, rx, len, 5, out);
                    if (!first) {
                        fi_cq_read(b.of[rx].cq, NULL, 0);
                        OK(fi_trecv(b.rx[rx], in, len, NULL, b.peer, 5, 0, in));
                    }
                    struct fi_cq_tagged_entry entry = next_ok(&b.of[rx], &a.of[tx], in);
                    CHECK(entry.len == len && !memcmp(in, out, len), "context %d to %d, %zu bytes", tx, rx, len);
                    next_ok(&a.of[tx], &b.of[rx], out);
                }
            }
        }
    }
}

static void order(void) {
    enum { COUNT = 40 };
    static int received[MOST][COUNT];
    for (int i = 0; i < COUNT; i++)
        for (int tx = 0; tx < a.tx_count; tx++)
            for (int rx = 0; rx < b.rx_count; rx++)
                OK(fi_tinject(a.tx[tx], &(int){tx * 1000 + i}, sizeof(int), context_of(a.peer, rx), (uint64_t)tx));
    for (int rx = 0; rx < b.rx_count; rx++) {
        for (int tx = 0; tx < a.tx_count; tx++) {
            for (int i = 0; i < COUNT; i++)
                OK(fi_trecv(b.rx[rx], &received[tx][i], sizeof(int), NULL, b.peer, (uint64_t)tx, 0, &received[tx][i]));
        }
        for (int i = 0; i < a.tx_count * COUNT; i++) {
            struct fi_cq_tagged_entry entry;
            struct fi_cq_err_entry failure;
            fi_addr_t source;
            CHECK(!next_entry(&b.of[rx], &a.of[0], &entry, &source, &failure), "%d", failure.err);
            CHECK(source == b.peer, "source %#lx, not the scalable endpoint's", (unsigned long)source);
        }
        for (int tx = 0; tx < a.tx_count; tx++)
            for (int i = 0; i < COUNT; i++) CHECK(received[tx][i] == tx * 1000 + i, "context %d: %d", tx, received[tx][i]);
        nothing(&b.of[rx]);
    }
}

// A receive that names the scalable endpoint, or one of its contexts, takes messages of any of its
// contexts, and of no other endpoint.
static void directed(void) {
    struct side other;
    open_side(&other, 0, 1);
    fi_addr_t there = insert(&other, b.sep), back = insert(&b.of[0], other.ep);
    for (int tx = 0; tx < a.tx_count; tx++) {
        for (int rx = 0; rx < b.rx_count; rx++) {
            fi_addr_t named = tx == rx ? b.peer : context_of(b.peer, tx);
            OK(fi_trecv(b.rx[0], in, 8, NULL, named, 1, 0, in));
            OK(fi_tinject(other.ep, out, 8, there, 1));
            for (int i = 0; i < 100; i++) fi_cq_read(b.of[0].cq, NULL, 0);
            nothing(&b.of[0]);
            OK(fi_tinject(a.tx[tx], out, 8, a.peer, 1));
            next_ok(&b.of[0], &a.of[tx], in);
            OK(fi_trecv(b.rx[0], token, 8, NULL, back, 1, 0, token));
            next_ok(&b.of[0], NULL, token);
        }
    }
    // An endpoint whose address vector has no receive context bits also receives from all contexts.
    fi_addr_t sep = insert(&other, a.sep), single = insert(&a.of[0], other.ep);
    for (int tx = 0; tx < a.tx_count; tx++) {
        OK(fi_trecv(other.ep, in, 8, NULL, sep, 2, 0, in));
        OK(fi_tinject(a.tx[tx], out, 8, single, 2));
        next_ok(&other, &a.of[tx], in);
    }
    close_side(&other);
}

// An ordinary endpoint posts receives that name a scalable endpoint by the address of one of its
// contexts.
static void named_by_context(void) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .rx_ctx_bits = BITS};
    struct side other = {0};
    OK(fi_endpoint(domain, info, &other.ep, NULL));
    OK(fi_cq_open(domain, &cq, &other.cq, NULL));
    OK(fi_av_open(domain, &av, &other.av, NULL));
    OK(fi_ep_bind(other.ep, &other.cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(other.ep, &other.av->fid, 0));
    OK(fi_enable(other.ep));
    fi_addr_t sep = insert(&other, a.sep), single = insert(&a.of[0], other.ep);
    for (int index = 0; index < a.rx_count; index++) {
        OK(fi_trecv(other.ep, in, 8, NULL, context_of(sep, index), 2, 0, in));
        OK(fi_tinject(a.tx[0], out, 8, single, 2));
        next_ok(&other, &a.of[0], in);
    }
    close_side(&other);
}

// The receive context of a scalable endpoint opens after its transmit context was enabled. Without
// FI_DIRECTED_RECV it takes messages of any source, whatever its receives name.
static void opened_later(void) {
    struct side other;
    struct fi_rx_attr of_anybody = *info->rx_attr;
    of_anybody.caps = FI_TAGGED | FI_RECV;
    open_side(&other, 0, 1);
    fi_addr_t there = insert(&other, b.sep);
    OK(fi_close(&b.rx[0]->fid));
    OK(fi_rx_context(b.sep, 0, &of_anybody, &b.rx[0], NULL));
    OK(fi_ep_bind(b.rx[0], &b.of[0].cq->fid, FI_RECV));
    OK(fi_enable(b.rx[0]));
    OK(fi_trecv(b.rx[0], in, 8, NULL, b.peer, 3, 0, in));
    OK(fi_tinject(other.ep, out, 8, there, 3));
    next_ok(&b.of[0], &other, in);
    OK(fi_close(&b.rx[0]->fid));
    open_rx(&b, 0);
    close_side(&other);
}

// Sends unexpected messages whose senders wait for delivery. The answer must go to the sending
// context.
static void acknowledged(void) {
    struct iovec iov = {out, 0};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .tag = 9, .context = out};
    for (int tx = 0; tx < a.tx_count; tx++) {
        for (int i = 0; i < LENGTHS; i++) {
            iov.iov_len = lengths[i];
            msg.addr = context_of(a.peer, b.rx_count - 1);
            OK(fi_tsendmsg(a.tx[tx], &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
            struct side *receiver = &b.of[b.rx_count - 1];
            for (int poll = 0; poll < 100; poll++) fi_cq_read(receiver->cq, NULL, 0);
            nothing(&a.of[tx]);
            OK(fi_trecv(b.rx[b.rx_count - 1], in, sizeof in, NULL, b.peer, 9, 0, in));
            next_ok(receiver, &a.of[tx], in);
            next_ok(&a.of[tx], receiver, out);
        }
    }
}

static void memory(void) {
    struct fid_mr *mr;
    static char window[4096];
    OK(fi_mr_reg(domain, window, sizeof window, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        // The region is bound to two contexts. Its scalable endpoint and another endpoint are refused.
        OK(fi_mr_bind(mr, &b.rx[0]->fid, 0));
        OK(fi_mr_bind(mr, &b.tx[0]->fid, 0));
        FAILS(FI_EINVAL, fi_mr_bind(mr, &b.sep->fid, 0));
        FAILS(FI_EINVAL, fi_mr_bind(mr, &a.rx[0]->fid, 0));
        OK(fi_mr_enable(mr));
    }
    uint64_t base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)window : 0;
    for (int tx = 0; tx < a.tx_count; tx++) {
        for (int rx = 0; rx < b.rx_count; rx++) {
            fill(4096, tx + rx);
            OK(fi_write(a.tx[tx], out, 4096, NULL, context_of(a.peer, rx), base, fi_mr_key(mr), out));
            next_ok(&a.of[tx], &b.of[rx], out);
            // This poll is for ThreadSanitizer: its lock orders the writes of the progress thread
            // before the check. ThreadSanitizer does not see the order through the segment, which
            // is mapped twice.
            fi_cq_read(b.of[rx].cq, NULL, 0);
            CHECK(!memcmp(window, out, 4096), "context %d to %d", tx, rx);
        }
    }
    OK(fi_close(&mr->fid));
}

// A context closes and reopens, while its scalable endpoint and the other contexts continue.
static void closing(void) {
    OK(fi_trecv(b.rx[1], in, 8, NULL, b.peer, 3, 0, in));
    FAILS(FI_EBUSY, fi_close(&a.sep->fid));
    FAILS(FI_EBUSY, fi_close(&a.of[0].cq->fid));
    OK(fi_close(&a.rx[0]->fid));
    OK(fi_close(&a.tx[0]->fid));
    OK(fi_close(&a.of[0].cq->fid));
    for (int i = 0; i < 1000; i++) fi_cq_read(b.of[1].cq, NULL, 0);
    double end = seconds() + 0.3;
    while (seconds() < end) nothing(&b.of[1]);
    OK(fi_tinject(a.tx[1], out, 8, context_of(a.peer, 1), 3));
    next_ok(&b.of[1], &a.of[1], in);
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    OK(fi_cq_open(domain, &cq, &a.of[0].cq, NULL));
    open_tx(&a, 0);
    open_rx(&a, 0);
    OK(fi_trecv(b.rx[1], in, 8, NULL, b.peer, 3, 0, in));
    OK(fi_tinject(a.tx[0], out, 8, context_of(a.peer, 1), 3));
    next_ok(&b.of[1], &a.of[0], in);
    // A context closes with its posted receive. A message that is sent to it meanwhile reaches the next
    // context at this index.
    OK(fi_trecv(b.rx[1], in, 8, NULL, b.peer, 4, 0, in));
    OK(fi_close(&b.rx[1]->fid));
    OK(fi_tinject(a.tx[0], "message", 8, context_of(a.peer, 1), 4));
    nothing(&b.of[1]);
    open_rx(&b, 1);
    OK(fi_trecv(b.rx[1], token, 8, NULL, b.peer, 4, 0, token));
    next_ok(&b.of[1], &a.of[0], token);
    CHECK(!strcmp(token, "message"), "%s", token);
    nothing(&b.of[1]);
}

// Checks the result of a receive whose message was dropped: the bytes of the message, or an error.
static void dropped_seen_by(struct side *sender, char *into, size_t len) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t source;
    int error = next_entry(&b.of[1], sender, &entry, &source, &failure);
    CHECK(!error || error == FI_ECONNABORTED, "%s", fi_strerror(error));
    for (size_t i = 0; i < len && !error; i++) CHECK(into[i] == 1, "byte %zu of %zu is of later", i, len);
}

static void dropped(char *into, size_t len) {
    dropped_seen_by(&a.of[0], into, len);
}

// Closes transmit context 0, and reads the completion of its operation if that ended before.
static void close_tx(void) {
    struct fi_cq_tagged_entry entry;
    OK(fi_close(&a.tx[0]->fid));
    fi_cq_read(a.of[0].cq, &entry, 1);
}

// A transmit context closes with messages, reads and writes in progress. These operations have no
// completions, and the program may reuse their memory.
static void dropping(void) {
    enum { LONG = 3 << 20, MESSAGES = 3 };
    static char from[LONG], to[LONG], window[LONG];
    struct fid_mr *mr;
    OK(fi_mr_reg(domain, window, LONG, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, 1, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &b.rx[1]->fid, 0));
        OK(fi_mr_enable(mr));
    }
    uint64_t base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)window : 0;
    // The receive is posted after the close, or before it, or the message is already in flight.
    for (int round = 0; round < 2 * MESSAGES; round++) {
        size_t len = round < MESSAGES ? LONG : LARGEST;
        memset(from, 1, len);
        if (round % MESSAGES > 0) OK(fi_trecv(b.rx[1], to, len, NULL, b.peer, 9, 0, to));
        OK(fi_tsend(a.tx[0], from, len, NULL, context_of(a.peer, 1), 9, from));
        if (round % MESSAGES > 1) {
            fi_cq_read(b.of[1].cq, NULL, 0);
            fi_cq_read(a.of[0].cq, NULL, 0);
        }
        close_tx();
        memset(from, 2, len);
        if (round % MESSAGES == 0) OK(fi_trecv(b.rx[1], to, len, NULL, b.peer, 9, 0, to));
        dropped(to, len);
        nothing(&a.of[0]);
        open_tx(&a, 0);
    }
    static const size_t longs[] = {LONG, LARGEST, 100};
    for (int i = 0; i < 6; i++) {
        size_t len = longs[i % 3];
        int writes = i < 3;
        memset(from, 1, len);
        memset(window, 0, len);
        if (writes) OK(fi_write(a.tx[0], from, len, NULL, context_of(a.peer, 1), base, fi_mr_key(mr), from));
        else OK(fi_read(a.tx[0], from, len, NULL, context_of(a.peer, 1), base, fi_mr_key(mr), from));
        close_tx();
        memset(from, 2, len);
        double end = seconds() + 0.05;
        while (seconds() < end) {
            nothing(&a.of[0]);
            fi_cq_read(b.of[1].cq, NULL, 0);
        }
        for (size_t at = 0; at < len; at++) {
            CHECK(window[at] < 2, "%zu bytes: written from memory that is something else's", len);
            CHECK(from[at] == 2, "%zu bytes: read into memory that is something else's", len);
        }
        open_tx(&a, 0);
    }
    OK(fi_close(&mr->fid));
}

// The transmit and the receive context of an index close while a message waits for its receive. Polls
// of a context of another index answer for them.
static void closed_both_ways(void) {
    enum { LONG = 3 << 20 };
    static char from[LONG], to[LONG];
    memset(from, 1, LONG);
    for (int round = 0; round < 2; round++) {
        OK(fi_tsend(a.tx[0], from, LONG, NULL, context_of(a.peer, 1), 9, from));
        if (round) fi_cq_read(b.of[1].cq, NULL, 0);
        OK(fi_close(&a.rx[0]->fid));
        close_tx();
        memset(from, 2, LONG);
        OK(fi_trecv(b.rx[1], to, LONG, NULL, b.peer, 9, 0, to));
        dropped_seen_by(&a.of[1], to, LONG);
        open_tx(&a, 0);
        open_rx(&a, 0);
        memset(from, 1, LONG);
    }
}

// A context closes more times than a byte can count. A message that was sent before the first close
// must still count as dropped.
static void closed_often(void) {
    enum { LONG = 1 << 20, TIMES = 260 };
    static char from[LONG], to[LONG];
    memset(from, 1, LONG);
    OK(fi_tsend(a.tx[0], from, LONG, NULL, context_of(a.peer, 1), 9, from));
    for (int i = 0; i < TIMES; i++) {
        close_tx();
        if (i == 0) memset(from, 2, LONG);
        open_tx(&a, 0);
        fi_cq_read(b.of[1].cq, NULL, 0);
        if ((i + 1) % 256) continue;
        OK(fi_trecv(b.rx[1], to, LONG, NULL, b.peer, 9, 0, to));
        dropped(to, LONG);
    }
}

// Each context has separate counters, and starts the operations that wait for a counter.
static void counters(void) {
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *sent, *received;
    OK(fi_cntr_open(domain, &attr, &sent, NULL));
    OK(fi_cntr_open(domain, &attr, &received, NULL));
    FAILS(FI_EBADFLAGS, fi_ep_bind(a.tx[1], &sent->fid, FI_RECV));
    OK(fi_ep_bind(a.tx[1], &sent->fid, FI_SEND));
    OK(fi_ep_bind(b.rx[1], &received->fid, FI_RECV));
    OK(fi_trecv(b.rx[1], in, 8, NULL, b.peer, 6, 0, in));
    struct fi_op_tagged op = {.ep = a.tx[1], .flags = FI_COMPLETION};
    struct iovec iov = {out, 8};
    op.msg = (struct fi_msg_tagged){.msg_iov = &iov, .iov_count = 1, .addr = context_of(a.peer, 1), .tag = 6, .context = out};
    struct fi_deferred_work work = {.threshold = 1, .triggering_cntr = received, .op_type = FI_OP_TSEND, .op.tagged = &op};
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work));
    OK(fi_tinject(a.tx[0], out, 8, context_of(a.peer, 1), 6));
    next_ok(&b.of[1], &a.of[1], in);
    next_ok(&a.of[1], &b.of[1], out);
    OK(fi_trecv(b.rx[1], in, 8, NULL, b.peer, 6, 0, in));
    next_ok(&b.of[1], &a.of[1], in);
    CHECK(fi_cntr_read(received) == 2 && fi_cntr_read(sent) == 1, "%lu received", fi_cntr_read(received));
    FAILS(FI_EBUSY, fi_close(&sent->fid));
    OK(fi_close(&a.tx[1]->fid));
    OK(fi_close(&b.rx[1]->fid));
    OK(fi_close(&sent->fid));
    OK(fi_close(&received->fid));
    open_tx(&a, 1);
    open_rx(&b, 1);
}

static void wrong_calls(void) {
    struct fi_info *own = fi_dupinfo(info);
    struct fid_ep *sep, *ep, *tx, *rx, *again;
    struct fid_av *av;
    struct fid_cq *cq;
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .rx_ctx_bits = 17};
    struct fi_tx_attr few = {.op_flags = FI_DELIVERY_COMPLETE}, many = {.inject_size = 1 << 30};
    char name[64], other[64];
    size_t len = sizeof name, other_len = sizeof other;
    CHECK(info->caps & FI_NAMED_RX_CTX, "%#lx", (unsigned long)info->caps);
    size_t most = info->domain_attr->max_ep_tx_ctx;
    CHECK(most >= 16 && info->domain_attr->max_ep_rx_ctx == most, "%zu contexts", most);
    own->ep_attr->tx_ctx_cnt = most + 1;
    FAILS(FI_EINVAL, fi_scalable_ep(domain, own, &sep, NULL));
    own->ep_attr->tx_ctx_cnt = 3;
    own->ep_attr->rx_ctx_cnt = 2;
    FAILS(FI_EINVAL, fi_endpoint(domain, own, &ep, NULL));
    OK(fi_scalable_ep(domain, own, &sep, NULL));
    OK(fi_getname(&sep->fid, name, &len));
    FAILS(FI_EINVAL, fi_tx_context(sep, -1, NULL, &tx, NULL));
    FAILS(FI_EINVAL, fi_tx_context(sep, 3, NULL, &tx, NULL));
    FAILS(FI_EINVAL, fi_rx_context(sep, 2, NULL, &rx, NULL));
    FAILS(FI_EINVAL, fi_tx_context(sep, 2, &many, &tx, NULL));
    OK(fi_tx_context(sep, 2, &few, &tx, NULL));
    CHECK(few.op_flags == FI_DELIVERY_COMPLETE && few.size && few.inject_size, "%zu", few.size);
    FAILS(FI_EBUSY, fi_tx_context(sep, 2, NULL, &again, NULL));
    OK(fi_rx_context(sep, 1, NULL, &rx, NULL));
    OK(fi_getname(&rx->fid, other, &other_len));
    CHECK(len == other_len && !memcmp(name, other, len), "contexts have the address of their endpoint");
    OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
    FAILS(FI_EINVAL, fi_av_open(domain, &av_attr, &av, NULL));
    av_attr.rx_ctx_bits = BITS;
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    // Without the required bindings.
    FAILS(FI_ENOAV, fi_enable(sep));
    FAILS(FI_ENOAV, fi_enable(tx));
    FAILS(FI_EINVAL, fi_scalable_ep_bind(sep, &cq->fid, FI_TRANSMIT));
    FAILS(FI_EINVAL, fi_ep_bind(tx, &av->fid, 0));
    OK(fi_scalable_ep_bind(sep, &av->fid, 0));
    FAILS(FI_EINVAL, fi_scalable_ep_bind(sep, &av->fid, 0));
    FAILS(FI_ENOCQ, fi_enable(tx));
    FAILS(FI_EBADFLAGS, fi_ep_bind(tx, &cq->fid, FI_RECV));
    FAILS(FI_EBADFLAGS, fi_ep_bind(rx, &cq->fid, FI_RECV | FI_TRANSMIT));
    OK(fi_ep_bind(tx, &cq->fid, FI_TRANSMIT));
    OK(fi_ep_bind(rx, &cq->fid, FI_RECV));
    // Not enabled, or in the wrong direction.
    FAILS(FI_EOPBADSTATE, fi_tsend(tx, out, 8, NULL, 0, 0, out));
    FAILS(FI_EOPBADSTATE, fi_trecv(rx, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, in));
    OK(fi_enable(tx));
    FAILS(FI_EOPBADSTATE, fi_trecv(rx, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, in));
    OK(fi_enable(rx));
    FAILS(FI_EOPNOTSUPP, fi_trecv(tx, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, in));
    FAILS(FI_EOPNOTSUPP, fi_tsend(rx, out, 8, NULL, 0, 0, out));
    struct fid_cntr *go;
    OK(fi_cntr_open(domain, &(struct fi_cntr_attr){.wait_obj = FI_WAIT_NONE}, &go, NULL));
    struct fi_op_tagged to_rx = {.ep = rx, .msg = {.addr = 0}}, from_tx = {.ep = tx, .msg = {.addr = FI_ADDR_UNSPEC}};
    FAILS(FI_EOPNOTSUPP, fi_control(&domain->fid, FI_QUEUE_WORK, &(struct fi_deferred_work){
        .threshold = 1, .triggering_cntr = go, .op_type = FI_OP_TSEND, .op.tagged = &to_rx}));
    FAILS(FI_EOPNOTSUPP, fi_control(&domain->fid, FI_QUEUE_WORK, &(struct fi_deferred_work){
        .threshold = 1, .triggering_cntr = go, .op_type = FI_OP_TRECV, .op.tagged = &from_tx}));
    OK(fi_close(&go->fid));
    FAILS(FI_EOPNOTSUPP, fi_tsend(sep, out, 8, NULL, 0, 0, out));
    FAILS(FI_EOPNOTSUPP, fi_trecv(sep, in, 8, NULL, FI_ADDR_UNSPEC, 0, 0, in));
    // Invalid addresses.
    fi_addr_t self;
    CHECK(fi_av_insert(av, name, 1, &self, 0, NULL) == 1, "not inserted");
    FAILS(FI_EINVAL, fi_tsend(tx, out, 8, NULL, context_of(self + 1, 1), 0, out));
    FAILS(FI_EINVAL, fi_trecv(rx, in, 8, NULL, context_of(self + 1, 1), 0, 0, in));
    FAILS(FI_EBUSY, fi_close(&sep->fid));
    FAILS(FI_EBUSY, fi_close(&av->fid));
    OK(fi_close(&rx->fid));
    FAILS(FI_EBUSY, fi_close(&sep->fid));
    OK(fi_close(&tx->fid));
    OK(fi_close(&sep->fid));
    OK(fi_close(&av->fid));
    OK(fi_close(&cq->fid));
    fi_freeinfo(own);
}

int main(void) {
    static const int counts[][2] = {{1, 1}, {4, 4}, {3, 1}, {1, 4}};
    open_domain(FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE | FI_NAMED_RX_CTX, FI_THREAD_SAFE, 0);
    wrong_calls();
    for (int i = 0; i < 4; i++) {
        open_both(counts[i][0], counts[i][1]);
        messages();
        order();
        directed();
        named_by_context();
        opened_later();
        acknowledged();
        memory();
        if (a.tx_count > 1 && b.rx_count > 1) {
            closing();
            dropping();
            closed_both_ways();
            closed_often();
            counters();
            messages();
        }
        close_both();
    }
    close_domain();
    puts("scalable: ok");
    return 0;
}
