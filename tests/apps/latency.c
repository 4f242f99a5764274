// SPDX-License-Identifier: BSD-2-Clause
// Measures half a round trip of 8 bytes between two ranks. D receives that do not match were posted
// before the matching one. Arguments: the depths D. Prints `latency depth=D half_round_trip_us=T`, the
// best of several runs.
#include "check.h"

enum { REPEATS = 7, STANDING_TAG = 1000, PING = 1 };

static double round_trips(int count, int peer) {
    uint64_t out = 1, in = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        MPI_Request request;
        MPI_Irecv(&in, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD, &request);
        if (rank == 0) MPI_Send(&out, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(in == out, "%llu, not %llu", (unsigned long long)in, (unsigned long long)out);
        out++;
        if (rank == 1) MPI_Send(&in, 8, MPI_BYTE, peer, PING, MPI_COMM_WORLD);
    }
    return (MPI_Wtime() - start) / count / 2;
}

int main(int argc, char **argv) {
    app_start("latency", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(ranks == 2, "2 ranks are needed, not %d", ranks);
    int peer = !rank;
    for (int argument = 1; argument < argc; argument++) {
        int depth = atoi(argv[argument]), value = 0;
        CHECK(depth >= 0 && depth < 1000000, "depth %s", argv[argument]);
        MPI_Request *standing = allocate(depth * sizeof *standing);
        for (int i = 0; i < depth; i++)
            MPI_Irecv(&value, 1, MPI_INT, peer, STANDING_TAG + i, MPI_COMM_WORLD, &standing[i]);
        // Deep queues are slow on some providers: use fewer round trips.
        int count = depth > 512 ? 2000 : 10000;
        double best = 1e9;
        round_trips(count / 10, peer);
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            double time = round_trips(count, peer);
            if (time < best) best = time;
        }
        if (rank == 0) {
            printf("latency depth=%d half_round_trip_us=%.3f\n", depth, best * 1e6);
            fflush(stdout);
        }
        for (int i = 0; i < depth; i++)
            MPI_Send(&rank, 1, MPI_INT, peer, STANDING_TAG + i, MPI_COMM_WORLD);
        MPI_Waitall(depth, standing, MPI_STATUSES_IGNORE);
        free(standing);
    }
    MPI_Finalize();
}
