// SPDX-License-Identifier: BSD-2-Clause
// The ranks of a node hold receives one after the other, never at the same time.
//
// Arguments: the number of receives of a rank (default 14), the number of rounds (default 5), and
// the microseconds that a rank sleeps before it posts and before it passes the turn (default 0)
//
// The first half of the ranks is one node, and the second half another (tcam answer --ppn). Each
// rank of the first node has a partner on the second. A rank that has the turn posts its receives
// and asks its partner for the messages. When it has all of them, it passes the turn to the next
// rank. So by causality a NIC of the first node never needs more entries than a rank posts, plus
// those of the turn, which is passed within the node, and of the requests to the partners.
#include "check.h"
#include <unistd.h>

enum { TURN = 1001, REQUEST = 1002 };

static int count = 14, rounds = 5, pause_us;

static void rest(void) {
    if (pause_us > 0) usleep((useconds_t)pause_us);
}

static void receive_all(int partner, int *values, MPI_Request *requests) {
    int none = 0;
    if (rank > 0) MPI_Recv(&none, 1, MPI_INT, rank - 1, TURN, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    rest();
    for (int at = 0; at < count; at++)
        MPI_Irecv(&values[at], 1, MPI_INT, partner, at, MPI_COMM_WORLD, &requests[at]);
    MPI_Send(&none, 1, MPI_INT, partner, REQUEST, MPI_COMM_WORLD);
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < count; at++)
        CHECK(values[at] == partner * 1000 + at, "message %d has %d", at, values[at]);
    rest();
    if (rank + 1 < ranks / 2) MPI_Send(&none, 1, MPI_INT, rank + 1, TURN, MPI_COMM_WORLD);
}

static void send_all(int partner) {
    int none = 0;
    MPI_Recv(&none, 1, MPI_INT, partner, REQUEST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < count; at++) {
        int value = rank * 1000 + at;
        MPI_Send(&value, 1, MPI_INT, partner, at, MPI_COMM_WORLD);
    }
}

int main(int argc, char **argv) {
    app_start("stagger", &argc, &argv, MPI_THREAD_SINGLE);
    if (argc > 1) count = atoi(argv[1]);
    if (argc > 2) rounds = atoi(argv[2]);
    if (argc > 3) pause_us = atoi(argv[3]);
    CHECK(ranks % 2 == 0 && count > 0 && count < TURN, "an even number of ranks is needed");
    int *values = calloc((size_t)count, sizeof *values);
    MPI_Request *requests = calloc((size_t)count, sizeof *requests);
    int half = ranks / 2;
    for (int round = 0; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank < half)
            receive_all(rank + half, values, requests);
        else
            send_all(rank - half);
    }
    free(values);
    free(requests);
    app_end("rounds=%d", rounds);
    return 0;
}
