// SPDX-License-Identifier: BSD-2-Clause
// Contexts of scalable endpoints close and reopen at random, with messages, reads, writes and
// atomic operations in progress. Checks every byte, and that every operation ends.
// closing [SEED [THREADS [PROCESSES]]]: 1 or 2 threads (default 1) in 1 or 2 processes (default 2). A
// single process sends to itself. A run takes 2 seconds.
#include "fabric.h"
#include <pthread.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LANES = 3, BITS = 2, OPS = 8, MOST = 2 << 20, IDS = 1 << 18, CELLS = 64, SCRIBBLE = 0xee, PATIENCE = 10, KEY = 7 };
enum { SEND, WRITE, READ, FETCH, RECEIVE, NONE = 0, BEGUN, DONE, DROPPED };  // Kinds of operations; fates of messages

struct op {
    int kind, id, locked;
    uint64_t number, seed, done;  // number: unique, 0 if no operation is in progress
    double until;                 // Time at which the memory of a dropped operation is checked, or 0
    char *memory;
};

// A transmit or a receive context. One thread owns it.
static struct half {
    struct fid_ep *ep;
    struct fid_cq *cq, *own_cq;
    struct op ops[OPS];
    int sends, index, owner, closes, slot_taken, marks;
    // Seed of the last write to the peer's window, 0 if unknown; additions to the peer's cells that
    // were begun and done; number of the youngest receive that completed.
    uint64_t slot_seed, begun, done, last_match, rng, next;
} halves[2 * LANES];

static struct shared {
    _Atomic int ready, stage[2];
    char fate[2][IDS], to[2][IDS];  // Fate and target of messages, by sending process
    uint32_t got[2][IDS];           // Number of the receive that got the message
    _Atomic long lost[2][LANES], aborted[2];
    char name[2][64];
    struct window { char slots[LANES][MOST]; uint64_t cells[LANES][CELLS]; } window[2];  // By owner; slots and cells by index of the writer
} *shared;
static struct side other, all;  // all: the scalable endpoint
static int me, you, threads, processes;
static _Atomic uint64_t run_seed, numbers = 1;
static double stop;

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 31) * 0x7fb5d329728ea185u;
    x = (x ^ x >> 27) * 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

static uint64_t pick(struct half *h, uint64_t below) { return mix(h->rng++) % below; }

static size_t length_of(uint64_t seed) { return (mix(seed) >> 8) % (((uint64_t)1 << mix(seed + 1) % 22) + 1); }

static uint64_t seed_of(int from, int id) { return mix(run_seed * 2 + (uint64_t)from) + (uint64_t)id * 1000003u; }

// Writes the bytes of a seed. If `check` is not null, compares them instead; `check` names them in
// the error message.
static void fill(char *at, uint64_t seed, const char *check) {
    for (size_t i = 0, len = length_of(seed); i < len; i += 8) {
        uint64_t word = (seed + i) * 0x9e3779b97f4a7c15u, part = len - i < 8 ? len - i : 8;
        if (!check) memcpy(at + i, &word, part);
        else CHECK(!memcmp(at + i, &word, part), "%s of process %d: wrong at %zu of %zu: %02x", check, me, i, len, at[i] & 255);
    }
}

static void open_half(struct half *h) {
    OK(h->sends ? fi_tx_context(all.ep, h->index, NULL, &h->ep, NULL) : fi_rx_context(all.ep, h->index, NULL, &h->ep, NULL));
    OK(fi_ep_bind(h->ep, &h->cq->fid, h->sends ? FI_TRANSMIT : FI_RECV) ?: fi_enable(h->ep));
}

static ssize_t send_message(struct half *h, struct op *op, int to, int mark) {
    static const uint64_t levels[] = {0, 0, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE};
    int id = op->id = (int)h->next * LANES + h->index;
    CHECK(id < IDS, "too many messages");
    fill(op->memory, op->seed = seed_of(me, id), NULL);
    size_t len = length_of(op->seed), cut = pick(h, len + 1);
    int inject = len <= info->tx_attr->inject_size && pick(h, 2);
    struct iovec iov[2] = {{op->memory, cut}, {op->memory + cut, len - cut}};
    struct fi_msg_tagged msg = {.msg_iov = iov, .iov_count = 2, .addr = fi_rx_addr(all.peer, to, BITS), .context = (void *)op->number,
                                .tag = (uint64_t)id | (uint64_t)to << 40 | (uint64_t)mark << 63, .data = op->seed};
    shared->to[me][id] = (char)to, shared->fate[me][id] = inject ? DONE : BEGUN;
    ssize_t status = inject ? fi_tinjectdata(h->ep, op->memory, len, op->seed, msg.addr, msg.tag)
                            : fi_tsendmsg(h->ep, &msg, FI_COMPLETION | FI_REMOTE_CQ_DATA | levels[pick(h, 5)]);
    if (status) shared->fate[me][id] = NONE;
    if (inject) op->number = 0;
    h->next += !status, h->marks += !status && mark;
    return status;
}

// Starts an operation, if one is free. If `mark` is not negative, a transmit context sends the last
// message to the index `mark`, with a mark in the tag.
static void start(struct half *h, int mark) {
    static const int kinds[] = {SEND, SEND, SEND, SEND, WRITE, READ, FETCH, FETCH};
    struct op *op = h->ops;
    while (op < h->ops + OPS && (op->number || op->until != 0)) op++;
    if (!h->ep || op == h->ops + OPS) return;
    op->number = numbers++, op->done = h->done;
    op->kind = !h->sends ? RECEIVE : mark >= 0 ? SEND : kinds[pick(h, 8)];
    // Reads and writes of an index go to one index of the peer, which keeps them in order.
    fi_addr_t same = fi_rx_addr(all.peer, (h->index + (int)(run_seed & 1)) % LANES, BITS), any = fi_rx_addr(all.peer, (int)pick(h, LANES), BITS);
    uint64_t *ones = (uint64_t *)(op->memory + MOST / 2), at = (uint64_t)h->index * MOST, cells = offsetof(struct window, cells[h->index]);
    void *context = (void *)op->number;
    ssize_t status = -FI_EAGAIN;
    if (op->kind == RECEIVE) status = fi_trecv(h->ep, op->memory, MOST, NULL, pick(h, 2) ? all.peer : FI_ADDR_UNSPEC, 0, ~(uint64_t)0, context);
    if (op->kind == SEND) status = send_message(h, op, mark >= 0 ? mark : (int)pick(h, LANES), mark >= 0);
    if (op->kind == WRITE && !h->slot_taken) {
        if (h->slot_seed) fill(shared->window[you].slots[h->index], h->slot_seed, "window before a write");
        fill(op->memory, op->seed = mix(op->number) | 1, NULL);
        status = fi_write(h->ep, op->memory, length_of(op->seed), NULL, same, at, KEY, context);
        if (!status) h->slot_taken = 1, h->slot_seed = 0;
    } else if (op->kind == READ && !h->slot_taken && h->slot_seed) {
        op->seed = h->slot_seed;
        status = fi_read(h->ep, op->memory, length_of(op->seed), NULL, same, at, KEY, context);
        h->slot_taken = !status;
    } else if (op->kind == FETCH) {
        for (int i = 0; i < CELLS; i++) ones[i] = 1;
        status = fi_fetch_atomic(h->ep, ones, CELLS, NULL, op->memory, NULL, any, cells, KEY, FI_UINT64, FI_SUM, context);
        h->begun += !status;
    }
    if (status) op->number = 0;
    if (status != -FI_EAGAIN) OK(status);
}

static void ended(struct half *h, struct op *op, int error, const struct fi_cq_tagged_entry *entry) {
    CHECK(!error || (error == FI_ECONNABORTED && op->kind == RECEIVE), "process %d: %d ends with %s", me, op->kind, fi_strerror(error));
    uint64_t number = op->number;
    op->number = 0;
    if (op->kind == SEND) shared->fate[me][op->id] = DONE;
    if (op->kind == RECEIVE && number > h->last_match) h->last_match = number;
    if (op->kind == RECEIVE && !error) {
        int id = entry->tag & (IDS - 1), to = entry->tag >> 40 & 255;
        uint64_t seed = seed_of(you, id);
        CHECK(to == h->index && entry->len == length_of(seed) && entry->data == seed, "message %d to %d: %zu bytes, not %zu", id, to, entry->len, length_of(seed));
        fill(op->memory, seed, "message");
        CHECK(!shared->got[you][id], "message %d came twice", id);
        shared->got[you][id] = (uint32_t)number;
        h->marks += entry->tag >> 63;
    } else if (op->kind == WRITE || op->kind == READ) {
        h->slot_seed = op->seed, h->slot_taken = 0;
        if (op->kind == READ) fill(op->memory, op->seed, "read");
        fill(shared->window[you].slots[h->index], op->seed, "window");
    }
    shared->aborted[me] += error != 0;
    h->done += op->kind == FETCH;
    for (int i = 0; i < CELLS && op->kind == FETCH; i++) {
        uint64_t now = shared->window[you].cells[h->index][i], old = ((uint64_t *)op->memory)[i];
        CHECK(now >= h->done && now <= h->begun && old >= op->done && old < h->begun, "cell is %lx and was %lx", (unsigned long)now, (unsigned long)old);
    }
}

static void poll_half(struct half *h) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure = {0};
    for (ssize_t count; (count = fi_cq_read(h->cq, &entry, 1)) != -FI_EAGAIN;) {
        CHECK(count == 1 || (count == -FI_EAVAIL && fi_cq_readerr(h->cq, &failure, 0) == 1), "fi_cq_read: %zd", count);
        uint64_t number = (uint64_t)(count == 1 ? entry.op_context : failure.op_context);
        int i = 0, error = count == 1 ? 0 : failure.err;
        while (i < 2 * LANES * OPS && (halves[i / OPS].owner != h->owner || halves[i / OPS].ops[i % OPS].number != number)) i++;
        CHECK(i < 2 * LANES * OPS, "process %d gets a completion of operation %lu, which was dropped", me, (unsigned long)number);
        ended(&halves[i / OPS], &halves[i / OPS].ops[i % OPS], error, &entry);
    }
}

// No process may write into the memory of a dropped operation. Bytes that were stored there after
// the close must not reach the peer.
static void watch(struct half *h) {
    for (struct op *op = h->ops; op < h->ops + OPS; op++) {
        if (op->until == 0 || seconds() < op->until) continue;
        op->until = 0;
        if (op->locked) OK(mprotect(op->memory, MOST, PROT_READ | PROT_WRITE));
        else CHECK((op->memory[0] & 255) == SCRIBBLE && !memcmp(op->memory, op->memory + 1, MOST - 1), "process %d: %d wrote after it was dropped", me, op->kind);
        for (size_t i = 0; op->kind == WRITE && i + 8 <= length_of(op->seed); i += 8)
            CHECK(memcmp(shared->window[you].slots[h->index] + i, &(uint64_t){SCRIBBLE * 0x101010101010101u}, 8), "process %d: scribble was written", me);
    }
}

static void close_half(struct half *h) {
    if (!h->ep) return;
    OK(fi_close(&h->ep->fid));
    for (struct op *op = h->ops; op < h->ops + OPS; op++)
        if (op->number && (op->kind <= WRITE || op->kind == FETCH)) memset(op->memory + (op->kind == FETCH) * MOST / 2, SCRIBBLE, op->kind == FETCH ? 8 * CELLS : length_of(op->seed));
    h->ep = NULL;
    poll_half(h);  // Completions of operations that ended before the close
    for (struct op *op = h->ops; op < h->ops + OPS; op++) {
        if (!op->number) continue;
        memset(op->memory, SCRIBBLE, MOST);
        op->until = seconds() + (double)pick(h, 30) / 1000;
        if ((op->locked = pick(h, 4) == 0)) OK(mprotect(op->memory, MOST, PROT_NONE));
        if (op->kind == SEND) shared->fate[me][op->id] = DROPPED;
        if (op->kind == WRITE || op->kind == READ) h->slot_taken = 0;
        shared->lost[me][h->index] += op->kind == RECEIVE;
        op->number = 0;
    }
}

// Runs the stages of a thread. In stage -1 it starts random operations. In stage 0 it opens all its
// contexts for the last time. In stage 1 it sends last messages to all contexts, and operations in
// progress end. A receive older than one that ended must end, too.
static void *work(void *arg) {
    int self = (int)(intptr_t)arg;
    for (int stage = -1; stage < 2; stage++) {
        double limit = seconds() + within(PATIENCE);
        for (int told = 0; stage < 0 ? seconds() < stop : shared->stage[stage] < processes * threads;) {
            int rest = stage >= 0;
            CHECK(stage < 0 || seconds() < limit, "process %d: something hangs in stage %d", me, stage);
            for (struct half *h = halves; h < halves + 2 * LANES; h++) {
                if (h->owner != self) continue;
                struct half *second = &halves[(h - halves + LANES) % (2 * LANES)];
                uint64_t what = pick(h, stage < 0 ? 64 : 50);
                if (what < 24 && (stage < 0 || !h->sends)) start(h, -1);
                else if (what < 50) poll_half(h);
                else if (what < 52 && h->closes) close_half(h);
                else if (what == 52) usleep((useconds_t)pick(h, 300));
                else if (what < 56) fi_cq_read(halves[pick(h, 2 * LANES)].cq, NULL, 0);
                if (what == 51 && second->closes && second->owner == self) close_half(second);
                if (!h->ep && (stage >= 0 || what > 58)) open_half(h);
                watch(h);
                if (stage == 1 && h->sends && h->marks < LANES) start(h, h->marks);
                rest &= stage == 0 || h->marks == LANES;
                for (struct op *op = h->ops; op < h->ops + OPS && stage == 1; op++) rest &= !op->number || (!h->sends && op->number > h->last_match);
            }
            if (self == 0 && other.cq) fi_cq_read(other.cq, NULL, 0);
            if (rest && !told) told = 1, shared->stage[stage]++;
        }
    }
    return NULL;
}

static void run(void) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .rx_ctx_bits = BITS};
    struct fid_mr *mr;
    pthread_t second;
    size_t len = sizeof shared->name[me];
    char *memory = aligned_alloc(4096, (size_t)MOST * 2 * LANES * OPS);
    open_domain(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE | FI_NAMED_RX_CTX, FI_THREAD_SAFE, 0);
    // The seed chooses whether another endpoint exists, which answers for closed contexts; which thread
    // owns a context; and which contexts share a completion queue.
    if (mix(run_seed + 1) & 1) open_side(&other, 0, 1);
    int by_direction = mix(run_seed + 2) & 1, queues = (int)(mix(run_seed + 3) % 3);
    info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = LANES;
    OK(fi_scalable_ep(domain, info, &all.ep, NULL) ?: fi_av_open(domain, &attr, &all.av, NULL));
    OK(fi_scalable_ep_bind(all.ep, &all.av->fid, 0) ?: fi_enable(all.ep));
    OK(fi_mr_reg(domain, &shared->window[me], sizeof *shared->window, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
    OK(fi_getname(&all.ep->fid, shared->name[me], &len));
    for (struct half *h = halves; h < halves + 2 * LANES; h++) {
        h->index = (int)(h - halves) % LANES, h->sends = h < halves + LANES;
        h->owner = (by_direction ? h->sends : h->index) % threads;
        h->rng = mix(run_seed * 1009 + (uint64_t)(me * 2 * LANES + (h - halves))) >> 1;
        h->closes = h == halves || pick(h, 2);
        OK(fi_cq_open(domain, &cq, &h->own_cq, NULL));
        h->cq = h->own_cq;
        for (struct half *k = halves; k < h; k++) if (k->owner == h->owner && (queues == 2 || (queues == 1 && k->index == h->index))) h->cq = k->cq;
        for (int k = 0; k < OPS; k++, memory += MOST) h->ops[k].memory = memory;
        open_half(h);
    }
    for (shared->ready++; shared->ready < processes;) usleep(100);
    CHECK(fi_av_insert(all.av, shared->name[you], 1, &all.peer, 0, NULL) == 1, "not inserted");
    stop = seconds() + 1.5;
    if (threads == 2) OK(pthread_create(&second, NULL, work, (void *)1));
    work(NULL);
    if (threads == 2) OK(pthread_join(second, NULL));
    for (struct half *h = halves; h < halves + 2 * LANES; h++) close_half(h);
    for (struct half *h = halves; h < halves + 2 * LANES; h++) OK(fi_close(&h->own_cq->fid));
    OK(fi_close(&all.ep->fid) ?: fi_close(&all.av->fid) ?: fi_close(&mr->fid));
    if (other.cq) close_side(&other);
    close_domain();
}

// Messages that were not dropped arrived in order, except for those taken by dropped receives.
// Receives failed only for dropped messages.
static void account(int from, int to) {
    long missing[LANES] = {0}, dropped = 0;
    uint32_t last[LANES][LANES] = {{0}};
    for (int id = 0; id < IDS; id++) {
        int fate = shared->fate[from][id], index = shared->to[from][id];
        uint32_t got = shared->got[from][id], *before = &last[id % LANES][index];
        CHECK(fate != BEGUN && (fate != NONE || !got) && (!got || got > *before), "message %d: fate %d, receive %u after %u", id, fate, got, *before);
        if (got) *before = got;
        else dropped += fate == DROPPED, missing[index] += fate == DONE;
    }
    for (int i = 0; i < LANES; i++)
        CHECK(missing[i] <= shared->lost[to][i], "%ld messages to index %d of process %d are missing", missing[i], i, to);
    CHECK(shared->aborted[to] <= dropped, "%ld receives failed, %ld messages were dropped", (long)shared->aborted[to], dropped);
}

int main(int argc, char **argv) {
    int status = 0;
    run_seed = argc > 1 ? strtoul(argv[1], NULL, 0) : 1;
    threads = argc > 2 ? atoi(argv[2]) : 1, processes = argc > 3 ? atoi(argv[3]) : 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = processes == 2 ? fork() : -1;
    me = child == 0, you = processes == 2 ? !me : 0;
    alarm((unsigned)within(40));
    run();
    if (me) return 0;
    CHECK(child < 0 || (waitpid(child, &status, 0) == child && status == 0), "the peer ended with %x", status);
    account(me, you), account(you, me);
    puts("closing: ok");
    return 0;
}
