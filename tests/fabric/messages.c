// SPDX-License-Identifier: BSD-2-Clause
// Tests every form of send and receive, every completion level, sizes around each protocol's
// limits, truncation, vectors, multi-receive buffers, and CQ data.
#include "fabric.h"
#include <sys/uio.h>

static struct side a, b;
enum { LARGEST = 3 << 20 };
static unsigned char *out, *in;

static void fill(size_t len, unsigned seed) {
    for (size_t i = 0; i < len; i++) out[i] = (unsigned char)(i * 7 + seed + (i >> 8));
}

static void same(size_t len) {
    CHECK(!memcmp(out, in, len), "%zu bytes differ", len);
}

static struct fi_cq_tagged_entry received(void *context, size_t len, uint64_t flags) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t source = 1234;
    int error = next_entry(&b, &a, &entry, &source, &failure);
    CHECK(!error, "error %d", error);
    CHECK(entry.op_context == context && entry.len == len, "len %zu, not %zu", entry.len, len);
    CHECK(entry.flags == flags, "flags %#lx, not %#lx", entry.flags, flags);
    CHECK(source == b.peer, "source %lu, not %lu", source, b.peer);
    return entry;
}

static void forms(void) {
    struct iovec iov[2] = {{out, 3}, {out + 3, 5}};
    struct fi_msg_tagged tmsg = {.msg_iov = iov, .iov_count = 2, .addr = a.peer, .tag = 9, .context = out, .data = 77};
    struct fi_msg msg = {.msg_iov = iov, .iov_count = 2, .addr = a.peer, .context = out, .data = 78};
    const uint64_t tagged = FI_RECV | FI_TAGGED, untagged = FI_RECV | FI_MSG;
    fill(8, 1);
    for (int form = 0; form < 12; form++) {
        memset(in, 0, 8);
        if (form < 6)
            OK(fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 9, 0, in));
        else
            OK(fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
        int silent = 0, data = 0;
        switch (form) {
        case 0: OK(fi_tsend(a.ep, out, 8, NULL, a.peer, 9, out)); break;
        case 1: OK(fi_tsendv(a.ep, iov, NULL, 2, a.peer, 9, out)); break;
        case 2: OK(fi_tsendmsg(a.ep, &tmsg, FI_REMOTE_CQ_DATA | FI_COMPLETION)); data = 77; break;
        case 3: OK(fi_tinject(a.ep, out, 8, a.peer, 9)); silent = 1; break;
        case 4: OK(fi_tsenddata(a.ep, out, 8, NULL, 79, a.peer, 9, out)); data = 79; break;
        case 5: OK(fi_tinjectdata(a.ep, out, 8, 80, a.peer, 9)); silent = 1; data = 80; break;
        case 6: OK(fi_send(a.ep, out, 8, NULL, a.peer, out)); break;
        case 7: OK(fi_sendv(a.ep, iov, NULL, 2, a.peer, out)); break;
        case 8: OK(fi_sendmsg(a.ep, &msg, FI_REMOTE_CQ_DATA | FI_COMPLETION)); data = 78; break;
        case 9: OK(fi_inject(a.ep, out, 8, a.peer)); silent = 1; break;
        case 10: OK(fi_senddata(a.ep, out, 8, NULL, 81, a.peer, out)); data = 81; break;
        case 11: OK(fi_injectdata(a.ep, out, 8, 82, a.peer)); silent = 1; data = 82; break;
        }
        struct fi_cq_tagged_entry entry =
            received(in, 8, (form < 6 ? tagged : untagged) | (data ? FI_REMOTE_CQ_DATA : 0));
        CHECK(!data || entry.data == (uint64_t)data, "data %lu, not %d", entry.data, data);
        CHECK(form >= 6 || entry.tag == 9, "tag %lu", entry.tag);
        same(8);
        if (!silent) {
            entry = next_ok(&a, &b, out);
            CHECK(entry.flags == (FI_SEND | (form < 6 ? FI_TAGGED : FI_MSG)), "%#lx", entry.flags);
        }
    }
    nothing(&a);
}

static void sizes(void) {
    static const size_t lengths[] = {0, 1, 15, 16, 17, 207, 208, 209, 4096, 4097, 8191, 8192, 8193,
                                     16384, 16385, 65536, 1 << 20, LARGEST};
    static const uint64_t levels[] = {0, FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE,
                                      FI_DELIVERY_COMPLETE, FI_MATCH_COMPLETE};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t level = 0; level < sizeof levels / sizeof *levels; level++)
            for (int expected = 0; expected < 2; expected++) {
                size_t len = lengths[i];
                struct iovec from = {out, len};
                struct fi_msg_tagged msg = {
                    .msg_iov = &from, .iov_count = 1, .addr = a.peer, .tag = 3, .context = out};
                fill(len, (unsigned)(i + level));
                memset(in, 0, len);
                if (expected) OK(fi_trecv(b.ep, in, len, NULL, b.peer, 3, 0, in));
                OK(fi_tsendmsg(a.ep, &msg, FI_COMPLETION | levels[level]));
                if (!expected) {
                    nothing(&b);
                    if (level >= 3) nothing(&a);
                    OK(fi_trecv(b.ep, in, len, NULL, b.peer, 3, 0, in));
                }
                received(in, len, FI_RECV | FI_TAGGED);
                same(len);
                next_ok(&a, &b, out);
            }
}

static void truncation(void) {
    static const size_t lengths[] = {100, 1000, 100000};
    for (size_t i = 0; i < 3; i++)
        for (int expected = 0; expected < 2; expected++) {
            size_t len = lengths[i], room = len / 2;
            fill(len, 5);
            in[room] = 0xee;
            if (expected) OK(fi_trecv(b.ep, in, room, NULL, b.peer, 4, 0, in));
            OK(fi_tsend(a.ep, out, len, NULL, a.peer, 4, out));
            if (!expected) {
                nothing(&b);
                OK(fi_trecv(b.ep, in, room, NULL, b.peer, 4, 0, in));
            }
            struct fi_cq_err_entry failure = next_error(&b, &a, FI_ETRUNC);
            CHECK(failure.op_context == in && failure.len == room && failure.olen == len - room,
                  "len %zu olen %zu", failure.len, failure.olen);
            CHECK(failure.tag == 4 && failure.flags == (FI_RECV | FI_TAGGED), "%#lx", failure.flags);
            CHECK(in[room] == 0xee, "written past the end");
            same(room);
            next_ok(&a, &b, out);
        }
}

static void vectors(void) {
    static const size_t lengths[] = {60, 2000, 50000};
    for (size_t i = 0; i < 3; i++) {
        size_t len = lengths[i], part = len / 4;
        struct iovec from[4], to[4];
        for (size_t k = 0; k < 4; k++) {
            from[k] = (struct iovec){out + k * part, part};
            // The receiver's parts end at other offsets than the sender's.
            to[k] = (struct iovec){in + (k ? k * part - 3 : 0), k == 3 ? part + 3 : k ? part : part - 3};
        }
        fill(len, 9);
        memset(in, 0, len);
        OK(fi_trecvv(b.ep, to, NULL, 4, FI_ADDR_UNSPEC, 6, 0, in));
        OK(fi_tsendv(a.ep, from, NULL, 4, a.peer, 6, out));
        received(in, len, FI_RECV | FI_TAGGED);
        same(len);
        next_ok(&a, &b, out);
    }
    struct iovec five[5] = {{out, 1}, {out, 1}, {out, 1}, {out, 1}, {out, 1}};
    FAILS(FI_EINVAL, fi_sendv(a.ep, five, NULL, 5, a.peer, out));
}

static void multi_recv(void) {
    size_t minimum = 1000;
    struct iovec iov = {in, 10000};
    struct fi_msg msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = in};
    OK(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum, sizeof minimum));
    OK(fi_recvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION | FI_TRANSMIT_COMPLETE));
    size_t used = 0;
    for (int i = 0; used <= 9000; i++) {
        size_t len = i % 2 ? 3000 : 150;
        fill(len, (unsigned)i);
        OK(fi_inject(a.ep, out, len, a.peer));
        uint64_t last = used + len > 9000 ? FI_MULTI_RECV : 0;
        struct fi_cq_tagged_entry entry = received(in, len, FI_RECV | FI_MSG | last);
        CHECK(entry.buf == in + used && !memcmp(entry.buf, out, len), "message %d", i);
        used += len;
    }
}

static void limits(void) {
    FAILS(FI_EMSGSIZE, fi_inject(a.ep, out, info->tx_attr->inject_size + 1, a.peer));
    FAILS(FI_EINVAL, fi_send(a.ep, out, 8, NULL, 99, out));
    FAILS(FI_EBUSY, fi_close(&a.cq->fid));
    FAILS(FI_EBUSY, fi_close(&domain->fid));
    char name[64];
    size_t len = 0;
    FAILS(FI_ETOOSMALL, fi_getname(&a.ep->fid, NULL, &len));
    CHECK(len == 16, "%zu", len);
    len = sizeof name;
    OK(fi_getname(&a.ep->fid, name, &len));
    // Without a network, addresses of another host can be inserted, but sends to them are refused.
    unsigned char far[16] = {2, 0, 0x12, 0x34, 240, 0, 0, 1};
    fi_addr_t address;
    CHECK(fi_av_insert(a.av, far, 1, &address, 0, NULL) == 1, "not inserted");
    FAILS(FI_ENETUNREACH, fi_send(a.ep, out, 8, NULL, address, out));
    OK(fi_av_remove(a.av, &address, 1, 0));
    FAILS(FI_EINVAL, fi_send(a.ep, out, 8, NULL, address, out));
}

// Sends more messages than the receiver's ring can hold. Sends then return -FI_EAGAIN, and no
// message is lost.
static void flood(void) {
    uint64_t sent = 0, got = 0, value = ~0UL;
    while (got < 20000) {
        while (sent < 20000 && fi_tinject(a.ep, &sent, 8, a.peer, 8) == 0) sent++;
        for (int i = 0; i < 300 && got < sent; i++, got++) {
            OK(fi_trecv(b.ep, &value, 8, NULL, b.peer, 8, 0, &value));
            next_ok(&b, &a, &value);
            CHECK(value == got, "%lu, not %lu", value, got);
        }
    }
}

int main(int argc, char **argv) {
    enum fi_threading threading = argc > 1 ? FI_THREAD_SAFE : FI_THREAD_DOMAIN;
    out = malloc(LARGEST + 16);
    in = malloc(LARGEST + 16);
    (void)argv;
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV, threading, 0);
    open_pair(&a, &b, 0);
    forms();
    sizes();
    truncation();
    vectors();
    multi_recv();
    flood();
    limits();
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("messages: ok");
}
