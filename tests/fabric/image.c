// SPDX-License-Identifier: BSD-2-Clause
// A process id does not identify memory. A process with operations in progress becomes another
// program (exec), or is killed and another process gets its id. The operation neither reads nor
// writes memory of the other program. A child that outlives its killed parent does not keep the
// parent's port.
#define _GNU_SOURCE
#include "card.h"
#include <rdma/fi_rma.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA)
#define PLACE ((unsigned char *)0x300000000000)
#define BYTES (1 << 20)
enum { OPERATION = 42, OTHER = 99, TARGET = 7 };
enum { SEND, READ, WRITE };

static unsigned char *memory(int fill) {
    unsigned char *place = mmap(PLACE, BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    CHECK(place == PLACE, "mmap");
    return memset(place, fill, BYTES);
}

static int is_all(const unsigned char *bytes, int value) {
    for (size_t i = 0; i < BYTES; i++)
        if (bytes[i] != value) return 0;
    return 1;
}

// The other program. It has different data at the same address, and checks at the end that no
// process has changed the data.
static void other(int in, int out) {
    char end;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    memory(OTHER);
    CHECK(write(out, "x", 1) == 1, "write");
    CHECK(read(in, &end, 1) == 1, "read");
    CHECK(is_all(PLACE, OTHER), "an operation of the program before wrote into this one");
    _exit(0);
}

// Starts an operation and becomes another program, or waits to be killed.
static void initiator(int in, int out, int kind, int execs, const char *self) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct card of = hear(in);
    unsigned char *bytes = memory(OPERATION);
    open_card(CAPS, bytes, BYTES);
    fi_addr_t to = enter(&of);
    if (kind == SEND) OK(fi_tsend(mine.ep, bytes, BYTES, NULL, to, 1, bytes));
    if (kind == READ) OK(fi_read(mine.ep, bytes, BYTES, NULL, to, of.base, of.key, bytes));
    if (kind == WRITE) OK(fi_write(mine.ep, bytes, BYTES, NULL, to, of.base, of.key, bytes));
    if (execs) {
        char ends[2][12];
        snprintf(ends[0], sizeof ends[0], "%d", in);
        snprintf(ends[1], sizeof ends[1], "%d", out);
        execl(self, self, "other", ends[0], ends[1], NULL);
        _exit(5);
    }
    CHECK(write(out, "x", 1) == 1, "write");
    for (;;) pause();
}

static void step(int from) {
    char byte;
    CHECK(read(from, &byte, 1) == 1, "read");
}

// Creates a process with this id, which must be free.
static pid_t process_of(pid_t number) {
    struct clone_args wanted = {
        .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)&number, .set_tid_size = 1};
    return (pid_t)syscall(SYS_clone3, &wanted, sizeof wanted);
}

static void operation(int kind, int execs, const char *self) {
    int there[2], back[2], status;
    static unsigned char region[BYTES], in[BYTES];
    CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) initiator(there[0], back[1], kind, execs, self);
    memset(region, TARGET, BYTES);
    open_card(CAPS, region, BYTES);
    tell(there[1], &card);
    step(back[0]);
    if (!execs) {
        kill(pid, SIGKILL);
        CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
        pid_t again = process_of(pid);
        if (!again) other(there[0], back[1]);
        if (again < 0) {
            printf("image: the number of a process cannot be chosen here: skipped\n");
            close_card();
            return;
        }
        step(back[0]);
    }
    if (kind == SEND) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        OK(fi_trecv(mine.ep, in, BYTES, NULL, FI_ADDR_UNSPEC, 1, 0, in));
        // If a peer is found dead before its message is matched, the receive stays posted.
        ssize_t count = -FI_EAGAIN;
        for (double end = seconds() + 3; count == -FI_EAGAIN && seconds() < end;)
            count = fi_cq_read(mine.cq, &entry, 1);
        if (count == 1) CHECK(is_all(in, OPERATION), "a success with another program's bytes");
        if (count == -FI_EAVAIL) CHECK(fi_cq_readerr(mine.cq, &failure, 0) == 1, "no error");
    } else {
        for (double end = seconds() + 0.3; seconds() < end;) fi_cq_read(mine.cq, NULL, 0);
        // An operation in progress may have written a part.
        CHECK(!memchr(region, OTHER, BYTES) && !memchr(region, 0, BYTES), "another program's bytes");
    }
    CHECK(write(there[1], "x", 1) == 1, "write");
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "status %d", status);
    close_card();
    mr = NULL;
}

// Opens an endpoint at a port and closes it. Returns true if the endpoint could be opened.
static int opens_at(int port) {
    struct fi_info *at = fi_dupinfo(info);
    unsigned char address[16] = {2, 0, (unsigned char)(port >> 8), (unsigned char)port, 127, 0, 0, 1};
    struct fid_ep *ep;
    free(at->src_addr);
    at->src_addr = memcpy(malloc(16), address, 16);
    at->src_addrlen = 16;
    int error = fi_endpoint(domain, at, &ep, NULL);
    fi_freeinfo(at);
    if (!error) OK(fi_close(&ep->fid));
    return error == 0;
}

static void heir(void) {
    int back[2];
    pid_t child;
    CHECK(pipe(back) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) {
        open_card(CAPS, NULL, 0);
        tell(back[1], &card);
        child = fork();
        if (!child) alarm((unsigned)within(30)), pause();
        CHECK(write(back[1], &child, sizeof child) == sizeof child, "write");
        for (;;) pause();
    }
    struct card of = hear(back[0]);
    CHECK(read(back[0], &child, sizeof child) == sizeof child, "read");
    CHECK(kill(child, 0) == 0, "no child");
    open_card(CAPS, NULL, 0);
    kill(pid, SIGSTOP);
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid, "waitpid");
    int port = (unsigned char)of.name[2] << 8 | (unsigned char)of.name[3];
    CHECK(opens_at(port), "a child keeps the port of its dead parent");
    close_card();
    CHECK(kill(child, SIGKILL) == 0, "the child did not outlive its parent");
}

int main(int argc, char **argv) {
    if (argc == 4 && !strcmp(argv[1], "other")) other(atoi(argv[2]), atoi(argv[3]));
    for (int execs = 0; execs < 2; execs++)
        for (int kind = SEND; kind <= WRITE; kind++) operation(kind, execs, argv[0]);
    heir();
    printf("image: ok\n");
}
