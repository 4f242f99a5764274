// SPDX-License-Identifier: BSD-2-Clause
// A transmit context closes while its peer is stopped in the middle of a copy. fi_close waits for
// the peer, and data that the program writes into its memory afterwards does not reach the peer.
//     stopped write | read | send
// The peer is stopped for three seconds, just before a copy: this program is linked with -rdynamic,
// so that the provider calls the copy functions of this file.
#define _GNU_SOURCE
#include "fabric.h"
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 1 << 20, BITS = 1, HOLD = 3 };
static struct shared {
    _Atomic int ready, copying, over, error, wrong;
    char name[2][64], window[MOST];
} *shared;
static int me;

// Performs a copy by the kernel. The peer stops itself before its first copy.
static ssize_t copy(long number, pid_t pid, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long k, unsigned long flags) {
    static int copies;
    if (me && !copies++) {
        shared->copying = 1;
        raise(SIGSTOP);
    }
    return syscall(number, pid, a, n, b, k, flags);
}
ssize_t process_vm_readv(pid_t pid, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long k, unsigned long flags) {
    return copy(SYS_process_vm_readv, pid, a, n, b, k, flags);
}
ssize_t process_vm_writev(pid_t pid, const struct iovec *a, unsigned long n, const struct iovec *b, unsigned long k, unsigned long flags) {
    return copy(SYS_process_vm_writev, pid, a, n, b, k, flags);
}

int main(int argc, char **argv) {
    struct fid_ep *sep, *tx, *rx;
    struct side it;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .rx_ctx_bits = BITS};
    struct fid_mr *mr;
    size_t len = 64, bytes = MOST;
    CHECK(argc > 1, "stopped write | read | send");
    int kind = !strcmp(argv[1], "write") ? 0 : !strcmp(argv[1], "read") ? 1 : 2;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    me = child == 0;
    alarm((unsigned)within(40));
    open_domain(FI_MSG | FI_TAGGED | FI_RMA | FI_NAMED_RX_CTX, FI_THREAD_SAFE, 0);
    info->ep_attr->tx_ctx_cnt = info->ep_attr->rx_ctx_cnt = 1;
    OK(fi_scalable_ep(domain, info, &sep, NULL));
    OK(fi_av_open(domain, &attr, &it.av, NULL));
    OK(fi_scalable_ep_bind(sep, &it.av->fid, 0));
    OK(fi_enable(sep));
    OK(fi_cq_open(domain, &cq, &it.cq, NULL));
    OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
    OK(fi_ep_bind(tx, &it.cq->fid, FI_TRANSMIT));
    OK(fi_enable(tx));
    OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
    OK(fi_ep_bind(rx, &it.cq->fid, FI_RECV));
    OK(fi_enable(rx));
    OK(fi_mr_reg(domain, shared->window, MOST, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
    OK(fi_getname(&sep->fid, shared->name[me], &len));
    shared->ready++;
    while (shared->ready < 2) usleep(100);
    CHECK(fi_av_insert(it.av, shared->name[!me], 1, &it.peer, 0, NULL) == 1, "not inserted");
    static char memory[MOST];
    if (me) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        fi_addr_t from;
        if (kind == 2) {
            OK(fi_trecv(rx, memory, bytes, NULL, FI_ADDR_UNSPEC, 9, 0, memory));
            shared->error = next_entry(&it, NULL, &entry, &from, &failure);
            for (size_t i = 0; i < bytes && !shared->error; i++) shared->wrong |= memory[i] != 1;
        }
        while (!shared->over) fi_cq_read(it.cq, NULL, 0);
        return 0;
    }
    memset(memory, 1, bytes);
    if (kind == 0) OK(fi_write(tx, memory, bytes, NULL, it.peer, 0, 7, memory));
    if (kind == 1) OK(fi_read(tx, memory, bytes, NULL, it.peer, 0, 7, memory));
    if (kind == 2) OK(fi_tsend(tx, memory, bytes, NULL, it.peer, 9, memory));
    double began = seconds();
    while (!shared->copying && seconds() < began + within(2)) fi_cq_read(it.cq, NULL, 0);
    if (!shared->copying) {
        printf("stopped: skipped, the kernel is asked for no copy\n");
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        return 0;
    }
    usleep(50000);
    if (fork() == 0) {
        sleep(HOLD);
        kill(child, SIGCONT);
        _exit(0);
    }
    began = seconds();
    OK(fi_close(&tx->fid));
    double took = seconds() - began;
    memset(memory, 2, bytes);
    while (seconds() < began + HOLD + 0.5) fi_cq_read(it.cq, NULL, 0);
    size_t scribble = 0, written = 0;
    for (size_t i = 0; i < bytes; i++) scribble += shared->window[i] == 2, written += memory[i] != 2;
    shared->over = 1;
    kill(child, SIGCONT);
    waitpid(child, NULL, 0);
    CHECK(!scribble, "%zu bytes of later at the peer, fi_close took %.3f s", scribble, took);
    CHECK(!written, "%zu bytes written into memory after the close, which took %.3f s", written, took);
    CHECK(!shared->wrong, "the receive has wrong bytes");
    return 0;
}
