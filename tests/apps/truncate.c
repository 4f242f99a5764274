// SPDX-License-Identifier: BSD-2-Clause
// Tests messages that are longer than the buffers of their receives. Only such a receive fails: no
// byte beyond its buffer is written, and later messages are complete.
#include "check.h"

static const int sizes[] = {16, 1000, 9000, 70000, 500000};

static void expect_truncated(int code, const char *buffer, int room, int size) {
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_TRUNCATE, "%d bytes into %d: error class %d, not MPI_ERR_TRUNCATE", size,
          room, class);
    for (int at = room; at < size; at++)
        CHECK(buffer[at] == 0, "%d bytes into %d: byte %d was written", size, room, at);
}

int main(int argc, char **argv) {
    app_start("truncate", &argc, &argv, MPI_THREAD_SINGLE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int peer = rank ^ 1, cases = 0;
    char *buffer = allocate(500000);
    for (unsigned s = 0; peer < ranks && s < sizeof sizes / sizeof *sizes; s++) {
        int size = sizes[s];
        for (int posted = 0; posted < 2; posted++) {
            int room = posted ? size / 2 : size - 1;
            MPI_Request request;
            MPI_Status status;
            if (rank % 2 == 0) {
                fill(buffer, size, mix(rank, size, posted));
                if (posted)
                    MPI_Recv(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Isend(buffer, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &request);
                MPI_Send(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD);
                MPI_Wait(&request, MPI_STATUS_IGNORE);
                MPI_Send(buffer, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
            } else {
                memset(buffer, 0, size);
                MPI_Irecv(NULL, 0, MPI_BYTE, peer, 2, MPI_COMM_WORLD, &request);
                if (posted) {
                    MPI_Request cut;
                    MPI_Irecv(buffer, room, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &cut);
                    MPI_Send(NULL, 0, MPI_BYTE, peer, 3, MPI_COMM_WORLD);
                    expect_truncated(MPI_Wait(&cut, MPI_STATUS_IGNORE), buffer, room, size);
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                } else {
                    MPI_Wait(&request, MPI_STATUS_IGNORE);
                    int code = MPI_Recv(buffer, room, MPI_BYTE, peer, 1, MPI_COMM_WORLD,
                                        MPI_STATUS_IGNORE);
                    expect_truncated(code, buffer, room, size);
                }
                int code = MPI_Recv(buffer, size, MPI_BYTE, peer, 1, MPI_COMM_WORLD, &status);
                CHECK(code == MPI_SUCCESS, "the message after a truncated one failed");
                CHECK_STATUS(status, peer, 1, size);
                verify(buffer, size, mix(peer, size, posted), "after truncation");
            }
            cases++;
        }
    }
    free(buffer);
    app_end("cases=%d", cases);
}
