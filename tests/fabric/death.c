// SPDX-License-Identifier: BSD-2-Clause
// A peer that is killed: what waits for it completes in error within seconds,
// others go on, and nothing of it stays in /dev/shm.
#include "fabric.h"
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static struct side mine;
static char name[64], large[1 << 20];

static int leftovers(int port) {
    char suffix[16];
    int found = 0;
    snprintf(suffix, sizeof suffix, ".%d", port);
    DIR *shm = opendir("/dev/shm");
    for (struct dirent *entry; shm && (entry = readdir(shm));)
        found += !strncmp(entry->d_name, "tcam.", 5) && strlen(entry->d_name) > strlen(suffix) &&
                 !strcmp(entry->d_name + strlen(entry->d_name) - strlen(suffix), suffix);
    closedir(shm);
    return found;
}

// The peer opens an endpoint, tells its name, sends two messages and waits to be killed.
static void victim(int in, int out) {
    struct side side;
    fi_addr_t to;
    char own[64];
    size_t len = sizeof own;
    CHECK(read(in, name, 16) == 16, "read");
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 4);
    OK(fi_getname(&side.ep->fid, own, &len));
    CHECK(fi_av_insert(side.av, name, 1, &to, 0, NULL) == 1, "insert");
    CHECK(write(out, own, 16) == 16, "write");
    OK(fi_tinject(side.ep, "hello", 5, to, 1));
    OK(fi_tsend(side.ep, large, sizeof large, NULL, to, 2, NULL));
    for (;;) fi_cq_read(side.cq, NULL, 0);
}

int main(void) {
    int to_victim[2], from_victim[2];
    char victims[16], hello[5];
    size_t len = sizeof name;
    CHECK(pipe(to_victim) == 0 && pipe(from_victim) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) victim(to_victim[0], from_victim[1]);

    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_side(&mine, 0, 4);
    OK(fi_getname(&mine.ep->fid, name, &len));
    CHECK(write(to_victim[1], name, 16) == 16, "write");
    CHECK(read(from_victim[0], victims, 16) == 16, "read");
    fi_addr_t peer;
    CHECK(fi_av_insert(mine.av, victims, 1, &peer, 0, NULL) == 1, "insert");
    fi_addr_t self = insert(&mine, mine.ep);
    int port = ((unsigned char)victims[2] << 8) | (unsigned char)victims[3];

    OK(fi_trecv(mine.ep, hello, 5, NULL, peer, 1, 0, hello));
    next_ok(&mine, NULL, hello);
    // What waits for the peer: a directed receive, and a long send it will not take.
    OK(fi_trecv(mine.ep, hello, 5, NULL, peer, 7, 0, hello));
    OK(fi_tsend(mine.ep, large, sizeof large, NULL, peer, 8, large));
    CHECK(leftovers(port) == 1, "the peer has no segment");
    CHECK(kill(pid, SIGKILL) == 0, "kill");

    double start = seconds();
    for (int i = 0; i < 2; i++) {
        struct fi_cq_err_entry failure = next_error(&mine, NULL, ECONNABORTED);
        CHECK(failure.op_context == hello || failure.op_context == large, "context");
    }
    CHECK(seconds() - start < 5, "%.1f s", seconds() - start);
    CHECK(leftovers(port) == 0, "the dead left a segment");

    // Others go on; the dead is refused.
    OK(fi_trecv(mine.ep, hello, 5, NULL, self, 9, 0, hello));
    OK(fi_tinject(mine.ep, "again", 5, self, 9));
    next_ok(&mine, NULL, hello);
    FAILS(ECONNREFUSED, fi_tinject(mine.ep, "again", 5, peer, 9));
    close_side(&mine);
    close_domain();
    waitpid(pid, NULL, 0);
    puts("death: ok");
}
