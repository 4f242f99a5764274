// SPDX-License-Identifier: BSD-2-Clause
// A process of the same user writes random bytes into the segment of a live endpoint, while
// messages, reads, writes and atomic operations use it. There may be errors and lost messages, but
// no crash and no hanging call, and other endpoints continue.
//     scribble [SEED [all | header | peers | states | slots | buffers]]
#include "card.h"
#include <fcntl.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LONG (256u << 10)
#define SECONDS 0.7
#define AREAS 11
#define CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_DIRECTED_RECV | FI_SOURCE)

static char region[LONG], buffers[32][LONG];
// Starts an operation of any kind and ignores its result, which is arbitrary.
static void anything(fi_addr_t to, const struct card *at) {
    char *bytes = buffers[rand() % 32];
    size_t len = rand() % 3 == 0 ? LONG : (size_t)(rand() % 9000);
    switch (rand() % 9) {
    case 0: fi_tsend(mine.ep, bytes, len, NULL, to, 1, bytes); break;
    case 1: fi_send(mine.ep, bytes, len, NULL, to, bytes); break;
    case 2: fi_trecv(mine.ep, bytes, LONG, NULL, FI_ADDR_UNSPEC, 1, 0, bytes); break;
    case 3: fi_recv(mine.ep, bytes, LONG, NULL, FI_ADDR_UNSPEC, bytes); break;
    case 4: fi_write(mine.ep, bytes, len, NULL, to, at->base, at->key, bytes); break;
    case 5: fi_read(mine.ep, bytes, len, NULL, to, at->base, at->key, bytes); break;
    case 6: fi_atomic(mine.ep, bytes, 8, NULL, to, at->base, at->key, FI_UINT64, FI_SUM, bytes); break;
    case 7: fi_fetch_atomic(mine.ep, bytes, 512, NULL, bytes + 8192, NULL, to, at->base, at->key, FI_UINT64, FI_SUM, bytes); break;
    default: fi_tinject(mine.ep, bytes, (size_t)(rand() % 200), to, 1);
    }
}

static void poll_once(void) {
    struct fi_cq_tagged_entry entry[8];
    struct fi_cq_err_entry error = {0};
    if (fi_cq_read(mine.cq, entry, 8) == -FI_EAVAIL) fi_cq_readerr(mine.cq, &error, 0);
}

static void run_peer(int in, int out, unsigned seed) {
    srand(seed);
    open_card(CAPS, region, sizeof region);
    tell(out, &card);
    struct card other = hear(in);
    fi_addr_t to = enter(&other);
    for (double start = seconds(); seconds() - start < SECONDS;) {
        anything(to, &other);
        poll_once();
    }
    CHECK(write(out, "k", 1) == 1, "write");
    // No orderly close: operations with the other process may be incomplete.
    _exit(0);
}

// Maps the segment of the endpoint with this card, as any process of the user can.
static unsigned char *map_of(const struct card *of, size_t *len) {
    char path[300];
    struct stat stat;
    CHECK(segments_of(of, path) == 1, "no segment");
    int fd = open(path, O_RDWR);
    CHECK(fd >= 0 && fstat(fd, &stat) == 0, "%s", path);
    *len = (size_t)stat.st_size;
    unsigned char *map = mmap(NULL, *len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED, "mmap");
    close(fd);
    return map;
}

// Parts of a segment (channel/src/shm/segment.rs), as ranges of areas: the header has seven areas,
// each other part has one. The part `peers` is the page of the list of senders that is reserved.
static const struct {
    const char *name;
    int first, count;
} parts[] = {{"all", 0, AREAS}, {"header", 0, 7}, {"states", 7, 1}, {"slots", 8, 1}, {"buffers", 9, 1}, {"peers", 10, 1}};

static void scribble(unsigned char *map, size_t len, int part) {
    static const size_t starts[] = {0, 64, 256, 384, 512, 640, 768, 4096, 8 << 10, 264 << 10, 1288 << 10, 1292 << 10};
    int area = parts[part].first + rand() % parts[part].count;
    size_t from = starts[area], span = starts[area + 1] - from;
    size_t at = from + (size_t)(rand() % (int)span);
    if (at >= len) return;
    switch (rand() % 4) {
    case 0: map[at] = (unsigned char)rand(); break;
    case 1: map[at] ^= (unsigned char)(1 << rand() % 8); break;
    case 2: *(uint64_t *)(map + (at & ~7ul)) += (uint64_t)(rand() % 3) - 1; break;
    default: *(uint64_t *)(map + (at & ~7ul)) = rand() % 2 ? ~0ull : (uint64_t)rand();
    }
}

int main(int argc, char **argv) {
    unsigned seed = (unsigned)(argc > 1 ? atoi(argv[1]) : 1);
    int to[2], from[2], status, part = 0;
    for (int i = 0; argc > 2 && i < 6; i++)
        if (!strcmp(argv[2], parts[i].name)) part = i;
    char done = 0;
    pid_t peers[2];
    struct card cards[2];
    int back[2], there[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pipe(to) == 0 && pipe(from) == 0, "pipe");
        peers[i] = fork();
        if (!peers[i]) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm((unsigned)within(30));
            run_peer(to[0], from[1], seed + (unsigned)i);
        }
        back[i] = from[0], there[i] = to[1];
        cards[i] = hear(from[0]);
    }
    size_t len;
    unsigned char *map = map_of(&cards[0], &len), *copy = malloc(4096);
    memcpy(copy, map, 4096);
    for (int i = 0; i < 2; i++) tell(there[i], &cards[!i]);
    srand(seed + 99);
    fcntl(back[0], F_SETFL, O_NONBLOCK);
    double start = seconds();
    for (unsigned long count = 0; read(back[0], &done, 1) != 1; count++) {
        scribble(map, len, part);
        // Restores the identity of the endpoint. Otherwise peers would consider the endpoint dead, but
        // this test is about live endpoints.
        memcpy(map, copy, 24);
        memcpy(map + 64, copy + 64, 16);
        memcpy(map + 128, copy + 128, 4);
        if (count % 16 == 0) usleep(50);
        CHECK(seconds() - start < within(20), "a call of the victim hangs");
    }
    for (int i = 0; i < 2; i++) {
        CHECK(waitpid(peers[i], &status, 0) == peers[i], "wait");
        CHECK(WIFEXITED(status) && !WEXITSTATUS(status), "peer %d: status %x", i, status);
    }
    // The next process that opens an endpoint finds and removes the segments.
    open_card(CAPS, region, sizeof region);
    exit(0);
}
