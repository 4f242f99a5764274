// SPDX-License-Identifier: BSD-2-Clause
// Closes a memory region while another process writes to it, in half of the rounds beside a thread
// that closes the endpoint. After fi_close, nothing may change the memory of the region.
#include "fabric.h"
#include <pthread.h>
#include <rdma/fi_rma.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 24, OPS = 6, KEY = 7, LEN = 1 << 20, WRITTEN = 0xaa, FREED = 0x11 };

static struct shared {
    _Atomic int round, written_to; // Rounds that began; the last round in which the region was there
    char name[64];
    uint64_t base, key;
} *shared;
static struct side side;
static _Atomic int polling;
static double end;

// Writes to the region of each round until the round ends, in lengths of all transports' methods.
static void write_to_regions(void) {
    static uint8_t bytes[LEN];
    memset(bytes, WRITTEN, sizeof bytes);
    open_domain(FI_MSG | FI_RMA, FI_THREAD_SAFE, 0);
    for (int round = 1; round <= ROUNDS; round++) {
        while (shared->round < round) CHECK(seconds() < end, "round %d", round);
        open_side(&side, 0, 2);
        CHECK(fi_av_insert(side.av, shared->name, 1, &side.peer, 0, NULL) == 1, "not inserted");
        const size_t lens[] = {8, 5000, 100000, LEN};
        for (int begun = 0, ended = 0; shared->written_to < round;) {
            CHECK(seconds() < end, "round %d", round);
            struct fi_cq_tagged_entry entry;
            struct fi_cq_err_entry error = {0};
            if (begun - ended < OPS)
                begun += fi_write(side.ep, bytes, lens[begun % 4], NULL, side.peer, shared->base, shared->key, NULL) == 0;
            ssize_t count = fi_cq_read(side.cq, &entry, 1);
            ended += count == 1 || (count == -FI_EAVAIL && fi_cq_readerr(side.cq, &error, 0) == 1);
        }
        close_side(&side);
    }
    close_domain();
}

static void *poll_queue(void *nothing) {
    while (polling) fi_cq_read(side.cq, NULL, 0);
    return nothing;
}

static void *close_endpoint(void *nothing) {
    usleep((useconds_t)rand() % 300);
    OK(fi_close(&side.ep->fid));
    return nothing;
}

static void one_round(int round) {
    int polled = round & 1, beside = round & 2;
    pthread_t poller, closer;
    open_side(&side, 0, 2);
    uint8_t *memory = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED, "no memory");
    struct fid_mr *mr;
    OK(fi_mr_reg(domain, memory, LEN, FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &side.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    shared->base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)memory : 0;
    shared->key = fi_mr_key(mr);
    size_t len = sizeof shared->name;
    OK(fi_getname(&side.ep->fid, shared->name, &len));
    shared->round = round;
    polling = 1;
    CHECK(pthread_create(&poller, NULL, poll_queue, NULL) == 0, "no thread");
    while (((volatile uint8_t *)memory)[0] != WRITTEN) CHECK(seconds() < end, "nothing was written");
    usleep((useconds_t)rand() % 2000);
    if (!polled) {
        polling = 0;
        pthread_join(poller, NULL);
    }
    if (beside) {
        CHECK(pthread_create(&closer, NULL, close_endpoint, NULL) == 0, "no thread");
        usleep((useconds_t)rand() % 600);
    }
    OK(fi_close(&mr->fid));
    memset(memory, FREED, LEN);
    for (double until = seconds() + 0.02; seconds() < until;)
        for (size_t i = 0; i < LEN; i++)
            CHECK(((volatile uint8_t *)memory)[i] == FREED, "round %d: byte %zu is %x", round, i, memory[i]);
    shared->written_to = round;
    if (beside) pthread_join(closer, NULL);
    if (polled) {
        polling = 0;
        pthread_join(poller, NULL);
    }
    if (!beside) OK(fi_close(&side.ep->fid));
    OK(fi_close(&side.cq->fid));
    OK(fi_close(&side.av->fid));
    munmap(memory, LEN);
}

int main(void) {
    end = seconds() + within(40);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED, "no memory");
    pid_t writer = fork();
    if (writer == 0) {
        write_to_regions();
        return 0;
    }
    open_domain(FI_MSG | FI_RMA, FI_THREAD_SAFE, 0);
    for (int round = 1; round <= ROUNDS; round++) one_round(round);
    close_domain();
    int status;
    CHECK(waitpid(writer, &status, 0) == writer && status == 0, "the writer ended with %x", status);
    return 0;
}
