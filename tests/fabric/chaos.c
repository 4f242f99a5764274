// SPDX-License-Identifier: BSD-2-Clause
// Runs all-to-all messages, writes and reads between processes of several hosts
// (tests/gate/hosts.py):
//
//     chaos DIRECTORY SELF COUNT SEED MESSAGES LONGEST [kill|stop MASK]
//
// Each process sends MESSAGES messages to each other process, in the streams:
//
//     0  untagged; processes with an odd number receive them from any source
//     1  tagged, directed receives without ignored bits
//     2  tagged, directed receives that ignore the low bits, which contain the message number
//     3  tagged, any-source receives without ignored bits
//     4  tagged, any-source receives that ignore the low bits
//
// It also writes into the memory of each peer and reads it back, MESSAGES / 8 times. It sends the last
// message to a peer after these, because the peer may close after that message. MASK contains the processes
// that the driver kills or stops. Operations with a killed process may fail. Prints `pSELF: N messages, M bytes`,
// `pSELF: lost pK at TIME, error E` for each lost process, and `pSELF: HANG ...` after 30 s without a
// completion. TIME is CLOCK_MONOTONIC in seconds.
#include "plan.h"
#include <limits.h>
#include <rdma/fi_rma.h>

enum { MOST = 64, SENDS = 6, RECEIVES = 4, BUDGET = 40 << 20, WINDOW = 400000 };

struct op {
    enum { SEND, RECEIVE, RMA } kind;
    int peer, number, done, error, source;
    struct plan plan;
    struct parts parts;
    size_t came;
    uint64_t tag;
    // Any-source receives of a stream are checked in posting order.
    struct op *next;
};

static int count, kills, sent[MOST], sends[MOST], lost[MOST], rma[MOST], cursor[MOST][STREAMS];
static int missing[MOST], receives[MOST][STREAMS], any_left[STREAMS], any_posted[STREAMS];
// State of the writes and reads at a peer.
static enum { TO_WRITE, WRITES, TO_READ, READS } rma_state[MOST];
static struct op *pending[MOST], *heads[STREAMS], **tails[STREAMS];
static struct card cards[MOST];
static unsigned char window[MOST][WINDOW];
static uint64_t mask, own_random;
static size_t sending[MOST];
static unsigned long checked, bytes;
// Seconds: time of the last completion, time of the last one with a process outside the mask, and the
// longest time without the latter.
static double last, last_sound, pause_max;

static int is_doubtful(int peer) { return mask >> peer & 1; }
static int coin(unsigned chance) { return (own_random = mix(own_random)) % 100 < chance; }

static struct op *new_op(int kind, int peer, int number, struct plan it, size_t room, uint64_t random) {
    struct op *op = malloc(sizeof *op);
    *op = (struct op){.kind = kind, .peer = peer, .number = number, .plan = it};
    op->parts = new_parts(room, random);
    return op;
}

static void free_op(struct op *op) {
    free(op->parts.memory);
    free(op);
}

static void lose(int peer, int error) {
    CHECK(kills && is_doubtful(peer), "p%d: error %d (%s) of p%d at %.3f", self, error, fi_strerror(error), peer,
          seconds());
    if (!lost[peer]) printf("p%d: lost p%d at %.3f, error %d\n", self, peer, seconds(), error);
    lost[peer] = 1;
}

static void verify(struct op *op, int from, int number) {
    int stream = op->plan.stream, any = is_any(self, stream);
    struct plan it = plan(from, self, number);
    size_t equal = op->came == it.len ? fill_parts(&op->parts, it.key, it.len, 0) : 0;
    if ((op->came != it.len || equal < it.len) && kills && is_doubtful(from) && any) {
        // A long message of a killed process may be lost although a later short one arrived.
        CHECK((number = next_of(from, stream, number + 1)) < messages, "p%d: no message of p%d", self, from);
        return verify(op, from, number);
    }
    CHECK(op->came == it.len && equal == it.len,
          "p%d: message %d of p%d, stream %d, %d segments: %zu bytes, not %zu, wrong from byte %zu on", self,
          number, from, stream, op->parts.count, op->came, it.len, equal);
    CHECK(!stream || op->tag == tag_of(stream, number), "p%d: tag %lx", self, op->tag);
    check_guards(&op->parts);
    if (any) cursor[from][stream] = next_of(from, stream, number + 1);
    checked++;
    bytes += it.len;
}

// Returns the data of write `number` to a peer. One write at a time is in progress, and its data is
// then read back.
static struct plan plan_rma(int peer, int number) {
    struct plan it = plan(self, peer, messages + number);
    it.len %= WINDOW + 1;
    return it;
}

// Starts the next write or read at a peer.
static void start_rma(int peer) {
    if (lost[peer] || rma[peer] == messages / 8 || rma_state[peer] % 2) return;
    int writes = rma_state[peer] == TO_WRITE;
    struct plan it = plan_rma(peer, rma[peer]);
    struct op *op = new_op(RMA, peer, rma[peer], it, it.len, own_random = mix(own_random));
    struct card *card = &cards[peer];
    struct fi_rma_iov remote = {.addr = card->base + (size_t)self * WINDOW, .len = it.len, .key = card->key};
    struct fi_msg_rma message = {.msg_iov = op->parts.iov, .iov_count = (size_t)op->parts.count,
                                 .addr = (fi_addr_t)peer, .rma_iov = &remote, .rma_iov_count = 1, .context = op};
    if (writes) fill_parts(&op->parts, it.key, it.len, 1);
    ssize_t status = writes ? fi_writemsg(mine.ep, &message, FI_COMPLETION | FI_DELIVERY_COMPLETE)
                            : fi_readmsg(mine.ep, &message, FI_COMPLETION);
    if (!status) rma_state[peer]++;
    if (status) free_op(op);
    if (status && status != -FI_EAGAIN) lose(peer, (int)-status);
}

static void complete(struct op *op) {
    int stream = op->plan.stream, any = op->kind == RECEIVE && is_any(self, stream);
    int peer = any ? op->source : op->peer;
    last = seconds();
    if (peer >= 0 && !is_doubtful(peer)) last_sound = last;
    if (op->kind == RECEIVE && !op->error) missing[peer]--;
    if (any) {
        CHECK(!op->error || kills, "p%d: error %d (%s) of any source at %.3f", self, op->error,
              fi_strerror(op->error), last);
        op->done = 1;
        any_posted[stream]--;
        while ((op = heads[stream]) && op->done) {
            if (!op->error) verify(op, op->source, cursor[op->source][stream]);
            if (!(heads[stream] = op->next)) tails[stream] = &heads[stream];
            free_op(op);
        }
        return;
    }
    if (op->error) lose(peer, op->error);
    if (op->kind == SEND) {
        sending[peer] -= op->plan.len;
        sends[peer]--;
    } else if (op->kind == RECEIVE) {
        receives[peer][stream]--;
        if (!op->error) verify(op, peer, op->number);
    } else {
        int reads = rma_state[peer] == READS;
        rma_state[peer] = reads ? TO_WRITE : TO_READ;
        if (reads && !op->error) {
            size_t equal = fill_parts(&op->parts, op->plan.key, op->plan.len, 0);
            CHECK(equal == op->plan.len, "p%d: read %d of %zu bytes at p%d, wrong from byte %zu on", self,
                  op->number, op->plan.len, peer, equal);
            check_guards(&op->parts);
            rma[peer]++;
        }
    }
    free_op(op);
}

// Reads completions and returns their number.
static int drain(int timeout) {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source = FI_ADDR_UNSPEC;
    for (int found = 0;; found++) {
        ssize_t got = timeout && !found ? fi_cq_sreadfrom(mine.cq, &entry, 1, &source, NULL, timeout)
                                        : fi_cq_readfrom(mine.cq, &entry, 1, &source);
        if (got == -FI_EAGAIN) return found;
        struct fi_cq_err_entry failure = {0};
        CHECK(got == 1 || got == -FI_EAVAIL, "fi_cq_read: %zd", got);
        if (got != 1) CHECK(fi_cq_readerr(mine.cq, &failure, 0) == 1, "no error entry");
        struct op *op = got == 1 ? entry.op_context : failure.op_context;
        op->error = failure.err;
        op->came = entry.len;
        op->tag = entry.tag;
        op->source = got == 1 && op->kind == RECEIVE ? (int)source : -1;
        complete(op);
    }
}

static ssize_t start_send(struct op *op, int injects, int confirms) {
    struct iovec *iov = op->parts.iov;
    uint64_t flags = FI_COMPLETION | FI_DELIVERY_COMPLETE, tag = tag_of(op->plan.stream, op->number);
    fi_addr_t to = (fi_addr_t)op->peer;
    size_t parts = (size_t)op->parts.count;
    struct fi_msg_tagged tagged = {.msg_iov = iov, .iov_count = parts, .addr = to, .tag = tag, .context = op};
    struct fi_msg untagged = {.msg_iov = iov, .iov_count = parts, .addr = to, .context = op};
    if (!op->plan.stream) {
        if (injects) return fi_inject(mine.ep, iov->iov_base, op->plan.len, to);
        return confirms ? fi_sendmsg(mine.ep, &untagged, flags) : fi_sendv(mine.ep, iov, NULL, parts, to, op);
    }
    if (injects) return fi_tinject(mine.ep, iov->iov_base, op->plan.len, to, tag);
    return confirms ? fi_tsendmsg(mine.ep, &tagged, flags) : fi_tsendv(mine.ep, iov, NULL, parts, to, tag, op);
}

// Starts the next send to a peer. Returns false if there is no send to start, or no room for it.
static int send_next(int peer) {
    struct op *op = pending[peer];
    int number = sent[peer], waits = number == messages - 1 && rma[peer] < messages / 8;
    if (lost[peer] || number == messages || waits) return 0;
    if (!op && (sends[peer] == SENDS || sending[peer] > BUDGET)) return 0;
    struct plan it = plan(self, peer, number);
    int injects = it.len <= info->tx_attr->inject_size && it.key >> 17 & 1;
    if (!op) {
        op = pending[peer] = new_op(SEND, peer, number, it, it.len, injects ? 0 : it.key >> 30);
        fill_parts(&op->parts, it.key, it.len, 1);
    }
    ssize_t status = start_send(op, injects, it.key >> 18 & 1);
    if (status == -FI_EAGAIN) return 0;
    pending[peer] = NULL;
    sent[peer]++;
    if (!status && !injects) {
        sends[peer]++;
        sending[peer] += it.len;
        return 1;
    }
    if (status) lose(peer, (int)-status);
    memset(op->parts.iov->iov_base, 0xee, op->parts.iov->iov_len);
    free_op(op);
    return 1;
}

// Posts a receive for a peer, or from any source if the stream has such receives.
static void post(int peer, int stream) {
    int any = is_any(self, stream), number = any ? 0 : cursor[peer][stream];
    struct plan it = any ? (struct plan){.stream = stream} : plan(peer, self, number);
    size_t room = any ? LONGEST_ANY : it.len + (coin(50) ? 100 : 0);
    struct op *op = new_op(RECEIVE, peer, number, it, room, own_random = mix(own_random));
    fi_addr_t from = any ? FI_ADDR_UNSPEC : (fi_addr_t)peer;
    struct iovec *iov = op->parts.iov;
    size_t parts = (size_t)op->parts.count;
    uint64_t ignored = stream % 2 ? 0 : UINT32_MAX;
    ssize_t status = stream ? fi_trecvv(mine.ep, iov, NULL, parts, from, tag_of(stream, 0), ignored, op)
                            : fi_recvv(mine.ep, iov, NULL, parts, from, op);
    if (status) {
        free_op(op);
        if (status != -FI_EAGAIN) lose(peer, (int)-status);
    } else if (any) {
        *tails[stream] = op;
        tails[stream] = &op->next;
        any_posted[stream]++;
        any_left[stream]--;
    } else {
        cursor[peer][stream] = next_of(peer, stream, number + 1);
        receives[peer][stream]++;
    }
}

static int is_done(int peer) {
    int open = sends[peer] + rma_state[peer] % 2;
    for (int stream = 0; stream < STREAMS; stream++) {
        int may_lack = lost[peer] || (is_any(self, stream) && kills && is_doubtful(peer));
        open += receives[peer][stream] + (!may_lack && cursor[peer][stream] < messages);
    }
    return !open && (lost[peer] || sent[peer] == messages);
}

// Posts receives, starts sends, writes and reads, and reads completions. Returns true if all
// operations are done.
static int step(void) {
    int done = 1, sound_done = 1, idle = 1;
    for (int peer = 0; peer < count; peer++) {
        if (peer == self) continue;
        for (int stream = 0; stream < STREAMS; stream++) {
            int full = lost[peer] || receives[peer][stream] == RECEIVES || cursor[peer][stream] == messages;
            if (!is_any(self, stream) && !full && coin(20)) post(peer, stream);
        }
        if (coin(20)) start_rma(peer);
        if (coin(50)) idle &= !send_next(peer);
        done &= is_done(peer);
        // Arrived messages may wait for an earlier receive, into which a stopped process sends.
        sound_done &= is_doubtful(peer) || (!sends[peer] && sent[peer] == messages && !missing[peer]);
    }
    for (int stream = 0; stream < STREAMS; stream++)
        if (any_left[stream] && any_posted[stream] < 2 * RECEIVES && coin(20)) post(self, stream);
    // Processes with an odd number sleep, the others spin.
    drain(idle && self % 2 ? 2 : 0);
    double now = seconds();
    if (!sound_done && now - last_sound > pause_max) pause_max = now - last_sound;
    if (now - last <= within(30)) return done;
    printf("p%d: HANG at %.3f:", self, now);
    for (int peer = 0; peer < count; peer++)
        if (peer != self && !is_done(peer))
            printf(" p%d: %d of %d sent, %d under way, write %d;", peer, sent[peer], messages, sends[peer], rma[peer]);
    printf("\n");
    for (;;) pause();
}

static void meet_all(const char *directory) {
    char path[PATH_MAX], part[PATH_MAX + 8];
    FILE *file;
    snprintf(path, sizeof path, "%s/p%d", directory, self);
    snprintf(part, sizeof part, "%s.part", path);
    CHECK((file = fopen(part, "w")) && fwrite(&card, sizeof card, 1, file) == 1 && !fclose(file), "%s", part);
    CHECK(!rename(part, path), "%s", path);
    for (int peer = 0; peer < count; peer++) {
        fi_addr_t address;
        snprintf(path, sizeof path, "%s/p%d", directory, peer);
        for (double end = seconds() + within(30); !(file = fopen(path, "r")); usleep(1000))
            CHECK(seconds() < end, "no %s", path);
        CHECK(fread(&cards[peer], sizeof card, 1, file) == 1 && !fclose(file), "%s", path);
        CHECK(fi_av_insert(mine.av, cards[peer].name, 1, &address, 0, NULL) == 1, "insert");
        CHECK(address == (fi_addr_t)peer, "address %lu", address);
    }
}

// Cancels the any-source receives of messages that killed processes did not send.
static void cancel_rest(void) {
    double end = seconds() + within(20);
    for (int stream = 0; stream < STREAMS; stream++) {
        for (struct op *op = heads[stream]; op; op = op->next)
            if (!op->done) fi_cancel(&mine.ep->fid, op);
        for (; heads[stream]; drain(0))
            CHECK(seconds() < end, "p%d: a cancelled receive of stream %d does not complete", self, stream);
    }
}

int main(int argc, char **words) {
    CHECK(argc == 7 || argc == 9, "chaos DIRECTORY SELF COUNT SEED MESSAGES LONGEST [kill|stop MASK]");
    self = atoi(words[2]), count = atoi(words[3]), seed = mix(strtoull(words[4], NULL, 0));
    messages = atoi(words[5]), longest = strtoull(words[6], NULL, 0);
    CHECK(count <= MOST && self < count && messages, "process %d of %d", self, count);
    if (argc == 9) kills = *words[7] == 'k', mask = strtoull(words[8], NULL, 0);
    own_random = mix(seed + (unsigned)self + 99);
    setvbuf(stdout, NULL, _IOLBF, 0);
    open_card(FI_MSG | FI_TAGGED | FI_RMA | FI_DIRECTED_RECV | FI_SOURCE, window, sizeof window);
    meet_all(words[1]);
    for (int stream = 0; stream < STREAMS; stream++) {
        tails[stream] = &heads[stream];
        for (int peer = 0; peer < count; peer++) {
            missing[peer] = messages;
            cursor[peer][stream] = peer == self ? messages : next_of(peer, stream, 0);
            if (!is_any(self, stream)) continue;
            for (int at = cursor[peer][stream]; at < messages; at = next_of(peer, stream, at + 1)) any_left[stream]++;
        }
    }
    printf("p%d: met\n", self);
    // In some processes, the messages of the others arrive unexpectedly.
    if (coin(30)) usleep(300000);
    last = last_sound = seconds();
    while (!step()) {}
    cancel_rest();
    printf("p%d: longest pause %.1f s\n", self, pause_max);
    printf("p%d: %lu messages, %lu bytes\n", self, checked, bytes);
    close_card();
    return 0;
}
