// SPDX-License-Identifier: BSD-2-Clause
// MPI_THREAD_MULTIPLE: threads of a rank communicate at the same time.
//
// Arguments: none, or [--threads T]... [--roles ROLES]... [--comms COMMS]... [--ms M]
//     --threads T    threads of a rank, 1 to 8; may be repeated (default: 1, 2 and 4)
//     --roles ROLES  which threads send (may be repeated; default: all of them):
//                    apart  every thread of an even rank sends to the next, odd one
//                    mixed  threads 0, 2, ... send this way; threads 1, 3, ... of the odd rank send back
//                    both   every thread sends and receives
//                    trip   every thread sends a message and waits for the answer
//     --comms COMMS  own (each pair of threads has a communicator) or shared (one for all, with a
//                    tag for each pair); may be repeated (default: both)
//     --ms M         milliseconds per measurement, 1 to 10000 (default 200)
//
// Without arguments the program checks everything and measures nothing. Neighbouring ranks then
// exchange messages as well, each pair of threads with its own tag, one with any-source receives.
// It prints
//     threads: ok ranks=R threads=T
// With arguments it prints a line for each combination
//     threads threads=T roles=ROLES comms=COMMS messages_per_s=N     (windows of 64 messages of 8 B)
//     threads threads=T roles=trip comms=COMMS half_round_trip_us=X  (all pairs of threads at a time)
// Numbers are those of the slowest rank, the best of three. A rate counts all threads that send to
// or from a pair of ranks. These messages and their order are checked as well.
#include "check.h"
#include <pthread.h>

enum { MOST = 8, CHECKED = 4, ROUNDS = 20, LARGEST = 40000, WINDOW = 64, REPEATS = 3 };
enum roles { APART, MIXED, BOTH, TRIP, ROLES };
enum comms { OWN, SHARED, COMMS };
static const char *const roles_names[] = {"apart", "mixed", "both", "trip"};
static const char *const comms_names[] = {"own", "shared"};

static MPI_Comm own[MOST];
static enum roles roles;
static enum comms comms;
static int threads, peer;
static int64_t count;

static int size_of(int thread, int round) {
    static const int sizes[] = {8, 700, 12000, LARGEST};
    return sizes[(thread + round) % 4];
}

// Exchanges messages of all lengths with the neighbours.
static void *talk(void *argument) {
    int thread = (int)(intptr_t)argument;
    int next = (rank + 1) % ranks, previous = (rank + ranks - 1) % ranks;
    char *out = allocate(LARGEST), *in = allocate(LARGEST);
    for (int round = 0; round < ROUNDS; round++) {
        int size = size_of(thread, round);
        MPI_Request requests[2];
        MPI_Status statuses[2];
        fill(out, size, mix(rank, thread, round));
        MPI_Irecv(in, LARGEST, MPI_BYTE, thread ? previous : MPI_ANY_SOURCE, thread,
                  MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, size, MPI_BYTE, next, thread, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, statuses);
        CHECK_STATUS(statuses[0], previous, thread, size);
        verify(in, size, mix(previous, thread, round), "thread");
    }
    free(out);
    free(in);
    return NULL;
}

// Returns the contents of a thread's message at this place of the order.
static uint64_t message(int sender, int thread, int64_t place) {
    return (uint64_t)sender << 56 | (uint64_t)thread << 48 | (uint64_t)place;
}

static void check_message(uint64_t found, int thread, int64_t place) {
    CHECK(found == message(peer, thread, place), "thread %d, message %lld: %016llx, not %016llx",
          thread, (long long)place, (unsigned long long)found,
          (unsigned long long)message(peer, thread, place));
}

// Windows of messages; a thread that only receives answers each window with an empty message.
static void windows(int thread, MPI_Comm comm, int tag) {
    int first = rank < peer, sends, receives;
    sends = roles == BOTH || (roles == APART ? first : first == (thread % 2 == 0));
    receives = roles == BOTH || !sends;
    uint64_t out[WINDOW], in[WINDOW];
    MPI_Request requests[2 * WINDOW];
    for (int64_t place = 0; place < count * WINDOW; place += WINDOW) {
        int under_way = 0;
        for (int i = 0; receives && i < WINDOW; i++)
            MPI_Irecv(&in[i], 8, MPI_BYTE, peer, tag, comm, &requests[under_way++]);
        for (int i = 0; sends && i < WINDOW; i++) {
            out[i] = message(rank, thread, place + i);
            MPI_Isend(&out[i], 8, MPI_BYTE, peer, tag, comm, &requests[under_way++]);
        }
        MPI_Waitall(under_way, requests, MPI_STATUSES_IGNORE);
        for (int i = 0; receives && i < WINDOW; i++) check_message(in[i], thread, place + i);
        if (!receives) MPI_Recv(NULL, 0, MPI_BYTE, peer, tag + MOST, comm, MPI_STATUS_IGNORE);
        if (!sends) MPI_Send(NULL, 0, MPI_BYTE, peer, tag + MOST, comm);
    }
}

static void trips(int thread, MPI_Comm comm, int tag) {
    for (int64_t place = 0; place < count; place++) {
        uint64_t out = message(rank, thread, place), in = 0;
        if (rank < peer) MPI_Send(&out, 8, MPI_BYTE, peer, tag, comm);
        MPI_Recv(&in, 8, MPI_BYTE, peer, tag, comm, MPI_STATUS_IGNORE);
        if (rank > peer) MPI_Send(&out, 8, MPI_BYTE, peer, tag, comm);
        check_message(in, thread, place);
    }
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    MPI_Comm comm = comms == OWN ? own[thread] : MPI_COMM_WORLD;
    (roles == TRIP ? trips : windows)(thread, comm, comms == OWN ? 0 : thread);
    return NULL;
}

// Runs the threads of a rank and returns, on all ranks, the seconds of the slowest rank.
static double run(void *(*what)(void *)) {
    pthread_t ids[MOST];
    MPI_Barrier(MPI_COMM_WORLD);
    double time = MPI_Wtime();
    for (intptr_t thread = 0; thread < threads; thread++)
        CHECK(pthread_create(&ids[thread], NULL, what, (void *)thread) == 0, "no thread");
    for (int thread = 0; thread < threads; thread++) pthread_join(ids[thread], NULL);
    time = MPI_Wtime() - time;
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

// Finds a count that takes about the requested time, and measures with it.
static void measure(double seconds) {
    double best = 1e9, time;
    count = 10;
    while ((time = run(work)) < seconds / 2) {
        double factor = 0.8 * seconds / time;
        count = (int64_t)((double)count * (factor < 20 ? factor : 20)) + 1;
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        time = run(work);
        if (time < best) best = time;
    }
    if (rank != 0) return;
    printf("threads threads=%d roles=%s comms=%s ", threads, roles_names[roles], comms_names[comms]);
    if (roles == TRIP)
        printf("half_round_trip_us=%.2f\n", best / (double)count / 2 * 1e6);
    else
        printf("messages_per_s=%.0f\n",
               (double)(count * WINDOW * threads * (roles == BOTH ? 2 : 1)) / best);
    fflush(stdout);
}

static void check(void) {
    threads = CHECKED;
    run(talk);
    count = 2;
    for (roles = 0; roles < ROLES; roles++)
        for (comms = 0; comms < COMMS; comms++) run(work);
}

static int number(const char *text, int least, int most) {
    char *end;
    long value = strtol(text, &end, 10);
    CHECK(*text && !*end && value >= least && value <= most, "%s is not from %d to %d", text, least,
          most);
    return (int)value;
}

static int place_of(const char *text, const char *const *names, int all) {
    for (int i = 0; i < all; i++)
        if (!strcmp(text, names[i])) return i;
    CHECK(0, "%s is unknown; see the top of threads.c", text);
    return 0;
}

int main(int argc, char **argv) {
    int counts[MOST], kinds = 0, milliseconds = 200;
    unsigned roles_asked = 0, comms_asked = 0;
    app_start("threads", &argc, &argv, MPI_THREAD_MULTIPLE);
    CHECK(ranks % 2 == 0, "an even number of ranks is needed, not %d", ranks);
    peer = rank ^ 1;
    for (int i = 1; i < argc; i += 2) {
        CHECK(i + 1 < argc, "%s needs a value", argv[i]);
        if (!strcmp(argv[i], "--threads") && kinds < MOST) counts[kinds++] = number(argv[i + 1], 1, MOST);
        else if (!strcmp(argv[i], "--roles")) roles_asked |= 1u << place_of(argv[i + 1], roles_names, ROLES);
        else if (!strcmp(argv[i], "--comms")) comms_asked |= 1u << place_of(argv[i + 1], comms_names, COMMS);
        else if (!strcmp(argv[i], "--ms")) milliseconds = number(argv[i + 1], 1, 10000);
        else CHECK(0, "%s is unknown; see the top of threads.c", argv[i]);
    }
    for (int i = 0; i < MOST; i++) MPI_Comm_dup(MPI_COMM_WORLD, &own[i]);
    if (argc == 1) check();
    if (!kinds)
        for (int kind = 1; kind <= CHECKED; kind *= 2) counts[kinds++] = kind;
    for (int kind = 0; argc > 1 && kind < kinds; kind++) {
        threads = counts[kind];
        for (roles = 0; roles < ROLES; roles++)
            for (comms = 0; comms < COMMS; comms++)
                if ((!roles_asked || roles_asked >> roles & 1) && (!comms_asked || comms_asked >> comms & 1))
                    measure(milliseconds * 1e-3);
    }
    for (int i = 0; i < MOST; i++) MPI_Comm_free(&own[i]);
    if (argc == 1) app_end("threads=%d", CHECKED);
    else MPI_Finalize();
}
