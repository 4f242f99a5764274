// SPDX-License-Identifier: BSD-2-Clause
// Tests reads and writes of registered memory in every form and length, counters and remote CQ
// data, triggered and deferred work, and calls that must fail.
#include "fabric.h"
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#define LONGEST (3u << 20)
#define KEY 7

static struct side a, b;
static struct fid_cntr *reads, *writes, *remote_reads, *remote_writes, *of_region;
static struct fid_mr *mr;
static uint8_t *target, *local, *back;
static uint64_t base; // address of the region for peers
static uint64_t key;

static void advance(void) {
    fi_cq_read(a.cq, NULL, 0);
    fi_cq_read(b.cq, NULL, 0);
}

static struct fi_cq_tagged_entry completion(struct side *side) {
    struct fi_cq_tagged_entry entry;
    for (double start = seconds(); seconds() - start < within(10);) {
        advance();
        ssize_t count = fi_cq_read(side->cq, &entry, 1);
        if (count == 1) return entry;
        CHECK(count == -FI_EAGAIN, "%zd", count);
    }
    CHECK(0, "no completion");
    return entry;
}

static void failure(struct side *side, int error, void *context) {
    struct fi_cq_err_entry entry = {0};
    for (double start = seconds(); seconds() - start < within(10);) {
        advance();
        if (fi_cq_readerr(side->cq, &entry, 0) != 1) continue;
        CHECK(entry.err == error && entry.op_context == context, "%d", entry.err);
        return;
    }
    CHECK(0, "no error");
}

static void wait_for(struct fid_cntr *counter, uint64_t count) {
    for (double start = seconds(); seconds() - start < within(10) && fi_cntr_read(counter) < count;) advance();
    CHECK(fi_cntr_read(counter) == count, "%lu, not %lu", fi_cntr_read(counter), count);
}

#define TRY(call) do { ssize_t s_; while ((s_ = (call)) == -FI_EAGAIN) advance(); OK(s_); advance(); } while (0)

static void fill(uint8_t *bytes, size_t len, unsigned seed) {
    for (size_t i = 0; i < len; i++) bytes[i] = (uint8_t)(seed + i * 7 + i / 251);
}

static void lengths(void) {
    const size_t lens[] = {0, 1, 8, 184, 185, 208, 4096, 8168, 8169, 8192, 16128, 16129, 100000, LONGEST};
    for (unsigned i = 0; i < sizeof lens / sizeof *lens; i++) {
        size_t len = lens[i];
        fill(local, len, i);
        TRY(fi_write(a.ep, local, len, NULL, a.peer, base, key, &a));
        struct fi_cq_tagged_entry entry = completion(&a);
        CHECK(entry.op_context == &a && entry.flags == (FI_RMA | FI_WRITE), "%lx", entry.flags);
        CHECK(!memcmp(target, local, len), "written wrong, %zu bytes", len);
        memset(back, 0, len + 1);
        TRY(fi_read(a.ep, back, len, NULL, a.peer, base, key, &b));
        entry = completion(&a);
        CHECK(entry.op_context == &b && entry.flags == (FI_RMA | FI_READ), "%lx", entry.flags);
        CHECK(!memcmp(back, local, len) && back[len] == 0, "read wrong, %zu bytes", len);
    }
}

static void vectors(void) {
    fill(local, 20000, 99);
    memset(target, 0, 30000);
    struct iovec iov[3] = {{local, 5}, {local + 5, 9995}, {local + 10000, 10000}};
    TRY(fi_writev(a.ep, iov, NULL, 3, a.peer, base + 10, key, NULL));
    completion(&a);
    CHECK(!memcmp(target + 10, local, 20000), "writev");
    struct fi_rma_iov there[4] = {
        {base + 3, 5000, key}, {base + 5003, 3000, key}, {base + 8003, 4000, key}, {base + 20000, 8000, key}};
    struct fi_msg_rma msg = {iov, NULL, 3, a.peer, there, 4, NULL, 0};
    TRY(fi_writemsg(a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    completion(&a);
    CHECK(!memcmp(target + 3, local, 12000) && !memcmp(target + 20000, local + 12000, 8000), "writemsg");
    memset(back, 0, 20000);
    struct iovec into[2] = {{back, 13000}, {back + 13000, 7000}};
    struct fi_msg_rma get = {into, NULL, 2, a.peer, there, 4, NULL, 0};
    TRY(fi_readmsg(a.ep, &get, FI_COMPLETION));
    completion(&a);
    CHECK(!memcmp(back, local, 20000), "readmsg");
    struct fi_msg_rma nowhere = {NULL, NULL, 0, a.peer, there, 0, NULL, 0};
    FAILS(FI_EINVAL, fi_writemsg(a.ep, &nowhere, FI_COMPLETION | FI_REMOTE_CQ_DATA));
    FAILS(FI_EINVAL, fi_readmsg(a.ep, &nowhere, FI_COMPLETION));
    memset(back, 0, 20000);
    TRY(fi_readv(a.ep, into, NULL, 2, a.peer, base + 3, key, NULL));
    completion(&a);
    CHECK(!memcmp(back, target + 3, 20000), "readv");
}

static void injected_and_told(void) {
    uint64_t writes_before = fi_cntr_read(writes), remote_before = fi_cntr_read(remote_writes);
    size_t len = info->tx_attr->inject_size < 1000 ? info->tx_attr->inject_size : 1000;
    fill(local, 1000, 5);
    TRY(fi_inject_write(a.ep, local, 8, a.peer, base, key));
    uint8_t gone[1000];
    memcpy(gone, local, 1000);
    TRY(fi_inject_writedata(a.ep, gone, len, 77, a.peer, base + 8, key));
    memset(gone, 0, 1000);
    struct fi_cq_tagged_entry entry = completion(&b);
    CHECK(entry.flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA), "%lx", entry.flags);
    CHECK(entry.data == 77 && entry.len == len && !entry.op_context, "%lu", entry.data);
    CHECK(!memcmp(target, local, 8) && !memcmp(target + 8, local, len), "inject_write");
    TRY(fi_writedata(a.ep, local, 100000, NULL, ~0ull, a.peer, base, key, &a));
    entry = completion(&b);
    CHECK(entry.data == ~0ull && entry.len == 100000, "%zu", entry.len);
    completion(&a);
    wait_for(writes, writes_before + 3);
    wait_for(remote_writes, remote_before + 3);
    CHECK(fi_cntr_read(of_region) == fi_cntr_read(remote_writes), "%lu", fi_cntr_read(of_region));
    CHECK(fi_cntr_read(reads) == fi_cntr_read(remote_reads), "%lu", fi_cntr_read(reads));
}

// Up to the sizes that fi_getinfo reports, each read sees the writes before it and no write after
// it. A message never overtakes a write, of any length.
static void order_by_length(void) {
    enum { DEEP = 16, REPEATS = 3 };
    size_t most = info->ep_attr->max_order_war_size;
    size_t lengths[] = {1, most / 2, most - 1, most};
    CHECK(info->ep_attr->max_order_raw_size == most && info->ep_attr->max_order_waw_size == most, "%zu", most);
    uint8_t *written = malloc(DEEP * most), *read = malloc(DEEP * most);
    for (size_t at = 0; at < REPEATS * sizeof lengths / sizeof *lengths; at++) {
        size_t len = lengths[at / REPEATS];
        for (int i = 0; i < DEEP; i++) {
            uint8_t *from = written + (size_t)i * most, *to = read + (size_t)i * most;
            memset(from, i + 1, len);
            // In manual mode, all start before one is served.
            OK(fi_write(a.ep, from, len, NULL, a.peer, base, key, NULL));
            OK(fi_read(a.ep, to, len, NULL, a.peer, base, key, NULL));
        }
        for (int i = 0; i < 2 * DEEP; i++) completion(&a);
        for (int i = 0; i < DEEP; i++)
            for (size_t byte = 0; byte < len; byte++)
                CHECK(read[(size_t)i * most + byte] == i + 1, "read %d of %zu: %d", i, len, read[(size_t)i * most + byte]);
    }
    free(written);
    free(read);
    size_t longer[] = {90, 120, 190, most, most + 70, most + 90, most + 96, most + 120, 16200, 16384, 50000, LONGEST};
    for (size_t at = 0; at < sizeof longer / sizeof *longer; at++) {
        uint64_t sent = 0, got;
        memset(local, (int)at + 1, longer[at]);
        TRY(fi_recv(b.ep, &got, sizeof got, NULL, FI_ADDR_UNSPEC, NULL));
        OK(fi_write(a.ep, local, longer[at], NULL, a.peer, base, key, NULL));
        while (fi_inject(a.ep, &sent, 8, a.peer) == -FI_EAGAIN) advance();
        // Only `b` makes progress here. When it has the message, it must have the bytes of the write.
        struct fi_cq_tagged_entry entry;
        while (fi_cq_read(b.cq, &entry, 1) != 1) continue;
        for (size_t byte = 0; byte < longer[at]; byte++)
            CHECK(((volatile uint8_t *)target)[byte] == at + 1, "a message passed byte %zu of %zu", byte, longer[at]);
        completion(&a);
    }
}

// A message that follows a write arrives after it. While operations are in progress, FI_FENCE
// fails.
static void order(void) {
    for (int round = 0; round < 200; round++) {
        uint64_t value = (uint64_t)round, got = ~0ull;
        TRY(fi_recv(b.ep, &got, sizeof got, NULL, FI_ADDR_UNSPEC, NULL));
        TRY(fi_inject_write(a.ep, &value, 8, a.peer, base, key));
        TRY(fi_inject(a.ep, &value, 8, a.peer));
        completion(&b);
        CHECK(*(volatile uint64_t *)target == got, "%lu", got);
    }
    struct iovec iov = {local, 8};
    struct fi_rma_iov there = {base, 8, key};
    struct fi_msg_rma msg = {&iov, NULL, 1, a.peer, &there, 1, NULL, 0};
    TRY(fi_write(a.ep, local, LONGEST, NULL, a.peer, base, key, NULL));
    ssize_t fenced = fi_writemsg(a.ep, &msg, FI_FENCE | FI_COMPLETION);
    if (info->domain_attr->data_progress == FI_PROGRESS_MANUAL)
        CHECK(fenced == -FI_EAGAIN, "%zd", fenced);
    completion(&a);
    if (fenced) TRY(fi_writemsg(a.ep, &msg, FI_FENCE | FI_COMPLETION));
    completion(&a);
}

static void refused(void) {
    uint8_t before = target[0];
    uint64_t count = fi_cntr_read(remote_writes);
    struct fid_mr *read_only;
    OK(fi_mr_reg(domain, target, 64, FI_REMOTE_READ, 0, KEY + 1, 0, &read_only, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        TRY(fi_read(a.ep, back, 8, NULL, a.peer, base, fi_mr_key(read_only), &a));
        failure(&a, FI_EACCES, &a); // not enabled
        OK(fi_mr_bind(read_only, &a.ep->fid, 0));
        OK(fi_mr_enable(read_only));
        TRY(fi_read(a.ep, back, 8, NULL, a.peer, base, fi_mr_key(read_only), &a));
        failure(&a, FI_EACCES, &a); // of another endpoint
        OK(fi_close(&read_only->fid));
        OK(fi_mr_reg(domain, target, 64, FI_REMOTE_READ, 0, KEY + 1, 0, &read_only, NULL));
        OK(fi_mr_bind(read_only, &b.ep->fid, 0));
        OK(fi_mr_enable(read_only));
    }
    TRY(fi_write(a.ep, local, 8, NULL, a.peer, base, fi_mr_key(read_only), &a));
    failure(&a, FI_EACCES, &a);
    TRY(fi_read(a.ep, back, 8, NULL, a.peer, base, fi_mr_key(read_only), &a));
    completion(&a);
    uint64_t stale = fi_mr_key(read_only);
    OK(fi_close(&read_only->fid));
    TRY(fi_read(a.ep, back, 8, NULL, a.peer, base, stale, &a));
    failure(&a, FI_ENOKEY, &a);
    TRY(fi_write(a.ep, local, 2, NULL, a.peer, base + LONGEST - 1, key, &a));
    failure(&a, FI_EFAULT, &a);
    TRY(fi_write(a.ep, local, 8, NULL, a.peer, base - 1, key, &a));
    failure(&a, FI_EFAULT, &a);
    TRY(fi_write(a.ep, local, 100000, NULL, a.peer, base + LONGEST - 99999, key, &a));
    failure(&a, FI_EFAULT, &a);
    TRY(fi_inject_write(a.ep, local, 8, a.peer, base, 12345));
    failure(&a, FI_ENOKEY, NULL);
    CHECK(target[0] == before && fi_cntr_read(remote_writes) == count, "memory was touched");
    FAILS(FI_EMSGSIZE, fi_inject_write(a.ep, local, info->tx_attr->inject_size + 1, a.peer, base, key));
    // FI_INJECT for all transmits does not limit the length of reads.
    size_t longer = info->tx_attr->inject_size + 1;
    uint64_t usual = FI_TRANSMIT, injects = FI_TRANSMIT | FI_INJECT;
    OK(fi_control(&a.ep->fid, FI_GETOPSFLAG, &usual));
    usual |= FI_TRANSMIT;
    OK(fi_control(&a.ep->fid, FI_SETOPSFLAG, &injects));
    FAILS(FI_EMSGSIZE, fi_write(a.ep, local, longer, NULL, a.peer, base, key, &a));
    TRY(fi_read(a.ep, back, longer, NULL, a.peer, base, key, &a));
    completion(&a);
    OK(fi_control(&a.ep->fid, FI_SETOPSFLAG, &usual));
    if (!(info->domain_attr->mr_mode & FI_MR_PROV_KEY))
        FAILS(FI_ENOKEY, fi_mr_reg(domain, target, 8, FI_REMOTE_READ, 0, KEY, 0, &read_only, NULL));
    FAILS(FI_EBADFLAGS, fi_mr_reg(domain, target, 8, 1ull << 60, 0, 99, 0, &read_only, NULL));
}

// While the initiator reads no answers, at most tx_attr->size operations may be in progress.
static void limited(void) {
    size_t started = 0;
    while (fi_read(a.ep, back, 4096, NULL, a.peer, base, key, NULL) == 0) {
        started++;
        if (info->domain_attr->data_progress == FI_PROGRESS_MANUAL) fi_cq_read(b.cq, NULL, 0);
        if (started > 100000) break;
    }
    if (info->domain_attr->data_progress == FI_PROGRESS_MANUAL)
        CHECK(started == info->tx_attr->size, "%zu started", started);
    for (size_t i = 0; i < started; i++) completion(&a);
}

// A transmit queue of any size starts no more reads than the peer keeps answers for.
static void limited_by_answers(void) {
    enum { PART = 16 << 10, MOST = (64 << 20) / (PART + 256) };
    size_t size = info->tx_attr->size, started = 0;
    struct side large;
    info->tx_attr->size = 1 << 16;
    open_side(&large, 0, 2);
    info->tx_attr->size = size;
    large.peer = insert(&large, b.ep);
    fill(target, PART, 17);
    double end = seconds() + within(20);
    while (fi_read(large.ep, back, PART, NULL, large.peer, base, key, NULL) == 0 && started <= 2 * MOST) {
        started++;
        if (info->domain_attr->data_progress == FI_PROGRESS_MANUAL) fi_cq_read(b.cq, NULL, 0);
    }
    if (info->domain_attr->data_progress == FI_PROGRESS_MANUAL) CHECK(started == MOST, "%zu started", started);
    for (size_t done = 0; done < started;) {
        struct fi_cq_tagged_entry entry;
        ssize_t count = fi_cq_read(large.cq, &entry, 1);
        CHECK(count == 1 || (count == -FI_EAGAIN && seconds() < end), "%zd after %zu of %zu", count, done, started);
        done += count == 1;
        fi_cq_read(b.cq, NULL, 0);
    }
    CHECK(!memcmp(back, target, PART), "read wrong");
    close_side(&large);
}

static void raw_keys(void) {
    uint64_t first = 1, mapped;
    uint8_t raw[64];
    size_t size = 1;
    FAILS(FI_ETOOSMALL, fi_mr_raw_attr(mr, &first, raw, &size, 0));
    size = sizeof raw;
    OK(fi_mr_raw_attr(mr, &first, raw, &size, 0));
    OK(fi_mr_map_raw(domain, first, raw, size, &mapped, 0));
    TRY(fi_write(a.ep, local, 8, NULL, a.peer, first, mapped, NULL));
    completion(&a);
    OK(fi_mr_unmap_key(domain, mapped));
}

static void triggered(void) {
    struct fid_cntr *go, *done;
    struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_NONE};
    OK(fi_cntr_open(domain, &attr, &go, NULL));
    OK(fi_cntr_open(domain, &attr, &done, NULL));
    struct iovec iov = {local, 64};
    struct fi_rma_iov there = {base, 64, key};
    struct fi_triggered_context2 context = {.event_type = FI_TRIGGER_THRESHOLD};
    context.trigger.threshold.cntr = go;
    context.trigger.threshold.threshold = 2;
    struct fi_msg_rma msg = {&iov, NULL, 1, a.peer, &there, 1, &context, 0};
    memset(target, 0, 64);
    fill(local, 64, 3);
    TRY(fi_writemsg(a.ep, &msg, FI_TRIGGER | FI_COMPLETION));
    OK(fi_cntr_add(go, 1));
    for (int i = 0; i < 100; i++) advance();
    CHECK(target[5] == 0, "started too early");
    OK(fi_cntr_add(go, 1));
    CHECK(completion(&a).op_context == &context, "context");
    CHECK(!memcmp(target, local, 64), "triggered write");

    // Deferred work: a write, then a read that the write's completion starts, then a counter.
    fill(local, 64, 4);
    memset(back, 0, 64);
    struct fi_op_rma write = {a.ep, msg, 0}, read = {a.ep, msg, 0};
    struct iovec into = {back, 64};
    read.msg.msg_iov = &into;
    struct fi_op_cntr last = {go, 1000};
    struct fi_deferred_work work[4] = {
        {.threshold = 3, .triggering_cntr = go, .completion_cntr = done, .op_type = FI_OP_WRITE, .op.rma = &write},
        {.threshold = 1, .triggering_cntr = done, .completion_cntr = done, .op_type = FI_OP_READ, .op.rma = &read},
        {.threshold = 2, .triggering_cntr = done, .op_type = FI_OP_CNTR_SET, .op.cntr = &last},
        {.threshold = 999999, .triggering_cntr = go, .op_type = FI_OP_CNTR_ADD, .op.cntr = &last},
    };
    for (int i = 0; i < 4; i++) OK(fi_control(&domain->fid, FI_QUEUE_WORK, &work[i]));
    OK(fi_control(&domain->fid, FI_CANCEL_WORK, &work[3]));
    FAILS(FI_ENOENT, fi_control(&domain->fid, FI_CANCEL_WORK, &work[3]));
    OK(fi_cntr_add(go, 1));
    wait_for(done, 2);
    wait_for(go, 1000);
    CHECK(!memcmp(back, local, 64) && !memcmp(target, local, 64), "deferred work");
    OK(fi_control(&domain->fid, FI_QUEUE_WORK, &(struct fi_deferred_work){
        .threshold = 5000, .triggering_cntr = go, .op_type = FI_OP_CNTR_SET, .op.cntr = &last}));
    OK(fi_control(&domain->fid, FI_FLUSH_WORK, NULL));
    OK(fi_cntr_add(go, 5000));
    wait_for(go, 6000);
    OK(fi_close(&go->fid));
    OK(fi_close(&done->fid));
}

int main(void) {
    open_domain(FI_MSG | FI_RMA | FI_RMA_EVENT, FI_THREAD_SAFE, 0);
    struct fi_cntr_attr attr = {.wait_obj = FI_WAIT_NONE};
    struct fid_cntr **counters[] = {&reads, &writes, &remote_reads, &remote_writes, &of_region};
    for (int i = 0; i < 5; i++) OK(fi_cntr_open(domain, &attr, counters[i], NULL));
    open_unbound(&a, 0, 8);
    OK(fi_ep_bind(a.ep, &reads->fid, FI_READ));
    OK(fi_ep_bind(a.ep, &writes->fid, FI_WRITE));
    FAILS(FI_EINVAL, fi_ep_bind(a.ep, &writes->fid, FI_WRITE));
    OK(fi_enable(a.ep));
    open_unbound(&b, 0, 8);
    OK(fi_ep_bind(b.ep, &remote_reads->fid, FI_REMOTE_READ));
    OK(fi_ep_bind(b.ep, &remote_writes->fid, FI_REMOTE_WRITE));
    OK(fi_enable(b.ep));
    meet(&a, &b);
    target = malloc(LONGEST), local = malloc(LONGEST), back = malloc(LONGEST + 1);
    OK(fi_mr_reg(domain, target, LONGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, FI_RMA_EVENT, &mr, NULL));
    OK(fi_mr_bind(mr, &of_region->fid, FI_REMOTE_WRITE));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        FAILS(FI_EINVAL, fi_mr_enable(mr));
        OK(fi_mr_bind(mr, &b.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)target : 0;
    key = fi_mr_key(mr);
    lengths();
    vectors();
    injected_and_told();
    order();
    order_by_length();
    refused();
    raw_keys();
    limited();
    limited_by_answers();
    triggered();
    OK(fi_close(&mr->fid));
    close_side(&a);
    close_side(&b);
    for (int i = 0; i < 5; i++) OK(fi_close(&(*counters[i])->fid));
    close_domain();
    return 0;
}
