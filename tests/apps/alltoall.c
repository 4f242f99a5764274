// SPDX-License-Identifier: BSD-2-Clause
// Tests MPI_Alltoall and MPI_Alltoallv, and the same exchange with point-to-point messages, on the
// world and on both halves of it at the same time.
#include "check.h"

static int seed_of(int from, int to, int size) { return from * 1000 + to * 10 + size % 10; }

static void blocks(MPI_Comm comm, int size) {
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    char *out = allocate((size_t)size * all), *in = allocate((size_t)size * all);
    for (int to = 0; to < all; to++) fill(out + (size_t)to * size, size, seed_of(me, to, size));
    MPI_Alltoall(out, size, MPI_BYTE, in, size, MPI_BYTE, comm);
    for (int from = 0; from < all; from++)
        verify(in + (size_t)from * size, size, seed_of(from, me, size), "alltoall");

    // Repeats the exchange with point-to-point messages: all receives first, then the sends in reverse
    // order.
    memset(in, 0, (size_t)size * all);
    MPI_Request *requests = allocate(2 * all * sizeof *requests);
    for (int from = 0; from < all; from++)
        MPI_Irecv(in + (size_t)from * size, size, MPI_BYTE, from, size, comm, &requests[from]);
    for (int to = all - 1; to >= 0; to--)
        MPI_Isend(out + (size_t)to * size, size, MPI_BYTE, to, size, comm, &requests[all + to]);
    MPI_Waitall(2 * all, requests, MPI_STATUSES_IGNORE);
    for (int from = 0; from < all; from++)
        verify(in + (size_t)from * size, size, seed_of(from, me, size), "by hand");
    free(requests);
    free(out);
    free(in);
}

static int count_of(int from, int to) { return (from * 7 + to * 13) % 5 * 300 + (from + to) % 2; }

static void varying(MPI_Comm comm) {
    int me, all;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    int *counts = allocate(4 * all * sizeof *counts);
    int *out_at = counts + all, *in_counts = counts + 2 * all, *in_at = counts + 3 * all;
    int out_size = 0, in_size = 0;
    for (int peer = 0; peer < all; peer++) {
        counts[peer] = count_of(me, peer);
        in_counts[peer] = count_of(peer, me);
        out_at[peer] = out_size;
        in_at[peer] = in_size;
        out_size += counts[peer];
        in_size += in_counts[peer];
    }
    char *out = allocate(out_size), *in = allocate(in_size);
    for (int to = 0; to < all; to++) fill(out + out_at[to], counts[to], seed_of(me, to, 3));
    MPI_Alltoallv(out, counts, out_at, MPI_BYTE, in, in_counts, in_at, MPI_BYTE, comm);
    for (int from = 0; from < all; from++)
        verify(in + in_at[from], in_counts[from], seed_of(from, me, 3), "alltoallv");
    free(counts);
    free(out);
    free(in);
}

int main(int argc, char **argv) {
    app_start("alltoall", &argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm half, copy;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    static const int sizes[] = {1, 64, 700, 10000};
    for (unsigned s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        blocks(MPI_COMM_WORLD, sizes[s]);
        blocks(half, sizes[s]);
    }
    varying(copy);
    varying(half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&copy);
    app_end("sizes=%zu", sizeof sizes / sizeof *sizes);
}
