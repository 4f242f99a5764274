// SPDX-License-Identifier: BSD-2-Clause
// Messages come while their receiver computes, so that a NIC would store them as unexpected ones.
// Prints the number of unexpected messages on all ranks, which follows from the program.
//     arrivals late|inorder|bcasts COUNT BYTES MS      arrivals halo FIELDS BYTES MS STEPS
// late: rank 0 sleeps for MS ms, and then posts all receives for COUNT messages of each other rank.
// inorder: like late, but rank 0 receives one message at a time.
// bcasts: rank 1 joins COUNT broadcasts MS ms late.
// halo: each odd rank begins each of STEPS exchanges MS ms late.
#include "check.h"
#include <time.h>

static int count, bytes, lateness, steps;

static void compute(int ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000L};
    while (nanosleep(&left, &left)) continue;
}

static uint64_t seed_of(int from, int number) {
    return mix((uint64_t)from, (uint64_t)number, 1);
}

static void send_all(void) {
    char *out = allocate((size_t)count * bytes);
    MPI_Request *requests = allocate(count * sizeof *requests);
    // Until then, rank 0 has left the barrier and polls no more.
    compute(lateness / 4);
    for (int i = 0; i < count; i++) {
        char *message = out + (size_t)i * bytes;
        fill(message, bytes, seed_of(rank, i));
        MPI_Isend(message, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(out);
}

static void receive_all(int at_once) {
    int all = count * (ranks - 1), number = 0;
    char *in = allocate((size_t)all * bytes);
    MPI_Request *requests = allocate(all * sizeof *requests);
    compute(lateness);
    for (int i = 0; i < count; i++)
        for (int from = 1; from < ranks; from++, number++) {
            char *to = in + (size_t)number * bytes;
            if (at_once)
                MPI_Irecv(to, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, &requests[number]);
            else
                MPI_Recv(to, bytes, MPI_BYTE, from, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    if (at_once) MPI_Waitall(all, requests, MPI_STATUSES_IGNORE);
    for (int i = 0, at = 0; i < count; i++)
        for (int from = 1; from < ranks; from++, at++)
            verify(in + (size_t)at * bytes, bytes, seed_of(from, i), "message");
    free(requests);
    free(in);
}

static void broadcast_all(void) {
    char *message = allocate(bytes);
    if (rank == 1) compute(lateness);
    for (int i = 0; i < count; i++) {
        if (rank == 0) fill(message, bytes, seed_of(0, i));
        MPI_Bcast(message, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
        verify(message, bytes, seed_of(0, i), "broadcast");
    }
    free(message);
}

// Exchanges `count` fields with both neighbours of a ring, in each step.
static void exchange_all(void) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    char *in = allocate((size_t)2 * count * bytes), *out = allocate((size_t)2 * count * bytes);
    MPI_Request *requests = allocate((size_t)4 * count * sizeof *requests);
    for (int step = 0; step < steps; step++) {
        int number = 0;
        fill(out, (size_t)2 * count * bytes, seed_of(rank, step));
        if (rank % 2) compute(lateness);
        for (int field = 0; field < 2 * count; field++) {
            char *to = in + (size_t)field * bytes;
            int from = field < count ? left : right;
            MPI_Irecv(to, bytes, MPI_BYTE, from, field, MPI_COMM_WORLD, &requests[number++]);
        }
        for (int field = 0; field < 2 * count; field++) {
            char *message = out + (size_t)field * bytes;
            int to = field < count ? right : left;
            MPI_Isend(message, bytes, MPI_BYTE, to, field, MPI_COMM_WORLD, &requests[number++]);
        }
        MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    }
    free(requests);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    app_start("arrivals", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 5 || argc == 6, "arrivals late|inorder|bcasts|halo NUMBER BYTES MS [STEPS]");
    const char *mode = argv[1];
    count = atoi(argv[2]), bytes = atoi(argv[3]), lateness = atoi(argv[4]), steps = argc == 6 ? atoi(argv[5]) : 1;
    CHECK(count > 0 && bytes > 0 && lateness > 0 && steps > 0, "%s %s %s", argv[2], argv[3], argv[4]);
    int expected = count * (ranks - 1);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(mode, "bcasts")) {
        CHECK(ranks == 2, "bcasts needs 2 ranks");
        broadcast_all();
    } else if (!strcmp(mode, "halo")) {
        CHECK(ranks % 2 == 0, "halo needs an even number of ranks");
        exchange_all();
        // Those of the neighbours of each odd rank, which always come first.
        expected = ranks / 2 * 2 * count * steps;
    } else if (rank == 0) {
        receive_all(!strcmp(mode, "late"));
    } else {
        send_all();
    }
    app_end("mode=%s unexpected=%d", mode, expected);
}
