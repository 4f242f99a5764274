// SPDX-License-Identifier: BSD-2-Clause
// Tests that synchronous sends complete after the match, never before.
#include "check.h"

static const int sizes[] = {0, 8, 1000, 30000, 300000};

int main(int argc, char **argv) {
    app_start("ssend", &argc, &argv, MPI_THREAD_SINGLE);
    int peer = rank ^ 1, checks = 0;
    char *buffer = allocate(300000);
    for (unsigned s = 0; peer < ranks && s < sizeof sizes / sizeof *sizes; s++) {
        int size = sizes[s], done = 0;
        MPI_Status status;
        MPI_Request request;
        if (rank % 2 == 0) {
            // This send is not matched yet, because the peer posts its receive only after the next message.
            fill(buffer, size, mix(rank, size, 1));
            MPI_Issend(buffer, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
            for (int poll = 0; poll < 200; poll++) {
                MPI_Test(&request, &done, MPI_STATUS_IGNORE);
                CHECK(!done, "issend of %d bytes complete before its receive", size);
            }
            MPI_Send(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            // A blocking synchronous send, whose receive is already posted.
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Ssend(buffer, size, MPI_BYTE, peer, 4, MPI_COMM_WORLD);
        } else {
            MPI_Recv(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Recv(buffer, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
            CHECK_STATUS(status, peer, 1, size);
            verify(buffer, size, mix(peer, size, 1), "unexpected issend");
            memset(buffer, 0, size);
            MPI_Irecv(buffer, size, MPI_BYTE, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &request);
            MPI_Send(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
            MPI_Wait(&request, &status);
            CHECK_STATUS(status, peer, 4, size);
            verify(buffer, size, mix(peer, size, 1), "expected ssend");
        }
        checks += 2;
    }

    // All ranks send to all ranks at the same time; all messages must be acknowledged.
    MPI_Request *requests = allocate(2 * ranks * sizeof *requests);
    int *in = allocate(ranks * sizeof *in);
    for (int to = 0; to < ranks; to++)
        MPI_Issend(&rank, 1, MPI_INT, to, 9, MPI_COMM_WORLD, &requests[to]);
    for (int from = 0; from < ranks; from++)
        MPI_Irecv(&in[from], 1, MPI_INT, from, 9, MPI_COMM_WORLD, &requests[ranks + from]);
    MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE);
    for (int from = 0; from < ranks; from++) CHECK(in[from] == from, "%d from %d", in[from], from);
    free(requests);
    free(in);
    free(buffer);
    app_end("checks=%d", checks);
}
