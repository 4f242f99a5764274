// SPDX-License-Identifier: BSD-2-Clause
// A data race that ThreadSanitizer must find: two threads post to one endpoint of FI_THREAD_DOMAIN,
// which has no lock. They post one after the other, so that nothing breaks, but without
// synchronisation.
#include "fabric.h"
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

static struct side a, b;
static atomic_int posted;
static char buffer[2][8];

static void *post(void *unused) {
    while (!atomic_load_explicit(&posted, memory_order_relaxed)) usleep(100);
    OK(fi_trecv(a.ep, buffer[1], 8, NULL, FI_ADDR_UNSPEC, 2, 0, NULL));
    return unused;
}

int main(void) {
    pthread_t id;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    OK(pthread_create(&id, NULL, post, NULL));
    OK(fi_trecv(a.ep, buffer[0], 8, NULL, FI_ADDR_UNSPEC, 1, 0, NULL));
    atomic_store_explicit(&posted, 1, memory_order_relaxed);
    OK(pthread_join(id, NULL));
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("race: ok");
}
