// SPDX-License-Identifier: BSD-2-Clause
// Two processes on two hosts (tests/gate/hosts.py), which find each other through files in a shared
// directory: far DIRECTORY OWN PEER WHAT [SECONDS]
//
//     lead SECONDS   exchanges messages of many lengths, each checked, for SECONDS
//     slow SECONDS   like lead, with pauses between messages
//     follow         like lead, as the other end
//     doze           like follow, but sleeps until a message arrives; prints how many times it woke
//     wait           one message each way, then a receive for which the peer sends nothing, and a long
//                    message that the peer never receives
//     hold           one message each way, then nothing, without any progress
//     sink           receives from any source until a message with the tag STOP
//     named          like sink, but inserts the name of PEER after a message of another process has come,
//                    and receives only from PEER
//     seldom SECONDS like sink, but polls for 5 ms and computes for SECONDS, in turns
//     one            one short message with the tag STOP
//     flood          long messages without end
//     pour           short messages until an error; prints the time from the last accepted send to the error
//     both           long messages both ways at once, several in flight, half of them in several segments
//     forks          like lead, after a forked child has polled and sent
//     last           messages without reading completions, then 50 of many lengths, the last with the tag STOP
//
// Prints `OWN: N messages`, or `OWN: error E (name) after N messages` with exit code 3.
#include "fabric.h"
#include <limits.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LONGEST = 1 << 20, MESSAGE = 7, STOP = 8, NEVER = 9 };

static const size_t LENGTHS[] = {0, 1, 8, 200, 4096, 16384, 65536, 65537, 300000, LONGEST};
static const char *own;
static struct side me;
static unsigned char out[LONGEST], in[LONGEST];
static unsigned long messages;
static int dozes;
static double computes;

static void wait_for(const char *path, char name[16]) {
    double end = seconds() + within(20);
    while (seconds() < end) {
        FILE *file = fopen(path, "r");
        if (file) {
            size_t len = fread(name, 1, 16, file);
            fclose(file);
            if (len == 16) return;
        }
        usleep(1000);
    }
    CHECK(0, "no %s", path);
}

static void show_name(const char *directory) {
    char path[PATH_MAX], part[PATH_MAX + 8], name[16];
    size_t len = sizeof name;
    OK(fi_getname(&me.ep->fid, name, &len));
    snprintf(path, sizeof path, "%s/%s", directory, own);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    CHECK(file && fwrite(name, 1, len, file) == len && !fclose(file), "%s", part);
    CHECK(!rename(part, path), "%s", path);
}

static void meet_peer(const char *directory, const char *peer) {
    char path[PATH_MAX], name[16];
    show_name(directory);
    snprintf(path, sizeof path, "%s/%s", directory, peer);
    wait_for(path, name);
    CHECK(fi_av_insert(me.av, name, 1, &me.peer, 0, NULL) == 1, "insert");
}

static void failed(int error) {
    printf("%s: error %d (%s) after %lu messages\n", own, error, fi_strerror(error), messages);
    exit(3);
}

// Waits for the next completion; an error ends the program.
static struct fi_cq_tagged_entry completion(void) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure = {0};
    for (;;) {
        ssize_t count = dozes ? fi_cq_sread(me.cq, &entry, 1, NULL, -1) : fi_cq_read(me.cq, &entry, 1);
        if (count == 1) return entry;
        if (count == -FI_EAVAIL) {
            CHECK(fi_cq_readerr(me.cq, &failure, 0) == 1, "no error entry");
            failed(failure.err);
        }
        CHECK(count == -FI_EAGAIN, "fi_cq_read: %zd", count);
    }
}

static void try_send(size_t len, uint64_t tag) {
    ssize_t sent;
    while ((sent = fi_tsend(me.ep, out, len, NULL, me.peer, tag, out)) == -FI_EAGAIN)
        fi_cq_read(me.cq, NULL, 0);
    if (sent) failed((int)-sent);
}

static unsigned char byte_of(unsigned long number, size_t at) {
    return (unsigned char)(number * 31 + at * 7 + at / 251);
}

static void send_one(unsigned long number, uint64_t tag) {
    size_t len = LENGTHS[number % (sizeof LENGTHS / sizeof *LENGTHS)];
    for (size_t at = 0; at < len; at++) out[at] = byte_of(number, at);
    try_send(len, tag);
}

// Exchanges one message with the peer; the end that leads sends first. Returns the tag of the received
// message.
static uint64_t round_trip(unsigned long number, uint64_t tag, int leads) {
    size_t len = LENGTHS[number % (sizeof LENGTHS / sizeof *LENGTHS)];
    uint64_t came = 0;
    memset(in, 0xee, len);
    OK(fi_trecv(me.ep, in, LONGEST, NULL, me.peer, 0, ~0ull, in));
    if (leads) send_one(number, tag);
    for (int done = 0; done < 1 + leads; done++) {
        struct fi_cq_tagged_entry entry = completion();
        if (entry.op_context == out) continue;
        came = entry.tag;
        CHECK(entry.len == len, "%zu bytes, not %zu", entry.len, len);
        for (size_t at = 0; at < len; at++)
            CHECK(in[at] == byte_of(number, at), "message %lu, byte %zu of %zu", number, at, len);
        messages++;
    }
    if (!leads) {
        send_one(number, came);
        CHECK(completion().op_context == out, "another completion");
    }
    return came;
}

// Computes for `computes` seconds if the program has polled for 5 ms since.
static void compute(void) {
    static double since;
    double now = seconds();
    if (!since) since = now;
    if (computes == 0 || now - since < 0.005) return;
    usleep((useconds_t)(computes * 1e6));
    since = seconds();
}

static unsigned long number_of(const unsigned char *bytes) {
    return bytes[0] | (unsigned long)bytes[1] << 8;
}

// Fills `out` with the number in two bytes, and then with the bytes of byte_of.
static void fill_numbered(unsigned long number, size_t len) {
    out[0] = (unsigned char)number;
    out[1] = (unsigned char)(number >> 8);
    for (size_t at = 2; at < len; at++) out[at] = byte_of(number, at);
}

// Receives from a source. Keeps more receives posted than there are peers that may stop in the middle
// of a message.
static void take_all(fi_addr_t source) {
    enum { RECEIVES = 16 };
    static unsigned char all[RECEIVES][LONGEST];
    void *next = NULL;
    for (int at = 0; at < RECEIVES; at++)
        OK(fi_trecv(me.ep, all[at], LONGEST, NULL, source, 0, ~0ull, all[at]));
    for (int stops = 0; !stops;) {
        if (next) OK(fi_trecv(me.ep, next, LONGEST, NULL, source, 0, ~0ull, next));
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure = {0};
        ssize_t count;
        while ((count = fi_cq_read(me.cq, &entry, 1)) == -FI_EAGAIN) compute();
        if (count == -FI_EAVAIL) {
            // The sender died in the middle of a message.
            CHECK(fi_cq_readerr(me.cq, &failure, 0) == 1, "no error entry");
            CHECK(failure.err == FI_ECONNABORTED, "%s", fi_strerror(failure.err));
            next = failure.op_context;
            continue;
        }
        const unsigned char *bytes = next = entry.op_context;
        stops = entry.tag == STOP;
        messages++;
        for (size_t at = 2; at < entry.len; at++)
            CHECK(bytes[at] == byte_of(number_of(bytes), at), "byte %zu of %zu", at, entry.len);
    }
}

// Waits until a message has come, and leaves it in the queue. Then polls for longer than the provider
// takes to notice the end of a connection.
static void await_message(void) {
    struct fi_msg_tagged probe = {.addr = FI_ADDR_UNSPEC, .ignore = ~0ull};
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure = {0};
    ssize_t count;
    double most = seconds() + within(20);
    do {
        CHECK(seconds() < most, "no message");
        OK(fi_trecvmsg(me.ep, &probe, FI_PEEK));
        while ((count = fi_cq_read(me.cq, &entry, 1)) == -FI_EAGAIN) {}
        if (count != 1) CHECK(fi_cq_readerr(me.cq, &failure, 0) == 1, "%zd, no error entry", count);
        CHECK(count == 1 || failure.err == FI_ENOMSG, "%s", fi_strerror(failure.err));
    } while (count != 1);
    for (double end = seconds() + 0.5; seconds() < end;) fi_cq_read(me.cq, NULL, 0);
}

// Sends messages, and does not poll while there is no room for them. The send call itself must make
// progress, because many programs only repeat it.
static void send_without_reads(void) {
    enum { COUNT = 40, LEN = 4096 };
    ssize_t sent;
    for (unsigned long number = 0; number < COUNT; number++) {
        fill_numbered(number, LEN);
        double end = seconds() + within(20);
        while ((sent = fi_tsend(me.ep, out, LEN, NULL, me.peer, MESSAGE, out)) == -FI_EAGAIN)
            CHECK(seconds() < end, "no room for message %lu", number);
        if (sent) failed((int)-sent);
    }
    for (int done = 0; done < COUNT; done++) completion();
}

static void send_many(int last) {
    if (last) send_without_reads();
    for (unsigned long number = 0; !last || number < 50; number++) {
        size_t len = last ? LENGTHS[number % 10] + 2 : number % 3 ? LONGEST : 60000;
        if (len > LONGEST) len = LONGEST;
        fill_numbered(number, len);
        try_send(len, last && number == 49 ? STOP : MESSAGE);
        completion();
        if (!messages++ && !last) printf("%s: met\n", own);
    }
}

// Sends until an error. No send may be accepted after the peer is known to be lost.
static void pour(void) {
    double last = seconds();
    fill_numbered(0, 1000);
    for (;;) {
        ssize_t sent = fi_tsend(me.ep, out, 1000, NULL, me.peer, MESSAGE, out);
        struct fi_cq_tagged_entry entries[16];
        struct fi_cq_err_entry failure = {0};
        ssize_t read = fi_cq_read(me.cq, entries, 16);
        if (!sent) {
            last = seconds();
            if (!messages++) printf("%s: met\n", own);
        }
        if (read == -FI_EAVAIL) {
            CHECK(fi_cq_readerr(me.cq, &failure, 0) == 1, "no error entry");
            sent = -failure.err;
        }
        if (!sent || sent == -FI_EAGAIN) continue;
        printf("%s: error %d, %.0f ms after a send was taken\n", own, (int)-sent,
               (seconds() - last) * 1e3);
        exit(3);
    }
}

// Splits a message of LONGEST bytes into three parts, of which the first two have `len` bytes. If
// `len` is 0, the first part is the whole message.
static void split(unsigned char *bytes, size_t len, struct iovec parts[3]) {
    parts[0] = (struct iovec){bytes, len ? len : LONGEST};
    parts[1] = (struct iovec){bytes + len, len};
    parts[2] = (struct iovec){bytes + 2 * len, LONGEST - 2 * len};
}

// Forks a child that polls and sends. The child has its parent's memory, but none of the parent's
// connections.
static void fork_a_child(void) {
    pid_t child = fork();
    if (!child) {
        for (int turn = 0; turn < 2000; turn++) {
            fi_cq_read(me.cq, NULL, 0);
            fi_tinject(me.ep, out, 8, me.peer, MESSAGE);
        }
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && !status, "the child ended with %x", status);
}

static void both_ways(void) {
    enum { WINDOWS = 10, FLIGHT = 4 };
    static unsigned char from[FLIGHT][LONGEST], to[FLIGHT][LONGEST];
    for (int window = 0; window < WINDOWS; window++) {
        for (uint64_t slot = 0; slot < FLIGHT; slot++) {
            struct iovec parts[3];
            split(to[slot], 100000 * slot, parts);
            OK(fi_trecvv(me.ep, parts, NULL, slot < 2 ? 1 + 2 * slot : 3, me.peer, slot, 0, to[slot]));
        }
        for (uint64_t slot = 0; slot < FLIGHT; slot++) {
            for (size_t at = 0; at < LONGEST; at += 509) from[slot][at] = byte_of(messages + slot, at);
            ssize_t sent;
            struct iovec parts[3];
            split(from[slot], slot % 2 * 80000, parts);
            // Operations that complete meanwhile stay in the queue and are counted below.
            while ((sent = fi_tsendv(me.ep, parts, NULL, 1 + slot % 2 * 2, me.peer, slot, NULL)) == -FI_EAGAIN)
                fi_cq_read(me.cq, NULL, 0);
            if (sent) failed((int)-sent);
        }
        for (int done = 0; done < 2 * FLIGHT; done++) completion();
        for (uint64_t slot = 0; slot < FLIGHT; slot++)
            for (size_t at = 0; at < LONGEST; at += 509)
                CHECK(to[slot][at] == byte_of(messages + slot, at), "message %lu, byte %zu",
                      messages + slot, at);
        messages += FLIGHT;
    }
}

int main(int count, char **words) {
    CHECK(count >= 5, "far DIRECTORY OWN PEER WHAT [SECONDS]");
    own = words[2];
    const char *what = words[4];
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_side(&me, 0, 2);
    if (!strcmp(what, "seldom")) computes = atof(count > 5 ? words[5] : "1");
    if (!strcmp(what, "sink") || !strcmp(what, "seldom") || !strcmp(what, "named"))
        show_name(words[1]);
    else
        meet_peer(words[1], words[3]);
    if (!strcmp(what, "sink") || !strcmp(what, "seldom")) {
        take_all(FI_ADDR_UNSPEC);
    } else if (!strcmp(what, "one")) {
        fill_numbered(0, 1000);
        try_send(1000, STOP);
        completion();
        messages++;
    } else if (!strcmp(what, "named")) {
        await_message();
        printf("%s: met\n", own);
        meet_peer(words[1], words[3]);
        printf("%s: named\n", own);
        take_all(me.peer);
    } else if (!strcmp(what, "pour")) {
        pour();
    } else if (!strcmp(what, "both")) {
        both_ways();
    } else if (!strcmp(what, "flood") || !strcmp(what, "last")) {
        send_many(!strcmp(what, "last"));
    } else if (!strcmp(what, "lead") || !strcmp(what, "slow") || !strcmp(what, "forks")) {
        double end = seconds() + atof(count > 5 ? words[5] : "1");
        unsigned long number = 0;
        round_trip(number++, MESSAGE, 1);
        if (*what == 'f') fork_a_child();
        do {
            round_trip(number++, MESSAGE, 1);
            if (*what == 's') usleep(20000);
        } while (seconds() < end);
        round_trip(number, STOP, 1);
    } else if (!strcmp(what, "follow") || !strcmp(what, "doze")) {
        unsigned long number = 0;
        dozes = *what == 'd';
        while (round_trip(number++, 0, 0) != STOP) {}
        struct rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        double busy = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e3 +
                      (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e3;
        if (dozes) printf("%s: woke %ld times, busy for %.0f ms\n", own, usage.ru_nvcsw, busy);
    } else {
        int waits = !strcmp(what, "wait");
        round_trip(1, MESSAGE, waits);
        printf("%s: met\n", own);
        if (!waits) for (;;) pause();
        OK(fi_trecv(me.ep, in, LONGEST, NULL, me.peer, NEVER, 0, in));
        try_send(LONGEST, NEVER);
        for (;;) completion();
    }
    printf("%s: %lu messages\n", own, messages);
    close_side(&me);
    close_domain();
    return 0;
}
