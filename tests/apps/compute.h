// SPDX-License-Identifier: BSD-2-Clause
// Computations and payload stamps for programs that measure channels. A computation is an amount of
// work, not a time, so that the time that a rank spends copying in MPI_Iprobe does not count as
// computation. Stamps on the first and last byte of a message distinguish it from the previous one,
// and are cheap enough to check while the clock runs.
#ifndef TCAM_TESTS_COMPUTE_H
#define TCAM_TESTS_COMPUTE_H

#include "check.h"

// Amount of work per microsecond; set by `calibrate`.
static double work_per_us;
static volatile uint64_t sink;

static void work(uint64_t amount) {
    uint64_t x = sink;
    for (uint64_t i = 0; i < amount; i++) x = x * 0x9e3779b97f4a7c15u + i;
    sink = x;
}

// Measures `work_per_us` once, in the fastest of several runs, because other programs may use the core.
static void calibrate(void) {
    enum { AMOUNT = 200000 };
    double best = 1e9;
    if (work_per_us > 0) return;
    for (int repeat = 0; repeat < 20; repeat++) {
        double start = MPI_Wtime();
        work(AMOUNT);
        double time = MPI_Wtime() - start;
        if (time < best) best = time;
    }
    work_per_us = AMOUNT / (best * 1e6);
}

static void stamp(unsigned char *bytes, int size, int number) {
    bytes[0] = bytes[size - 1] = (unsigned char)number;
}

static void check_stamp(const unsigned char *bytes, int size, int number) {
    CHECK(bytes[0] == (unsigned char)number && bytes[size - 1] == (unsigned char)number,
          "%d bytes: message %d has the ends of another", size, number);
}

#endif
