// SPDX-License-Identifier: BSD-2-Clause
// A benchmark: nanoseconds of each call of a short message, to an endpoint from itself, so
// that one core does all and no cache line travels. Best of many rounds; with FI_TCAM_REPORT
// set, with all that a report counts.
#include "fabric.h"

enum { DEPTH = 256, ROUNDS = 500, BATCH = 8 };
static const uint64_t TAG = 7ull << 32, IGNORE = 1ull << 60;

static struct side side;
static struct fi_context contexts[DEPTH];
static char message[8], buffer[8];

static void post(void) {
    for (int i = 0; i < DEPTH; i++)
        OK(fi_trecv(side.ep, buffer, sizeof buffer, NULL, side.self, TAG, IGNORE, &contexts[i]));
}

static void inject(void) {
    for (int i = 0; i < DEPTH; i++)
        OK(fi_tinject(side.ep, message, sizeof message, side.self, TAG));
}

static void complete(void) {
    struct fi_cq_tagged_entry entries[BATCH];
    for (int done = 0; done < DEPTH;) {
        ssize_t count = fi_cq_read(side.cq, entries, BATCH);
        CHECK(count > 0 || count == -FI_EAGAIN, "%zd", count);
        if (count > 0) done += (int)count;
    }
}

int main(void) {
    void (*const calls[])(void) = {post, inject, complete};
    double best[] = {1, 1, 1};
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    side.self = insert(&side, side.ep);
    for (int round = 0; round < ROUNDS; round++) {
        for (int call = 0; call < 3; call++) {
            double start = seconds();
            calls[call]();
            double time = (seconds() - start) / DEPTH;
            if (time < best[call]) best[call] = time;
        }
    }
    printf("fi_trecv %.1f ns, fi_tinject %.1f ns, matching and fi_cq_read %.1f ns a message\n",
           best[0] * 1e9, best[1] * 1e9, best[2] * 1e9);
    close_side(&side);
    close_domain();
    return 0;
}
