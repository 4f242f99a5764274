// SPDX-License-Identifier: BSD-2-Clause
// Many endpoints on one host that communicate with one endpoint on another (tests/gate/hosts.py):
//
//     crowd DIRECTORY serve MEMBERS   receives from any source, checks each member's order, and answers
//     crowd DIRECTORY join MEMBERS    opens MEMBERS endpoints, which send and wait for answers
//
// Prints `join: N messages`, or `serve: N messages, all met in S s, K KiB each`: the time from the
// first message of the first member to that of the last member, and the memory growth of the
// process per member.
#include "fabric.h"
#include <limits.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 512, ROUNDS = 12, LONGEST = 100000, RECEIVES = 64 };

// The first message of a member contains its name. Each contains the numbers of the member and of the
// message, and bytes that depend on these.
struct message {
    uint32_t member, round, len;
    char name[16];
    unsigned char bytes[LONGEST];
};

static size_t length(unsigned member, unsigned round) {
    static const size_t lengths[] = {0, 64, 3000, 70000, 16, LONGEST};
    return lengths[(member + round) % (sizeof lengths / sizeof *lengths)];
}

static unsigned char byte_of(unsigned member, unsigned round, size_t at) {
    return (unsigned char)(member * 131 + round * 17 + at * 3 + at / 256);
}

static void fill(struct message *message, unsigned member, unsigned round) {
    message->member = member;
    message->round = round;
    message->len = (uint32_t)length(member, round);
    for (size_t at = 0; at < message->len; at++) message->bytes[at] = byte_of(member, round, at);
}

static size_t size_of(const struct message *message) {
    return offsetof(struct message, bytes) + message->len;
}

static void verify(const struct message *message, size_t size, unsigned member, unsigned round) {
    CHECK(message->member == member && message->round == round, "member %u, message %u, not %u/%u",
          message->member, message->round, member, round);
    CHECK(size == offsetof(struct message, bytes) + length(member, round), "%zu bytes", size);
    for (size_t at = 0; at < message->len; at++)
        CHECK(message->bytes[at] == byte_of(member, round, at), "member %u, message %u, byte %zu",
              member, round, at);
}

static void *room(size_t size) {
    void *memory = calloc(1, size);
    CHECK(memory, "%zu bytes", size);
    return memory;
}

static int next(struct fid_cq *cq, struct fi_cq_tagged_entry *entry) {
    struct fi_cq_err_entry failure = {0};
    ssize_t count = fi_cq_read(cq, entry, 1);
    if (count == -FI_EAVAIL) {
        CHECK(fi_cq_readerr(cq, &failure, 0) == 1, "no error entry");
        CHECK(0, "error %d (%s)", failure.err, fi_strerror(failure.err));
    }
    CHECK(count == 1 || count == -FI_EAGAIN, "fi_cq_read: %zd", count);
    return count == 1;
}

static long resident(void) {
    long all, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file && fscanf(file, "%ld %ld", &all, &pages) == 2, "statm");
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void serve(const char *directory, unsigned members) {
    static struct message in[RECEIVES];
    static fi_addr_t known[MOST];
    static unsigned rounds[MOST];
    struct side me;
    struct fi_cq_tagged_entry entry;
    char name[16], path[PATH_MAX], part[PATH_MAX + 8];
    size_t len = sizeof name;
    unsigned long messages = 0, sent = 0;
    double first = 0, last = 0;
    open_side(&me, 0, members);
    OK(fi_getname(&me.ep->fid, name, &len));
    snprintf(path, sizeof path, "%s/server", directory);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    CHECK(file && fwrite(name, 1, len, file) == len && !fclose(file), "%s", part);
    CHECK(!rename(part, path), "%s", path);
    for (int at = 0; at < RECEIVES; at++)
        OK(fi_trecv(me.ep, &in[at], sizeof in[at], NULL, FI_ADDR_UNSPEC, 0, ~0ull, &in[at]));
    // Touch the receive buffers, so that they do not count as growth.
    memset(in, 1, sizeof in);
    long before = resident();
    while (messages < (unsigned long)members * ROUNDS || sent < messages) {
        if (!next(me.cq, &entry)) continue;
        if (entry.flags & FI_SEND) {
            free(entry.op_context);
            sent++;
            continue;
        }
        struct message *came = entry.op_context, *answer = room(sizeof *answer);
        unsigned member = came->member;
        CHECK(member < members && entry.tag == member, "member %u, tag %lu", member, entry.tag);
        if (!rounds[member]) {
            last = seconds();
            if (first == 0) first = last;
            CHECK(fi_av_insert(me.av, came->name, 1, &known[member], 0, NULL) == 1, "insert");
        }
        verify(came, entry.len, member, rounds[member]++);
        fill(answer, member, came->round + 1000);
        ssize_t status;
        while ((status = fi_tsend(me.ep, answer, size_of(answer), NULL, known[member], member,
                                  answer)) == -FI_EAGAIN)
            fi_cq_read(me.cq, NULL, 0);
        OK(status);
        messages++;
        OK(fi_trecv(me.ep, came, sizeof *came, NULL, FI_ADDR_UNSPEC, 0, ~0ull, came));
    }
    printf("serve: %lu messages, all met in %.2f s, %ld KiB each\n", messages, last - first,
           (resident() - before) / members);
    close_side(&me);
}

static void join(const char *directory, unsigned members) {
    static struct side sides[MOST];
    static struct message *out[MOST], *in[MOST];
    static unsigned rounds[MOST];
    struct fi_cq_tagged_entry entry;
    char name[16], path[PATH_MAX];
    unsigned long messages = 0;
    snprintf(path, sizeof path, "%s/server", directory);
    FILE *file;
    for (double end = seconds() + within(20); !(file = fopen(path, "r"));)
        CHECK(seconds() < end, "no %s", path);
    CHECK(fread(name, 1, sizeof name, file) == sizeof name, "%s", path);
    fclose(file);
    for (unsigned member = 0; member < members; member++) {
        struct side *me = &sides[member];
        size_t len = sizeof out[member]->name;
        open_side(me, 0, 2);
        CHECK(fi_av_insert(me->av, name, 1, &me->peer, 0, NULL) == 1, "insert");
        out[member] = room(sizeof *out[member]);
        in[member] = room(sizeof *in[member]);
        OK(fi_getname(&me->ep->fid, out[member]->name, &len));
    }
    // States of members: 1 must send and may wait for room; 2 waits for two completions (of the send and
    // of the answer), 3 for one of them; 0 has ended.
    static int states[MOST];
    double end = seconds() + within(120);
    for (unsigned member = 0; member < members; member++) states[member] = 1;
    while (messages < (unsigned long)members * ROUNDS) {
        CHECK(seconds() < end, "%lu messages", messages);
        for (unsigned member = 0; member < members; member++) {
            struct side *me = &sides[member];
            unsigned round = rounds[member];
            if (states[member] == 1) {
                fill(out[member], member, round);
                ssize_t status = fi_tsend(me->ep, out[member], size_of(out[member]), NULL,
                                          me->peer, member, out[member]);
                if (status != -FI_EAGAIN) {
                    OK(status);
                    OK(fi_trecv(me->ep, in[member], sizeof *in[member], NULL, me->peer, member, 0,
                                in[member]));
                    states[member] = 2;
                }
            }
            if (!next(me->cq, &entry)) continue;
            if (entry.op_context == in[member])
                verify(in[member], entry.len, member, round + 1000);
            // The answer may arrive before the completion of the send.
            if (++states[member] == 4) {
                states[member] = ++rounds[member] < ROUNDS ? 1 : 0;
                messages++;
            }
        }
    }
    for (unsigned member = 0; member < members; member++) close_side(&sides[member]);
    printf("join: %lu messages\n", messages);
}

int main(int count, char **words) {
    CHECK(count == 4, "crowd DIRECTORY serve|join MEMBERS");
    unsigned members = (unsigned)atoi(words[3]);
    CHECK(members > 0 && members <= MOST, "1 to %d members", MOST);
    // An endpoint uses several descriptors.
    struct rlimit files;
    CHECK(!getrlimit(RLIMIT_NOFILE, &files), "getrlimit");
    files.rlim_cur = files.rlim_max;
    CHECK(!setrlimit(RLIMIT_NOFILE, &files), "setrlimit");
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    if (!strcmp(words[2], "serve"))
        serve(words[1], members);
    else
        join(words[1], members);
    close_domain();
    return 0;
}
