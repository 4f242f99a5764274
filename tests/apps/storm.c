// SPDX-License-Identifier: BSD-2-Clause
// Sends random messages of all lengths between all ranks, including the sender itself, and receives
// them in every way: directed, with wildcards and by probes, before and after they arrive. Every
// rank draws the same plan, so that each knows what to expect: the messages of a stream (one
// source, one tag) arrive in order.
#include "check.h"

enum { ROUNDS = 14, MOST = 150, TAGS = 4, LONGEST = 300001, BUDGET = 24 << 20 };

// Lengths around the limits of an inline slot, of a buffer, and of copied messages.
static const int lengths[] = {0,    1,    8,    63,   64,    65,    168,   199,   200,   201,
                              207,  208,  209,  4095, 4096,  4097,  8191,  8192,  8193,  16383,
                              16384, 16385, 32768, 65535, 65536, 65537, 131072, LONGEST};

enum receiving { NAMED, ANY_SOURCE, ANY_TAG, ANYTHING, PROBED, MATCHED_PROBES, WAYS };
struct message { int from, to, tag, length, how; uint64_t seed; };
struct received { MPI_Status status; char *bytes; };

static struct message plan[MOST];
static int planned, due;
static uint64_t state;

static uint64_t draw(uint64_t below) {
    state += 0x9e3779b97f4a7c15u;
    return mix(state, 1, 2) % below;
}

// Draws the messages of a round; sets `due`, the number of messages to this rank.
static void draw_plan(int round) {
    size_t budget = BUDGET;
    int longest = round % 3 == 0 ? 208 : round % 3 == 1 ? 16385 : LONGEST;
    int to_one = round % 5 == 4;
    state = mix(round, ranks, 77);
    planned = 1 + (int)draw(MOST);
    due = 0;
    for (int i = 0; i < planned; i++) {
        struct message *message = &plan[i];
        do {
            message->length = draw(3) ? lengths[draw(sizeof lengths / sizeof *lengths)] : (int)draw(300);
        } while (message->length > longest || (size_t)message->length > budget);
        budget -= message->length;
        message->from = (int)draw(ranks);
        message->to = to_one ? 0 : (int)draw(ranks);
        message->tag = (int)draw(TAGS);
        message->how = (int)draw(4);
        message->seed = mix(round, i, 5);
        due += message->to == rank;
    }
}

// Starts a send of this rank. The caller frees the returned buffer after the send has completed.
static char *start_send(const struct message *message, MPI_Request *request) {
    int length = message->length;
    if (message->how == 0 && length > 1) {
        // Sends every other byte of a buffer.
        char *whole = allocate(length), *strided = allocate(2 * (size_t)length);
        MPI_Datatype type;
        fill(whole, length, message->seed);
        for (int i = 0; i < length; i++) strided[2 * i] = whole[i];
        free(whole);
        MPI_Type_vector(length, 1, 2, MPI_BYTE, &type);
        MPI_Type_commit(&type);
        MPI_Isend(strided, 1, type, message->to, message->tag, MPI_COMM_WORLD, request);
        MPI_Type_free(&type);
        return strided;
    }
    char *bytes = allocate(length);
    fill(bytes, length, message->seed);
    if (message->how == 1)
        MPI_Issend(bytes, length, MPI_BYTE, message->to, message->tag, MPI_COMM_WORLD, request);
    else
        MPI_Isend(bytes, length, MPI_BYTE, message->to, message->tag, MPI_COMM_WORLD, request);
    return bytes;
}

// Posts a receive for the next message of the plan, or with wildcards.
static void post(int *next, enum receiving way, char *bytes, MPI_Request *request) {
    while (plan[*next].to != rank) ++*next;
    int source = way == ANY_SOURCE || way == ANYTHING ? MPI_ANY_SOURCE : plan[*next].from;
    int tag = way == ANY_TAG || way == ANYTHING ? MPI_ANY_TAG : plan[*next].tag;
    ++*next;
    MPI_Irecv(bytes, LONGEST, MPI_BYTE, source, tag, MPI_COMM_WORLD, request);
}

static void receive_probed(enum receiving way, struct received *received) {
    MPI_Message message;
    int count;
    for (int i = 0; i < due; i++) {
        MPI_Status *status = &received[i].status;
        if (way == PROBED)
            MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status);
        else
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, status);
        MPI_Get_count(status, MPI_BYTE, &count);
        received[i].bytes = allocate(count);
        if (way == PROBED)
            MPI_Recv(received[i].bytes, count, MPI_BYTE, status->MPI_SOURCE, status->MPI_TAG,
                     MPI_COMM_WORLD, status);
        else
            MPI_Mrecv(received[i].bytes, count, MPI_BYTE, &message, status);
    }
}

// In the order in which the receives were posted, the messages of each stream are those of the
// plan.
static void check_streams(const struct received *received) {
    int *next = allocate(ranks * TAGS * sizeof *next);
    for (int i = 0; i < due; i++) {
        const MPI_Status *status = &received[i].status;
        int from = status->MPI_SOURCE, tag = status->MPI_TAG;
        CHECK(from >= 0 && from < ranks && tag >= 0 && tag < TAGS, "from %d, tag %d", from, tag);
        int *at = &next[from * TAGS + tag];
        while (*at < planned && (plan[*at].from != from || plan[*at].to != rank || plan[*at].tag != tag))
            ++*at;
        CHECK(*at < planned, "more messages from %d with tag %d than were sent", from, tag);
        CHECK_STATUS(*status, from, tag, plan[*at].length);
        verify(received[i].bytes, plan[*at].length, plan[*at].seed, "a message of a stream");
        ++*at;
    }
    free(next);
}

int main(int argc, char **argv) {
    app_start("storm", &argc, &argv, MPI_THREAD_SINGLE);
    static MPI_Request sends[MOST], receives[MOST];
    static char *sent[MOST];
    static struct received received[MOST];
    int messages = 0;
    for (int round = 0; round < ROUNDS; round++) {
        draw_plan(round);
        enum receiving way = (round + rank) % WAYS;
        int started = 0, posted = 0, next = 0, probes = way == PROBED || way == MATCHED_PROBES;
        int before = probes ? 0 : (int)(mix(round, rank, 3) % (due + 1));
        for (int i = 0; i < due && !probes; i++) received[i].bytes = allocate(LONGEST);
        for (; posted < before; posted++) post(&next, way, received[posted].bytes, &receives[posted]);
        for (int i = 0; i < planned; i++)
            if (plan[i].from == rank) {
                sent[started] = start_send(&plan[i], &sends[started]);
                started++;
            }
        if (probes) {
            receive_probed(way, received);
        } else {
            for (; posted < due; posted++)
                post(&next, way, received[posted].bytes, &receives[posted]);
            for (int i = 0; i < due; i++) MPI_Wait(&receives[i], &received[i].status);
        }
        check_streams(received);
        MPI_Waitall(started, sends, MPI_STATUSES_IGNORE);
        for (int i = 0; i < started; i++) free(sent[i]);
        for (int i = 0; i < due; i++) free(received[i].bytes);
        // A wildcard receive must not match a message of the next round.
        MPI_Barrier(MPI_COMM_WORLD);
        messages += planned;
    }
    app_end("messages=%d", messages);
}
