// SPDX-License-Identifier: BSD-2-Clause
// A peer is killed at any moment, while operations of every kind go to it or come from it. Each
// operation ends within seconds, operations with a third peer continue, and the files of the dead
// peer in /dev/shm are removed.
//     fault frozen    the peer stops, operations wait for it, then it is killed
//     fault target    the peer is killed while operations go to it
//     fault origin    the peer is killed while operations come from it
#include "card.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define LONG (1u << 20)
#define WINDOW 16
#define ECHO (1ull << 40)
#define LIMIT 5.0 // seconds until all operations with the dead peer have ended
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE)

static char region[LONG], buffers[WINDOW][LONG];
static pid_t victim, third;

// Starts an operation of the given kind on a peer, with the buffer `slot`, which is also its context.
// Returns the status of the call.
static ssize_t start(int kind, int slot, fi_addr_t to, const struct card *at) {
    void *context = buffers[slot];
    char *bytes = buffers[slot];
    struct iovec iov = {bytes, 8};
    struct fi_msg_tagged message = {&iov, NULL, 1, to, 1, 0, context, 0};
    uint64_t base = at->base, key = at->key;
    switch (kind) {
    case 0: return fi_tsendmsg(mine.ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    case 1: iov.iov_len = 4096; return fi_tsendmsg(mine.ep, &message, FI_DELIVERY_COMPLETE | FI_COMPLETION);
    case 2: return fi_tsend(mine.ep, bytes, LONG, NULL, to, 1, context);
    case 3: return fi_write(mine.ep, bytes, 8, NULL, to, base, key, context);
    case 4: return fi_write(mine.ep, bytes, 8000, NULL, to, base, key, context);
    case 5: return fi_write(mine.ep, bytes, LONG, NULL, to, base, key, context);
    case 6: return fi_read(mine.ep, bytes, 8, NULL, to, base, key, context);
    case 7: return fi_read(mine.ep, bytes, 8000, NULL, to, base, key, context);
    case 8: return fi_read(mine.ep, bytes, LONG, NULL, to, base, key, context);
    case 9: return fi_atomic(mine.ep, bytes, 1, NULL, to, base, key, FI_UINT64, FI_SUM, context);
    case 10: return fi_fetch_atomic(mine.ep, bytes, 512, NULL, bytes + 8192, NULL, to, base, key, FI_UINT64, FI_SUM, context);
    case 11: return fi_compare_atomic(mine.ep, bytes, 1, NULL, bytes + 64, NULL, bytes + 128, NULL, to, base, key, FI_UINT64, FI_CSWAP, context);
    default: return fi_send(mine.ep, bytes, LONG, NULL, to, context);
    }
}
#define KINDS 13

// The third peer. It sends each small message of the survivor back, until one asks it to stop.
static void run_third(int in, int out) {
    uint64_t value;
    open_card(CAPS, region, sizeof region);
    struct card survivor = hear(in);
    fi_addr_t to = enter(&survivor);
    tell(out, &card);
    do {
        OK(fi_trecv(mine.ep, &value, 8, NULL, to, ECHO, 0, &value));
        struct fi_cq_tagged_entry entry;
        ssize_t got;
        while ((got = fi_cq_read(mine.cq, &entry, 1)) == -FI_EAGAIN) {}
        CHECK(got == 1, "the third: %zd", got);
        while ((got = fi_tinject(mine.ep, &value, 8, to, ECHO)) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
        CHECK(got == 0, "the third: %zd", got);
    } while (value != ~0ull);
    close_card();
    exit(0);
}

// The victim. It receives all messages, until it is killed. If `origin` is set, it also starts
// operations of all kinds.
static void run_victim(int in, int out, int origin) {
    open_card(CAPS, region, sizeof region);
    struct card survivor = hear(in);
    fi_addr_t to = enter(&survivor);
    static char sink[2][LONG];
    for (int i = 0; i < 2; i++) {
        OK(fi_trecv(mine.ep, sink[i], LONG, NULL, to, 1, 0, sink[i]));
        OK(fi_recv(mine.ep, sink[i], LONG, NULL, to, sink[i]));
    }
    tell(out, &card);
    int free_slots[WINDOW], count = WINDOW, kind = getpid();
    for (int i = 0; i < WINDOW; i++) free_slots[i] = i;
    for (;;) {
        struct fi_cq_tagged_entry entry;
        while (origin && count > 0) {
            memset(buffers[free_slots[count - 1]], 'v', 64);
            if (start(++kind % KINDS, free_slots[count - 1], to, &survivor)) break;
            count--;
        }
        if (fi_cq_read(mine.cq, &entry, 1) != 1) continue;
        if (entry.op_context == sink[0] || entry.op_context == sink[1]) {
            if (entry.flags & FI_TAGGED)
                OK(fi_trecv(mine.ep, entry.op_context, LONG, NULL, to, 1, 0, entry.op_context));
            else
                OK(fi_recv(mine.ep, entry.op_context, LONG, NULL, to, entry.op_context));
        } else {
            free_slots[count++] = (int)(((char *)entry.op_context - buffers[0]) / LONG);
        }
    }
}

static pid_t spawn(int *in, int *out, int role, int origin) {
    int to[2], from[2];
    CHECK(pipe(to) == 0 && pipe(from) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm((unsigned)within(60));
        role ? run_third(to[0], from[1]) : run_victim(to[0], from[1], origin);
    }
    *in = from[0], *out = to[1];
    return pid;
}

static uint64_t echoes, echo;
static int echo_under_way;

// Runs in the survivor: sends the next small message to the third peer, if none is in flight.
static void keep_echoing(fi_addr_t to) {
    if (echo_under_way || echoes == ~0ull) return;
    OK(fi_trecv(mine.ep, &echo, 8, NULL, to, ECHO, 0, &echo));
    ssize_t sent;
    while ((sent = fi_tinject(mine.ep, &echoes, 8, to, ECHO)) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
    OK(sent);
    echo_under_way = 1;
}

// Polls once. Returns the slot of a completed operation, and stores its error in `failed`, or 0.
// Returns -1 if nothing or an echo completed.
static int next_slot(int *failed) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error = {0};
    ssize_t got = fi_cq_read(mine.cq, &entry, 1);
    if (got == -FI_EAGAIN) return -1;
    *failed = 0;
    if (got == -FI_EAVAIL) {
        CHECK(fi_cq_readerr(mine.cq, &error, 0) == 1, "no error entry");
        CHECK(error.err == ECONNABORTED || error.err == ECONNREFUSED || error.err == EIO, "error %d", error.err);
        entry.op_context = error.op_context;
        *failed = error.err;
    } else {
        CHECK(got == 1, "%zd", got);
    }
    if (entry.op_context == &echo) {
        CHECK(!*failed && echo == echoes, "echo %lu of %lu, error %d", echo, echoes, *failed);
        echoes++;
        echo_under_way = 0;
        return -1;
    }
    return (int)(((char *)entry.op_context - buffers[0]) / LONG);
}

int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "frozen";
    int frozen = !strcmp(how, "frozen"), origin = !strcmp(how, "origin");
    int from_victim, to_victim, from_third, to_third, failed, failures = 0;
    srand((unsigned)(argc > 2 ? atoi(argv[2]) : getpid()));
    double after = (double)(rand() % 30000) * 1e-6;
    victim = spawn(&from_victim, &to_victim, 0, origin);
    third = spawn(&from_third, &to_third, 1, 0);
    open_card(CAPS, region, sizeof region);
    tell(to_victim, &card);
    tell(to_third, &card);
    struct card of_victim = hear(from_victim), of_third = hear(from_third);
    fi_addr_t peer = enter(&of_victim), friend = enter(&of_third);

    // Messages of the victim may go to any of these buffers.
    int busy[WINDOW] = {0}, under_way = 0, kind = 0, alive = 1;
    int receives = origin ? WINDOW : 3;
    // The first echo: a peer is known after the first message from or to it.
    keep_echoing(friend);
    if (frozen) {
        fi_cq_read(mine.cq, NULL, 0);
        CHECK(kill(victim, SIGSTOP) == 0, "stop");
        after = 0.05;
    }
    double begin = seconds(), killed = 0;
    uint64_t echoes_then = 0;
    while (alive || under_way > 0) {
        for (int slot = 0; slot < WINDOW && alive; slot++) {
            if (busy[slot]) continue;
            if (slot < receives) {
                // Messages of a frozen peer never arrive.
                if (slot % 2) OK(fi_trecv(mine.ep, buffers[slot], LONG, NULL, peer, frozen ? 99 : 1, 0, buffers[slot]));
                else OK(fi_recv(mine.ep, buffers[slot], LONG, NULL, peer, buffers[slot]));
            } else {
                ssize_t started = start(kind++ % KINDS, slot, peer, &of_victim);
                if (started == -FI_EAGAIN) break;
                OK(started);
            }
            busy[slot] = 1, under_way++;
        }
        keep_echoing(friend);
        int slot = next_slot(&failed);
        if (slot >= 0) {
            CHECK(slot < WINDOW && busy[slot], "slot %d", slot);
            CHECK(!failed || !alive, "error %d before the peer died", failed);
            busy[slot] = 0, under_way--, failures += failed != 0;
        }
        if (alive && seconds() - begin > after) {
            CHECK(kill(victim, SIGKILL) == 0, "kill");
            alive = 0, killed = seconds(), echoes_then = echoes;
        }
        if (!alive && seconds() - killed > within(LIMIT)) {
            for (int i = 0; i < WINDOW; i++)
                if (busy[i]) fprintf(stderr, "slot %d is under way\n", i);
            CHECK(0, "%d operations under way %.0f s after the peer died, %lu echoes since", under_way, within(LIMIT), echoes - echoes_then);
        }
    }
    double took = seconds() - killed;
    // As an origin, the victim may have completed all its operations before it was killed.
    CHECK(failures > 0 || origin, "nothing failed");
    // Sends to the dead peer are refused, its file is removed, and the third peer works as before.
    ssize_t refused;
    do {
        refused = fi_tinject(mine.ep, &echo, 8, peer, 5);
        fi_cq_read(mine.cq, NULL, 0);
    } while ((refused == 0 || refused == -FI_EAGAIN) && seconds() - killed < within(LIMIT));
    CHECK(refused == -FI_ECONNREFUSED, "%zd", refused);
    CHECK(leftovers(&of_victim) == 0, "the dead left a segment");
    uint64_t goal = echoes + 100;
    for (double from = seconds(); echoes < goal; next_slot(&failed)) {
        keep_echoing(friend);
        CHECK(seconds() - from < within(LIMIT), "the third peer is silent");
    }
    // The buffers that the dead peer held can be used for operations with the third peer.
    for (int round = 0; round < 20; round++)
        for (kind = 3; kind < 12; kind++) {
            ssize_t started;
            double from = seconds();
            while ((started = start(kind, 0, friend, &of_third)) == -FI_EAGAIN && seconds() - from < within(LIMIT))
                next_slot(&failed);
            CHECK(started == 0, "operation of kind %d: %zd", kind, started);
            while (next_slot(&failed)) CHECK(seconds() - from < within(LIMIT), "operation of kind %d hangs", kind);
            CHECK(!failed, "operation of kind %d: %d", kind, failed);
        }
    while (echo_under_way) next_slot(&failed);
    echoes = ~0ull;
    uint64_t stop = ~0ull;
    OK(fi_tinject(mine.ep, &stop, 8, friend, ECHO));
    int status;
    CHECK(waitpid(third, &status, 0) == third && WIFEXITED(status) && !WEXITSTATUS(status), "the third: %x", status);
    CHECK(waitpid(victim, &status, 0) == victim, "victim");
    OK(fi_close(&mr->fid));
    double closing = seconds();
    close_side(&mine);
    CHECK(seconds() - closing < within(1), "closing waits for the dead");
    close_domain();
    CHECK(leftovers(&card) == 0 && leftovers(&of_third) == 0, "a segment is left");
    printf("fault %s: ok, %d failures %.2f s after\n", how, failures, took);
}
