// SPDX-License-Identifier: BSD-2-Clause
// A benchmark: nanoseconds per call of a short message from an endpoint to itself, so that one core
// does all the work and no cache line moves. Prints the best of many rounds. With FI_TCAM_REPORT
// set, the counting for a report is included. Then prints the time of fi_cancel with 1 to 100,000
// posted receives.
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

// Cancels receives from the middle of the posted ones, and posts the same number again.
static void cancel_among(int receives) {
    enum { CANCELS = 100, MOST = 100000 };
    static char of[MOST];
    int batch = receives < CANCELS ? receives : CANCELS;
    double cancel = 1, post = 1;
    for (int i = 0; i < receives; i++)
        OK(fi_trecv(side.ep, buffer, sizeof buffer, NULL, side.self, (uint64_t)i, 0, &of[i]));
    for (int round = 0; round < 20; round++) {
        struct fi_cq_err_entry error = {0};
        int first = (receives - batch) / 2;
        double start = seconds(), time;
        for (int i = first; i < first + batch; i++) OK(fi_cancel(&side.ep->fid, &of[i]));
        if ((time = (seconds() - start) / batch) < cancel) cancel = time;
        for (int i = 0; i < batch; i++) CHECK(fi_cq_readerr(side.cq, &error, 0) == 1, "no error");
        start = seconds();
        for (int i = first; i < first + batch; i++)
            OK(fi_trecv(side.ep, buffer, sizeof buffer, NULL, side.self, (uint64_t)i, 0, &of[i]));
        if ((time = (seconds() - start) / batch) < post) post = time;
    }
    printf("%d posted: fi_cancel %.0f ns, then fi_trecv %.0f ns\n", receives, cancel * 1e9, post * 1e9);
    for (int i = 0; i < receives; i++) {
        struct fi_cq_err_entry error = {0};
        OK(fi_cancel(&side.ep->fid, &of[i]));
        CHECK(fi_cq_readerr(side.cq, &error, 0) == 1, "no error");
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
    for (int receives = 1; receives <= 100000; receives *= 10) cancel_among(receives);
    close_side(&side);
    close_domain();
    return 0;
}
