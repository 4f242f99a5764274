// SPDX-License-Identifier: BSD-2-Clause
// Makes queues of known lengths, for tests that compare counts with these lengths. Rank 0 posts
// many receives, some of them from any source, before each other rank posts a few. Then unexpected
// messages arrive at rank 0. Collectives run in between. Prints the total number of the
// application's receives on each rank.
#include "check.h"
#include <getopt.h>

static struct {
    int posted, others, any, unexpected;
} option = {100, 10, 0, 50};

enum { POSTED = 100, UNEXPECTED = 200, ANY = 300 };

static void read_options(int argc, char **argv) {
    static const struct option names[] = {{"posted", 1, NULL, 'p'},
                                          {"others", 1, NULL, 'o'},
                                          {"any", 1, NULL, 'a'},
                                          {"unexpected", 1, NULL, 'u'},
                                          {0}};
    for (int key; (key = getopt_long(argc, argv, "", names, NULL)) != -1;) switch (key) {
        case 'p': option.posted = atoi(optarg); break;
        case 'o': option.others = atoi(optarg); break;
        case 'a': option.any = atoi(optarg); break;
        case 'u': option.unexpected = atoi(optarg); break;
        default: fprintf(stderr, "usage: queues [--posted|--others|--any|--unexpected N]\n"); exit(2);
        }
}

// Returns the number of receives that a rank posts before any message is sent to it.
static int share(int of) { return of == 0 ? option.posted : option.others; }

static uint64_t payload(int to, int number, int tag) { return mix(to, number, tag); }

static void collectives(int round) {
    int sum, mine = rank + round, expected = ranks * (ranks - 1) / 2 + ranks * round;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == expected, "allreduce %d, not %d", sum, expected);
    int *counts = allocate(3 * ranks * sizeof *counts), *offsets = counts + ranks,
        *all = offsets + ranks;
    for (int from = 0; from < ranks; from++) counts[from] = 1, offsets[from] = from;
    MPI_Gatherv(&mine, 1, MPI_INT, all, counts, offsets, MPI_INT, 0, MPI_COMM_WORLD);
    for (int from = 0; rank == 0 && from < ranks; from++)
        CHECK(all[from] == from + round, "gatherv: %d from %d", all[from], from);
    free(counts);
}

// Posts all receives and waits until all ranks have posted theirs. Then each rank's left neighbour
// sends.
static void posted(void) {
    int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
    int mine = share(rank), out = share(right), any = rank == 0 ? option.any : 0;
    int total = any + mine + out + (right == 0 ? option.any : 0), used = 0;
    uint64_t *in = allocate((any + mine) * sizeof *in), *text = allocate(total * sizeof *text);
    MPI_Request *requests = allocate(total * sizeof *requests);
    for (int turn = 0; turn < 2; turn++) {
        for (int i = 0; turn == (rank != 0) && i < any + mine; i++)
            MPI_Irecv(&in[i], 1, MPI_UINT64_T, i < any ? MPI_ANY_SOURCE : left,
                      i < any ? ANY : POSTED, MPI_COMM_WORLD, &requests[used++]);
        collectives(turn);
    }
    for (int i = 0; i < out; i++) {
        text[i] = payload(right, i, POSTED);
        MPI_Isend(&text[i], 1, MPI_UINT64_T, right, POSTED, MPI_COMM_WORLD, &requests[used++]);
    }
    for (int i = 0; right == 0 && i < option.any; i++) {
        text[out + i] = payload(0, i, ANY);
        MPI_Isend(&text[out + i], 1, MPI_UINT64_T, 0, ANY, MPI_COMM_WORLD, &requests[used++]);
    }
    MPI_Waitall(used, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < any + mine; i++) {
        uint64_t expected = i < any ? payload(0, i, ANY) : payload(rank, i - any, POSTED);
        CHECK(in[i] == expected, "receive %d has the wrong message", i);
    }
    free(in);
    free(text);
    free(requests);
}

// Every rank sends to rank 0, which receives after all messages have arrived.
static void unexpected(void) {
    int count = rank == 0 ? 0 : option.unexpected;
    MPI_Request *requests = allocate(count * sizeof *requests);
    uint64_t *text = allocate(count * sizeof *text), in;
    for (int i = 0; i < count; i++) {
        text[i] = payload(rank, i, UNEXPECTED);
        MPI_Isend(&text[i], 1, MPI_UINT64_T, 0, UNEXPECTED, MPI_COMM_WORLD, &requests[i]);
    }
    collectives(2);
    for (int from = ranks - 1; rank == 0 && from > 0; from--)
        for (int i = 0; i < option.unexpected; i++) {
            MPI_Recv(&in, 1, MPI_UINT64_T, from, UNEXPECTED, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CHECK(in == payload(from, i, UNEXPECTED), "message %d of %d is wrong", i, from);
        }
    MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    free(text);
    free(requests);
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    app_start("queues", &argc, &argv, MPI_THREAD_SINGLE);
    posted();
    unexpected();
    app_end("receives of rank 0: %d, of others: %d",
            option.posted + option.any + (ranks - 1) * option.unexpected, option.others);
}
