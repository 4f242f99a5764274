// SPDX-License-Identifier: BSD-2-Clause
// Tests cancelled receives. Each receive is either cancelled or completes, never both, and the
// remaining receives keep their order.
#include "check.h"

enum { POSTED = 40, SIZE = 500 };

static uint64_t seed_of(int from, int message) { return mix(from, message, 23); }

// Posts receives of one envelope, cancels every third and lets the sender fill the rest: message k
// must go to the k-th receive that was not cancelled.
static void cancel_some(int source_known) {
    int peer = rank ^ 1, left = 0;
    if (peer >= ranks) return;
    int source = source_known ? peer : MPI_ANY_SOURCE;
    char *in = allocate(POSTED * SIZE), *out = allocate(SIZE);
    MPI_Request requests[POSTED];
    MPI_Status status;
    for (int i = 0; i < POSTED; i++)
        MPI_Irecv(in + i * SIZE, SIZE, MPI_BYTE, source, 5, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < POSTED; i += 3) {
        int cancelled;
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "receive %d of nothing was not cancelled", i);
    }
    // Both sides have cancelled before either sends.
    MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 6, NULL, 0, MPI_BYTE, peer, 6, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < POSTED; i++) left += i % 3 != 0;
    for (int k = 0; k < left; k++) {
        fill(out, SIZE - k, seed_of(rank, k));
        MPI_Send(out, SIZE - k, MPI_BYTE, peer, 5, MPI_COMM_WORLD);
    }
    for (int i = 0, k = 0; i < POSTED; i++) {
        if (i % 3 == 0) continue;
        MPI_Wait(&requests[i], &status);
        CHECK_STATUS(status, peer, 5, SIZE - k);
        verify(in + i * SIZE, SIZE - k, seed_of(peer, k), "after cancels");
        k++;
    }
    free(in);
    free(out);
}

// Cancels race with arrivals: a receive that was not cancelled has data, and a cancelled one leaves
// its message to a later receive.
static void cancel_race(void) {
    int peer = rank ^ 1, done = 0;
    if (peer >= ranks) return;
    char *in = allocate(POSTED * SIZE), *out = allocate(SIZE);
    MPI_Request requests[POSTED], sends[POSTED];
    MPI_Status status;
    for (int i = 0; i < POSTED; i++)
        MPI_Irecv(in + i * SIZE, SIZE, MPI_BYTE, peer, 100 + i, MPI_COMM_WORLD, &requests[i]);
    fill(out, SIZE, seed_of(rank, 0));
    for (int i = 0; i < POSTED; i++)
        MPI_Isend(out, SIZE, MPI_BYTE, peer, 100 + i, MPI_COMM_WORLD, &sends[i]);
    for (int i = POSTED - 1; i >= 0; i--) {
        int cancelled;
        MPI_Cancel(&requests[i]);
        MPI_Wait(&requests[i], &status);
        MPI_Test_cancelled(&status, &cancelled);
        if (cancelled) {
            memset(in + i * SIZE, 0, SIZE);
            MPI_Recv(in + i * SIZE, SIZE, MPI_BYTE, peer, 100 + i, MPI_COMM_WORLD, &status);
        }
        CHECK_STATUS(status, peer, 100 + i, SIZE);
        verify(in + i * SIZE, SIZE, seed_of(peer, 0), "raced");
        done++;
    }
    MPI_Waitall(POSTED, sends, MPI_STATUSES_IGNORE);
    CHECK(done == POSTED, "%d of %d", done, POSTED);
    free(in);
    free(out);
}

int main(int argc, char **argv) {
    app_start("cancel", &argc, &argv, MPI_THREAD_SINGLE);
    cancel_some(1);
    MPI_Barrier(MPI_COMM_WORLD);
    cancel_some(0);
    MPI_Barrier(MPI_COMM_WORLD);
    cancel_race();
    app_end("posted=%d", POSTED);
}
