// SPDX-License-Identifier: BSD-2-Clause
// The messages of chaos.c: the seed determines the stream, length, segments and bytes of each one, so
// that its receiver knows what to expect.
#pragma once
#include "card.h"
#include <sys/uio.h>

enum { STREAMS = 5, SEGMENTS = 4, GUARD = 16, LONGEST_ANY = 1 << 20 };

struct plan {
    uint64_t key;
    int stream;
    size_t len;
};

// Memory of a message in up to SEGMENTS parts, which lie in reverse order with guard bytes behind each.
struct parts {
    int count;
    struct iovec iov[SEGMENTS];
    unsigned char *memory;
};

static int self, messages;
static uint64_t seed;
static size_t longest;

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

// Returns true if a process receives the messages of a stream from any source.
static int is_any(int receiver, int stream) {
    return stream >= 3 || (!stream && receiver % 2);
}

static struct plan plan(int sender, int receiver, int number) {
    static const size_t edges[] = {0, 1, 65536, 65537, 262144, 262145, 56, 65480};
    uint64_t pair = mix(mix(seed + (unsigned)sender) + (unsigned)receiver);
    struct plan it = {.key = mix(pair + (unsigned)number)};
    unsigned kind = it.key >> 8 & 127;
    size_t limit = 64 << 20;
    if (kind < 127) limit = kind < 64 ? 200 : kind < 96 ? 20000 : kind < 122 ? 300000 : 4 << 20;
    it.stream = (int)(it.key % STREAMS);
    it.len = kind % 16 == 1 ? edges[kind / 16] : (it.key >> 20) % (limit + 1);
    if (it.len > longest) it.len %= longest + 1;
    if (is_any(receiver, it.stream) && it.len > LONGEST_ANY) it.len %= LONGEST_ANY + 1;
    return it;
}

static uint64_t tag_of(int stream, int number) {
    return (uint64_t)stream << 32 | (stream % 2 ? 0 : (unsigned)number);
}

// Returns the number of the first message, from `number` on, that a sender sends in a stream to this
// process, or `messages` if the sender has no more.
static int next_of(int sender, int stream, int number) {
    while (number < messages && plan(sender, self, number).stream != stream) number++;
    return number;
}

// If `writes` is true, writes the bytes of a message from byte `at` on and returns `len`. Otherwise
// compares them, and returns `len` or, if they differ, a smaller number.
static size_t content(uint64_t key, size_t at, unsigned char *memory, size_t len, int writes) {
    for (size_t done = 0; done < len;) {
        size_t shift = (at + done) % 8, size = 8 - shift;
        uint64_t word = mix(key + (at + done) / 8) >> (8 * shift);
        if (size > len - done) size = len - done;
        if (writes) memcpy(memory + done, &word, size);
        else if (memcmp(memory + done, &word, size)) return done;
        done += size;
    }
    return len;
}

static struct parts new_parts(size_t room, uint64_t random) {
    struct parts it = {.count = 1 + (int)(random % SEGMENTS)};
    it.memory = malloc(room + GUARD * SEGMENTS);
    CHECK(it.memory, "%zu bytes", room);
    unsigned char *end = it.memory + room + GUARD * (size_t)it.count;
    for (int part = 0; part < it.count; part++) {
        size_t len = part == it.count - 1 ? room : (random = mix(random)) % (room + 1);
        end -= len + GUARD;
        memset(end + len, 0xa5, GUARD);
        it.iov[part] = (struct iovec){.iov_base = end, .iov_len = len};
        room -= len;
    }
    return it;
}

// If `writes` is true, writes a message and returns its length. Otherwise compares it, and returns
// its length or, if it differs, a smaller number.
static size_t fill_parts(const struct parts *it, uint64_t key, size_t len, int writes) {
    size_t at = 0;
    for (int part = 0; part < it->count; part++) {
        size_t want = it->iov[part].iov_len < len - at ? it->iov[part].iov_len : len - at;
        size_t equal = content(key, at, it->iov[part].iov_base, want, writes);
        at += equal;
        if (equal < want) break;
    }
    return at;
}

static void check_guards(const struct parts *it) {
    for (int part = 0; part < it->count; part++) {
        unsigned char *guard = (unsigned char *)it->iov[part].iov_base + it->iov[part].iov_len;
        for (int at = 0; at < GUARD; at++)
            CHECK(guard[at] == 0xa5, "p%d: byte %d behind segment %d was written", self, at, part);
    }
}
