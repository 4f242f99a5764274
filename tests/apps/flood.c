// SPDX-License-Identifier: BSD-2-Clause
// Each rank sends 200 messages to each other rank, which takes them with MPI_Iprobe from any source
// and a receive: flood [ROUNDS]. While a rank sends, the messages to it are unexpected. A rank may be
// a round ahead of others.
#include "check.h"

enum { MESSAGES = 200, LONGEST = 3000 };

// Returns the length of a message.
static int length_of(int from, int index) { return (int)(mix(from, index, 3) % LONGEST); }

int main(int argc, char **argv) {
    app_start("flood", &argc, &argv, MPI_THREAD_SINGLE);
    int rounds = argc > 1 ? atoi(argv[1]) : 5;
    char *out = allocate((size_t)MESSAGES * LONGEST), *in = allocate(LONGEST);
    int *next = allocate(ranks * sizeof *next);
    MPI_Request *all = allocate((size_t)ranks * MESSAGES * sizeof *all);
    for (int i = 0; i < MESSAGES; i++) fill(out + i * LONGEST, length_of(rank, i), mix(rank, i, 4));
    for (int round = 0; round < rounds; round++) {
        int sent = 0;
        for (int i = 0; i < MESSAGES; i++)
            for (int to = 0; to < ranks; to++)
                if (to != rank)
                    MPI_Isend(out + i * LONGEST, length_of(rank, i), MPI_BYTE, to, i, MPI_COMM_WORLD, &all[sent++]);
        for (int due = MESSAGES * (ranks - 1); due > 0;) {
            int found;
            MPI_Status probed, status;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &probed);
            if (!found) continue;
            int from = probed.MPI_SOURCE, index = next[from]++ % MESSAGES;
            CHECK_STATUS(probed, from, index, length_of(from, index));
            MPI_Recv(in, LONGEST, MPI_BYTE, from, index, MPI_COMM_WORLD, &status);
            CHECK_STATUS(status, from, index, length_of(from, index));
            verify(in, length_of(from, index), mix(from, index, 4), "a message");
            due--;
        }
        MPI_Waitall(sent, all, MPI_STATUSES_IGNORE);
    }
    free(all);
    free(next);
    free(in);
    free(out);
    app_end("rounds=%d", rounds);
}
