// SPDX-License-Identifier: BSD-2-Clause
// Tests sizes around every boundary that a transport may have, with posted receives and with
// unexpected messages. Then rank 0 sends one long message to rank 1. The argument is its number of
// bytes (default 64 MiB), which is rounded up to blocks of 64 KiB.
#include "check.h"

enum { MEGABYTE = 1 << 20, BLOCK = 1 << 16 };

static const int edges[] = {4096, 8192, 16384, 65536};

// Exchanges one message between the ranks of a pair, in both directions.
static void exchange(char *out, char *in, int size, int peer, int posted) {
    MPI_Request requests[2];
    MPI_Status status;
    fill(out, size, mix(rank, size, posted));
    if (posted) {
        MPI_Irecv(in, size, MPI_BYTE, peer, size % 1000, MPI_COMM_WORLD, &requests[0]);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 1001, NULL, 0, MPI_BYTE, peer, 1001, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Send(out, size, MPI_BYTE, peer, size % 1000, MPI_COMM_WORLD);
        MPI_Wait(&requests[0], &status);
    } else {
        MPI_Isend(out, size, MPI_BYTE, peer, size % 1000, MPI_COMM_WORLD, &requests[1]);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, peer, 1001, NULL, 0, MPI_BYTE, peer, 1001, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Recv(in, size, MPI_BYTE, peer, size % 1000, MPI_COMM_WORLD, &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    CHECK_STATUS(status, peer, size % 1000, size);
    verify(in, size, mix(peer, size, posted), posted ? "posted" : "unexpected");
}

// Sends one message from rank 0 to rank 1, in blocks of 64 KiB, so that it may exceed 2 GiB.
static void huge(unsigned long long bytes) {
    unsigned long long blocks = (bytes + BLOCK - 1) / BLOCK;
    char *buffer = rank < 2 ? allocate(blocks * BLOCK) : NULL;
    MPI_Datatype block;
    CHECK(blocks < 1u << 31, "too many bytes");
    MPI_Type_contiguous(BLOCK, MPI_BYTE, &block);
    MPI_Type_commit(&block);
    if (rank == 0) {
        fill(buffer, blocks * BLOCK, blocks);
        MPI_Send(buffer, (int)blocks, block, 1, 3, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Recv(buffer, (int)blocks, block, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        verify(buffer, blocks * BLOCK, blocks, "huge");
    }
    MPI_Type_free(&block);
    free(buffer);
}

int main(int argc, char **argv) {
    app_start("large", &argc, &argv, MPI_THREAD_SINGLE);
    int peer = rank ^ 1, sizes[64], count = 0;
    sizes[count++] = 0;
    sizes[count++] = 1;
    for (unsigned e = 0; e < sizeof edges / sizeof *edges; e++)
        for (int off = -65; off <= 65; off += off == -65 || off == 1 ? 64 : 1)
            sizes[count++] = edges[e] + off;
    sizes[count++] = MEGABYTE;
    sizes[count++] = MEGABYTE + 13;
    char *out = allocate(MEGABYTE + 13), *in = allocate(MEGABYTE + 13);
    for (int s = 0; peer < ranks && s < count; s++) {
        exchange(out, in, sizes[s], peer, 0);
        exchange(out, in, sizes[s], peer, 1);
    }
    free(out);
    free(in);
    huge(argc > 1 ? strtoull(argv[1], NULL, 0) : 64ull * MEGABYTE);
    app_end("sizes=%d", count);
}
