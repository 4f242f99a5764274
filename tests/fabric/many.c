// SPDX-License-Identifier: BSD-2-Clause
// Tests a server that outlives its clients.
//     many one-by-one N     N clients, one after the other; the server does not grow
//     many at-once N        N clients together, each of which sends a message and gets an answer
#include "card.h"
#include <sys/prctl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE)
#define PROCESSES 6

// The message of a client: its name, and a number that the server returns.
struct hello {
    char name[16];
    uint64_t number;
};

static long kilobytes(void) {
    char line[128];
    long found = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &found) == 1) break;
    fclose(status);
    return found;
}

// Returns the number of 512-byte blocks that this process's segment occupies.
static long blocks(void) {
    char path[300];
    struct stat segment;
    CHECK(segments_of(&card, path) == 1 && stat(path, &segment) == 0, "no segment");
    return (long)segment.st_blocks;
}

static int files_at(const char *pattern) {
    glob_t found;
    if (glob(pattern, 0, NULL, &found)) return 0;
    int count = (int)found.gl_pathc;
    globfree(&found);
    return count;
}

static void serve(int out, uint64_t clients, int says) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct hello hello;
    struct fi_cq_tagged_entry entry;
    long before = 0, reserved = 0;
    open_card(CAPS, NULL, 0);
    tell(out, &card);
    for (uint64_t served = 1; served <= clients; served++) {
        OK(fi_trecv(mine.ep, &hello, sizeof hello, NULL, FI_ADDR_UNSPEC, 1, 0, &hello));
        ssize_t count;
        while ((count = fi_cq_read(mine.cq, &entry, 1)) == -FI_EAGAIN) {}
        CHECK(count == 1, "client %lu: %zd", served, count);
        fi_addr_t to;
        CHECK(fi_av_insert(mine.av, hello.name, 1, &to, 0, NULL) == 1, "insert");
        ssize_t sent;
        while ((sent = fi_tinject(mine.ep, &hello.number, 8, to, 2)) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
        CHECK(sent == 0, "answer to %lu: %zd", hello.number, sent);
        OK(fi_av_remove(mine.av, &to, 1, 0));
        // During the first half of the clients the server learns the ports of the host.
        if (served == clients / 2) before = kilobytes(), reserved = blocks();
    }
    if (says) {
        long after = kilobytes();
        printf("many: %ld KiB after half of the clients, %ld after all; %d descriptors\n", before,
               after, files_at("/proc/self/fd/*"));
        // Each client had a number in the segment. If numbers were not reused, their list would need
        // more pages.
        CHECK(blocks() <= reserved, "%ld blocks before, %ld after", reserved, blocks());
        // The allocator may take up to 512 KiB more. A client of the second half may add 64 bytes,
        // because its port may be new. AddressSanitizer keeps freed memory.
        CHECK(getenv("SANITIZED") || after < before + 512 + (long)clients / 32, "%ld KiB before, %ld after", before, after);
    }
    close_card();
    exit(0);
}

static void send_hello(struct side *side, fi_addr_t to, uint64_t number) {
    struct hello hello = {.number = number};
    size_t len = sizeof hello.name;
    ssize_t sent;
    OK(fi_getname(&side->ep->fid, hello.name, &len));
    while ((sent = fi_tinject(side->ep, &hello, sizeof hello, to, 1)) == -FI_EAGAIN) fi_cq_read(side->cq, NULL, 0);
    CHECK(sent == 0, "client %lu: %zd (%s)", number, sent, fi_strerror((int)-sent));
}

static fi_addr_t find(struct side *side, const struct card *of) {
    fi_addr_t to;
    CHECK(fi_av_insert(side->av, of->name, 1, &to, 0, NULL) == 1, "insert");
    return to;
}

static void one_by_one(const struct card *of, uint64_t clients) {
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    for (uint64_t number = 1; number <= clients; number++) {
        struct side side;
        uint64_t answer = 0;
        open_side(&side, 0, 4);
        fi_addr_t to = find(&side, of);
        OK(fi_trecv(side.ep, &answer, 8, NULL, to, 2, 0, &answer));
        send_hello(&side, to, number);
        next_ok(&side, NULL, &answer);
        CHECK(answer == number, "client %lu got %lu", number, answer);
        close_side(&side);
        // No process leaves files behind.
        if (number % 1000 == 0) CHECK(files_at(segments("*")) < 100, "segments stay");
    }
    close_domain();
}

static void at_once(const struct card *of, uint64_t first, uint64_t clients, int in, int out) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct side *sides = calloc(clients, sizeof *sides);
    uint64_t *answers = calloc(clients, 8);
    char go;
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    for (uint64_t i = 0; i < clients; i++) open_side(&sides[i], 0, 4);
    CHECK(write(out, "", 1) == 1 && read(in, &go, 1) == 1, "barrier");
    for (uint64_t i = 0; i < clients; i++) {
        fi_addr_t to = find(&sides[i], of);
        OK(fi_trecv(sides[i].ep, &answers[i], 8, NULL, to, 2, 0, &answers[i]));
        send_hello(&sides[i], to, first + i);
    }
    for (uint64_t i = 0; i < clients; i++) {
        double end = seconds() + within(40);
        struct fi_cq_tagged_entry entry;
        ssize_t count;
        while ((count = fi_cq_read(sides[i].cq, &entry, 1)) == -FI_EAGAIN)
            CHECK(seconds() < end, "client %lu is not answered", first + i);
        CHECK(count == 1 && answers[i] == first + i, "client %lu: %zd, %lu", first + i, count, answers[i]);
    }
    CHECK(write(out, "", 1) == 1 && read(in, &go, 1) == 1, "barrier");
    for (uint64_t i = 0; i < clients; i++) close_side(&sides[i]);
    close_domain();
    exit(0);
}

int main(int argc, char **argv) {
    CHECK(argc > 2, "one-by-one N or at-once N");
    uint64_t clients = strtoull(argv[2], NULL, 10);
    int from[2], to[PROCESSES][2], back[2];
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
    CHECK(pipe(from) == 0 && pipe(back) == 0, "pipe");
    int alone = !strcmp(argv[1], "one-by-one");
    pid_t server = fork();
    if (!server) serve(from[1], clients, alone);
    struct card of = hear(from[0]);
    int status;
    if (alone) {
        one_by_one(&of, clients);
    } else {
        uint64_t each = clients / PROCESSES;
        char byte;
        for (int i = 0; i < PROCESSES; i++) {
            CHECK(pipe(to[i]) == 0, "pipe");
            uint64_t first = each * (uint64_t)i, count = i == PROCESSES - 1 ? clients - first : each;
            if (!fork()) at_once(&of, first, count, to[i][0], back[1]);
        }
        for (int barrier = 0; barrier < 2; barrier++) {
            for (int i = 0; i < PROCESSES; i++) CHECK(read(back[0], &byte, 1) == 1, "read");
            for (int i = 0; i < PROCESSES; i++) CHECK(write(to[i][1], "", 1) == 1, "write");
        }
        for (int i = 0; i < PROCESSES; i++) {
            pid_t pid = wait(&status);
            if (pid == server) pid = wait(&status), server = 0;
            CHECK(status == 0, "clients: %d", status);
        }
    }
    if (server) CHECK(waitpid(server, &status, 0) == server && status == 0, "server: %d", status);
    printf("many: ok\n");
}
