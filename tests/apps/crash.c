// SPDX-License-Identifier: BSD-2-Clause
// Ends abnormally, for tests of the remaining files and reports: each rank sends 100 messages to
// its neighbour, then one rank, or all, end without MPI_Finalize.
//   crash kill|abort|segv|exit|mpi_abort [all]
#include "check.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 100, TAG = 5 };

static void end(const char *how) {
    if (!strcmp(how, "kill")) kill(getpid(), SIGKILL);
    if (!strcmp(how, "abort")) abort();
    if (!strcmp(how, "segv")) raise(SIGSEGV);
    if (!strcmp(how, "mpi_abort")) MPI_Abort(MPI_COMM_WORLD, 7);
    _exit(0);
}

int main(int argc, char **argv) {
    app_start("crash", &argc, &argv, MPI_THREAD_SINGLE);
    const char *how = argc > 1 ? argv[1] : "kill";
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks, in, flag;
    for (int i = 0; i < MESSAGES; i++) {
        MPI_Sendrecv(&i, 1, MPI_INT, next, TAG, &in, 1, MPI_INT, previous, TAG, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(in == i, "%d, not %d", in, i);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    // Polls while the other ranks may still need progress. This time is longer on a busy machine,
    // which has fewer polls per second.
    const char *slowness = getenv("TCAM_TEST_SLOWNESS");
    double end_of_polls = MPI_Wtime() + 0.3 * (slowness ? atof(slowness) : 1);
    while (MPI_Wtime() < end_of_polls)
        MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (rank == 1 || argc > 2) end(how);
    // No rank sends this message: the launcher ends the waiting ranks.
    MPI_Recv(&in, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    app_end("%d", in);
}
