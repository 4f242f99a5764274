// SPDX-License-Identifier: BSD-2-Clause
// Runs the patterns of `tcam workload` with MPI, so that generated and recorded streams can be
// compared: patterns PATTERN [steps [messages]].
//
// A step has phases. In an on-time phase, rank 0 posts every receive before a barrier and the
// others send after it, so its queue of posted receives (PRQ) fills. In a late phase, the others
// send before the barrier and rank 0 receives after it, so its queue of unexpected messages (UMQ)
// fills. In halo every rank receives; allreduce and iallgather are MPI's own. A collective
// operation in which rank 0 gets one message from each of some ranks is a neighbourhood allgather
// on a graph of these ranks. All data is verified.
#include "check.h"

enum { GROUPS = 5, PHASES = 10, WINDOW = 16, VARIABLES = 4, SIDES = 27 };

// A group of messages to rank 0: from `count` ranks beginning with `first`, or from ranks 1, 2, 4
// and so on.
struct group {
    enum { POINT_TO_POINT, COLLECTIVE, DOUBLING } kind;
    int first, count, each, tag;
    MPI_Comm graph;
};

struct phase {
    int late, in_order, groups;
    struct group group[GROUPS];
};

static struct phase phases[PHASES];
static int phase_count, steps = 4, messages = 1024;
static const char *pattern;

static int at_most(int count) {
    int others = ranks - 1;
    return count < 1 ? 1 : count > others ? others : count;
}

static int root_of(int number) {
    int root = 0;
    while ((root + 1) * (root + 1) <= number) root++;
    return root;
}

static int rounds(void) {
    int count = 0;
    while (1 << count < ranks) count++;
    return count;
}

static int source_of(const struct group *group, int number) {
    return group->kind == DOUBLING ? 1 << number : group->first + number;
}

static int sends(const struct group *group, int from) {
    for (int number = 0; number < group->count; number++)
        if (source_of(group, number) == from) return 1;
    return 0;
}

static struct phase *new_phase(int late) {
    CHECK(phase_count < PHASES, "too many phases");
    struct phase *phase = &phases[phase_count++];
    phase->late = late;
    return phase;
}

// Adds a group of messages from `count` ranks beginning with `first`. Each rank sends `each`
// messages, whose tags begin with `tag`.
static void from(struct phase *phase, int kind, int first, int count, int each, int tag) {
    CHECK(phase->groups < GROUPS, "too many groups");
    struct group *group = &phase->group[phase->groups++];
    *group = (struct group){kind, first, count, each, tag, MPI_COMM_NULL};
    if (kind == POINT_TO_POINT) return;
    int *others = allocate(2 * ranks * sizeof *others), *weights = others + ranks;
    int in = 0, root = 0, weight = 1;
    for (int number = 0; rank == 0 && number < count; number++) {
        weights[in] = 1;
        others[in++] = source_of(group, number);
    }
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, in, others, weights, sends(group, rank), &root,
                                   &weight, MPI_INFO_NULL, 0, &group->graph);
    free(others);
}

static int is(const char *name) { return strcmp(pattern, name) == 0; }

static void nbody(struct phase *phase, int part) {
    int partners = at_most(16), strangers = ranks / 4 / part - partners;
    from(phase, COLLECTIVE, 1, at_most(ranks / 16 / part), 1, 0);
    from(phase, POINT_TO_POINT, 1, partners, ranks / 32 / part > 1 ? ranks / 32 / part : 1, 0);
    if (strangers > ranks - 1 - partners) strangers = ranks - 1 - partners;
    if (strangers > 0) from(phase, POINT_TO_POINT, 1 + partners, strangers, 1, 0);
}

// Adds the phases of an exchange with six neighbours, one after the other.
static void swaps(int others) {
    for (int side = 0; side < 6; side++)
        from(new_phase(0), POINT_TO_POINT, 1 + side % others, 1, 1, side);
}

// Fills in the phases that the pattern has in every step; leaves none if the pattern has no phases.
static void plan(void) {
    int all = ranks - 1;
    struct phase *phase;
    if (is("radix")) {
        from(new_phase(0), DOUBLING, 0, rounds(), 1, 0);
        from(new_phase(1), DOUBLING, 0, rounds(), 1, 0);
        from(new_phase(0), POINT_TO_POINT, 1, 1, 1, 0);
    } else if (is("nbody")) {
        nbody(new_phase(0), 1);
        nbody(new_phase(1), 2);
    } else if (is("miniamr")) {
        int size = root_of(2 * ranks);
        for (int late = 0; late < 2; late++) {
            phase = new_phase(late);
            from(phase, COLLECTIVE, 1, at_most(size), 1, 0);
            from(phase, COLLECTIVE, 1, at_most(late ? size / 2 : size), 1, 0);
            from(phase, POINT_TO_POINT, 1, at_most(2), 1, 0);
        }
    } else if (is("fds")) {
        phase = new_phase(0);
        from(phase, COLLECTIVE, 1, all, 1, 0);
        from(phase, COLLECTIVE, 1, all, 1, 0);
        from(phase, COLLECTIVE, 1, at_most(ranks / 2), 1, 0);
        from(phase, POINT_TO_POINT, 1, at_most(ranks / 16), 4, 0);
        from(phase, POINT_TO_POINT, 1, at_most(ranks / 4), 1, 4);
        phase = new_phase(1);
        from(phase, COLLECTIVE, 1, all, 1, 0);
        from(phase, COLLECTIVE, 1, at_most(ranks / 4 * 3), 1, 0);
        from(phase, POINT_TO_POINT, 1, at_most(ranks / 4), 1, 0);
    } else if (is("amg")) {
        from(new_phase(0), POINT_TO_POINT, 1, at_most(543), 1, 0);
        from(new_phase(1), POINT_TO_POINT, 1, at_most(418), 1, 0);
    } else if (is("lammps")) {
        swaps(all);
        from(new_phase(0), POINT_TO_POINT, 1, at_most(root_of(ranks)), 1, 6);
        from(new_phase(1), POINT_TO_POINT, 1, at_most(6), 1, 7);
    } else if (is("minimd")) {
        swaps(all);
        phase = new_phase(1);
        from(phase, POINT_TO_POINT, 1, at_most(6), 1, 6);
        from(phase, POINT_TO_POINT, 1, at_most(5), 1, 7);
    } else if (is("shuffle") || is("burst")) {
        phase = new_phase(0);
        phase->in_order = is("burst");
        from(phase, POINT_TO_POINT, 1, 1, messages, 0);
    }
}

static uint64_t payload(int sender, int group, int tag, int step) {
    return mix((uint64_t)sender << 32 | (uint64_t)tag, (uint64_t)group, (uint64_t)step);
}

// Fills in a permutation of the numbers below `count`, a different one in every step.
static void shuffle(int *order, int count, int step) {
    for (int at = 0; at < count; at++) order[at] = at;
    for (int at = count - 1; at > 0; at--) {
        int other = (int)(mix((uint64_t)at, (uint64_t)step, (uint64_t)rank) % (uint64_t)(at + 1));
        int kept = order[at];
        order[at] = order[other];
        order[other] = kept;
    }
}

// Rank 0 posts the receives of a group. Returns the number of requests.
static int post(const struct group *group, uint64_t *in, MPI_Request *requests) {
    static uint64_t nothing;
    if (group->kind != POINT_TO_POINT) {
        MPI_Ineighbor_allgather(&nothing, 1, MPI_UINT64_T, in, 1, MPI_UINT64_T, group->graph,
                                requests);
        return 1;
    }
    int made = 0;
    for (int round = 0; round < group->each; round++)
        for (int number = 0; number < group->count; number++, made++)
            MPI_Irecv(&in[made], 1, MPI_UINT64_T, source_of(group, number), group->tag + round,
                      MPI_COMM_WORLD, &requests[made]);
    return made;
}

static void verify_group(const struct group *group, int index, const uint64_t *in, int step) {
    int made = 0;
    for (int round = 0; round < group->each; round++)
        for (int number = 0; number < group->count; number++, made++) {
            int sender = source_of(group, number);
            uint64_t expected = payload(sender, index, round, step);
            CHECK(in[made] == expected, "group %d: wrong data from rank %d", index, sender);
        }
}

// A rank other than 0 sends its messages of a group. Returns the number of requests.
static int send(const struct phase *phase, int index, uint64_t *out, MPI_Request *requests,
                int step) {
    const struct group *group = &phase->group[index];
    if (group->kind != POINT_TO_POINT) {
        out[0] = payload(rank, index, 0, step);
        MPI_Ineighbor_allgather(out, 1, MPI_UINT64_T, out + 1, 1, MPI_UINT64_T, group->graph,
                                requests);
        return 1;
    }
    if (!sends(group, rank)) return 0;
    int *order = allocate(group->each * sizeof *order);
    shuffle(order, group->each, step);
    for (int at = 0; at < group->each; at++) {
        int round = phase->in_order ? at : order[at];
        out[at] = payload(rank, index, round, step);
        MPI_Isend(&out[at], 1, MPI_UINT64_T, 0, group->tag + round, MPI_COMM_WORLD, &requests[at]);
    }
    free(order);
    return group->each;
}

static void run_phase(const struct phase *phase, int step) {
    size_t most = 0, at = 0;
    int made = 0;
    for (int index = 0; index < phase->groups; index++)
        most += (size_t)phase->group[index].count * phase->group[index].each;
    uint64_t *data = allocate((most + GROUPS + 1) * sizeof *data);
    MPI_Request *requests = allocate((most + GROUPS) * sizeof *requests);
    if ((rank == 0) == phase->late) MPI_Barrier(MPI_COMM_WORLD);
    for (int index = 0; index < phase->groups; index++) {
        const struct group *group = &phase->group[index];
        if (rank == 0) made += post(group, data + at, requests + made);
        else made += send(phase, index, data + at, requests + made, step);
        at += (size_t)group->count * group->each;
    }
    if ((rank == 0) != phase->late) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Waitall(made, requests, MPI_STATUSES_IGNORE);
    at = 0;
    for (int index = 0; rank == 0 && index < phase->groups; index++) {
        verify_group(&phase->group[index], index, data + at, step);
        at += (size_t)phase->group[index].count * phase->group[index].each;
    }
    free(data);
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

// Calls MPI_Igatherv, which uses no tree in MPICH and Open MPI. Rank 0 calls it before the others
// send.
static void gather(int step, MPI_Comm apart) {
    int *counts = allocate(2 * ranks * sizeof *counts), *offsets = counts + ranks;
    uint64_t mine = payload(rank, 0, 0, step), *in = allocate(ranks * sizeof *in);
    MPI_Request request;
    for (int from = 0; from < ranks; from++) counts[from] = 1, offsets[from] = from;
    if (rank > 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Igatherv(&mine, 1, MPI_UINT64_T, in, counts, offsets, MPI_UINT64_T, 0, apart, &request);
    if (rank == 0) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int from = 0; rank == 0 && from < ranks; from++)
        CHECK(in[from] == payload(from, 0, 0, step), "wrong data from rank %d", from);
    free(counts);
    free(in);
}

static void allreduce(int step) {
    uint64_t mine = (uint64_t)(rank + step), sum, expected = (uint64_t)step * (uint64_t)ranks;
    int found;
    MPI_Barrier(MPI_COMM_WORLD);
    // In every second step rank 0 is late. Its probes make progress meanwhile.
    double until = MPI_Wtime() + (rank == 0 && step % 2 ? 0.2 : 0);
    while (MPI_Wtime() < until)
        MPI_Iprobe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (int from = 0; from < ranks; from++) expected += (uint64_t)from;
    CHECK(sum == expected, "sum %llu", (unsigned long long)sum);
}

static void iallgather(int step) {
    uint64_t mine[WINDOW], *in = allocate((size_t)WINDOW * ranks * sizeof *in);
    MPI_Request requests[WINDOW];
    for (int call = 0; call < WINDOW; call++) {
        mine[call] = payload(rank, call, 0, step);
        MPI_Iallgather(&mine[call], 1, MPI_UINT64_T, in + (size_t)call * ranks, 1, MPI_UINT64_T,
                       MPI_COMM_WORLD, &requests[call]);
    }
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int call = 0; call < WINDOW; call++)
        for (int from = 0; from < ranks; from++)
            CHECK(in[(size_t)call * ranks + from] == payload(from, call, 0, step),
                  "call %d: wrong data from rank %d", call, from);
    free(in);
}

// Returns the rank in a direction (0 to 26) in a periodic box that is as cubic as possible.
static int neighbour(int direction) {
    int sides[3] = {1, 1, 1}, left;
    for (int side = 1; side * side * side <= ranks; side++)
        if (ranks % side == 0) sides[2] = side;
    left = ranks / sides[2];
    for (int side = 1; side * side <= left; side++)
        if (left % side == 0) sides[1] = side;
    sides[0] = left / sides[1];
    int x = (rank % sides[0] + sides[0] + direction % 3 - 1) % sides[0];
    int y = (rank / sides[0] % sides[1] + sides[1] + direction / 3 % 3 - 1) % sides[1];
    int z = (rank / sides[0] / sides[1] + sides[2] + direction / 9 - 1) % sides[2];
    return (z * sides[1] + y) * sides[0] + x;
}

// A message that is received from a direction was sent in the opposite direction.
static void halo(int step) {
    uint64_t in[SIDES * VARIABLES], out[SIDES * VARIABLES];
    MPI_Request requests[2 * SIDES * VARIABLES];
    int made = 0, late = step % 2;
    for (int pass = 0; pass < 2; pass++) {
        for (int at = 0; at < SIDES * VARIABLES; at++) {
            int direction = at / VARIABLES, other = neighbour(direction);
            if (other == rank) continue;
            int back = (SIDES - 1 - direction) * VARIABLES + at % VARIABLES;
            out[at] = payload(rank, 0, back, step);
            if (pass == late)
                MPI_Irecv(&in[at], 1, MPI_UINT64_T, other, at, MPI_COMM_WORLD, &requests[made++]);
            else
                MPI_Isend(&out[at], 1, MPI_UINT64_T, other, back, MPI_COMM_WORLD,
                          &requests[made++]);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Waitall(made, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < SIDES * VARIABLES; at++) {
        int other = neighbour(at / VARIABLES);
        CHECK(other == rank || in[at] == payload(other, 0, at, step), "wrong data from rank %d",
              other);
    }
}

static int number(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    if (*text && !*end && value > 0 && value <= 1000000) return (int)value;
    fprintf(stderr, "patterns: %s: a number from 1 to 1000000 is needed\n", text);
    exit(2);
}

int main(int argc, char **argv) {
    if (argc < 2 || argc > 4) {
        fprintf(stderr, "usage: patterns radix|nbody|miniamr|fds|amg|lammps|minimd|gather|"
                        "allreduce|iallgather|shuffle|burst|halo [steps [messages]]\n");
        return 2;
    }
    pattern = argv[1];
    if (argc > 2) steps = number(argv[2]);
    if (argc > 3) messages = number(argv[3]);
    app_start("patterns", &argc, &argv, MPI_THREAD_SINGLE);
    plan();
    MPI_Comm apart;
    MPI_Comm_dup(MPI_COMM_WORLD, &apart);
    for (int step = 0; step < steps; step++) {
        if (is("gather")) gather(step, apart);
        else if (is("allreduce")) allreduce(step);
        else if (is("iallgather")) iallgather(step);
        else if (is("halo")) halo(step);
        else CHECK(phase_count > 0, "%s is no pattern", pattern);
        for (int at = 0; at < phase_count; at++) run_phase(&phases[at], step);
    }
    for (int at = 0; at < phase_count; at++)
        for (int index = 0; index < phases[at].groups; index++)
            if (phases[at].group[index].graph != MPI_COMM_NULL)
                MPI_Comm_free(&phases[at].group[index].graph);
    MPI_Comm_free(&apart);
    app_end("pattern=%s steps=%d", pattern, steps);
}
