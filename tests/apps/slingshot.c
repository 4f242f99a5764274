// SPDX-License-Identifier: BSD-2-Clause
// Imitates programs that abort or hang on Slingshot, by public reports.
//     slingshot posted|isends|taken COUNT BYTES
// posted: each rank posts COUNT receives from each neighbour of a ring before any rank sends.
//
// isends: each rank sends COUNT messages to its right neighbour before it posts their receives.
//
// taken: rank 1 looks for the messages of rank 0 while they come, and takes them one by one later.
#include "check.h"

static int count, bytes, left, right, number;
static MPI_Request *requests;
static char *in, *out;

// The tag is the direction, because with two ranks both neighbours are one.
static void post_all(int direction) {
    for (int i = 0; i < count; i++) {
        char *place = in + ((size_t)direction * count + i) * bytes;
        int from = direction ? right : left;
        MPI_Irecv(place, bytes, MPI_BYTE, from, direction, MPI_COMM_WORLD, &requests[number++]);
    }
}

static void send_all(int direction) {
    int to = direction ? left : right;
    for (int i = 0; i < count; i++)
        MPI_Isend(out, bytes, MPI_BYTE, to, direction, MPI_COMM_WORLD, &requests[number++]);
}

// Rank 1 looks after each STEP messages. A message with tag 2 ends the step, and another answers it.
static void take_one_by_one(void) {
    enum { STEP = 100 };
    for (int i = 0; i < count && rank < 2; i++) {
        if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        if (i % STEP < STEP - 1) continue;
        int there;
        if (rank == 0) MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        MPI_Recv(NULL, 0, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iprobe(1 - rank, 3, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        if (rank == 1) MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    for (int i = 0; i < count && rank == 1; i++) {
        char *place = in + (size_t)i * bytes;
        MPI_Recv(place, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(place, bytes, mix(0, 0, 1), "message");
    }
}

int main(int argc, char **argv) {
    app_start("slingshot", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 4, "slingshot posted|isends|taken COUNT BYTES");
    count = atoi(argv[2]), bytes = atoi(argv[3]);
    left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    in = allocate((size_t)2 * count * bytes), out = allocate(bytes);
    requests = allocate((size_t)4 * count * sizeof *requests);
    fill(out, bytes, mix((uint64_t)rank, 0, 1));
    MPI_Barrier(MPI_COMM_WORLD);
    int directions = 1;
    if (!strcmp(argv[1], "posted")) {
        directions = 2;
        post_all(0);
        post_all(1);
        MPI_Barrier(MPI_COMM_WORLD);
        send_all(0);
        send_all(1);
    } else if (!strcmp(argv[1], "taken")) {
        take_one_by_one();
        directions = 0;
    } else {
        send_all(0);
        post_all(0);
    }
    MPI_Waitall(number, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < directions * count; i++) {
        int from = i < count ? left : right;
        verify(in + (size_t)i * bytes, bytes, mix((uint64_t)from, 0, 1), "message");
    }
    free(requests);
    free(in);
    free(out);
    app_end("count=%d bytes=%d", count, bytes);
}
