// SPDX-License-Identifier: BSD-2-Clause
// Runs random operations between 8 processes for a long time: tagged and untagged messages of all
// lengths, multi-receive buffers, probes, cancels, reads and writes, and atomic operations. Checks
// every byte; all sent messages must arrive, and memory must not grow. Odd ranks use automatic
// progress, every fourth rank no kernel copy.
//     soak SECONDS [SEED]
#include "fabric.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 8
#define LONG (1u << 20)
#define RECEIVES 16
#define SENDS 8
#define AREA (64u << 10) // bytes for each source in every region
#define ELEMENTS 512
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE)
#define POSTED 1ull  // tag of messages with posted receives
#define PROBED 2ull  // tag of messages that are probed for
#define NEVER 3ull   // tag of messages that are never sent
#define LIMIT 120.0  // seconds for the operations in progress at the end, on a quiet machine

static struct {
    char names[RANKS][16];
    uint64_t bases[RANKS], keys[RANKS];
    atomic_int ready, stopped, finished;
    _Atomic uint64_t sent[RANKS][RANKS], got[RANKS][RANKS], added[RANKS];
    _Atomic uint64_t operations[RANKS], bytes[RANKS], kinds[RANKS][8];
    long early[RANKS], late[RANKS];
} *all;

enum { TAGGED, UNTAGGED, INJECTED, PROBES, CANCELS, WRITES, READS, ATOMICS };

static int me;
static struct side mine;
static struct fid_mr *mr;
static fi_addr_t peers[RANKS];
static struct {
    uint8_t areas[RANKS][AREA];
    uint64_t counters[ELEMENTS];
} *region;

// The kind of an operation; its context is a struct op.
enum kind { SEND, RECV, MULTI, PROBE, CLAIM, CANCELLED, WRITE, READ, ATOMIC };
struct op {
    struct fi_context2 context;
    enum kind kind;
    int peer, busy;
    uint32_t len;
    uint64_t number;
    uint8_t *bytes;
};
static struct op receives[RECEIVES], sends[SENDS], multi[2], probe, cancelled, rma[RANKS], atomics;

struct head {
    uint32_t from, len;
    uint64_t number;
};

static uint64_t state;
static uint32_t chance(uint32_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (uint32_t)((state >> 16) % below);
}

static uint64_t mixed(uint64_t from, uint64_t to, uint64_t number) {
    uint64_t x = from << 56 ^ to << 48 ^ number;
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15ull;
    return x ^ x >> 29;
}

static void fill(uint8_t *bytes, uint32_t len, uint64_t key) {
    for (uint32_t i = 0; i < len; i++) bytes[i] = (uint8_t)(key >> (i & 7) * 8) ^ (uint8_t)(i >> 3);
}

static void check(const uint8_t *bytes, uint32_t len, uint64_t key, const char *what) {
    for (uint32_t i = 0; i < len; i++)
        CHECK(bytes[i] == ((uint8_t)(key >> (i & 7) * 8) ^ (uint8_t)(i >> 3)), "%s: byte %u of %u", what, i, len);
}

static uint32_t some_length(uint32_t most) {
    uint32_t kind = chance(20);
    uint32_t below = kind < 11 ? 200 : kind < 16 ? 9000 : kind < 19 ? AREA : LONG;
    uint32_t len = (uint32_t)sizeof(struct head) + chance(below - (uint32_t)sizeof(struct head));
    return len < most ? len : most;
}

static void again(ssize_t status) {
    CHECK(status == 0, "%zd (%s)", status, fi_strerror((int)-status));
}

static void post(struct op *op) {
    if (op->kind == MULTI) {
        struct iovec iov = {op->bytes, LONG};
        struct fi_msg msg = {&iov, NULL, 1, FI_ADDR_UNSPEC, op, 0};
        again(fi_recvmsg(mine.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    } else {
        again(fi_trecv(mine.ep, op->bytes, LONG, NULL, FI_ADDR_UNSPEC, POSTED, 0, op));
    }
}

static void came(const uint8_t *bytes, size_t len) {
    struct head head;
    CHECK(len >= sizeof head, "%zu bytes", len);
    memcpy(&head, bytes, sizeof head);
    CHECK(head.from < RANKS && head.len == len, "from %u, %u of %zu bytes", head.from, head.len, len);
    check(bytes + sizeof head, head.len - (uint32_t)sizeof head, mixed(head.from, (uint64_t)me, head.number), "message");
    all->got[me][head.from]++;
    all->bytes[me] += len;
}

static void start_send(struct op *op) {
    int to = (int)chance(RANKS), how = (int)chance(8);
    uint32_t most = how < 2 ? AREA : how == 2 ? 200 : LONG;
    struct head head = {(uint32_t)me, some_length(most), all->sent[me][to]};
    memcpy(op->bytes, &head, sizeof head);
    fill(op->bytes + sizeof head, head.len - (uint32_t)sizeof head, mixed((uint64_t)me, (uint64_t)to, head.number));
    struct iovec iov = {op->bytes, head.len};
    ssize_t status;
    op->kind = SEND;
    // Requests delivery completion, so that no more messages are in flight than operations.
    if (how < 2) {
        struct fi_msg msg = {&iov, NULL, 1, peers[to], op, 0};
        status = fi_sendmsg(mine.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    } else if (how == 2) {
        status = fi_tinject(mine.ep, op->bytes, head.len, peers[to], POSTED);
    } else {
        struct fi_msg_tagged msg = {&iov, NULL, 1, peers[to], how == 3 ? PROBED : POSTED, 0, op, 0};
        status = fi_tsendmsg(mine.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    }
    if (status == -FI_EAGAIN) return;
    again(status);
    op->busy = how != 2;
    all->sent[me][to]++;
    all->operations[me]++;
    all->kinds[me][how < 2 ? UNTAGGED : how == 2 ? INJECTED : TAGGED]++;
}

// Starts a write into this process's area at a peer. If the last operation was a write, starts a read
// of the same bytes instead.
static void start_rma(struct op *op, int to) {
    uint64_t at = all->bases[to] + (uint64_t)me * AREA;
    ssize_t status;
    if (op->kind != WRITE) {
        op->number++;
        op->len = some_length(AREA);
        fill(op->bytes, op->len, mixed((uint64_t)me, (uint64_t)to, op->number));
        status = fi_write(mine.ep, op->bytes, op->len, NULL, peers[to], at, all->keys[to], op);
        if (status == -FI_EAGAIN) { op->number--; return; }
        op->kind = WRITE;
    } else {
        memset(op->bytes, 0xee, op->len);
        status = fi_read(mine.ep, op->bytes, op->len, NULL, peers[to], at, all->keys[to], op);
        if (status == -FI_EAGAIN) return;
        op->kind = READ;
    }
    again(status);
    op->busy = 1;
    all->operations[me]++;
    all->kinds[me][op->kind == WRITE ? WRITES : READS]++;
}

static void start_atomic(struct op *op) {
    static uint64_t ones[ELEMENTS];
    int to = (int)chance(RANKS);
    uint64_t at = all->bases[to] + (uint64_t)RANKS * AREA;
    size_t count = chance(4) ? 1 : ELEMENTS;
    for (int i = 0; i < ELEMENTS; i++) ones[i] = 1;
    ssize_t status = chance(2)
        ? fi_atomic(mine.ep, ones, count, NULL, peers[to], at, all->keys[to], FI_UINT64, FI_SUM, op)
        : fi_fetch_atomic(mine.ep, ones, count, NULL, op->bytes, NULL, peers[to], at, all->keys[to], FI_UINT64, FI_SUM, op);
    if (status == -FI_EAGAIN) return;
    again(status);
    op->kind = ATOMIC, op->busy = 1;
    all->added[to] += count;
    all->operations[me]++;
    all->kinds[me][ATOMICS]++;
}

static ssize_t tagged_receive(struct op *op, uint64_t flags, size_t len) {
    struct iovec iov = {op->bytes, len};
    struct fi_msg_tagged msg = {&iov, NULL, 1, FI_ADDR_UNSPEC, PROBED, 0, op, 0};
    return fi_trecvmsg(mine.ep, &msg, flags | FI_COMPLETION);
}

static void finished(struct op *op, const struct fi_cq_tagged_entry *entry) {
    switch (op->kind) {
    case RECV:
        came(op->bytes, entry->len);
        post(op);
        break;
    case MULTI:
        if (entry->len) came(entry->buf, entry->len);
        if (entry->flags & FI_MULTI_RECV) post(op);
        break;
    case PROBE:
        op->kind = CLAIM;
        again(tagged_receive(op, FI_CLAIM, LONG));
        break;
    case CLAIM:
        came(op->bytes, entry->len);
        op->busy = 0;
        break;
    case READ:
        check(op->bytes, op->len, mixed((uint64_t)me, (uint64_t)op->peer, op->number), "read");
        all->bytes[me] += 2 * op->len;
        op->busy = 0;
        break;
    case CANCELLED:
        CHECK(0, "a receive that was cancelled got something");
        break;
    default:
        op->busy = 0;
    }
}

static void poll_all(void) {
    struct fi_cq_tagged_entry entries[8];
    for (;;) {
        ssize_t count = fi_cq_read(mine.cq, entries, 8);
        if (count == -FI_EAGAIN) return;
        if (count == -FI_EAVAIL) {
            struct fi_cq_err_entry error = {0};
            CHECK(fi_cq_readerr(mine.cq, &error, 0) == 1, "no error entry");
            struct op *op = error.op_context;
            CHECK((op->kind == PROBE && error.err == FI_ENOMSG) || (op->kind == CANCELLED && error.err == FI_ECANCELED),
                  "operation of kind %d: error %d", op->kind, error.err);
            op->busy = 0;
            continue;
        }
        CHECK(count > 0, "%zd", count);
        for (ssize_t i = 0; i < count; i++) finished(entries[i].op_context, &entries[i]);
    }
}

static void start_something(void) {
    uint32_t what = chance(32);
    if (what < 16) {
        for (int i = 0; i < SENDS; i++)
            if (!sends[i].busy) return start_send(&sends[i]);
    } else if (what < 24) {
        int to = (int)chance(RANKS);
        if (!rma[to].busy) start_rma(&rma[to], to);
    } else if (what < 27) {
        if (!atomics.busy) start_atomic(&atomics);
    } else if (what < 31) {
        if (probe.busy) return;
        probe.kind = PROBE, probe.busy = 1;
        all->kinds[me][PROBES]++;
        again(tagged_receive(&probe, FI_PEEK | FI_CLAIM, 0));
    } else if (!cancelled.busy) {
        cancelled.kind = CANCELLED, cancelled.busy = 1;
        again(fi_trecv(mine.ep, cancelled.bytes, 64, NULL, FI_ADDR_UNSPEC, NEVER, 0, &cancelled));
        again(fi_cancel(&mine.ep->fid, &cancelled));
        all->kinds[me][CANCELS]++;
    }
}

static int is_busy(void) {
    int busy = cancelled.busy + atomics.busy;
    for (int i = 0; i < SENDS; i++) busy += sends[i].busy;
    for (int i = 0; i < RANKS; i++) busy += rma[i].busy;
    return busy;
}

static long resident(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%*d %ld", &pages) == 1, "statm");
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void *memory(size_t len) {
    void *bytes = malloc(len);
    CHECK(bytes, "no memory");
    // Touches all memory at the start, so that later growth comes from the provider.
    memset(bytes, 1, len);
    return bytes;
}

static void set_up(void) {
    size_t len = 16;
    if (me % 4 == 3) setenv("FI_TCAM_KERNEL_COPY", "off", 1);
    progress = me % 2 ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    open_side(&mine, 0, RANKS);
    size_t rest = AREA;
    OK(fi_setopt(&mine.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &rest, sizeof rest));
    region = memory(sizeof *region);
    memset(region, 0, sizeof *region);
    OK(fi_mr_reg(domain, region, sizeof *region, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &mine.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    OK(fi_getname(&mine.ep->fid, all->names[me], &len));
    all->bases[me] = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)region : 0;
    all->keys[me] = fi_mr_key(mr);
    for (all->ready++; all->ready < RANKS;) usleep(1000);
    CHECK(fi_av_insert(mine.av, all->names, RANKS, peers, 0, NULL) == RANKS, "insert");
    for (int i = 0; i < RECEIVES; i++) receives[i] = (struct op){.kind = RECV, .bytes = memory(LONG)}, post(&receives[i]);
    for (int i = 0; i < 2; i++) multi[i] = (struct op){.kind = MULTI, .bytes = memory(LONG)}, post(&multi[i]);
    for (int i = 0; i < SENDS; i++) sends[i].bytes = memory(LONG);
    for (int i = 0; i < RANKS; i++) rma[i] = (struct op){.kind = READ, .peer = i, .bytes = memory(AREA)};
    probe.bytes = memory(LONG), cancelled.bytes = memory(64), atomics.bytes = memory(sizeof region->counters);
}

static int is_complete(void) {
    for (int i = 0; i < RANKS; i++)
        if (all->got[me][i] != all->sent[i][me]) return 0;
    return 1;
}

static void run(double length) {
    set_up();
    double start = seconds();
    while (seconds() - start < length) {
        for (int i = 0; i < 16; i++) start_something(), poll_all();
        if (!all->early[me] && seconds() - start > length / 10) all->early[me] = resident();
    }
    all->late[me] = resident();
    double end = seconds();
    int stopped = 0, complete = 0;
    // Other processes may still send: take all messages, also those that must be probed for.
    while (all->finished < RANKS) {
        poll_all();
        if (!probe.busy && !complete) {
            probe.kind = PROBE, probe.busy = 1;
            again(tagged_receive(&probe, FI_PEEK | FI_CLAIM, 0));
        }
        if (!stopped && !is_busy()) stopped = 1, all->stopped++;
        if (!complete && all->stopped == RANKS && is_complete()) complete = 1, all->finished++;
        CHECK(seconds() - end < within(LIMIT), "rank %d: %d operations are not over, %d ranks stopped", me, is_busy(), all->stopped);
    }
    uint64_t sum = 0;
    for (int i = 0; i < ELEMENTS; i++) sum += region->counters[i];
    CHECK(sum == all->added[me], "%lu added, %lu there", all->added[me], sum);
    OK(fi_close(&mr->fid));
    close_side(&mine);
    close_domain();
    exit(0);
}

int main(int argc, char **argv) {
    double length = argc > 1 ? atof(argv[1]) : 60;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL);
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(all != MAP_FAILED, "mmap");
    pid_t pids[RANKS];
    double start = seconds();
    for (me = 0; me < RANKS; me++) {
        pids[me] = fork();
        if (!pids[me]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            state = seed * 0x9e3779b97f4a7c15ull + (uint64_t)me + 1;
            run(length);
        }
    }
    int failed = 0, status;
    for (int i = 0; i < RANKS && !failed; i++) {
        pid_t pid = wait(&status);
        failed = !WIFEXITED(status) || WEXITSTATUS(status);
        if (failed) fprintf(stderr, "process %d: status %x\n", pid, status);
    }
    if (failed) for (int i = 0; i < RANKS; i++) kill(pids[i], SIGKILL);
    static const char *names[] = {"tagged", "untagged", "injected", "probes", "cancels", "writes", "reads", "atomics"};
    uint64_t operations = 0, bytes = 0, kinds[8] = {0};
    long growth = 0;
    for (int i = 0; i < RANKS; i++) {
        operations += all->operations[i], bytes += all->bytes[i];
        for (int k = 0; k < 8; k++) kinds[k] += all->kinds[i][k];
        printf("rank %d: %ld KiB resident at 10 %%, %ld at the end\n", i, all->early[i], all->late[i]);
        if (all->late[i] - all->early[i] > growth) growth = all->late[i] - all->early[i];
    }
    for (int k = 0; k < 8; k++) printf("%lu %s, ", kinds[k], names[k]);
    printf("\n%lu operations, %.1f GB checked in %.0f s, seed %lu\n", operations, (double)bytes * 1e-9, seconds() - start, seed);
    if (growth > 1024) failed = 1, fprintf(stderr, "memory grew by %ld KiB\n", growth);
    puts(failed ? "soak: FAILED" : "soak: ok");
    return failed;
}
