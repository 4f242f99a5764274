// SPDX-License-Identifier: BSD-2-Clause
// Parts that the programs of tests/gate/sites.py share: each rank exchanges messages with all other
// ranks, and posts its receives before it sends. An MPI may keep messages of a rank to itself.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LARGEST = 64, AT_ONCE = 4096 };
static int rank, ranks;
static MPI_Request requests[AT_ONCE];
static char bytes[AT_ONCE][8];
static int posted;

#define EACH_OTHER(other) for (int other = 0; other < ranks; other++) if (other != rank)

// Sends a message for each receive that was posted, and completes all.
static inline void send_all(int each) {
    MPI_Barrier(MPI_COMM_WORLD);
    for (int message = 0; message < each; message++)
        EACH_OTHER(to) MPI_Send("message", 8, MPI_BYTE, to, 7, MPI_COMM_WORLD);
    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    posted = 0;
}

static inline void start(int *argc, char ***argv) {
    int provided;
    MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks > LARGEST) MPI_Abort(MPI_COMM_WORLD, 1);
}
