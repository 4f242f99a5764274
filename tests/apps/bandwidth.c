// SPDX-License-Identifier: BSD-2-Clause
// Measures message rate and bandwidth from rank 0 to rank 1 with a window of messages in flight.
// Arguments: the sizes in bytes (default: 1 B to 4 MiB). Prints `bandwidth size=S messages_per_s=R
// mb_per_s=B`, the best of several runs.
#include "check.h"

enum { WINDOW = 64, REPEATS = 5, LARGEST = 1 << 22 };

static double windows(int count, int size, char *buffer, MPI_Request *requests) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int w = 0; w < count; w++) {
        for (int i = 0; i < WINDOW; i++) {
            char *slot = buffer + (size_t)(i % 4) * LARGEST;
            if (rank == 0)
                MPI_Isend(slot, size, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
            else
                MPI_Irecv(slot, size, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - start;
}

int main(int argc, char **argv) {
    app_start("bandwidth", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(ranks == 2, "2 ranks are needed, not %d", ranks);
    int sizes[64], all = 0;
    for (int i = 1; i < argc && all < 64; i++) sizes[all++] = atoi(argv[i]);
    for (int size = 1; argc == 1 && size <= LARGEST; size *= 4) sizes[all++] = size;
    char *buffer = allocate((size_t)4 * LARGEST);
    MPI_Request requests[WINDOW];
    fill(buffer, (size_t)4 * LARGEST, 1);
    for (int s = 0; s < all; s++) {
        CHECK(sizes[s] >= 0 && sizes[s] <= LARGEST, "size %d", sizes[s]);
        int count = sizes[s] > 65536 ? 8 : sizes[s] > 4096 ? 50 : 300;
        double best = 1e9;
        windows(count / 8, sizes[s], buffer, requests);
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            double time = windows(count, sizes[s], buffer, requests);
            if (time < best) best = time;
        }
        if (rank == 0) {
            double messages = (double)count * WINDOW / best;
            printf("bandwidth size=%d messages_per_s=%.0f mb_per_s=%.1f\n", sizes[s], messages,
                   messages * sizes[s] / 1e6);
            fflush(stdout);
        }
    }
    free(buffer);
    MPI_Finalize();
}
