// SPDX-License-Identifier: BSD-2-Clause
// Tests MPI_Probe, MPI_Iprobe, MPI_Mprobe and MPI_Improbe: which message a probe finds, that this
// message stays in the queue, and that no other receive gets a message that a matched probe took.
#include "check.h"

enum { MESSAGES = 12, LARGEST = 100000 };

static int size_of(int message) {
    static const int sizes[] = {0, 5, 900, 9000, LARGEST, 64};
    return sizes[message % 6];
}

static uint64_t seed_of(int from, int message) { return mix(from, message, 17); }

// Sends a message; nonblocking, because rank 0 receives in a different order.
static void send(char *buffer, int message, int size, int tag, MPI_Request *request) {
    char *out = buffer + (size_t)message * LARGEST;
    fill(out, size, seed_of(rank, message));
    MPI_Isend(out, size, MPI_BYTE, 0, tag, MPI_COMM_WORLD, request);
}

// Receives the probed message and checks that it is the same.
static void take(char *in, int source, int tag, int size) {
    MPI_Status status;
    MPI_Recv(in, LARGEST, MPI_BYTE, source, tag, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, source, tag, size);
    verify(in, size, seed_of(source, tag), "after a probe");
}

// Rank 0 receives the messages of every rank; the tag of a message is its number.
static void collect(char *in) {
    MPI_Status status;
    int seen = 0, found, *next = allocate(ranks * sizeof *next);

    // Any source, any tag: the numbers of one source must increase.
    while (seen < (ranks - 1) * MESSAGES / 2) {
        if (seen % 2) {
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        } else {
            do {
                MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, &status);
            } while (!found);
        }
        int source = status.MPI_SOURCE, tag = status.MPI_TAG;
        CHECK(tag == next[source], "rank %d: message %d seen before %d", source, tag, next[source]);
        CHECK_STATUS(status, source, tag, size_of(tag));
        // A probe removes nothing: the next one finds the same message.
        MPI_Probe(source, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK_STATUS(status, source, tag, size_of(tag));
        take(in, source, tag, size_of(tag));
        next[source]++;
        seen++;
    }

    // Directed receives, last tag first: the other messages wait in the queue.
    for (int source = ranks - 1; source > 0; source--) {
        for (int tag = MESSAGES - 1; tag >= next[source]; tag--) {
            MPI_Probe(source, tag, MPI_COMM_WORLD, &status);
            CHECK_STATUS(status, source, tag, size_of(tag));
            take(in, source, tag, size_of(tag));
            seen++;
        }
    }
    CHECK(seen == (ranks - 1) * MESSAGES, "%d messages, not %d", seen, (ranks - 1) * MESSAGES);
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    CHECK(!found, "a message that no rank sent");
    free(next);
}

// Matched probes hold two messages, which are received in reverse order. Another receive gets the next
// message that has the envelope of the first one.
static void matched(char *in) {
    MPI_Message first, second;
    MPI_Status status;
    MPI_Request request;
    int found;
    for (int source = 1; source < ranks; source++) {
        MPI_Mprobe(source, 50, MPI_COMM_WORLD, &first, &status);
        CHECK_STATUS(status, source, 50, 30);
        do {
            MPI_Improbe(MPI_ANY_SOURCE, 50 + source, MPI_COMM_WORLD, &found, &second, &status);
        } while (!found);
        CHECK_STATUS(status, source, 50 + source, LARGEST);

        // Other receives cannot match the held message: this one gets the next.
        MPI_Recv(in, LARGEST, MPI_BYTE, source, 50, MPI_COMM_WORLD, &status);
        CHECK_STATUS(status, source, 50, 20);
        verify(in, 20, seed_of(source, 1), "past a held message");

        MPI_Imrecv(in, LARGEST, MPI_BYTE, &second, &request);
        MPI_Wait(&request, &status);
        verify(in, LARGEST, seed_of(source, 2), "imrecv");
        MPI_Mrecv(in, LARGEST, MPI_BYTE, &first, &status);
        CHECK_STATUS(status, source, 50, 30);
        verify(in, 30, seed_of(source, 0), "mrecv");
    }
}

int main(int argc, char **argv) {
    app_start("probe", &argc, &argv, MPI_THREAD_SINGLE);
    char *buffer = allocate(MESSAGES * LARGEST);
    if (rank == 0) {
        collect(buffer);
        MPI_Barrier(MPI_COMM_WORLD);
        matched(buffer);
    } else {
        static const int sizes[] = {30, 20, LARGEST};
        MPI_Request requests[MESSAGES];
        for (int message = 0; message < MESSAGES; message++)
            send(buffer, message, size_of(message), message, &requests[message]);
        MPI_Waitall(MESSAGES, requests, MPI_STATUSES_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
        for (int message = 0; message < 3; message++)
            send(buffer, message, sizes[message], message == 2 ? 50 + rank : 50,
                 &requests[message]);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Status status;
    MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
    CHECK_STATUS(status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    free(buffer);
    app_end("messages=%d", (ranks - 1) * (MESSAGES + 3));
}
