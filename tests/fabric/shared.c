// SPDX-License-Identifier: BSD-2-Clause
// Tests objects that endpoints share: receive and transmit contexts, an address vector, and queues.
// Also tests aliases, which are two names of one endpoint, and poll sets.
#include "fabric.h"
#include <pthread.h>
#include <unistd.h>

enum { ENDPOINTS = 3, LARGEST = 200000 };
static struct fid_ep *srx, *eps[ENDPOINTS], *sender;
static struct fid_stx *stx;
static struct fid_cq *cqs[ENDPOINTS], *sent;
static struct fid_av *av;
static fi_addr_t to[ENDPOINTS], from;
static unsigned char out[LARGEST], in[LARGEST];

static fi_addr_t known(struct fid_ep *ep) {
    char name[64];
    size_t len = sizeof name;
    fi_addr_t address;
    OK(fi_getname(&ep->fid, name, &len));
    CHECK(fi_av_insert(av, name, 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

static struct fid_ep *endpoint(struct fid_cq *tx, struct fid_cq *rx) {
    struct fid_ep *ep;
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_ep_bind(ep, &tx->fid, FI_TRANSMIT));
    if (rx) {
        OK(fi_ep_bind(ep, &rx->fid, FI_RECV));
        OK(fi_ep_bind(ep, &srx->fid, 0));
        OK(fi_ep_bind(ep, &stx->fid, 0));
    }
    OK(fi_enable(ep));
    return ep;
}

static void drive(void) {
    for (int i = 0; i < ENDPOINTS; i++) fi_cq_read(cqs[i], NULL, 0);
    fi_cq_read(sent, NULL, 0);
    // With automatic progress, the progress thread may have to do the work, and needs time for it.
    if (progress == FI_PROGRESS_AUTO) usleep(500);
}

static struct fi_cq_tagged_entry entry_of(struct fid_cq *cq, void *context) {
    struct fi_cq_tagged_entry entry;
    double end = seconds() + within(10);
    ssize_t count;
    while ((count = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && seconds() < end) drive();
    CHECK(count == 1 && entry.op_context == context, "%zd", count);
    return entry;
}

// Sends every length to every endpoint, after its receive is posted and before. The completion is
// in the queue of the endpoint to which the message was sent.
static void messages(void) {
    static const size_t lengths[] = {0, 8, 1000, 20000, LARGEST};
    for (int tagged = 0; tagged < 2; tagged++)
        for (int i = 0; i < ENDPOINTS; i++)
            for (size_t k = 0; k < 5; k++)
                for (int expected = 0; expected < 2; expected++) {
                    size_t len = lengths[k];
                    memset(out, (int)(i * 20 + (int)k + 1), len);
                    memset(in, 0, len);
                    for (int step = 0; step < 2; step++) {
                        if (step != expected) {
                            if (tagged) OK(fi_trecv(srx, in, len, NULL, FI_ADDR_UNSPEC, 7, 0, in));
                            else OK(fi_recv(srx, in, len, NULL, FI_ADDR_UNSPEC, in));
                        } else {
                            struct iovec iov = {out, len};
                            struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = to[i], .context = out};
                            struct fi_msg_tagged tmsg = {.msg_iov = &iov, .iov_count = 1, .addr = to[i], .tag = 7, .context = out};
                            // The send completes when the receiving endpoint has answered.
                            if (tagged) OK(fi_tsendmsg(sender, &tmsg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
                            else OK(fi_sendmsg(sender, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
                            drive();
                        }
                    }
                    CHECK(entry_of(cqs[i], in).len == len, "length");
                    CHECK(!memcmp(in, out, len), "bytes differ");
                    entry_of(sent, out);
                }
}

// Waits until the message with this tag to endpoint `i` has arrived as an unexpected one. A progress
// thread may be slow.
static void await_message(int i, uint64_t tag) {
    struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = tag, .context = &msg};
    struct fi_cq_tagged_entry entry;
    for (double end = seconds() + within(10);;) {
        struct fi_cq_err_entry failure = {0};
        OK(fi_trecvmsg(srx, &msg, FI_PEEK | FI_COMPLETION));
        if (fi_cq_read(cqs[i], &entry, 1) == 1) return;
        CHECK(fi_cq_readerr(cqs[0], &failure, 0) == 1 && failure.err == FI_ENOMSG, "%d", failure.err);
        CHECK(seconds() < end, "message %lu to %d", tag, i);
        drive();
    }
}

// The oldest receive takes the first message, whichever endpoint receives it.
static void order(void) {
    uint64_t values[6];
    for (int i = 0; i < 6; i++) OK(fi_trecv(srx, &values[i], 8, NULL, FI_ADDR_UNSPEC, 0, ~0UL, &values[i]));
    for (uint64_t i = 0; i < 6; i++) {
        OK(fi_tinject(sender, &i, 8, to[i % 3], i));
        entry_of(cqs[i % 3], &values[i]);
        CHECK(values[i] == i, "%lu, not %lu", values[i], i);
    }
    // Unexpected messages, in the order of their arrival.
    for (uint64_t i = 0; i < 6; i++) {
        OK(fi_tinject(sender, &i, 8, to[2 - i % 3], 9 + (i << 8)));
        await_message(2 - (int)(i % 3), 9 + (i << 8));
    }
    for (uint64_t i = 0; i < 6; i++) {
        OK(fi_trecv(srx, &values[0], 8, NULL, from, 9, ~0xffUL, values));
        entry_of(cqs[2 - i % 3], values);
        CHECK(values[0] == i, "%lu, not %lu", values[0], i);
    }
}

static void probes(void) {
    uint64_t value = 5;
    struct iovec iov = {&value, 8};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 4, .context = &value};
    struct fi_cq_err_entry failure = {0};
    struct fi_cq_tagged_entry entry;
    FAILS(FI_EOPNOTSUPP, fi_trecv(eps[0], &value, 8, NULL, FI_ADDR_UNSPEC, 4, 0, NULL));
    FAILS(FI_EOPNOTSUPP, fi_tsend(srx, &value, 8, NULL, to[0], 4, NULL));
    OK(fi_trecvmsg(srx, &msg, FI_PEEK | FI_COMPLETION));
    FAILS(FI_EAVAIL, fi_cq_read(cqs[0], &entry, 1));
    CHECK(fi_cq_readerr(cqs[0], &failure, 0) == 1 && failure.err == FI_ENOMSG, "%d", failure.err);
    OK(fi_tinject(sender, &value, 8, to[1], 4));
    await_message(1, 4);
    OK(fi_trecvmsg(srx, &msg, FI_PEEK | FI_CLAIM | FI_COMPLETION));
    CHECK(entry_of(cqs[1], &value).len == 8, "claimed");
    value = 0;
    OK(fi_trecvmsg(srx, &msg, FI_CLAIM | FI_COMPLETION));
    entry_of(cqs[1], &value);
    CHECK(value == 5, "%lu", value);
    OK(fi_tinject(sender, &value, 8, to[2], 4));
    await_message(2, 4);
    OK(fi_trecvmsg(srx, &msg, FI_PEEK | FI_DISCARD | FI_COMPLETION));
    entry_of(cqs[2], &value);
    OK(fi_trecv(srx, &value, 8, NULL, FI_ADDR_UNSPEC, 4, 0, &value));
    OK(fi_cancel(&srx->fid, &value));
    FAILS(FI_EAVAIL, fi_cq_read(cqs[0], &entry, 1));
    CHECK(fi_cq_readerr(cqs[0], &failure, 0) == 1 && failure.err == FI_ECANCELED, "%d", failure.err);
}

static void multi(void) {
    size_t minimum = 101;
    struct iovec iov = {in, 1000};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
    OK(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum, sizeof minimum));
    FAILS(FI_ENOPROTOOPT, fi_setopt(&srx->fid, FI_OPT_ENDPOINT, 99, &minimum, sizeof minimum));
    for (int i = 0; i < 2; i++) {
        OK(fi_inject(sender, out, 150, to[i]));
        drive();
    }
    OK(fi_recvmsg(srx, &msg, FI_MULTI_RECV | FI_COMPLETION));
    for (int i = 0; i < 6; i++) {
        if (i >= 2) OK(fi_inject(sender, out, 150, to[i % 3]));
        struct fi_cq_tagged_entry entry = entry_of(cqs[i % 3], in);
        CHECK(entry.buf == in + i * 150, "message %d", i);
        CHECK(!(entry.flags & FI_MULTI_RECV) == (i < 5), "release at %d", i);
    }
}

// Sends long messages through every endpoint into one buffer. The buffer is given back once, with
// the last completion.
static void multi_long(void) {
    enum { LEN = 50000 };
    struct iovec iov = {in, 3 * LEN + 50};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
    for (int round = 0; round < 20; round++) {
        int released = 0, count = 0;
        OK(fi_recvmsg(srx, &msg, FI_MULTI_RECV | FI_COMPLETION));
        for (int i = 0; i < 3; i++) OK(fi_send(sender, out, LEN, NULL, to[(i + round) % 3], out));
        double end = seconds() + within(10);
        while (count < 3 && seconds() < end) {
            fi_cq_read(sent, NULL, 0);
            for (int i = 0; i < ENDPOINTS; i++) {
                struct fi_cq_tagged_entry entry;
                if (fi_cq_read(cqs[i], &entry, 1) != 1) continue;
                CHECK(!released || progress == FI_PROGRESS_AUTO, "given back before message %d", count);
                released = (entry.flags & FI_MULTI_RECV) != 0;
                count++;
            }
        }
        // With several threads, the reading order may differ from the completion order.
        CHECK(count == 3 && (released || progress == FI_PROGRESS_AUTO), "%d", count);
        for (int i = 0; i < 3; i++) entry_of(sent, out);
    }
}

static void alias(void) {
    struct fid_ep *quiet = NULL, *other = NULL;
    uint64_t flags = FI_TRANSMIT, value = 0, sending = 6;
    FAILS(FI_EINVAL, fi_ep_alias(sender, &other, 0));
    OK(fi_ep_alias(sender, &quiet, FI_TRANSMIT | FI_INJECT));
    FAILS(FI_EBUSY, fi_close(&sender->fid));
    OK(fi_trecv(srx, &value, 8, NULL, from, 3, 0, &value));
    // The buffer can be reused at once.
    OK(fi_tsend(quiet, &sending, 8, NULL, to[0], 3, out));
    sending = 0;
    entry_of(cqs[0], &value);
    CHECK(value == 6, "%lu", value);
    entry_of(sent, out);
    FAILS(FI_EMSGSIZE, fi_tsend(quiet, out, LARGEST, NULL, to[0], 3, out));
    OK(fi_control(&sender->fid, FI_GETOPSFLAG, &flags));
    CHECK(!(flags & FI_INJECT), "%#lx", flags);
    flags = FI_TRANSMIT;
    OK(fi_control(&quiet->fid, FI_GETOPSFLAG, &flags));
    CHECK(flags == FI_INJECT, "%#lx", flags);
    OK(fi_close(&quiet->fid));
    // A tagged receive takes one message, whatever the default flags of receives.
    OK(fi_ep_alias(sender, &other, FI_RECV | FI_MULTI_RECV));
    OK(fi_trecv(other, &value, 8, NULL, FI_ADDR_UNSPEC, 4, 0, &value));
    OK(fi_cancel(&other->fid, &value));
    OK(fi_close(&other->fid));
}

static void poll_sets(void) {
    struct fi_poll_attr attr = {0};
    struct fi_cntr_attr cntr_attr = {0};
    struct fid_poll *set;
    struct fid_cntr *cntr;
    void *contexts[4];
    // Two variables, because ThreadSanitizer does not see the order of accesses over the ring: it is
    // mapped twice.
    uint64_t given = 0, value;
    OK(fi_cntr_open(domain, &cntr_attr, &cntr, out));
    OK(fi_poll_open(domain, &attr, &set));
    for (int i = 0; i < ENDPOINTS; i++) OK(fi_poll_add(set, &cqs[i]->fid, 0));
    OK(fi_poll_add(set, &cntr->fid, 0));
    FAILS(FI_EINVAL, fi_poll_add(set, &av->fid, 0));
    CHECK(fi_poll(set, contexts, 4) == 0, "nothing yet");
    OK(fi_trecv(srx, &value, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &value));
    OK(fi_tinject(sender, &given, 8, to[1], 1));
    double end = seconds() + within(10);
    while (!fi_poll(set, contexts, 4) && seconds() < end);
    CHECK(fi_poll(set, contexts, 4) == 1 && contexts[0] == &cqs[1], "the second queue");
    entry_of(cqs[1], &value);
    OK(fi_cntr_add(cntr, 1));
    CHECK(fi_poll(set, contexts, 4) == 1 && contexts[0] == out, "the counter");
    CHECK(fi_cntr_read(cntr) == 1 && fi_poll(set, contexts, 4) == 0, "read");
    FAILS(FI_EBUSY, fi_close(&cntr->fid));
    OK(fi_poll_del(set, &cntr->fid, 0));
    FAILS(FI_EINVAL, fi_poll_del(set, &cntr->fid, 0));
    OK(fi_close(&cntr->fid));
    OK(fi_close(&set->fid));
}

// Two threads post while another sends to every endpoint: each message is received once.
enum { EACH = 6000 };
static uint64_t got[EACH];

static void *poster(void *arg) {
    int first = arg ? EACH / 2 : 0;
    for (int i = first; i < first + EACH / 2; i++)
        OK(fi_trecv(srx, &got[i], 8, NULL, FI_ADDR_UNSPEC, 8, 0, &got[i]));
    return NULL;
}

static void threads(void) {
    pthread_t posters[2];
    for (int i = 0; i < 2; i++) OK(pthread_create(&posters[i], NULL, poster, i ? got : NULL));
    uint64_t count = 0, next = 0, sum = 0;
    double end = seconds() + within(20);
    while (count < EACH && seconds() < end) {
        if (next < EACH && fi_tinject(sender, &next, 8, to[next % 3], 8) == 0) next++;
        struct fi_cq_tagged_entry entries[8];
        for (int i = 0; i < ENDPOINTS; i++) {
            ssize_t n = fi_cq_read(cqs[i], entries, 8);
            if (n > 0) count += (uint64_t)n;
        }
        drive();
    }
    for (int i = 0; i < 2; i++) OK(pthread_join(posters[i], NULL));
    CHECK(count == EACH, "%lu of %d", count, EACH);
    for (int i = 0; i < EACH; i++) sum += got[i];
    CHECK(sum == (uint64_t)EACH * (EACH - 1) / 2, "a message twice");
}

int main(void) {
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_MULTI_RECV, FI_THREAD_SAFE, 0);
    info->ep_attr->rx_ctx_cnt = info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    OK(fi_stx_context(domain, info->tx_attr, &stx, NULL));
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    OK(fi_cq_open(domain, &attr, &sent, NULL));
    for (int i = 0; i < ENDPOINTS; i++) {
        OK(fi_cq_open(domain, &attr, &cqs[i], &cqs[i]));
        eps[i] = endpoint(cqs[i], cqs[i]);
        to[i] = known(eps[i]);
    }
    sender = endpoint(sent, NULL);
    from = known(sender);
    messages();
    order();
    probes();
    multi();
    multi_long();
    alias();
    poll_sets();
    threads();
    FAILS(FI_EBUSY, fi_close(&srx->fid));
    OK(fi_close(&stx->fid));
    // One endpoint closes with the messages that it holds; the others continue.
    uint64_t value = 1;
    OK(fi_tinject(sender, &value, 8, to[0], 5));
    drive();
    OK(fi_close(&eps[0]->fid));
    OK(fi_trecv(srx, &value, 8, NULL, FI_ADDR_UNSPEC, 5, 0, &value));
    uint64_t two = 2;
    OK(fi_tinject(sender, &two, 8, to[1], 5));
    entry_of(cqs[1], &value);
    CHECK(value == 2, "%lu", value);
    for (int i = 1; i < ENDPOINTS; i++) OK(fi_close(&eps[i]->fid));
    OK(fi_close(&sender->fid));
    OK(fi_close(&srx->fid));
    for (int i = 0; i < ENDPOINTS; i++) OK(fi_close(&cqs[i]->fid));
    OK(fi_close(&sent->fid));
    OK(fi_close(&av->fid));
    close_domain();
    puts("shared: ok");
}
