// SPDX-License-Identifier: BSD-2-Clause
// Tests two users on one host. The endpoints of a user are visible only to this user.
//     users serve        prints its address and waits until its input ends
//     users call NAME    its sends to NAME are refused, and a message to itself arrives
#include "fabric.h"
#include <unistd.h>

static struct side mine;

int main(int argc, char **argv) {
    unsigned char name[64];
    size_t len = sizeof name;
    CHECK(argc > 1, "serve or call");
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_side(&mine, 0, 4);
    OK(fi_getname(&mine.ep->fid, name, &len));
    if (!strcmp(argv[1], "serve")) {
        for (size_t i = 0; i < len; i++) printf("%02x", name[i]);
        puts("");
        fflush(stdout);
        while (read(0, name, 1) > 0) {}
    } else {
        fi_addr_t peer, self = insert(&mine, mine.ep);
        for (size_t i = 0; i < len; i++) sscanf(argv[2] + 2 * i, "%2hhx", &name[i]);
        CHECK(fi_av_insert(mine.av, name, 1, &peer, 0, NULL) == 1, "insert");
        FAILS(FI_ECONNREFUSED, fi_tinject(mine.ep, "hello", 5, peer, 1));
        FAILS(FI_ECONNREFUSED, fi_tsend(mine.ep, "hello", 5, NULL, peer, 1, NULL));
        uint64_t value = 0, sent = 42;
        OK(fi_trecv(mine.ep, &value, 8, NULL, self, 1, 0, &value));
        OK(fi_tinject(mine.ep, &sent, 8, self, 1));
        next_ok(&mine, NULL, &value);
        CHECK(value == sent, "%lu", value);
    }
    close_side(&mine);
    close_domain();
}
