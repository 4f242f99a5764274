// SPDX-License-Identifier: BSD-2-Clause
// Tests that fi_cancel cancels the oldest receive with a context and no other receive, whatever was
// posted, matched and cancelled before. The time of a cancel must not depend on the number of
// posted receives.
#include "fabric.h"

enum { SLOTS = 64, CONTEXTS = 12, STEPS = 4000, FEW = 500, MANY = 50000 };

static struct side a, b;
static char buffer[SLOTS][8];

// Posted receives, tagged and untagged, oldest first.
static struct receive {
    uint64_t tag;
    int tagged, slot, context;
} posted[SLOTS];
static int count;
static unsigned state = 1;

static unsigned below(unsigned limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % limit;
}

// Returns the context with a number; the null pointer for number 0.
static void *context_of(int number) {
    static struct fi_context contexts[CONTEXTS];
    return number ? &contexts[number] : NULL;
}

static void take(int at) {
    memmove(&posted[at], &posted[at + 1], (size_t)(--count - at) * sizeof *posted);
}

static void post(void) {
    char taken[SLOTS] = {0};
    int slot = 0;
    if (count == SLOTS) return;
    for (int i = 0; i < count; i++) taken[posted[i].slot] = 1;
    while (taken[slot]) slot++;
    struct receive new = {below(3), (int)below(3) > 0, slot, (int)below(CONTEXTS)};
    if (new.tagged)
        OK(fi_trecv(a.ep, buffer[slot], 8, NULL, a.peer, new.tag, 0, context_of(new.context)));
    else
        OK(fi_recv(a.ep, buffer[slot], 8, NULL, a.peer, context_of(new.context)));
    posted[count++] = new;
}

// Cancels a context and checks which receive ends. fi_cancel searches tagged receives first.
static void cancel(int context) {
    int found = -1;
    for (int tagged = 1; tagged >= 0 && found < 0; tagged--)
        for (int i = 0; i < count && found < 0; i++)
            if (posted[i].tagged == tagged && posted[i].context == context) found = i;
    if (found < 0) {
        FAILS(FI_ENOENT, fi_cancel(&a.ep->fid, context_of(context)));
        nothing(&a);
        return;
    }
    OK(fi_cancel(&a.ep->fid, context_of(context)));
    struct fi_cq_err_entry error = next_error(&a, NULL, FI_ECANCELED);
    CHECK(error.op_context == context_of(context), "%p", error.op_context);
    CHECK(error.flags & (posted[found].tagged ? FI_TAGGED : FI_MSG), "%#lx", error.flags);
    take(found);
}

// Sends a message that matches a posted receive, if there is one. The oldest such receive must get it.
static void match(void) {
    static uint64_t message;
    uint64_t tag = below(3);
    int tagged = (int)below(3) > 0, found = -1;
    for (int i = 0; i < count && found < 0; i++)
        if (posted[i].tagged == tagged && (!tagged || posted[i].tag == tag)) found = i;
    if (found < 0) return;
    message++;
    if (tagged) OK(fi_tinject(b.ep, &message, 8, b.peer, tag));
    else OK(fi_inject(b.ep, &message, 8, b.peer));
    struct fi_cq_tagged_entry entry = next_ok(&a, &b, context_of(posted[found].context));
    CHECK(entry.len == 8, "%zu", entry.len);
    CHECK(!memcmp(buffer[posted[found].slot], &message, 8), "not in receive %d", found);
    take(found);
}

static void anything(void) {
    for (int step = 0; step < STEPS; step++) {
        // Phases without cancels, so that the structures for cancels are dropped and rebuilt.
        unsigned what = below(step / 700 % 2 ? 20 : 30);
        if (what < 10) post();
        else if (what < 20) match();
        else cancel((int)below(CONTEXTS));
    }
    for (int context = 0; context < CONTEXTS; context++)
        for (int left = count + 1; left > 0; left--) cancel(context);
    CHECK(count == 0, "%d left", count);
}

// Posts receives and cancels all of them. Returns the seconds per cancel of the oldest and the
// youngest in turn, the best of 20 rounds.
static double time_of(int receives) {
    static char contexts[MANY];
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    double best = 1;
    for (int i = 0; i < receives; i++)
        OK(fi_trecv(a.ep, buffer[0], 8, NULL, a.peer, (uint64_t)i, 0, &contexts[i]));
    for (int round = 0, first = 0, last = receives; round < 20; round++) {
        double start = seconds();
        for (int i = 0; i < 5; i++) {
            OK(fi_cancel(&a.ep->fid, &contexts[first++]));
            OK(fi_cancel(&a.ep->fid, &contexts[--last]));
        }
        double time = (seconds() - start) / 10;
        if (time < best) best = time;
        for (int i = 0; i < 10; i++) next_error(&a, NULL, FI_ECANCELED);
    }
    for (int i = 100; i < receives - 100; i++) {
        OK(fi_cancel(&a.ep->fid, &contexts[i]));
        FAILS(FI_EAVAIL, fi_cq_read(a.cq, &entry, 1));
        memset(&error, 0, sizeof error);
        CHECK(fi_cq_readerr(a.cq, &error, 0) == 1 && error.op_context == &contexts[i], "%d", i);
    }
    nothing(&a);
    return best;
}

int main(void) {
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    FAILS(FI_ENOENT, fi_cancel(&a.ep->fid, NULL));
    anything();
    double few = time_of(FEW), many = time_of(MANY);
    CHECK(many < 20 * few, "%.0f ns with %d posted, %.0f ns with %d", few * 1e9, FEW, many * 1e9, MANY);
    close_side(&a);
    close_side(&b);
    close_domain();
    return 0;
}
