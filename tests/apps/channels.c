// SPDX-License-Identifier: BSD-2-Clause
// Measures a channel between two ranks by message size: latency, bandwidth, and how much of the
// communication a computation hides. Follows sections 4.2 and 4.3 of the paper on polling channels.
// The settings of the provider select the channel: `tcam tune` runs this program once for each.
//
// Arguments: [--ms M] [--compute US]... [SIZE]...
//     SIZE          bytes of a message, 1 to 4 MiB (default: 13 sizes from 8 B to 1 MiB)
//     --ms M        milliseconds per measurement, 1 to 10000 (default 50)
//     --compute US  measure only overlap, beside computations of US microseconds; may be repeated
//
// Prints first
//     channels: hosts=A,B
//     channels: mpi=TEXT
// then a line for each size
//     channels size=N half_round_trip_us=X mb_per_s=Y communication_us=C compute_us=D total_us=T
//         overlap=Z seconds=S                                             (in one line)
// or, with --compute, for each size and computation
//     channels size=N asked_us=US communication_us=C compute_us=D total_us=T overlap=Z seconds=S
// and at last
//     channels: ok ranks=2 sizes=N
//
// Times are those of the slower rank. `communication` is an exchange without computation:
// MPI_Isend, MPI_Irecv, MPI_Waitall on both ranks. `compute` is the computation alone. `total` is
// both: start the exchange, compute, wait for the exchange. A computation calls MPI_Iprobe every
// 100 us, but once from 20 to 200 us. A shorter one makes no call, because the call takes time.
// `overlap` is the share of the communication that the computation hides: (C + D - T) / C, limited
// to 0..1. The paper's Figure 6 plots D / T. Without --compute a computation takes as long as the
// exchange.
#include "compute.h"

enum { WINDOW = 16, LARGEST = 1 << 22, MOST = 64, TAG = 1, ACK = 2, PROBE_US = 100, LEAST_PROBED_US = 20 };

static unsigned char *out, *in;
static double target = 0.05;

// Returns the longer one of the times of both ranks, on both ranks.
static double slower(double time) {
    MPI_Allreduce(MPI_IN_PLACE, &time, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return time;
}

static void compute(double us, int probing) {
    int steps = us < LEAST_PROBED_US ? 1 : us < 2 * PROBE_US ? 2 : (int)(us / PROBE_US + 0.5);
    uint64_t amount = (uint64_t)(us * work_per_us / steps);
    work(amount);
    for (int i = 1; i < steps; i++) {
        int flag;
        if (probing) MPI_Iprobe(!rank, ACK, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        work(amount);
    }
}

// Performs an operation `count` times and returns the seconds per operation.
typedef double operation(int size, double us, int count);

static double ping_pong(int size, double us, int count) {
    (void)us;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        if (rank == 0) {
            stamp(out, size, i);
            MPI_Send(out, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
        }
        MPI_Recv(in, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check_stamp(in, size, i);
        if (rank == 1) {
            stamp(out, size, i);
            MPI_Send(out, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / count;
}

static double window(int size, double us, int count) {
    (void)us;
    MPI_Request requests[WINDOW];
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int w = 0; w < count; w++) {
        for (int i = 0; i < WINDOW; i++) {
            size_t at = (size_t)i * size;
            if (rank == 0) {
                stamp(out + at, size, w + i);
                MPI_Isend(out + at, size, MPI_BYTE, 1, TAG, MPI_COMM_WORLD, &requests[i]);
            } else {
                MPI_Irecv(in + at, size, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, &requests[i]);
            }
        }
        MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(NULL, 0, MPI_BYTE, 1, ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            for (int i = 0; i < WINDOW; i++) check_stamp(in + (size_t)i * size, size, w + i);
            MPI_Send(NULL, 0, MPI_BYTE, 0, ACK, MPI_COMM_WORLD);
        }
    }
    return (MPI_Wtime() - start) / count;
}

static double exchange(int size, double us, int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) {
        MPI_Request requests[2];
        stamp(out, size, i);
        MPI_Isend(out, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(in, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[1]);
        if (us > 0) compute(us, 1);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        check_stamp(in, size, i);
    }
    return (MPI_Wtime() - start) / count;
}

static double computation(int size, double us, int count) {
    (void)size;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < count; i++) compute(us, 0);
    return (MPI_Wtime() - start) / count;
}

// Verifies whole payloads, outside the measured time.
static void verify_exchange(int size, uint64_t seed) {
    size_t all = (size_t)size * WINDOW;
    fill(out, all, mix(seed, size, rank));
    memset(in, 0, all);
    MPI_Request requests[2 * WINDOW];
    for (int i = 0; i < WINDOW; i++) {
        size_t at = (size_t)i * size;
        MPI_Irecv(in + at, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[i]);
        MPI_Isend(out + at, size, MPI_BYTE, !rank, TAG, MPI_COMM_WORLD, &requests[WINDOW + i]);
    }
    MPI_Waitall(2 * WINDOW, requests, MPI_STATUSES_IGNORE);
    verify(in, all, mix(seed, size, !rank), "a window of messages");
}

// Returns microseconds per operation. Two short runs warm up and estimate the count that fills the
// target time of a measurement.
static double measured(operation *operation, int size, double us) {
    double once = slower(operation(size, us, 3));
    once = slower(operation(size, us, 3 + (int)(target / 10 / (once + 1e-7))));
    double wanted = target / (once + 1e-7);
    int count = wanted < 3 ? 3 : wanted > 1e6 ? 1000000 : (int)wanted;
    return slower(operation(size, us, count)) * 1e6;
}

static double within(double low, double high, double value) {
    return value < low ? low : value > high ? high : value;
}

static void put_overlap(int size, double us, double start) {
    double communication = measured(exchange, size, 0);
    double wanted = us > 0 ? us : communication;
    double alone = measured(computation, size, wanted);
    double total = measured(exchange, size, wanted);
    double hidden = (communication + alone - total) / communication;
    if (rank == 0)
        printf(" communication_us=%.3f compute_us=%.3f total_us=%.3f overlap=%.4f seconds=%.3f\n",
               communication, alone, total, within(0, 1, hidden), MPI_Wtime() - start);
    fflush(stdout);
}

static void put_hosts(void) {
    char names[2][MPI_MAX_PROCESSOR_NAME] = {"", ""}, text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_processor_name(names[rank], &length);
    MPI_Bcast(names[1], MPI_MAX_PROCESSOR_NAME, MPI_CHAR, 1, MPI_COMM_WORLD);
    MPI_Get_library_version(text, &length);
    text[strcspn(text, "\n")] = '\0';
    if (rank == 0) printf("channels: hosts=%s,%s\nchannels: mpi=%s\n", names[0], names[1], text);
}

int main(int argc, char **argv) {
    app_start("channels", &argc, &argv, MPI_THREAD_SINGLE);
    if (ranks != 2) {
        if (rank == 0) fprintf(stderr, "channels: 2 ranks are needed, not %d\n", ranks);
        // A launcher may lose the output of a rank if the other ends before MPI_Finalize.
        MPI_Finalize();
        return 1;
    }
    int sizes[MOST] = {8,    64,    256,   1024,   2048,   4096,   8192,
                       16384, 32768, 65536, 131072, 262144, 1048576};
    int given = 0, all = 13, computations = 0, largest = 0;
    double us[MOST];
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--ms") && i + 1 < argc) {
            target = atof(argv[++i]) / 1e3;
            CHECK(target >= 0.001 && target <= 10, "--ms %s", argv[i]);
        } else if (!strcmp(argv[i], "--compute") && i + 1 < argc) {
            CHECK(computations < MOST, "more than %d computations", MOST);
            us[computations] = atof(argv[++i]);
            CHECK(us[computations] > 0 && us[computations] <= 1e6, "--compute %s", argv[i]);
            computations++;
        } else {
            CHECK(given < MOST, "more than %d sizes", MOST);
            sizes[given] = atoi(argv[i]);
            CHECK(sizes[given] >= 1 && sizes[given] <= LARGEST, "size %s", argv[i]);
            all = ++given;
        }
    }
    for (int i = 0; i < all; i++) largest = sizes[i] > largest ? sizes[i] : largest;
    out = allocate((size_t)largest * WINDOW);
    in = allocate((size_t)largest * WINDOW);
    calibrate();
    put_hosts();
    for (int i = 0; i < all; i++) {
        int size = sizes[i];
        verify_exchange(size, 1);
        for (int c = 0; c < computations; c++) {
            double start = MPI_Wtime();
            if (rank == 0) printf("channels size=%d asked_us=%g", size, us[c]);
            put_overlap(size, us[c], start);
        }
        if (computations == 0) {
            double start = MPI_Wtime(), half = measured(ping_pong, size, 0) / 2;
            double rate = (double)WINDOW * size / measured(window, size, 0);
            if (rank == 0)
                printf("channels size=%d half_round_trip_us=%.3f mb_per_s=%.1f", size, half, rate);
            put_overlap(size, 0, start);
        }
        verify_exchange(size, 2);
    }
    free(out);
    free(in);
    app_end("sizes=%d", all);
}
