// SPDX-License-Identifier: BSD-2-Clause
// Tests that a thread that waits in fi_cq_sread is woken when another thread posts a receive for a
// message that has already arrived. Messages have short and long lengths.
#include "fabric.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

enum { LONGEST = 2 << 20, ROUNDS = 5 };

static struct side a, b;
static unsigned char out[LONGEST], in[LONGEST];
static double posted, woken;
static atomic_int is_woken;

static void *waits(void *context) {
    struct fi_cq_tagged_entry entry;
    ssize_t count;
    while ((count = fi_cq_sread(b.cq, &entry, 1, NULL, 5000)) == -FI_EAGAIN) {}
    CHECK(count == 1 && entry.op_context == context, "fi_cq_sread: %zd", count);
    woken = seconds();
    is_woken = 1;
    return NULL;
}

// Returns the seconds from the post until the waiting thread has the message.
static double once(size_t len) {
    pthread_t thread;
    for (size_t at = 0; at < len; at++) out[at] = (unsigned char)(at * 7 + len);
    memset(in, 0, len);
    is_woken = 0;
    OK(fi_tsend(a.ep, out, len, NULL, a.peer, len, out));
    // The message arrives before any thread waits for it.
    for (int poll = 0; poll < 100; poll++) fi_cq_read(b.cq, NULL, 0);
    CHECK(!pthread_create(&thread, NULL, waits, in), "no thread");
    usleep(20000);
    posted = seconds();
    OK(fi_trecv(b.ep, in, len, NULL, FI_ADDR_UNSPEC, len, 0, in));
    // Without the kernel's copy the sender must poll, because it sends the message in parts.
    while (!is_woken) fi_cq_read(a.cq, NULL, 0);
    pthread_join(thread, NULL);
    CHECK(!memcmp(in, out, len), "wrong bytes of %zu", len);
    next_ok(&a, NULL, out);
    return woken - posted;
}

int main(void) {
    static const size_t LENGTHS[] = {8, 20000, 65536, 300000, LONGEST};
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    const double limit = within(0.05) < 0.15 ? within(0.05) : 0.15;
    for (size_t at = 0; at < sizeof LENGTHS / sizeof *LENGTHS; at++) {
        double least = within(1);
        for (int round = 0; round < ROUNDS; round++) {
            double took = once(LENGTHS[at]);
            if (took < least) least = took;
        }
        // A thread that is not woken checks its peers a quarter of a second after it began to wait,
        // and then finds the message. The limit is below that time on every machine.
        CHECK(least < limit, "%zu bytes: woken after %.0f ms", LENGTHS[at], least * 1e3);
    }
    close_side(&a);
    close_side(&b);
    close_domain();
    return 0;
}
