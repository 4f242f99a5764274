// SPDX-License-Identifier: BSD-2-Clause
// The demo application: the communication of a fire simulation (FDS), where
// every rank owns meshes and rank 0 collects. Each step:
//   1. rank 0 posts a receive for the boundary data of every active mesh;
//   2. each of the other ranks sends its device readings (for which rank 0 has
//      posted nothing: they are unexpected) and then its boundary data;
//   3. rank 0 computes meanwhile, then waits for all boundary data and receives
//      the device readings mesh by mesh;
//   4. a gatherv collects one profile per rank, and rank 0 broadcasts the time.
// The fire spreads: the number of active meshes grows from step to step, so the
// queues of rank 0 are short at first and long at the end. All data is verified.
#include "check.h"
#include <getopt.h>

static struct {
    int steps, meshes, bytes, grid;
} option = {8, 64, 256, 200};

static const char usage[] =
    "usage: fds_gather [--steps N] [--meshes N] [--bytes N] [--grid N]\n"
    "Ranks send to rank 0 as in a fire simulation; run it with at least 2 ranks.\n"
    "  --steps N   time steps (default 8)\n"
    "  --meshes N  meshes of a rank, all active in the last step (default 64):\n"
    "              each sends one expected and one unexpected message a step\n"
    "  --bytes N   bytes of a message (default 256)\n"
    "  --grid N    side of the grid rank 0 computes on meanwhile (default 200)\n"
    "Queues of rank 0 reach about (ranks - 1) x meshes elements.\n";

enum { BOUNDARY = 1000, DEVICE = 5000 };

// Returns the number of meshes of a rank that are active in a step: the fire spreads from rank 1
// on, unevenly, and reaches every mesh in the last step.
static int active(int of, int step) {
    int reached = (step + 1) * option.meshes / option.steps;
    int uneven = step + 1 < option.steps ? of * 3 % 7 : 0;
    return reached > uneven ? reached - uneven : 1;
}

static uint64_t seed_of(int of, int mesh, int step, int kind) {
    return mix((uint64_t)of << 20 | (uint64_t)mesh, (uint64_t)step, (uint64_t)kind);
}

// Computes heat conduction on a plate. This is the work of rank 0 while the others send.
static double compute(double *plate, double *next, int side) {
    double change = 0;
    for (int sweep = 0; sweep < 4; sweep++) {
        for (int y = 1; y + 1 < side; y++)
            for (int x = 1; x + 1 < side; x++) {
                int at = y * side + x;
                next[at] = 0.25 * (plate[at - 1] + plate[at + 1] + plate[at - side] +
                                   plate[at + side]);
                change += next[at] > plate[at] ? next[at] - plate[at] : plate[at] - next[at];
            }
        memcpy(plate + side, next + side, (size_t)(side - 2) * side * sizeof *plate);
    }
    return change;
}

// Runs the step of a sender. Device readings are sent first, so that they are in rank 0's
// unexpected queue when it receives the boundary data. Each rank sends its meshes in its own order.
static void send_step(int step, char *out) {
    int meshes = active(rank, step);
    MPI_Request *requests = allocate(2 * meshes * sizeof *requests);
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0; i < meshes; i++) {
            int mesh = (meshes - 1 - i + rank) % meshes, tag = (kind ? BOUNDARY : DEVICE) + mesh;
            char *slot = out + (size_t)(kind * option.meshes + mesh) * option.bytes;
            fill(slot, option.bytes, seed_of(rank, mesh, step, kind));
            MPI_Isend(slot, option.bytes, MPI_BYTE, 0, tag, MPI_COMM_WORLD,
                      &requests[kind * meshes + i]);
        }
    MPI_Waitall(2 * meshes, requests, MPI_STATUSES_IGNORE);
    free(requests);
}

// Runs the step of rank 0. Returns the number of received messages.
static long collect_step(int step, char *in, double *plate) {
    MPI_Request *requests = allocate((size_t)ranks * option.meshes * sizeof *requests);
    MPI_Status status;
    size_t bytes = option.bytes;
    int posted = 0;
    long taken = 0;
    for (int mesh = 0; mesh < option.meshes; mesh++)
        for (int from = 1; from < ranks; from++)
            if (mesh < active(from, step)) {
                MPI_Irecv(in + posted * bytes, option.bytes, MPI_BYTE, from, BOUNDARY + mesh,
                          MPI_COMM_WORLD, &requests[posted]);
                posted++;
            }
    MPI_Barrier(MPI_COMM_WORLD);
    compute(plate, plate + (size_t)option.grid * option.grid, option.grid);

    MPI_Waitall(posted, requests, MPI_STATUSES_IGNORE);
    for (int mesh = 0; mesh < option.meshes; mesh++)
        for (int from = 1; from < ranks; from++)
            if (mesh < active(from, step)) {
                verify(in + taken * bytes, bytes, seed_of(from, mesh, step, 1), "boundary");
                taken++;
            }

    // Device readings mesh by mesh; for every fourth mesh from any source.
    for (int mesh = 0; mesh < option.meshes; mesh++)
        for (int from = 1; from < ranks; from++)
            if (mesh < active(from, step)) {
                int source = mesh % 4 == 3 ? MPI_ANY_SOURCE : from;
                MPI_Recv(in, option.bytes, MPI_BYTE, source, DEVICE + mesh, MPI_COMM_WORLD,
                         &status);
                verify(in, bytes, seed_of(status.MPI_SOURCE, mesh, step, 0), "device");
                taken++;
            }
    free(requests);
    return taken;
}

// Gathers one profile per rank, each of a different length.
static long gather_profiles(int step) {
    int *counts = allocate(2 * ranks * sizeof *counts), *offsets = counts + ranks, total = 0;
    for (int from = 0; from < ranks; from++) {
        counts[from] = 8 * active(from, step);
        offsets[from] = total;
        total += counts[from];
    }
    char *mine = allocate(counts[rank]), *profiles = allocate(total);
    fill(mine, counts[rank], seed_of(rank, 0, step, 2));
    MPI_Gatherv(mine, counts[rank], MPI_BYTE, profiles, counts, offsets, MPI_BYTE, 0,
                MPI_COMM_WORLD);
    for (int from = 0; rank == 0 && from < ranks; from++)
        verify(profiles + offsets[from], counts[from], seed_of(from, 0, step, 2), "profile");
    free(counts);
    free(mine);
    free(profiles);
    return ranks - 1;
}

static int number(const char *text, int low, int high, const char *name) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text && !*end && value >= low && value <= high) return (int)value;
    fprintf(stderr, "fds_gather: --%s %s: a number from %d to %d is needed\n%s", name, text, low,
            high, usage);
    exit(2);
}

static void read_options(int argc, char **argv) {
    static const struct option names[] = {{"steps", 1, NULL, 's'},
                                          {"meshes", 1, NULL, 'm'},
                                          {"bytes", 1, NULL, 'b'},
                                          {"grid", 1, NULL, 'g'},
                                          {"help", 0, NULL, 'h'},
                                          {0}};
    for (int key; (key = getopt_long(argc, argv, "h", names, NULL)) != -1;) switch (key) {
        case 's': option.steps = number(optarg, 1, 100000, "steps"); break;
        case 'm': option.meshes = number(optarg, 1, 4000, "meshes"); break;
        case 'b': option.bytes = number(optarg, 1, 1 << 24, "bytes"); break;
        case 'g': option.grid = number(optarg, 3, 20000, "grid"); break;
        case 'h': fputs(usage, stdout); exit(0);
        default: fputs(usage, stderr); exit(2);
        }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    app_start("fds_gather", &argc, &argv, MPI_THREAD_SINGLE);
    size_t area = (size_t)option.grid * option.grid;
    char *buffer = allocate((size_t)option.bytes * option.meshes * (rank ? 2 : ranks));
    double *plate = allocate(2 * area * sizeof *plate), start = MPI_Wtime(), now = 0;
    long messages = 0;
    int most = 0;
    for (size_t x = 0; x < area; x++) plate[x] = x < (size_t)option.grid ? 1000 : 20;
    for (int step = 0; step < option.steps; step++) {
        if (rank == 0) {
            int taken = (int)collect_step(step, buffer, plate);
            if (taken / 2 > most) most = taken / 2;
            messages += taken;
            now = (step + 1) * 0.5;
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
            send_step(step, buffer);
        }
        messages += gather_profiles(step);
        MPI_Bcast(&now, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
        CHECK(now == (step + 1) * 0.5, "time %g in step %d", now, step);
    }
    double elapsed = MPI_Wtime() - start;
    free(buffer);
    free(plate);
    app_end("steps=%d messages=%ld bytes=%d most_posted=%d seconds=%.2f", option.steps, messages,
            option.bytes, most, elapsed);
}
