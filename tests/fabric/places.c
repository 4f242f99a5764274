// SPDX-License-Identifier: BSD-2-Clause
// Tests two processes in unusual environments. They must exchange long messages nevertheless, or
// get a clear error:
//     places descriptors   neither has a free descriptor for some time
//     places apart         in separate PID namespaces, with the same process id
//     places inside        in one PID namespace, with the /proc of another
//     places dated         one in a separate time namespace
//     places elsewhere     one has a separate /dev/shm
//     places locked        one locks all its mappings and may lock no segment
//     places silent        one opens an endpoint without standard streams
#define _GNU_SOURCE
#include "card.h"
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_RMA)

// Seconds of polling. All peers are checked within two seconds.
static const double LOOKS = 3;
static char out[1 << 20], in[1 << 20], region[1 << 20], byte;
static fi_addr_t peer;

// Polls for LOOKS seconds. The peer must not be found dead meanwhile.
static void poll_on(void) {
    struct fi_cq_tagged_entry entry;
    OK(fi_trecv(mine.ep, &byte, 1, NULL, peer, 9, 0, &byte));
    for (double end = seconds() + LOOKS; seconds() < end;) FAILS(FI_EAGAIN, fi_cq_read(mine.cq, &entry, 1));
}

static void send_out(void) {
    OK(fi_tsend(mine.ep, out, sizeof out, NULL, peer, 1, out));
    next_ok(&mine, NULL, out);
}

static void all_of(const char *bytes, char wanted, const char *what) {
    for (size_t i = 0; i < sizeof in; i++) CHECK(bytes[i] == wanted, "byte %zu of %s is %d", i, what, bytes[i]);
}

// Sends a short message, again while there is no room.
static void note(size_t len, uint64_t tag) {
    ssize_t sent;
    while ((sent = fi_tinject(mine.ep, "", len, peer, tag)) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
    OK(sent);
}

static void exchange(char us, char them, const struct card *other) {
    int first = us < them;
    memset(out, us, sizeof out);
    if (first) send_out();
    OK(fi_trecv(mine.ep, in, sizeof in, NULL, peer, 1, 0, in));
    next_ok(&mine, NULL, in);
    all_of(in, them, "a message");
    if (!first) send_out();
    if (first) {
        memset(in, 0, sizeof in);
        OK(fi_read(mine.ep, in, sizeof in, NULL, peer, other->base, other->key, region));
        next_ok(&mine, NULL, region);
        all_of(in, them, "a read");
        note(1, 9);
    }
    // Completes the receive that poll_on posted. The peer sends this message after the exchange.
    next_ok(&mine, NULL, &byte);
    if (!first) note(1, 9);
}

static void side(const char *how, char us, char them, int from, int to) {
    memset(region, us, sizeof region);
    open_card(CAPS, region, sizeof region);
    tell(to, &card);
    struct card other = hear(from);
    peer = enter(&other);
    if (!strcmp(how, "descriptors")) {
        struct rlimit limit, none;
        OK(getrlimit(RLIMIT_NOFILE, &limit));
        none = (struct rlimit){0, limit.rlim_max};
        // The two processes exchange a message before their descriptors are taken away.
        note(0, 8);
        OK(fi_trecv(mine.ep, NULL, 0, NULL, peer, 8, 0, &limit));
        next_ok(&mine, NULL, &limit);
        OK(setrlimit(RLIMIT_NOFILE, &none));
        poll_on();
        OK(setrlimit(RLIMIT_NOFILE, &limit));
    } else {
        poll_on();
    }
    exchange(us, them, &other);
    close_card();
    exit(0);
}

// Opens an endpoint here and one in a child, which makes no further calls. Returns the child's id.
static pid_t meet_other(int elsewhere) {
    int names[2];
    CHECK(pipe(names) == 0, "pipe");
    pid_t pid = fork();
    if (!pid && elsewhere) {
        OK(unshare(CLONE_NEWNS));
        OK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
        OK(mount("tcam-places", "/dev/shm", "tmpfs", 0, NULL));
    }
    open_card(CAPS, NULL, 0);
    if (!pid) {
        tell(names[1], &card);
        for (;;) pause();
    }
    struct card other = hear(names[0]);
    peer = enter(&other);
    return pid;
}

static void leave(pid_t other) {
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    close_card();
}

static void elsewhere(void) {
    pid_t other = meet_other(1);
    FAILS(FI_ECONNREFUSED, fi_tinject(mine.ep, "", 0, peer, 1));
    leave(other);
}

// This process may not lock the memory of its peer's segment, so a send to the peer fails. The send
// must not return -FI_EAGAIN, because the program would then try again without end.
static void locked(void) {
    struct rlimit little = {1 << 20, 1 << 20};
#ifdef __SANITIZE_ADDRESS__
    exit(puts("locked: skipped, with AddressSanitizer mlockall does nothing") < 0);
#endif
    CHECK(getuid() != 0 || setuid(65534) == 0, "setuid");
    pid_t other = meet_other(0);
    OK(setrlimit(RLIMIT_MEMLOCK, &little));
    OK(mlockall(MCL_FUTURE));
    FAILS(FI_ENOMEM, fi_tinject(mine.ep, "", 0, peer, 1));
    OK(munlockall());
    OK(fi_tinject(mine.ep, "", 0, peer, 1));
    leave(other);
}

// The descriptor of a segment must not have the number of a standard stream. Otherwise printed text
// would be written into the segment.
static void silent(void) {
    pid_t pid = fork();
    if (!pid) {
        for (int stream = 0; stream < 3; stream++) close(stream);
        open_card(CAPS, NULL, 0);
        for (int stream = 0; stream < 3; stream++) {
            char path[64], name[64] = "";
            snprintf(path, sizeof path, "/proc/self/fd/%d", stream);
            if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "/tcam.")) exit(1);
        }
        close_card();
        exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "a standard stream is a segment");
}

static int is_in_proc(pid_t pid) {
    char path[32];
    snprintf(path, sizeof path, "/proc/%d", pid);
    return access(path, F_OK) == 0;
}

static int wait_for_all(void) {
    int status, failed = 0;
    while (wait(&status) > 0) failed |= status != 0;
    return failed;
}

// Starts the sides in `sides`, in a new PID namespace or in this one.
static void start(const char *how, const char *sides, int there[2], int back[2]) {
    int inside = !strcmp(how, "apart") || !strcmp(how, "inside");
    if (fork()) return;
    if (!strcmp(how, "dated") && *sides == 'b') {
        CHECK(unshare(CLONE_NEWTIME) == 0, "unshare");
        FILE *offsets = fopen("/proc/self/timens_offsets", "w");
        CHECK(offsets && fputs("boottime 100000 0", offsets) >= 0 && fclose(offsets) == 0, "offsets");
    }
    if (inside) {
        CHECK(unshare(CLONE_NEWPID) == 0, "unshare");
        // When the first process of the namespace ends, all end.
        if (fork()) exit(wait_for_all());
    }
    for (const char *us = sides; *us; us++) {
        if (fork()) continue;
        // The second process has an id that does not exist in its /proc.
        while (inside && us != sides && is_in_proc(getpid()))
            if (fork()) exit(wait_for_all());
        *us == 'a' ? side(how, 'a', 'b', back[0], there[1]) : side(how, 'b', 'a', there[0], back[1]);
    }
    exit(wait_for_all());
}

int main(int argc, char **argv) {
    int there[2], back[2];
    CHECK(argc > 1 && pipe(there) == 0 && pipe(back) == 0, "which place?");
    if (!strcmp(argv[1], "locked")) {
        locked();
    } else if (!strcmp(argv[1], "silent")) {
        silent();
    } else if (!strcmp(argv[1], "elsewhere")) {
        elsewhere();
    } else if (!strcmp(argv[1], "apart") || !strcmp(argv[1], "dated")) {
        start(argv[1], "a", there, back);
        start(argv[1], "b", there, back);
    } else {
        start(argv[1], "ab", there, back);
    }
    CHECK(!wait_for_all(), "a side failed");
    printf("places %s: ok\n", argv[1]);
}
