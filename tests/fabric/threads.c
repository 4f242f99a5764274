// SPDX-License-Identifier: BSD-2-Clause
// Runs 2, 4 and 8 threads on one pair of endpoints, or on a pair for each thread, at every
// threading level. Every byte is checked.
#include "fabric.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { MOST = 8, ROUNDS = 300, LARGEST = 150000 };

// How threads share endpoints, as the threading level allows.
enum use { TOGETHER, ONE_AT_A_TIME, APART, SLEEPING };

struct op {
    atomic_int done;
};

static struct side a[MOST], b[MOST];
static enum use use;
static int count;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void begin(void) {
    if (use == ONE_AT_A_TIME) pthread_mutex_lock(&turn);
}

static void end(void) {
    if (use == ONE_AT_A_TIME) pthread_mutex_unlock(&turn);
}

// Reads completions, which may belong to operations of another thread.
static void look(struct fid_cq *cq, int timeout) {
    struct fi_cq_tagged_entry entries[4];
    begin();
    ssize_t found = timeout ? fi_cq_sread(cq, entries, 4, NULL, timeout) : fi_cq_read(cq, entries, 4);
    end();
    CHECK(found > 0 || found == -FI_EAGAIN, "%zd", found);
    for (ssize_t i = 0; i < found; i++) {
        struct op *op = entries[i].op_context;
        CHECK(!atomic_exchange(&op->done, 1), "a completion twice");
    }
}

static size_t length(int thread, int round) {
    static const size_t lengths[] = {8, 0, 200, 3000, 15000, 60000, LARGEST, 1};
    return lengths[(thread * 3 + round) % 8];
}

static void *work(void *arg) {
    int me = (int)(intptr_t)arg, pair = use == APART ? me : 0;
    unsigned char *out = malloc(LARGEST), *in = malloc(LARGEST);
    uint64_t tag = (uint64_t)me << 32;
    for (int round = 0; round < ROUNDS; round++) {
        struct op sent = {0}, received = {0};
        size_t len = length(me, round);
        long status;
        memset(out, me * 31 + round, len);
        memset(in, 0xee, len);
        for (int step = 0; step < 2; step++) {
            // The receive is posted before or after the send.
            if ((round + step) % 2 == 0) {
                begin();
                OK(fi_trecv(b[pair].ep, in, len, NULL, FI_ADDR_UNSPEC, tag + (uint64_t)round, 0, &received));
                end();
            } else {
                do {
                    begin();
                    status = fi_tsend(a[pair].ep, out, len, NULL, a[pair].peer, tag + (uint64_t)round, &sent);
                    end();
                    if (status) look(b[pair].cq, 0);
                } while (status == -FI_EAGAIN);
                OK(status);
            }
        }
        double over = seconds() + within(20);
        while (!(sent.done && received.done) && seconds() < over) {
            int timeout = use == SLEEPING && round % 3 == 0 ? 1 : 0;
            look(a[pair].cq, 0);
            look(b[pair].cq, timeout && !received.done ? timeout : 0);
        }
        CHECK(sent.done && received.done, "thread %d, round %d: %d %d", me, round, sent.done, received.done);
        for (size_t i = 0; i < len; i++) CHECK(in[i] == (unsigned char)(me * 31 + round), "byte %zu of %zu", i, len);
    }
    free(out);
    free(in);
    return NULL;
}

static void run(enum fi_threading level, enum use how, int threads) {
    pthread_t ids[MOST];
    use = how;
    count = threads;
    open_domain(FI_MSG | FI_TAGGED, level, 0);
    CHECK(info->domain_attr->threading == level, "%d, not %d", info->domain_attr->threading, level);
    int pairs = use == APART ? threads : 1;
    for (int i = 0; i < pairs; i++) open_pair(&a[i], &b[i], 0);
    for (int i = 0; i < threads; i++) OK(pthread_create(&ids[i], NULL, work, (void *)(intptr_t)i));
    for (int i = 0; i < threads; i++) OK(pthread_join(ids[i], NULL));
    for (int i = 0; i < pairs; i++) {
        nothing(&a[i]);
        close_side(&a[i]);
        close_side(&b[i]);
    }
    close_domain();
}

int main(void) {
    alarm((unsigned)within(100));
    for (int threads = 2; threads <= MOST; threads *= 2) {
        run(FI_THREAD_SAFE, TOGETHER, threads);
        run(FI_THREAD_SAFE, APART, threads);
        run(FI_THREAD_SAFE, SLEEPING, threads);
        run(FI_THREAD_FID, ONE_AT_A_TIME, threads);
        run(FI_THREAD_ENDPOINT, APART, threads);
        run(FI_THREAD_COMPLETION, APART, threads);
        run(FI_THREAD_DOMAIN, ONE_AT_A_TIME, threads);
    }
    puts("threads: ok");
}
