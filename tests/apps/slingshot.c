// SPDX-License-Identifier: BSD-2-Clause
// Imitates programs that abort or hang on Slingshot, by public reports.
//     slingshot posted|isends COUNT BYTES
// posted: each rank posts COUNT receives from each neighbour of a ring before any rank sends.
// isends: each rank sends COUNT messages to its right neighbour before it posts their receives.
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

int main(int argc, char **argv) {
    app_start("slingshot", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(argc == 4, "slingshot posted|isends COUNT BYTES");
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
