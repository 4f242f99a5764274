// SPDX-License-Identifier: BSD-2-Clause
// Tests threads that read and write the memory of a peer, send long messages both ways and close
// regions, all at the same time. A message never overtakes the write before it, and a closed region
// is not touched.
#include "fabric.h"
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 3, ROUNDS = 400, LARGEST = 300000, KEY = 7 };

struct op {
    atomic_int done;
};

static struct side a, b;
static struct fid_mr *region;
static unsigned char *target;

static void look(struct fid_cq *cq) {
    struct fi_cq_tagged_entry entries[4];
    struct fi_cq_err_entry failure = {0};
    ssize_t found = fi_cq_read(cq, entries, 4);
    if (found == -FI_EAVAIL) {
        // Another thread may have read the error entry.
        if (fi_cq_readerr(cq, &failure, 0) != 1) return;
        // An operation on a region that was closed.
        CHECK(failure.err == FI_ENOKEY && failure.flags & FI_WRITE, "%s", fi_strerror(failure.err));
        CHECK(!atomic_exchange(&((struct op *)failure.op_context)->done, 1), "a failure twice");
        return;
    }
    CHECK(found > 0 || found == -FI_EAGAIN, "%zd", found);
    for (ssize_t i = 0; i < found; i++) {
        struct op *op = entries[i].op_context;
        CHECK(!atomic_exchange(&op->done, 1), "a completion twice");
    }
}

static void await(struct op *op, const char *what) {
    for (double over = seconds() + within(20); !op->done;) {
        look(a.cq);
        look(b.cq);
        CHECK(seconds() < over, "%s: no completion", what);
    }
}

// Repeats a call while it returns -FI_EAGAIN. Meanwhile both endpoints make progress.
#define START(call)                                       \
    do {                                                  \
        long again_;                                      \
        while ((again_ = (call)) == -FI_EAGAIN) {         \
            look(a.cq);                                   \
            look(b.cq);                                   \
        }                                                 \
        OK(again_);                                       \
    } while (0)

// Returns the address by which a peer names memory of a region that begins at `first`.
static uint64_t named(const unsigned char *memory, const unsigned char *first) {
    int is_virtual = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR;
    return is_virtual ? (uint64_t)memory : (uint64_t)(memory - first);
}

static size_t length(int me, int round) {
    static const size_t lengths[] = {65536, 100000, 8, LARGEST, 20000, 70000, 4096};
    return lengths[(me * 2 + round) % 7];
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg;
    unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST), *slot = target + (size_t)me * LARGEST;
    uint64_t key = fi_mr_key(region), tag = (uint64_t)me << 32;
    for (int round = 0; round < ROUNDS; round++) {
        struct op told = {0}, wrote = {0}, said = {0}, read = {0}, sent = {0}, received = {0};
        size_t len = length(me, round);
        unsigned char pattern = (unsigned char)(me * 31 + round);
        memset(out, pattern, len);
        memset(in, 0xee, len);
        char word[8];
        START(fi_trecv(b.ep, word, 8, NULL, FI_ADDR_UNSPEC, tag, 0, &told));
        START(fi_write(a.ep, out, len, NULL, a.peer, named(slot, target), key, &wrote));
        START(fi_tsend(a.ep, "written", 8, NULL, a.peer, tag, &said));
        await(&told, "the message behind a write");
        for (size_t i = 0; i < len; i++) CHECK(slot[i] == pattern, "a message passed a write of %zu at %zu", len, i);
        await(&wrote, "a write");
        START(fi_read(a.ep, in, len, NULL, a.peer, named(slot, target), key, &read));
        await(&read, "a read");
        CHECK(!memcmp(in, out, len), "a read of %zu", len);
        memset(in, 0xee, len);
        START(fi_tsend(b.ep, out, len, NULL, b.peer, tag + 1, &sent));
        START(fi_trecv(a.ep, in, len, NULL, FI_ADDR_UNSPEC, tag + 1, 0, &received));
        await(&received, "a long message");
        CHECK(!memcmp(in, out, len), "a message of %zu", len);
        await(&sent, "a long send");
        await(&said, "a short send");
    }
    free(out);
    free(in);
    return NULL;
}

// Writes into a region that is closed meanwhile.
static void *close_regions(void *arg) {
    unsigned char *memory = calloc(1, LARGEST), *out = malloc(LARGEST), *seen = malloc(LARGEST);
    for (int round = 0; round < ROUNDS; round++) {
        struct op wrote = {0};
        struct fid_mr *closing;
        memset(out, round + 1, LARGEST);
        OK(fi_mr_reg(domain, memory, LARGEST, FI_REMOTE_WRITE, 0, KEY + 1, 0, &closing, NULL));
        OK(fi_mr_bind(closing, &b.ep->fid, 0));
        OK(fi_mr_enable(closing));
        START(fi_write(a.ep, out, LARGEST, NULL, a.peer, named(memory, memory), fi_mr_key(closing), &wrote));
        if (round % 3) look(b.cq);
        OK(fi_close(&closing->fid));
        memcpy(seen, memory, LARGEST);
        await(&wrote, "a write into a region that closes");
        CHECK(!memcmp(seen, memory, LARGEST), "a region was written after it was closed");
    }
    free(memory);
    free(out);
    free(seen);
    return arg;
}

int main(void) {
    pthread_t ids[THREADS + 1];
    alarm((unsigned)within(100));
    open_domain(FI_MSG | FI_TAGGED | FI_RMA, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    target = calloc(THREADS, LARGEST);
    OK(fi_mr_reg(domain, target, THREADS * LARGEST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, KEY, 0, &region, NULL));
    OK(fi_mr_bind(region, &b.ep->fid, 0));
    OK(fi_mr_enable(region));
    for (int i = 0; i < THREADS; i++) OK(pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
    OK(pthread_create(&ids[THREADS], NULL, close_regions, NULL));
    for (int i = 0; i <= THREADS; i++) OK(pthread_join(ids[i], NULL));
    OK(fi_close(&region->fid));
    nothing(&a);
    close_side(&a);
    close_side(&b);
    close_domain();
    free(target);
    puts("served: ok");
}
