// SPDX-License-Identifier: BSD-2-Clause
// A filter of system calls makes the kernel's copy fail. Long messages, reads and writes then use
// shared buffers.
#include "fabric.h"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/fi_rma.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)
#define LENGTH 300000

static unsigned char out[LENGTH], in[LENGTH], region[LENGTH];

static void filter(int error) {
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "prctl");
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0, "seccomp: %d", errno);
}

static void exchange(void) {
    struct side a, b;
    struct fid_mr *mr;
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    for (int i = 0; i < LENGTH; i++) out[i] = (unsigned char)(i * 7 + (i >> 8));
    OK(fi_trecv(b.ep, in, LENGTH, NULL, b.peer, 1, 0, in));
    OK(fi_tsend(a.ep, out, LENGTH, NULL, a.peer, 1, out));
    next_ok(&b, &a, in);
    next_ok(&a, &b, out);
    CHECK(!memcmp(in, out, LENGTH), "a message");
    OK(fi_mr_reg(domain, region, LENGTH, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
    uint64_t base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)region : 0;
    // The message waits for the first write, although the refusal is not known when both start. The
    // sender only calls again.
    struct fi_cq_tagged_entry entry;
    OK(fi_trecv(b.ep, in, 8, NULL, b.peer, 2, 0, in));
    OK(fi_write(a.ep, out, LENGTH, NULL, a.peer, base, fi_mr_key(mr), out));
    while (fi_tinject(a.ep, out, 8, a.peer, 2) == -FI_EAGAIN) FAILS(FI_EAGAIN, fi_cq_read(b.cq, &entry, 1));
    next_ok(&b, &a, in);
    CHECK(!memcmp(region, out, LENGTH), "a message passed a write");
    next_ok(&a, &b, out);
    memset(in, 0, LENGTH);
    OK(fi_read(a.ep, in, LENGTH, NULL, a.peer, base, fi_mr_key(mr), in));
    next_ok(&a, &b, in);
    CHECK(!memcmp(in, out, LENGTH), "a read");
    OK(fi_close(&mr->fid));
    close_side(&a);
    close_side(&b);
    close_domain();
}

int main(void) {
    const int errors[] = {EINVAL, EPERM, ENOSYS, EACCES};
    for (int i = 0; i < 4; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (!pid) {
            filter(errors[i]);
            exchange();
            exit(0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0, "error %d: %d", errors[i], status);
    }
    puts("filter: ok");
}
