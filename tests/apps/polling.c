// SPDX-License-Identifier: BSD-2-Clause
// Measures the operations in the figures of the paper on polling channels, for `papers/reproduce.sh
// polling`. Rank 0, the root, needs another rank on its host (near) and one on another host (far).
// The arguments are modes with their numbers. `near`, `far` or `both` selects the ranks that the
// following modes measure (default: both):
//
//     looks N                  must be first: polls for orders between two sleeps of a rank (default
//                              1); if the network is polled once in R + 1 polls, give at least R + 1
//     cost PEERS...            MPI_Test that finds nothing, after contact with PEERS far ranks
//                              (Figure 1); must precede the modes below, which contact a far rank
//     latency BYTES...         half a round trip between root and a rank (Figures 2 and 5)
//     discovery BURSTS...      near and far rank in turn send a burst of messages of 4 bytes, each
//                              after root has answered the previous one: the time from the first
//                              message to the last answer, per message (Figures 3 and 4)
//     bandwidth BYTES...       windows of 16 messages from root (Figure 5)
//     overlap BYTES US...      both ranks exchange messages and compute for US microseconds (Figure
//                              6), with an MPI_Iprobe every 100 us
//
// Prints a line for each, `polling mode=latency where=near bytes=4 us=1.234`, and finally `polling:
// ok ranks=R near=N far=F`. Because other programs use the machine as well, a time is the mean of
// the fastest of several sets; for discovery it is the lower quartile of the bursts.
//
// Root asks rank by rank for the host name, so that it contacts no rank of the other host before it
// has to. Ranks that are not measured sleep between polls for orders, and leave the cores to the
// two that are.
#include "compute.h"
#include <time.h>

enum { ORDER = 1, REPLY, DATA, NEVER, WINDOW = 16, SETS = 7, MOST = 1 << 22, PROBE_US = 100 };
static const double AWAKE = 0.002, WARM_UP = 0.05;
enum { NAME, PING_PONG, BURST, TIMES, STREAM, EXCHANGE, COMPUTE, END };

struct order {
    int what, bytes, count, us;
};

static unsigned char *out, *in;
static double burst_us[2000];
static int bursts;

// State of root: number of ranks asked, count and first rank of each kind, kinds to measure.
static char host[MPI_MAX_PROCESSOR_NAME];
static int asked = 1, nears, fars, near = -1, far = -1;
static int wants_near = 1, wants_far = 1;

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Sorts the values and returns number `count / one_of`: the smallest if `one_of` exceeds `count`.
static double lowest(double *values, int count, int one_of) {
    qsort(values, (size_t)count, sizeof *values, by_size);
    return values[count / one_of];
}

static void compute(int us, int probing) {
    int steps = (us + PROBE_US - 1) / PROBE_US, flag;
    for (int step = 0; step < steps; step++) {
        work((uint64_t)(us * work_per_us / steps));
        if (probing) MPI_Iprobe(MPI_ANY_SOURCE, NEVER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
}

// Runs a ping-pong of both ranks. With `whole` every byte is verified, and the time is not
// measured.
static void ping_pong(int other, int bytes, int count, int whole) {
    for (int i = 0; i < count; i++) {
        if (rank == 0) {
            if (whole) fill(out, (size_t)bytes, mix(1, (uint64_t)bytes, (uint64_t)i));
            else stamp(out, bytes, i);
            MPI_Send(out, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
        }
        MPI_Recv(in, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (whole) verify(in, (size_t)bytes, mix(1, (uint64_t)bytes, (uint64_t)i), "round trip");
        else check_stamp(in, bytes, i);
        if (rank != 0) MPI_Send(in, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
    }
}

static void stream(int other, int bytes, int count) {
    MPI_Request requests[WINDOW];
    for (int window = 0; window < count; window++) {
        for (int i = 0; i < WINDOW; i++) {
            size_t at = (size_t)i * (size_t)bytes;
            if (rank == 0) {
                stamp(out + at, bytes, window + i);
                MPI_Isend(out + at, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(in + at, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, other, DATA, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            continue;
        }
        for (int i = 0; i < WINDOW; i++)
            check_stamp(in + (size_t)i * (size_t)bytes, bytes, window + i);
        MPI_Send(NULL, 0, MPI_BYTE, other, DATA, MPI_COMM_WORLD);
    }
}

static void exchange(int other, int bytes, int count, int us) {
    for (int i = 0; i < count; i++) {
        MPI_Request requests[2];
        stamp(out, bytes, i);
        MPI_Isend(out, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in, bytes, MPI_BYTE, other, DATA, MPI_COMM_WORLD, &requests[1]);
        compute(us, 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_stamp(in, bytes, i);
    }
}

// Sends a burst to root, which answers each message.
static void burst(int count) {
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        uint32_t value = (uint32_t)mix((uint64_t)rank, (uint64_t)bursts, (uint64_t)i), answer;
        MPI_Send(&value, 4, MPI_BYTE, 0, DATA, MPI_COMM_WORLD);
        MPI_Recv(&answer, 4, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(answer == ~value, "burst %d, message %d: the answer is another's", bursts, i);
    }
    burst_us[bursts++] = (MPI_Wtime() - start) * 1e6 / count;
}

static void answer_burst(int from, int number, int count) {
    for (int i = 0; i < count; i++) {
        uint32_t value, expected = (uint32_t)mix((uint64_t)from, (uint64_t)number, (uint64_t)i);
        MPI_Status status;
        // Root does not know the source of the next message.
        MPI_Recv(&value, 4, MPI_BYTE, MPI_ANY_SOURCE, DATA, MPI_COMM_WORLD, &status);
        CHECK_STATUS(status, from, DATA, 4);
        CHECK(value == expected, "burst %d, message %d: wrong data", number, i);
        value = ~value;
        MPI_Send(&value, 4, MPI_BYTE, from, REPLY, MPI_COMM_WORLD);
    }
}

static void pair(int other, struct order order) {
    switch (order.what) {
    case PING_PONG: ping_pong(other, order.bytes, order.count, order.us); break;
    case STREAM: stream(other, order.bytes, order.count); break;
    case EXCHANGE: exchange(other, order.bytes, order.count, order.us); break;
    default:
        for (int i = 0; i < order.count; i++) compute(order.us, 0);
    }
}

// Serves orders of root, on all other ranks. After an order a rank stays awake for a moment, so
// that both ranks of a measurement keep their cores from set to set. Sleeps are short after an
// order and grow to 40 ms.
static void serve(int looks) {
    double ordered = 0;
    for (long nap = 50000;;) {
        int flag = 0, length;
        for (int look = 0; !flag && look < looks; look++)
            MPI_Iprobe(0, ORDER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        if (!flag && MPI_Wtime() - ordered < AWAKE) continue;
        if (!flag) {
            nanosleep(&(struct timespec){.tv_nsec = nap}, NULL);
            nap = nap < 20000000 ? nap * 2 : 40000000;
            continue;
        }
        nap = 50000;
        struct order order;
        MPI_Recv(&order, sizeof order, MPI_BYTE, 0, ORDER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        switch (order.what) {
        case END: return;
        case NAME:
            memset(host, 0, sizeof host);
            MPI_Get_processor_name(host, &length);
            MPI_Send(host, sizeof host, MPI_CHAR, 0, REPLY, MPI_COMM_WORLD);
            break;
        case BURST: burst(order.count); break;
        case TIMES:
            MPI_Send(burst_us, bursts, MPI_DOUBLE, 0, REPLY, MPI_COMM_WORLD);
            bursts = 0;
            break;
        default:
            if (order.what == EXCHANGE || order.what == COMPUTE) calibrate();
            MPI_Send(NULL, 0, MPI_BYTE, 0, REPLY, MPI_COMM_WORLD);
            pair(0, order);
            ordered = MPI_Wtime();
        }
    }
}

static void tell(int other, struct order order) {
    MPI_Send(&order, sizeof order, MPI_BYTE, other, ORDER, MPI_COMM_WORLD);
}

// Sends an order to the ranks from `first` to `end - 1`, which sleep and wake at the same time.
static void tell_all(int first, int end, struct order order) {
    MPI_Request *requests = allocate((size_t)ranks * sizeof *requests);
    for (int other = first; other < end; other++)
        MPI_Isend(&order, sizeof order, MPI_BYTE, other, ORDER, MPI_COMM_WORLD, &requests[other]);
    MPI_Waitall(end - first, requests + first, MPI_STATUSES_IGNORE);
    free(requests);
}

// Asks the next `more` ranks for their host names.
static void ask(int more) {
    char name[MPI_MAX_PROCESSOR_NAME];
    int end = more < ranks - asked ? asked + more : ranks;
    tell_all(asked, end, (struct order){.what = NAME});
    for (; asked < end; asked++) {
        MPI_Recv(name, sizeof name, MPI_CHAR, asked, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (strcmp(name, host) == 0 && nears++ == 0) near = asked;
        if (strcmp(name, host) != 0 && fars++ == 0) far = asked;
    }
}

// Returns the seconds of an order, without the wait until the other rank is awake.
static double timed(int other, struct order order) {
    tell(other, order);
    MPI_Recv(NULL, 0, MPI_BYTE, other, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    double start = MPI_Wtime();
    pair(other, order);
    return MPI_Wtime() - start;
}

// Returns microseconds per operation in the fastest set of 10 ms, after the scheduler has found a
// core for both ranks.
static double measured(int other, struct order order) {
    double us[SETS];
    static int before;
    order.count = 3;
    double warm = other == before ? 0 : WARM_UP;
    before = other;
    for (double start = MPI_Wtime(); MPI_Wtime() - start <= warm;) timed(other, order);
    double once = timed(other, order) / order.count + 1e-7;
    order.count = once > 0.003 ? 3 : once < 1e-6 ? 10000 : (int)(0.01 / once);
    for (int set = 0; set < SETS; set++) us[set] = timed(other, order) * 1e6 / order.count;
    return lowest(us, SETS, SETS + 1);
}

static void say(const char *mode, int other, const char *more) {
    printf("polling mode=%s where=%s %s\n", mode, other == near ? "near" : "far", more);
    fflush(stdout);
}

static void pairs(const char *mode, const int *numbers, int count) {
    int others[2] = {wants_near ? near : 0, wants_far ? far : 0};
    for (int where = 0; where < 2; where++) {
        int other = others[where];
        for (int at = 0; other > 0 && at < count; at++) {
            struct order order = {.what = PING_PONG, .bytes = numbers[at]};
            char text[200];
            if (strcmp(mode, "overlap") == 0) {
                if (at == 0) continue;
                order = (struct order){.what = EXCHANGE, .bytes = numbers[0], .us = numbers[at]};
                double total = measured(other, order);
                order.what = COMPUTE;
                double alone = measured(other, order);
                snprintf(text, sizeof text, "bytes=%d asked=%d compute_us=%.3f us=%.3f", numbers[0],
                         numbers[at], alone, total);
            } else if (strcmp(mode, "bandwidth") == 0) {
                order.what = STREAM;
                double us = measured(other, order);
                snprintf(text, sizeof text, "bytes=%d mb_per_s=%.2f", order.bytes,
                         (double)WINDOW * order.bytes / us);
            } else {
                timed(other, (struct order){PING_PONG, order.bytes, 3, 1});
                double us = measured(other, order) / 2;
                snprintf(text, sizeof text, "bytes=%d us=%.4f", order.bytes, us);
            }
            say(mode, other, text);
        }
    }
}

// Bursts from near and far in turn. Root receives no other messages meanwhile, because the polling
// policies count messages.
static void discovery(int count) {
    int times = 2000 / count < 20 ? 20 : 2000 / count;
    double us[2000];
    for (int number = 0; number < times; number++) {
        for (int where = 0; where < 2; where++) {
            int other = where ? far : near;
            tell(other, (struct order){.what = BURST, .count = count});
            answer_burst(other, number, count);
        }
    }
    for (int where = 0; where < 2; where++) {
        int other = where ? far : near;
        char text[100];
        tell(other, (struct order){.what = TIMES});
        MPI_Recv(us, times, MPI_DOUBLE, other, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        snprintf(text, sizeof text, "burst=%d us=%.4f", count, lowest(us, times, 4));
        say("discovery", other, text);
    }
}

static void cost(int peers) {
    while (fars < peers && asked < ranks) ask(peers - fars);
    if (fars != peers) return;
    enum { TESTS = 4000 };
    double us[SETS];
    int value, flag;
    MPI_Request request;
    MPI_Irecv(&value, 4, MPI_BYTE, 1, NEVER, MPI_COMM_WORLD, &request);
    for (int set = 0; set < SETS; set++) {
        double start = MPI_Wtime();
        for (int i = 0; i < TESTS; i++) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        us[set] = (MPI_Wtime() - start) * 1e6 / TESTS;
        CHECK(!flag, "a message arrived that no rank sent");
    }
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    printf("polling mode=cost peers=%d us=%.4f\n", peers, lowest(us, SETS, SETS + 1));
    fflush(stdout);
}

static void lead(int argc, char **argv) {
    int length;
    MPI_Get_processor_name(host, &length);
    for (int at = 1; at < argc;) {
        const char *mode = argv[at++];
        int numbers[64], count = 0;
        for (; at < argc && argv[at][0] >= '0' && argv[at][0] <= '9'; at++) {
            CHECK(count < 64, "more than 64 numbers");
            numbers[count] = atoi(argv[at]);
            CHECK(numbers[count] >= (mode[0] != 'c') && numbers[count] <= MOST, "%s %s", mode,
                  argv[at]);
            count++;
        }
        if (strcmp(mode, "near") == 0 || strcmp(mode, "far") == 0 || strcmp(mode, "both") == 0) {
            wants_near = mode[0] != 'f';
            wants_far = mode[0] != 'n';
            continue;
        }
        if (strcmp(mode, "looks") == 0) continue;
        if (strcmp(mode, "cost") == 0) {
            for (int i = 0; i < count; i++) cost(numbers[i]);
            continue;
        }
        while ((near < 0 || far < 0) && asked < ranks) ask(1);
        CHECK(near > 0, "no other rank is on the host of rank 0, %s", host);
        CHECK(far > 0, "all ranks are on one host, %s", host);
        if (strcmp(mode, "overlap") == 0) calibrate();
        if (strcmp(mode, "discovery") == 0) {
            for (int i = 0; i < count; i++) discovery(numbers[i]);
        } else {
            CHECK(!strcmp(mode, "latency") || !strcmp(mode, "bandwidth") ||
                      !strcmp(mode, "overlap"),
                  "there is no mode %s", mode);
            pairs(mode, numbers, count);
        }
    }
    ask(ranks);
    tell_all(1, ranks, (struct order){.what = END});
}

int main(int argc, char **argv) {
    app_start("polling", &argc, &argv, MPI_THREAD_SINGLE);
    out = allocate((size_t)MOST * WINDOW);
    in = allocate((size_t)MOST * WINDOW);
    if (rank == 0) lead(argc, argv);
    else serve(argc > 2 && strcmp(argv[1], "looks") == 0 ? atoi(argv[2]) : 1);
    free(out);
    free(in);
    app_end("near=%d far=%d", nears, fars);
}
