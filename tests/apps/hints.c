// SPDX-License-Identifier: BSD-2-Clause
// Measures operations of Figures 3, 5 and 6 of the paper on hint-driven matching, on two ranks, for
// `papers/reproduce.sh hash`:
//     hints shuffle|burst N [steps]            N messages of 1 byte in flight, one way and back
//     hints pingpong N [steps [bytes]]         a ping-pong behind N pending receives
//
//     shuffle     receives in the order of their tags, messages in a random one (MadMPI)
//     burst       receives and messages in the same order
//
// Prints `hints: ok ... us=T`: microseconds per message for shuffle and burst, half a round trip
// for the ping-pong. All data is verified.
#include "check.h"

enum { READY = 1 << 20, STANDING, WARM_UP = 4 };

static int count, bytes = 1, other;
static unsigned char *in, *out;
static int *order;
static MPI_Request *requests;

static void shuffle(int step) {
    for (int at = count - 1; at > 0; at--) {
        int with = (int)(mix((uint64_t)rank, (uint64_t)step, (uint64_t)at) % (uint64_t)(at + 1));
        int tag = order[at];
        order[at] = order[with];
        order[with] = tag;
    }
}

static unsigned char value_of(int tag, int step) { return (unsigned char)(tag * 7 + step); }

// All receives are posted before the other rank may send.
static void receive_all(int step) {
    for (int tag = 0; tag < count; tag++)
        MPI_Irecv(&in[tag], 1, MPI_BYTE, other, tag, MPI_COMM_WORLD, &requests[tag]);
    MPI_Send(NULL, 0, MPI_BYTE, other, READY, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int tag = 0; tag < count; tag++)
        CHECK(in[tag] == value_of(tag, step), "step %d: wrong data with tag %d", step, tag);
}

static void send_all(int step, int in_order) {
    if (!in_order) shuffle(step);
    for (int tag = 0; tag < count; tag++) out[tag] = value_of(tag, step);
    MPI_Recv(NULL, 0, MPI_BYTE, other, READY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < count; at++)
        MPI_Isend(&out[order[at]], 1, MPI_BYTE, other, order[at], MPI_COMM_WORLD, &requests[at]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

static double in_flight(int steps, int in_order) {
    double began = 0;
    for (int step = -WARM_UP; step < steps; step++) {
        if (step == 0) began = MPI_Wtime();
        for (int way = 0; way < 2; way++) {
            if (rank == way) send_all(step, in_order);
            else receive_all(step);
        }
    }
    return (MPI_Wtime() - began) * 1e6 / steps / 2 / count;
}

static double ping_pong(int steps) {
    unsigned char never;
    for (int at = 0; at < count; at++)
        MPI_Irecv(&never, 1, MPI_BYTE, other, STANDING + at, MPI_COMM_WORLD, &requests[at]);
    MPI_Barrier(MPI_COMM_WORLD);
    double began = 0;
    for (int step = -WARM_UP; step < steps; step++) {
        if (step == 0) began = MPI_Wtime();
        if (rank == 0) {
            memset(out, value_of(0, step), (size_t)bytes);
            MPI_Send(out, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        }
        MPI_Recv(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(in[bytes - 1] == value_of(0, step), "step %d: wrong data", step);
        if (rank == 1) MPI_Send(in, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
    }
    double us = (MPI_Wtime() - began) * 1e6 / steps / 2;
    for (int at = 0; at < count; at++) MPI_Cancel(&requests[at]);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    return us;
}

int main(int argc, char **argv) {
    app_start("hints", &argc, &argv, MPI_THREAD_SINGLE);
    const char *what = argc > 1 ? argv[1] : "shuffle";
    count = argc > 2 ? atoi(argv[2]) : 256;
    int steps = argc > 3 ? atoi(argv[3]) : 20;
    bytes = argc > 4 ? atoi(argv[4]) : 1;
    int behind = strcmp(what, "pingpong") == 0, in_order = strcmp(what, "burst") == 0;
    CHECK(ranks == 2, "two ranks are needed, not %d", ranks);
    CHECK(behind || in_order || strcmp(what, "shuffle") == 0, "there is no %s", what);
    CHECK(count >= !behind && steps > 0 && bytes > 0, "a number is too small");
    other = 1 - rank;
    size_t size = (size_t)(count > bytes ? count : bytes);
    in = calloc(size, 1);
    out = calloc(size, 1);
    order = malloc(sizeof *order * (size + 1));
    requests = malloc(sizeof *requests * (size + 1));
    for (int at = 0; at < count; at++) order[at] = at;
    double us = behind ? ping_pong(steps) : in_flight(steps, in_order);
    app_end("operation=%s count=%d bytes=%d steps=%d us=%.4f", what, count, bytes, steps,
            us);
}
