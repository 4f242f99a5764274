// SPDX-License-Identifier: BSD-2-Clause
// Makes queues of known contents, for tests that attribute the elements of the queues. Rank 0 posts
// 137 receives, in three communicators and with four tags, and one any-source receive. Then 211
// messages arrive that match no posted receive.
#include "check.h"

enum { COMMUNICATORS = 3, MOST = 256, GO = 40, DONE = 41, ANY = 30, UNEXPECTED = 31 };

// Receives by communicator and tag; their sources are ranks 1, 2, 3, 1, ...
static const struct {
    int communicator, tag, count;
} posted[] = {{0, 10, 40}, {0, 11, 30}, {1, 10, 25}, {1, 12, 20}, {2, 11, 12}, {2, 13, 10}};
#define POSTED (sizeof posted / sizeof *posted)
// Number of unexpected messages from ranks 1, 2 and 3.
static const int unexpected[] = {0, 100, 80, 31};

static int peer_of(int number) { return 1 + number % 3; }

int main(int argc, char **argv) {
    app_start("known", &argc, &argv, MPI_THREAD_SINGLE);
    CHECK(ranks == 4, "4 ranks are needed");
    MPI_Comm communicators[COMMUNICATORS] = {MPI_COMM_WORLD};
    for (int i = 1; i < COMMUNICATORS; i++) MPI_Comm_dup(MPI_COMM_WORLD, &communicators[i]);
    static int in[MOST], out = 1;
    MPI_Request requests[MOST];
    int used = 0, word = 0;
    if (rank == 0) {
        for (unsigned i = 0; i < POSTED; i++)
            for (int n = 0; n < posted[i].count; n++)
                MPI_Irecv(&in[used], 1, MPI_INT, peer_of(n), posted[i].tag,
                          communicators[posted[i].communicator], &requests[used]),
                    used++;
        MPI_Irecv(&in[used], 1, MPI_INT, MPI_ANY_SOURCE, ANY, MPI_COMM_WORLD, &requests[used]);
        used++;
        for (int to = 1; to < ranks; to++) MPI_Send(&out, 1, MPI_INT, to, GO, MPI_COMM_WORLD);
        MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
        // Each rank reports that it has sent everything: all earlier messages are unexpected.
        for (int from = 1; from < ranks; from++)
            MPI_Recv(&word, 1, MPI_INT, from, DONE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int from = 1; from < ranks; from++)
            for (int n = 0; n < unexpected[from]; n++)
                MPI_Recv(&word, 1, MPI_INT, from, UNEXPECTED, communicators[1], MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(&word, 1, MPI_INT, 0, GO, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (unsigned i = 0; i < POSTED; i++)
            for (int n = 0; n < posted[i].count; n++)
                if (peer_of(n) == rank)
                    MPI_Send(&out, 1, MPI_INT, 0, posted[i].tag,
                             communicators[posted[i].communicator]);
        if (rank == 2) MPI_Send(&out, 1, MPI_INT, 0, ANY, MPI_COMM_WORLD);
        for (int n = 0; n < unexpected[rank]; n++)
            MPI_Send(&out, 1, MPI_INT, 0, UNEXPECTED, communicators[1]);
        MPI_Send(&out, 1, MPI_INT, 0, DONE, MPI_COMM_WORLD);
    }
    app_end("%d receives", used);
}
