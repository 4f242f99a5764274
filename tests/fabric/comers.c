// SPDX-License-Identifier: BSD-2-Clause
// Processes that send each other messages of all lengths, and leave and return at their ports: some
// close and reopen, some are killed. Checks every byte and its sender; no call may hang.
//     comers SECONDS [SEED] [far]
// With `far`, each process has a separate /dev/shm, so that all messages go over the network.
// If a process has left, operations with it may end in ECONNABORTED, and sends to it may be refused
// with -FI_ECONNREFUSED. No other error may occur.
#define _GNU_SOURCE
#include "fabric.h"
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
enum { PEERS = 6, RECEIVES = 12, SENDS = 6, LONGEST = 200000 };
#define PATIENCE 40.0

static struct {
    uint16_t ports[PEERS];
    _Atomic uint64_t lives[PEERS], received[PEERS], aborted[PEERS];
} *all;

// The start of a message. It determines the bytes that follow.
struct head {
    uint64_t from, life, number, len;
};

struct op {
    struct fi_context2 context;
    int busy;
    double since;
    unsigned char *bytes;
};

static int me, far;
static struct side mine;
static fi_addr_t addresses[PEERS];
static struct op receives[RECEIVES], sends[SENDS];
static struct { uint64_t life; uint8_t seen[1 << 16]; } last[PEERS];
static uint64_t state;

static uint64_t chance(uint64_t below) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state % below;
}

static unsigned char byte_of(const struct head *head, uint64_t at) {
    return (unsigned char)(head->from * 41 + head->life * 97 + head->number * 31 + at * 7 + (at >> 8));
}

static void address(int port, unsigned char bytes[16]) {
    memset(bytes, 0, 16);
    uint16_t family = 2;
    memcpy(bytes, &family, 2);
    bytes[2] = (unsigned char)(port >> 8), bytes[3] = (unsigned char)port, bytes[4] = 127, bytes[7] = 1;
}

static void open_mine(void) {
    struct fi_info *at = fi_dupinfo(info);
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = PEERS};
    unsigned char name[16];
    free(at->src_addr);
    at->src_addr = calloc(1, 16), at->src_addrlen = 16;
    address(all->ports[me], at->src_addr);
    double end = seconds() + within(10);
    int status;
    // The earlier process at this port, which was just killed, may still hold it.
    while ((status = fi_endpoint(domain, at, &mine.ep, NULL)) && seconds() < end) usleep(1000);
    OK(status);
    fi_freeinfo(at);
    OK(fi_cq_open(domain, &cq, &mine.cq, NULL));
    OK(fi_av_open(domain, &av, &mine.av, NULL));
    OK(fi_ep_bind(mine.ep, &mine.cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(mine.ep, &mine.av->fid, 0));
    OK(fi_enable(mine.ep));
    for (int peer = 0; peer < PEERS; peer++) {
        address(all->ports[peer], name);
        CHECK(fi_av_insert(mine.av, name, 1, &addresses[peer], 0, NULL) == 1, "insert");
    }
    memset(last, 0, sizeof last);
    for (int i = 0; i < RECEIVES; i++) receives[i].busy = 0;
    for (int i = 0; i < SENDS; i++) sends[i].busy = 0;
}

static void came(const struct op *op, size_t len) {
    const struct head *head = (const struct head *)op->bytes;
    CHECK(len >= sizeof *head && head->len == len && head->from < PEERS, "%zu bytes, %lu said", len, head->len);
    for (uint64_t at = sizeof *head; at < len; at++)
        CHECK(op->bytes[at] == byte_of(head, at), "byte %lu of %zu from %lu, life %lu", at, len, head->from, head->life);
    // Each message arrives once. No message of an earlier process arrives after one of its successor.
    uint64_t from = head->from, number = head->number % sizeof last->seen;
    CHECK(head->life >= last[from].life, "from %lu: life %lu after %lu", from, head->life, last[from].life);
    if (head->life > last[from].life) memset(&last[from], 0, sizeof *last);
    CHECK(!last[from].seen[number], "from %lu: life %lu, number %lu twice", from, head->life, number);
    last[from].life = head->life, last[from].seen[number] = 1;
    all->received[me]++;
}

static void poll_once(void) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure = {0};
    ssize_t count = fi_cq_read(mine.cq, &entry, 1);
    if (count == -FI_EAGAIN) return;
    struct op *op;
    if (count == -FI_EAVAIL) {
        CHECK(fi_cq_readerr(mine.cq, &failure, 0) == 1, "no error entry");
        CHECK(failure.err == ECONNABORTED, "error %d (%s)", failure.err, fi_strerror(failure.err));
        op = failure.op_context;
        all->aborted[me]++;
    } else {
        CHECK(count == 1, "fi_cq_read: %zd", count);
        op = entry.op_context;
        if (op >= receives && op < receives + RECEIVES) came(op, entry.len);
    }
    op->busy = 0;
}

static void start(uint64_t *number) {
    for (int i = 0; i < RECEIVES; i++)
        if (!receives[i].busy) {
            OK(fi_trecv(mine.ep, receives[i].bytes, LONGEST, NULL, FI_ADDR_UNSPEC, 1, 0, &receives[i]));
            receives[i].busy = 1;
        }
    struct op *op = &sends[chance(SENDS)];
    if (op->busy) {
        CHECK(seconds() - op->since < within(PATIENCE), "a send does not end");
        return;
    }
    static const uint64_t lengths[] = {sizeof(struct head), 150, 2000, 12000, 60000, LONGEST};
    struct head *head = (struct head *)op->bytes;
    int to = (int)chance(PEERS);
    if (to == me) return;
    *head = (struct head){me, all->lives[me], ++*number, lengths[chance(6)]};
    for (uint64_t at = sizeof *head; at < head->len; at++) op->bytes[at] = byte_of(head, at);
    ssize_t status = fi_tsend(mine.ep, op->bytes, head->len, NULL, addresses[to], 1, op);
    CHECK(status == 0 || status == -FI_EAGAIN || status == -FI_ECONNREFUSED, "fi_tsend: %zd", status);
    op->busy = status == 0, op->since = seconds();
}

static void own_shm(void) {
    CHECK(unshare(CLONE_NEWNS) == 0, "unshare");
    CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0, "mount");
    CHECK(mount("tmpfs", "/dev/shm", "tmpfs", 0, NULL) == 0, "mount");
}

static void live(double end, uint64_t seed) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (far) own_shm();
    state = seed * 0x9e3779b97f4a7c15u + (uint64_t)me * 77 + 1;
    if (me % 2) setenv("AUTO_PROGRESS", "1", 1);
    if (me % 3 == 2) setenv("FI_TCAM_KERNEL_COPY", "off", 1);
    for (int i = 0; i < RECEIVES; i++) receives[i].bytes = malloc(LONGEST);
    for (int i = 0; i < SENDS; i++) sends[i].bytes = malloc(LONGEST);
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    while (seconds() < end) {
        all->lives[me]++;
        open_mine();
        uint64_t number = 0;
        for (double leave = seconds() + 0.02 + (double)chance(500) / 1000; seconds() < leave;) {
            start(&number);
            for (int i = 0; i < 8; i++) poll_once();
        }
        if (chance(3) == 0) kill(getpid(), SIGKILL);
        close_side(&mine);
    }
    close_domain();
    exit(0);
}

int main(int argc, char **argv) {
    double length = argc > 1 ? atof(argv[1]) : 10;
    far = argc > 1 && !strcmp(argv[argc - 1], "far");
    uint64_t seed = argc - far > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)getpid();
    all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    // Ports that the kernel assigns to no process, different for each run of this program.
    for (int i = 0; i < PEERS; i++) all->ports[i] = (uint16_t)(10000 + getpid() % 2000 * 8 + i);
    printf("comers: %.0f s, seed %lu\n", length, seed);
    fflush(stdout);
    pid_t pids[PEERS] = {0};
    double end = seconds() + length, looked = seconds();
    uint64_t before = 0, starts = 0;
    int left = PEERS;
    for (int i = 0; i < PEERS; i++)
        if (!(pids[i] = fork())) me = i, live(end, seed + ++starts * 1000 + (uint64_t)i);
    while (left) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        for (int i = 0; i < PEERS && pid > 0; i++) {
            if (pids[i] != pid) continue;
            int killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            CHECK(killed || status == 0, "peer %d ended with %d", i, status);
            if (killed && seconds() < end) {
                starts++;
                if (!(pids[i] = fork())) me = i, live(end, seed + starts * 1000 + (uint64_t)i);
            } else {
                left--;
            }
        }
        if (pid <= 0) usleep(10000);
        if (seconds() - looked > within(PATIENCE)) {
            uint64_t now = 0;
            for (int i = 0; i < PEERS; i++) now += all->received[i];
            CHECK(now > before, "no message for %.0f s", within(PATIENCE));
            before = now, looked = seconds();
        }
    }
    uint64_t lives = 0, received = 0, aborted = 0;
    for (int i = 0; i < PEERS; i++) lives += all->lives[i], received += all->received[i], aborted += all->aborted[i];
    printf("comers: ok, %lu lives, %lu killed, %lu messages, %lu operations aborted\n", lives, starts,
           received, aborted);
}
