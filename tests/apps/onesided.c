// SPDX-License-Identifier: BSD-2-Clause
// Tests one-sided communication in all three kinds of epochs: puts and gets between fences, puts
// with post and start, and counters under locks.
#include "check.h"

enum { BLOCK = 20000, ADDS = 20 };

static long bytes_moved;

// Every rank puts a block to each neighbour and gets one back.
static void fences(void) {
    unsigned char *memory;
    MPI_Win window;
    MPI_Win_allocate(2 * BLOCK, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    unsigned char *out = allocate(BLOCK), *in = allocate(BLOCK);
    const int sizes[] = {1, 8, 100, 5000, BLOCK};
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        int size = sizes[s];
        fill(out, size, mix(rank, size, 1));
        MPI_Win_fence(0, window);
        MPI_Put(out, size, MPI_BYTE, next, 0, size, MPI_BYTE, window);
        MPI_Put(out, size, MPI_BYTE, previous, BLOCK, size, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        verify(memory, size, mix(previous, size, 1), "put by the previous rank");
        verify(memory + BLOCK, size, mix(next, size, 1), "put by the next rank");
        MPI_Get(in, size, MPI_BYTE, next, 0, size, MPI_BYTE, window);
        MPI_Win_fence(0, window);
        verify(in, size, mix(rank, size, 1), "our own, back from the next rank");
        bytes_moved += 3L * size;
    }
    free(out);
    free(in);
    MPI_Win_free(&window);
}

// Even ranks expose their memory, odd ranks access it.
static void post_and_start(void) {
    long memory[2] = {-1, -1};
    MPI_Win window;
    MPI_Group world, one;
    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    int partner = rank ^ 1;
    if (partner < ranks) {
        MPI_Group_incl(world, 1, &partner, &one);
        for (long round = 0; round < 5; round++) {
            if (rank % 2 == 0) {
                MPI_Win_post(one, 0, window);
                MPI_Win_wait(window);
                CHECK(memory[0] == 10 * partner + round, "%ld in round %ld", memory[0], round);
            } else {
                long value = 10 * rank + round;
                MPI_Win_start(one, 0, window);
                MPI_Put(&value, 1, MPI_LONG, partner, 0, 1, MPI_LONG, window);
                MPI_Win_complete(window);
            }
        }
        MPI_Group_free(&one);
    }
    MPI_Group_free(&world);
    MPI_Win_free(&window);
}

// Every rank adds to counters of rank 0, and swaps a lock word there.
static void locks(void) {
    long *memory;
    MPI_Win window;
    MPI_Win_allocate(4 * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
    memset(memory, 0, 4 * sizeof *memory);
    MPI_Win_unlock(rank, window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, window);
    long one = 1, mine = rank, old, zero = 0, taken = rank + 1;
    for (int i = 0; i < ADDS; i++) {
        MPI_Accumulate(&mine, 1, MPI_LONG, 0, 0, 1, MPI_LONG, MPI_SUM, window);
        MPI_Fetch_and_op(&one, &old, MPI_LONG, 0, 1, MPI_SUM, window);
        MPI_Win_flush(0, window);
        CHECK(old >= 0 && old < (long)ADDS * ranks, "fetched %ld", old);
        // A lock word in the window: only one rank at a time is between acquire and release.
        do {
            MPI_Compare_and_swap(&taken, &zero, &old, MPI_LONG, 0, 2, window);
            MPI_Win_flush(0, window);
        } while (old != 0);
        long count;
        MPI_Get(&count, 1, MPI_LONG, 0, 3, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
        count++;
        MPI_Put(&count, 1, MPI_LONG, 0, 3, 1, MPI_LONG, window);
        MPI_Win_flush(0, window);
        MPI_Fetch_and_op(&zero, &old, MPI_LONG, 0, 2, MPI_REPLACE, window);
        MPI_Win_flush(0, window);
        CHECK(old == taken, "the lock was %ld's, not ours", old);
    }
    MPI_Win_unlock_all(window);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        CHECK(memory[0] == (long)ADDS * ranks * (ranks - 1) / 2, "sum %ld", memory[0]);
        CHECK(memory[1] == (long)ADDS * ranks, "count %ld", memory[1]);
        CHECK(memory[2] == 0 && memory[3] == (long)ADDS * ranks, "locked count %ld", memory[3]);
        MPI_Win_unlock(0, window);
    }
    MPI_Win_free(&window);
}

int main(int argc, char **argv) {
    app_start("onesided", &argc, &argv, MPI_THREAD_SINGLE);
    fences();
    post_and_start();
    locks();
    app_end("bytes=%ld", bytes_moved);
    return 0;
}
