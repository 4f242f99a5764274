// SPDX-License-Identifier: BSD-2-Clause
// Tests a full /dev/shm. Opening an endpoint without room fails, and nothing else breaks. Must run
// with room in /dev/shm for a few segments only.
#include "fabric.h"

#define MOST 64

static struct side sides[MOST];

int main(void) {
    int count = 0, status;
    uint64_t value = 0, sent = 42;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    while (count < MOST && !(status = fi_endpoint(domain, info, &sides[count].ep, NULL))) {
        OK(fi_close(&sides[count].ep->fid));
        open_side(&sides[count++], 0, MOST);
    }
    CHECK(count > 1 && count < MOST, "%d endpoints fit", count);
    CHECK(status == -FI_ENOSPC, "%d", status);
    // The open endpoints work, also with long messages.
    fi_addr_t last = insert(&sides[0], sides[count - 1].ep);
    OK(fi_trecv(sides[count - 1].ep, &value, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &value));
    OK(fi_tinject(sides[0].ep, &sent, 8, last, 1));
    next_ok(&sides[count - 1], &sides[0], &value);
    CHECK(value == sent, "%lu", value);
    static char from[1 << 20] = "long", to[1 << 20];
    OK(fi_trecv(sides[count - 1].ep, to, sizeof to, NULL, FI_ADDR_UNSPEC, 2, 0, to));
    OK(fi_tsend(sides[0].ep, from, sizeof from, NULL, last, 2, from));
    next_ok(&sides[count - 1], &sides[0], to);
    CHECK(!strcmp(to, "long"), "%s", to);
    // The memory of a closed endpoint can be used again after its peers have noticed that it closed.
    close_side(&sides[--count]);
    for (double start = seconds(); (status = fi_endpoint(domain, info, &sides[count].ep, NULL));) {
        CHECK(status == -FI_ENOSPC && seconds() - start < within(5), "%d", status);
        fi_cq_read(sides[0].cq, NULL, 0);
    }
    OK(fi_close(&sides[count].ep->fid));
    open_side(&sides[count++], 0, 2);
    while (count > 0) close_side(&sides[--count]);
    close_domain();
    puts("full: ok");
}
