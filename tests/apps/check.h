// SPDX-License-Identifier: BSD-2-Clause
// Shared by the MPI test programs: start and end, checks that abort with a message, and payloads
// that identify their sender. A program prints one line, `name: ok ...`. The line must not depend
// on timing or on the table sizes, because the driver compares it between runs.
#ifndef TCAM_TESTS_CHECK_H
#define TCAM_TESTS_CHECK_H

#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *app_name;
static int rank, ranks;

// Prints the rank and the error, and ends the job.
__attribute__((unused, noreturn, format(printf, 3, 4))) static void
fail(const char *file, int line, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: FAILED rank %d of %d, %s:%d: %s\n", app_name, rank, ranks, file, line,
            text);
    fflush(stderr);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) fail(__FILE__, __LINE__, __VA_ARGS__);                                   \
    } while (0)

// Starts MPI and fills in `rank` and `ranks`.
__attribute__((unused)) static void app_start(const char *name, int *argc, char ***argv,
                                              int level) {
    int provided;
    app_name = name;
    MPI_Init_thread(argc, argv, level, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(provided >= level, "thread level %d asked for, %d provided", level, provided);
    CHECK(ranks >= 2, "at least 2 ranks are needed");
}

// Waits for all ranks; then rank 0 prints the line of success.
__attribute__((unused, format(printf, 1, 2))) static void app_end(const char *format, ...) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        va_list args;
        va_start(args, format);
        printf("%s: ok ranks=%d ", app_name, ranks);
        vprintf(format, args);
        printf("\n");
        fflush(stdout);
        va_end(args);
    }
    MPI_Finalize();
}

// Returns a hash of all arguments: seeds and expected values.
__attribute__((unused)) static uint64_t mix(uint64_t a, uint64_t b, uint64_t c) {
    uint64_t x = a * 0x9e3779b97f4a7c15u ^ b * 0xc2b2ae3d27d4eb4fu ^ c * 0x165667b19e3779f9u;
    x ^= x >> 29;
    x *= 0xbf58476d1ce4e5b9u;
    return x ^ x >> 32;
}

// Fills a buffer with bytes that depend on the seed and on their position.
__attribute__((unused)) static void fill(void *buffer, size_t size, uint64_t seed) {
    unsigned char *bytes = buffer;
    size_t whole = size & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t word = (seed + at) * 0x9e3779b97f4a7c15u;
        memcpy(bytes + at, &word, 8);
    }
    for (size_t at = whole; at < size; at++) bytes[at] = (unsigned char)(seed * 31 + at);
}

// Checks a buffer that `fill` wrote.
__attribute__((unused)) static void verify(const void *buffer, size_t size, uint64_t seed,
                                           const char *what) {
    const unsigned char *bytes = buffer;
    size_t whole = size & ~(size_t)7;
    for (size_t at = 0; at < whole; at += 8) {
        uint64_t word;
        memcpy(&word, bytes + at, 8);
        CHECK(word == (seed + at) * 0x9e3779b97f4a7c15u, "%s: wrong data at byte %zu of %zu", what,
              at, size);
    }
    for (size_t at = whole; at < size; at++)
        CHECK(bytes[at] == (unsigned char)(seed * 31 + at), "%s: wrong data at byte %zu of %zu",
              what, at, size);
}

__attribute__((unused)) static void *allocate(size_t size) {
    void *memory = calloc(size ? size : 1, 1);
    CHECK(memory != NULL, "no memory for %zu bytes", size);
    return memory;
}

// Checks source, tag and length of a completed receive.
#define CHECK_STATUS(status, source, tag, bytes)                                                   \
    do {                                                                                           \
        int check_count;                                                                           \
        MPI_Get_count(&(status), MPI_BYTE, &check_count);                                          \
        CHECK((status).MPI_SOURCE == (source), "from rank %d, not %d", (status).MPI_SOURCE,        \
              (source));                                                                           \
        CHECK((status).MPI_TAG == (tag), "tag %d, not %d", (status).MPI_TAG, (tag));               \
        CHECK(check_count == (int)(bytes), "%d bytes, not %d", check_count, (int)(bytes));         \
    } while (0)

#endif
