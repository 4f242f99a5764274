// SPDX-License-Identifier: BSD-2-Clause
// Tests mixes of any-source and any-tag receives. A naive model of the matching rules predicts the
// message of each receive of rank 0. The model also orders messages of different senders by
// arrival, as a single matching unit does; MPI leaves that order open.
#include "check.h"

enum { TAGS = 5, LAST = 99, POSTED = 48, BURST = 6, PAYLOAD = 64 };

struct envelope {
    int source, tag, number;
};

static uint64_t state = 1;

// Returns a random number below the bound, the same on every rank.
static int draw(int below) {
    state = mix(state, 77, 5);
    return (int)((state >> 20) % (unsigned)below);
}

static int matches(const struct envelope *receive, const struct envelope *message) {
    return (receive->source == MPI_ANY_SOURCE || receive->source == message->source) &&
           (receive->tag == MPI_ANY_TAG || receive->tag == message->tag);
}

// Removes the first element of a list that matches and returns its number; -1 if no element
// matches.
static int take_first(struct envelope *list, int *length, const struct envelope *wanted,
                      int wanted_is_message) {
    for (int i = 0; i < *length; i++) {
        const struct envelope *receive = wanted_is_message ? &list[i] : wanted;
        const struct envelope *message = wanted_is_message ? wanted : &list[i];
        if (!matches(receive, message)) continue;
        int number = list[i].number;
        memmove(&list[i], &list[i + 1], (--*length - i) * sizeof *list);
        return number;
    }
    return -1;
}

static struct envelope random_receive(int number) {
    struct envelope receive = {draw(3) ? 1 + draw(ranks - 1) : MPI_ANY_SOURCE,
                               draw(3) ? draw(TAGS) : MPI_ANY_TAG, number};
    return receive;
}

// Sends the messages of burst number `round` to rank 0.
static void send_burst(int round, const int *tags) {
    char out[PAYLOAD];
    for (int i = 0; i < BURST; i++) {
        fill(out, PAYLOAD, mix(rank, round, i));
        MPI_Send(out, PAYLOAD, MPI_BYTE, 0, tags[i], MPI_COMM_WORLD);
    }
}

static void check_message(const char *in, MPI_Status *status, const struct envelope *message,
                          int round) {
    CHECK_STATUS(*status, message->source, message->tag, PAYLOAD);
    verify(in, PAYLOAD, mix(message->source, round, message->number), "matched by another message");
}

// Rank 0 posts a random mix of receives first; then one sender after the other sends a burst.
static void posted_first(int seed) {
    static char in[POSTED][PAYLOAD];
    struct envelope posted[POSTED];
    MPI_Request requests[POSTED];
    int standing = POSTED, go = 0;
    state = seed;
    for (int i = 0; i < POSTED; i++) {
        posted[i] = random_receive(i);
        if (rank == 0)
            MPI_Irecv(in[i], PAYLOAD, MPI_BYTE, posted[i].source, posted[i].tag, MPI_COMM_WORLD,
                      &requests[i]);
    }
    for (int sender = 1; sender < ranks; sender++) {
        int tags[BURST];
        for (int i = 0; i < BURST; i++) tags[i] = draw(TAGS);
        if (rank == sender) {
            MPI_Recv(&go, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            send_burst(seed, tags);
        }
        if (rank == 0) MPI_Send(&go, 1, MPI_INT, sender, LAST, MPI_COMM_WORLD);
        int left = 0;
        for (int i = 0; i < BURST; i++) {
            struct envelope message = {sender, tags[i], i};
            int number = take_first(posted, &standing, &message, 1);
            left += number < 0;
            if (rank != 0 || number < 0) continue;
            MPI_Status status;
            MPI_Wait(&requests[number], &status);
            check_message(in[number], &status, &message, seed);
        }
        // Unmatched messages wait in order; receive them before the next burst.
        for (int i = 0; rank == 0 && i < left; i++) {
            char rest[PAYLOAD];
            MPI_Request request;
            MPI_Status status;
            // No receive in the queue matches the message, so this receive gets it.
            MPI_Irecv(rest, PAYLOAD, MPI_BYTE, sender, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
            MPI_Wait(&request, &status);
        }
    }
    for (int i = 0; rank == 0 && i < standing; i++) {
        MPI_Status status;
        int cancelled;
        MPI_Cancel(&requests[posted[i].number]);
        MPI_Wait(&requests[posted[i].number], &status);
        MPI_Test_cancelled(&status, &cancelled);
        CHECK(cancelled, "receive %d took a message, but matches none in the model", posted[i].number);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

// All bursts arrive first, one sender after the other; then rank 0 posts random receives.
static void unexpected_first(int seed) {
    struct envelope *waiting = allocate((ranks - 1) * BURST * sizeof *waiting);
    int length = 0, go = 0;
    state = seed;
    for (int sender = 1; sender < ranks; sender++) {
        int tags[BURST];
        for (int i = 0; i < BURST; i++) {
            tags[i] = draw(TAGS);
            waiting[length++] = (struct envelope){sender, tags[i], i};
        }
        if (rank == sender) {
            MPI_Recv(&go, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            send_burst(seed, tags);
            MPI_Send(&go, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD);
        } else if (rank == 0) {
            // The last message of the burst has been received, so the whole burst has arrived.
            MPI_Send(&go, 1, MPI_INT, sender, LAST, MPI_COMM_WORLD);
            MPI_Recv(&go, 1, MPI_INT, sender, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    while (rank == 0 && length > 0) {
        char in[PAYLOAD];
        MPI_Status status;
        struct envelope receive = random_receive(0), message = {-1, -1, -1};
        for (int i = length - 1; i >= 0; i--)
            if (matches(&receive, &waiting[i])) message = waiting[i];
        if (take_first(waiting, &length, &receive, 0) < 0) {
            int found;
            MPI_Iprobe(receive.source, receive.tag, MPI_COMM_WORLD, &found, &status);
            CHECK(!found, "a probe found a message the model has not");
            continue;
        }
        MPI_Recv(in, PAYLOAD, MPI_BYTE, receive.source, receive.tag, MPI_COMM_WORLD, &status);
        check_message(in, &status, &message, seed);
    }
    free(waiting);
    MPI_Barrier(MPI_COMM_WORLD);
}

// An any-source receive that was posted before a directed one wins, and vice versa.
static void earliest_wins(int any_first) {
    int values[2] = {-1, -1}, go = 0;
    MPI_Request requests[2];
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Irecv(&values[i], 1, MPI_INT, (i == 0) == any_first ? MPI_ANY_SOURCE : 1, 3,
                      MPI_COMM_WORLD, &requests[i]);
        MPI_Send(&go, 1, MPI_INT, 1, LAST, MPI_COMM_WORLD);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(values[0] == 10 && values[1] == 11, "the receive posted later won (any first: %d)",
              any_first);
    } else if (rank == 1) {
        MPI_Recv(&go, 1, MPI_INT, 0, LAST, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int value = 10; value < 12; value++)
            MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    }
}

// All ranks send at the same time; messages of one sender must arrive in order.
static void sender_order(int messages) {
    int *next = allocate(ranks * sizeof *next), value;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank > 0)
        for (int i = 0; i < messages; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i % TAGS, MPI_COMM_WORLD);
    for (int i = 0; rank == 0 && i < (ranks - 1) * messages; i++) {
        MPI_Status status;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(value == next[status.MPI_SOURCE], "rank %d: message %d before %d", status.MPI_SOURCE,
              value, next[status.MPI_SOURCE]);
        CHECK(status.MPI_TAG == value % TAGS, "tag %d with message %d", status.MPI_TAG, value);
        next[status.MPI_SOURCE]++;
    }
    free(next);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
    app_start("any_source", &argc, &argv, MPI_THREAD_SINGLE);
    earliest_wins(1);
    earliest_wins(0);
    for (int seed = 1; seed <= 4; seed++) {
        posted_first(seed);
        unexpected_first(100 + seed);
    }
    sender_order(60);
    app_end("posted=%d burst=%d", POSTED, BURST);
}
