// SPDX-License-Identifier: BSD-2-Clause
// Checks the guarantees of libfabric's man pages, with one table per page.
//
// - fi_cntr: the operations that increment each counter
// - fi_cq: the flags of completions
// - fi_mr: access bits, and the operations that they allow
// - fi_endpoint: options that set sizes, and the order in which objects close
#include "fabric.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

enum { KEY = 1, OTHER_KEY = 2, SHARED_KEY = 3, LIMIT = 100 };
static struct side a, b;
static uint64_t memory[64], local[64], fetched[64], compared[64];

// ---- Operations of a on b.

enum op { SEND, TSEND, WRITE, WRITEDATA, INJECT_WRITE, READ, SUM, INJECT_SUM, FETCH, SWAP, CSWAP, ATOMIC_READ, OPS };
static const char *const names[OPS] = {
    "fi_send", "fi_tsend", "fi_write", "fi_writedata", "fi_inject_write", "fi_read", "fi_atomic", "fi_inject_atomic",
    "fi_fetch_atomic", "fi_fetch_atomic FI_ATOMIC_WRITE", "fi_compare_atomic", "fi_fetch_atomic FI_ATOMIC_READ",
};

static int is_silent(enum op op) {
    return op == INJECT_WRITE || op == INJECT_SUM;
}

static ssize_t start(enum op op, uint64_t key) {
    const enum fi_datatype type = FI_UINT64;
    switch (op) {
    case SEND: return fi_send(a.ep, local, 8, NULL, a.peer, &a);
    case TSEND: return fi_tsend(a.ep, local, 8, NULL, a.peer, 5, &a);
    case WRITE: return fi_write(a.ep, local, 8, NULL, a.peer, 0, key, &a);
    case WRITEDATA: return fi_writedata(a.ep, local, 8, NULL, 9, a.peer, 0, key, &a);
    case INJECT_WRITE: return fi_inject_write(a.ep, local, 8, a.peer, 0, key);
    case READ: return fi_read(a.ep, fetched, 8, NULL, a.peer, 0, key, &a);
    case SUM: return fi_atomic(a.ep, local, 1, NULL, a.peer, 0, key, type, FI_SUM, &a);
    case INJECT_SUM: return fi_inject_atomic(a.ep, local, 1, a.peer, 0, key, type, FI_SUM);
    case FETCH: return fi_fetch_atomic(a.ep, local, 1, NULL, fetched, NULL, a.peer, 0, key, type, FI_SUM, &a);
    case SWAP: return fi_fetch_atomic(a.ep, local, 1, NULL, fetched, NULL, a.peer, 0, key, type, FI_ATOMIC_WRITE, &a);
    case CSWAP:
        return fi_compare_atomic(a.ep, local, 1, NULL, compared, NULL, fetched, NULL, a.peer, 0, key, type, FI_CSWAP, &a);
    case ATOMIC_READ:
        return fi_fetch_atomic(a.ep, NULL, 1, NULL, fetched, NULL, a.peer, 0, key, type, FI_ATOMIC_READ, &a);
    default: return -FI_EINVAL;
    }
}

// ---- fi_cntr(3): the operations that a counter counts. fi_cq(3): the flags of completions.

enum { ENDPOINT_COUNTERS = 6, REGION_COUNTERS = 3, COUNTERS = ENDPOINT_COUNTERS + REGION_COUNTERS };
static const struct {
    const char *name;
    int is_target;
    uint64_t flag;
} bound[COUNTERS] = {
    {"FI_SEND", 0, FI_SEND},
    {"FI_READ", 0, FI_READ},
    {"FI_WRITE", 0, FI_WRITE},
    {"FI_RECV", 1, FI_RECV},
    {"FI_REMOTE_READ", 1, FI_REMOTE_READ},
    {"FI_REMOTE_WRITE", 1, FI_REMOTE_WRITE},
    {"FI_REMOTE_READ of the region", 1, FI_REMOTE_READ},
    {"FI_REMOTE_WRITE of the region", 1, FI_REMOTE_WRITE},
    // A counter that is bound with both flags counts an operation once.
    {"FI_REMOTE_READ | FI_REMOTE_WRITE of the region", 1, FI_REMOTE_READ | FI_REMOTE_WRITE},
};
static const struct {
    enum op op;
    uint64_t flags;
    int counts[COUNTERS];
} counted[] = {
    {SEND, FI_SEND | FI_MSG, {1, 0, 0, 1, 0, 0, 0, 0, 0}},
    {TSEND, FI_SEND | FI_TAGGED, {1, 0, 0, 1, 0, 0, 0, 0, 0}},
    {WRITE, FI_WRITE | FI_RMA, {0, 0, 1, 0, 0, 1, 0, 1, 1}},
    {WRITEDATA, FI_WRITE | FI_RMA, {0, 0, 1, 0, 0, 1, 0, 1, 1}},
    {INJECT_WRITE, 0, {0, 0, 1, 0, 0, 1, 0, 1, 1}},
    {READ, FI_READ | FI_RMA, {0, 1, 0, 0, 1, 0, 1, 0, 1}},
    {SUM, FI_WRITE | FI_ATOMIC, {0, 0, 1, 0, 0, 1, 0, 1, 1}},
    {INJECT_SUM, 0, {0, 0, 1, 0, 0, 1, 0, 1, 1}},
    {FETCH, FI_READ | FI_ATOMIC, {0, 1, 0, 0, 1, 1, 1, 1, 1}},
    {SWAP, FI_READ | FI_ATOMIC, {0, 1, 0, 0, 1, 1, 1, 1, 1}},
    {CSWAP, FI_READ | FI_ATOMIC, {0, 1, 0, 0, 1, 1, 1, 1, 1}},
    {ATOMIC_READ, FI_READ | FI_ATOMIC, {0, 1, 0, 0, 1, 0, 1, 0, 1}},
};

static void enable_with(struct side *side, struct fid_cntr *const *cntrs, int is_target) {
    open_unbound(side, 0, 2);
    for (int i = 0; i < ENDPOINT_COUNTERS; i++)
        if (bound[i].is_target == is_target) OK(fi_ep_bind(side->ep, &cntrs[i]->fid, bound[i].flag));
    OK(fi_enable(side->ep));
}

static void who_counts(void) {
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_UNSPEC};
    struct fid_cntr *cntrs[COUNTERS];
    struct fid_mr *apart, *both;
    for (int i = 0; i < COUNTERS; i++) OK(fi_cntr_open(domain, &attr, &cntrs[i], NULL));
    enable_with(&a, cntrs, 0);
    enable_with(&b, cntrs, 1);
    meet(&a, &b);
    const uint64_t access = FI_REMOTE_READ | FI_REMOTE_WRITE;
    OK(fi_mr_reg(domain, memory, sizeof memory, access, 0, KEY, FI_RMA_EVENT, &apart, NULL));
    OK(fi_mr_reg(domain, memory, sizeof memory, access, 0, SHARED_KEY, FI_RMA_EVENT, &both, NULL));
    for (int i = ENDPOINT_COUNTERS; i < COUNTERS; i++)
        OK(fi_mr_bind(bound[i].flag == access ? both : apart, &cntrs[i]->fid, bound[i].flag));
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++) {
        const enum op op = counted[i].op;
        // Twice, so that both regions are used.
        for (int shared = 0; shared < 2; shared++) {
            uint64_t before[COUNTERS], into;
            for (int c = 0; c < COUNTERS; c++) before[c] = fi_cntr_read(cntrs[c]);
            if (op == SEND) OK(fi_recv(b.ep, &into, 8, NULL, b.peer, &b));
            if (op == TSEND) OK(fi_trecv(b.ep, &into, 8, NULL, b.peer, 5, 0, &b));
            OK(start(op, shared ? SHARED_KEY : KEY));
            if (!is_silent(op)) {
                struct fi_cq_tagged_entry entry = next_ok(&a, &b, &a);
                const uint64_t kinds = FI_SEND | FI_READ | FI_WRITE | FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC;
                CHECK((entry.flags & kinds) == counted[i].flags, "%s: flags %lx", names[op], entry.flags);
            }
            if (op == SEND || op == TSEND) next_ok(&b, &a, &b);
            if (op == WRITEDATA) {
                struct fi_cq_tagged_entry entry = next_ok(&b, &a, NULL);
                const uint64_t flags = FI_REMOTE_CQ_DATA | FI_RMA | FI_REMOTE_WRITE;
                CHECK((entry.flags & flags) == flags && entry.data == 9, "%lx, %lu", entry.flags, entry.data);
            }
            // Injected operations have no completion: wait for their counters.
            for (int c = 0; c < COUNTERS; c++) {
                const int is_region = c >= ENDPOINT_COUNTERS;
                const int is_used = !is_region || (c == COUNTERS - 1) == shared;
                const uint64_t expected = before[c] + (is_used ? counted[i].counts[c] : 0);
                const double end = seconds() + within(10);
                while (fi_cntr_read(cntrs[c]) < expected && seconds() < end) {
                    fi_cq_read(a.cq, NULL, 0);
                    fi_cq_read(b.cq, NULL, 0);
                }
                CHECK(fi_cntr_read(cntrs[c]) == expected, "%s is counted %lu times as %s, not %lu times", names[op],
                      fi_cntr_read(cntrs[c]) - before[c], bound[c].name, expected - before[c]);
            }
        }
    }
    // A counter cannot be closed while a region or an endpoint uses it.
    FAILS(FI_EBUSY, fi_close(&cntrs[0]->fid));
    FAILS(FI_EBUSY, fi_close(&cntrs[ENDPOINT_COUNTERS]->fid));
    OK(fi_close(&apart->fid));
    OK(fi_close(&both->fid));
    close_side(&a);
    close_side(&b);
    for (int i = 0; i < COUNTERS; i++) OK(fi_close(&cntrs[i]->fid));
}

// ---- fi_mr(3): access bits, and the operations that they allow.

#ifndef FI_COLLECTIVE
#define FI_COLLECTIVE (1ULL << 6)
#endif
#define LOCAL (FI_SEND | FI_RECV | FI_READ | FI_WRITE)
static const struct {
    uint64_t bits;
    int status;
} access_bits[] = {
    {0, 0},
    {LOCAL, 0},
    {FI_REMOTE_READ, 0},
    {FI_REMOTE_WRITE, 0},
    // Classes of operations, in the form in which LCI passes them.
    {FI_RMA | FI_READ | FI_WRITE, 0},
    {FI_MSG | FI_SEND, 0},
    {FI_TAGGED | FI_RECV, 0},
    {FI_ATOMIC | FI_REMOTE_WRITE, 0},
    {FI_COLLECTIVE | FI_SEND, 0},
    {FI_RMA | FI_ATOMIC | FI_MSG | FI_TAGGED | FI_COLLECTIVE | LOCAL | FI_REMOTE_READ | FI_REMOTE_WRITE, 0},
    {FI_REMOTE_READ | FI_MORE, FI_EBADFLAGS},
    {FI_REMOTE_READ | 1ULL << 63, FI_EBADFLAGS},
};
static const struct {
    enum op op;
    uint64_t needs;
} needed[] = {
    {WRITE, FI_REMOTE_WRITE}, {READ, FI_REMOTE_READ},  {SUM, FI_REMOTE_WRITE},         {FETCH, FI_REMOTE_WRITE},
    {SWAP, FI_REMOTE_WRITE},  {CSWAP, FI_REMOTE_WRITE}, {ATOMIC_READ, FI_REMOTE_READ},
};

static void access_rights(void) {
    struct fid_mr *mr;
    for (size_t i = 0; i < sizeof access_bits / sizeof *access_bits; i++) {
        int status = fi_mr_reg(domain, memory, sizeof memory, access_bits[i].bits, 0, KEY, 0, &mr, NULL);
        CHECK(status == -access_bits[i].status, "access %lx: %d", access_bits[i].bits, status);
        if (!status) OK(fi_close(&mr->fid));
    }
    open_pair(&a, &b, 0);
    static const uint64_t given[] = {0, FI_RMA | FI_ATOMIC, FI_REMOTE_READ, FI_REMOTE_WRITE, FI_REMOTE_READ | FI_REMOTE_WRITE};
    for (size_t g = 0; g < sizeof given / sizeof *given; g++) {
        OK(fi_mr_reg(domain, memory, sizeof memory, given[g], 0, KEY, 0, &mr, NULL));
        for (size_t n = 0; n < sizeof needed / sizeof *needed; n++) {
            struct fi_cq_tagged_entry entry;
            struct fi_cq_err_entry failure;
            fi_addr_t source;
            OK(start(needed[n].op, KEY));
            int error = next_entry(&a, &b, &entry, &source, &failure);
            int expected = needed[n].needs & ~given[g] ? FI_EACCES : 0;
            CHECK(error == expected, "%s with access %lx: %d, not %d", names[needed[n].op], given[g], error, expected);
        }
        // A region can be closed before its endpoint. Its key is then unknown.
        OK(fi_close(&mr->fid));
        OK(start(WRITE, KEY));
        next_error(&a, &b, FI_ENOKEY);
    }
    close_side(&a);
    close_side(&b);
}

// ---- fi_endpoint(3): options.

// Numbers of libfabric 2.x (FI_OPT_MAX_MSG_SIZE and so on), which older headers lack.
enum { MAX_MSG = 12, MAX_TAGGED, MAX_RMA, MAX_ATOMIC, INJECT_MSG, INJECT_TAGGED, INJECT_RMA, INJECT_ATOMIC, BEHIND };

// Starts an operation of `len` bytes, of the class that an option limits. Returns the status of the
// call.
static ssize_t sized(int option, size_t len) {
    static unsigned char bytes[2 * LIMIT];
    switch (option) {
    case MAX_MSG: return fi_send(a.ep, bytes, len, NULL, a.peer, &a);
    case MAX_TAGGED: return fi_tsend(a.ep, bytes, len, NULL, a.peer, 1, &a);
    case MAX_RMA: return fi_write(a.ep, bytes, len, NULL, a.peer, 0, KEY, &a);
    case MAX_ATOMIC: return fi_atomic(a.ep, bytes, len, NULL, a.peer, 0, KEY, FI_UINT8, FI_SUM, &a);
    case INJECT_MSG: return fi_inject(a.ep, bytes, len, a.peer);
    case INJECT_TAGGED: return fi_tinject(a.ep, bytes, len, a.peer, 1);
    case INJECT_RMA: return fi_inject_write(a.ep, bytes, len, a.peer, 0, KEY);
    default: return fi_inject_atomic(a.ep, bytes, len, a.peer, 0, KEY, FI_UINT8, FI_SUM);
    }
}

// Reads the completion of an operation that `sized` started, if it has one, and receives its
// message, if it has sent one.
static void finish(int option, size_t len) {
    static unsigned char into[2 * LIMIT];
    if (option < INJECT_MSG) next_ok(&a, &b, &a);
    if (option == MAX_MSG || option == INJECT_MSG) OK(fi_recv(b.ep, into, sizeof into, NULL, b.peer, &b));
    else if (option == MAX_TAGGED || option == INJECT_TAGGED) OK(fi_trecv(b.ep, into, sizeof into, NULL, b.peer, 1, 0, &b));
    else return;
    CHECK(next_ok(&b, &a, &b).len == len, "another length than %zu", len);
}

static void options(void) {
    struct fid_mr *mr;
    open_pair(&a, &b, 0);
    OK(fi_mr_reg(domain, memory, sizeof memory, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
    for (int option = FI_OPT_MIN_MULTI_RECV; option <= BEHIND; option++) {
        const int is_size = option >= MAX_MSG && option < BEHIND;
        const int is_known = is_size || option == FI_OPT_MIN_MULTI_RECV;
        size_t offered = 0, value = LIMIT, told = 0, len = sizeof offered;
        int status = is_known ? 0 : -FI_ENOPROTOOPT;
        CHECK(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &offered, &len) == status, "get of option %d", option);
        CHECK(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &value, len) == status, "set of option %d", option);
        if (!is_known) continue;
        OK(fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &told, &len));
        CHECK(told == LIMIT && len == sizeof told, "option %d was set to %d and is %zu", option, LIMIT, told);
        FAILS(FI_EINVAL, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &value, 1));
        len = 1;
        FAILS(FI_ETOOSMALL, fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &told, &len));
        CHECK(len == sizeof told, "the length needed is %zu", len);
        if (!is_size) continue;
        // The limit is enforced, and the other endpoint keeps its limit.
        FAILS(FI_EMSGSIZE, sized(option, LIMIT + 1));
        OK(sized(option, LIMIT));
        finish(option, LIMIT);
        OK(fi_getopt(&b.ep->fid, FI_OPT_ENDPOINT, option, &told, &(size_t){sizeof told}));
        CHECK(told == offered, "option %d of the other endpoint is %zu", option, told);
        if (offered < SIZE_MAX) {
            value = offered + 1;
            FAILS(FI_EINVAL, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &value, sizeof value));
        }
        OK(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, option, &offered, sizeof offered));
        OK(sized(option, LIMIT + 1));
        finish(option, LIMIT + 1);
    }
    FAILS(FI_ENOPROTOOPT, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT + 1, MAX_MSG, local, sizeof(size_t)));
    OK(fi_close(&mr->fid));
    close_side(&a);
    close_side(&b);
}

// ---- fi_endpoint(3), fi_cq(3), fi_av(3), fi_domain(3): in which order objects close.

static void closing(void) {
    struct fid_stx *stx;
    struct fid_ep *alone;
    // Shared transmit contexts are offered to programs that ask for one.
    struct fi_info *hints = fi_dupinfo(info), *offered;
    hints->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    OK(fi_getinfo(api, NULL, NULL, 0, hints, &offered));
    CHECK(info->domain_attr->max_ep_stx_ctx == 0, "%zu", info->domain_attr->max_ep_stx_ctx);
    CHECK(offered->domain_attr->max_ep_stx_ctx > 0, "none");
    fi_freeinfo(offered);
    fi_freeinfo(hints);
    OK(fi_stx_context(domain, info->tx_attr, &stx, NULL));
    // A shared transmit context can be bound once, before the endpoint is enabled, and only to an endpoint
    // that was opened for a shared context.
    OK(fi_endpoint(domain, info, &alone, NULL));
    FAILS(FI_EINVAL, fi_ep_bind(alone, &stx->fid, 0));
    OK(fi_close(&alone->fid));
    const size_t own = info->ep_attr->tx_ctx_cnt;
    info->ep_attr->tx_ctx_cnt = FI_SHARED_CONTEXT;
    open_unbound(&a, 0, 2);
    open_unbound(&b, 0, 2);
    info->ep_attr->tx_ctx_cnt = own;
    OK(fi_ep_bind(a.ep, &stx->fid, 0));
    FAILS(FI_EINVAL, fi_ep_bind(a.ep, &stx->fid, 0));
    OK(fi_enable(a.ep));
    OK(fi_enable(b.ep));
    FAILS(FI_EINVAL, fi_ep_bind(b.ep, &stx->fid, 0));
    meet(&a, &b);
    // Sandia OpenSHMEM closes a shared transmit context before its endpoint, which continues to work.
    FAILS(FI_EBUSY, fi_close(&domain->fid));
    OK(fi_close(&stx->fid));
    uint64_t value = 0;
    OK(fi_tinject(a.ep, local, 8, a.peer, 1));
    OK(fi_trecv(b.ep, &value, 8, NULL, b.peer, 1, 0, &b));
    next_ok(&b, &a, &b);
    // Objects that an endpoint uses close after it.
    struct fid *const used[] = {&a.cq->fid, &a.av->fid, &domain->fid, &fabric->fid};
    for (size_t i = 0; i < sizeof used / sizeof *used; i++) FAILS(FI_EBUSY, fi_close(used[i]));
    close_side(&a);
    close_side(&b);
}

int main(void) {
    const uint64_t caps = FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RMA_EVENT | FI_DIRECTED_RECV;
    open_domain(caps, FI_THREAD_SAFE, 0);
    for (size_t i = 0; i < 64; i++) local[i] = i + 1;
    who_counts();
    access_rights();
    options();
    closing();
    close_domain();
    puts("manual: ok");
    return 0;
}
