// SPDX-License-Identifier: BSD-2-Clause
// Two processes on two hosts (tests/gate/hosts.py): closed_tx DIRECTORY OWN PEER WHAT
//
//     scalable   uses a scalable endpoint, and closes its transmit context while a long message of the
//                peer waits for a receive; this message and a later one must still arrive
//     plain      uses an ordinary endpoint, and sends both messages
#include "fabric.h"
#include <limits.h>
#include <unistd.h>

enum { LENGTH = 2 << 20, FIRST = 1, ANSWER = 2, LONG = 3, LAST = 4 };
static unsigned char bytes[LENGTH];
static const char *directory;

static void show(const char *own, struct fid *ep) {
    char path[PATH_MAX], part[PATH_MAX + 8], name[16];
    size_t len = sizeof name;
    OK(fi_getname(ep, name, &len));
    snprintf(path, sizeof path, "%s/%s", directory, own);
    snprintf(part, sizeof part, "%s.part", path);
    FILE *file = fopen(part, "w");
    CHECK(file && fwrite(name, 1, len, file) == len && !fclose(file), "%s", part);
    CHECK(!rename(part, path), "%s", path);
}

static fi_addr_t find(struct fid_av *av, const char *peer) {
    char path[PATH_MAX], name[16];
    fi_addr_t address;
    snprintf(path, sizeof path, "%s/%s", directory, peer);
    double end = seconds() + within(20);
    FILE *file;
    while (!(file = fopen(path, "r")) && seconds() < end) usleep(1000);
    CHECK(file && fread(name, 1, 16, file) == 16 && !fclose(file), "no %s", path);
    CHECK(fi_av_insert(av, name, 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

static void completion(struct fid_cq *cq, struct fid_cq *other, const char *what) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure = {0};
    ssize_t count;
    double end = seconds() + within(20);
    while ((count = fi_cq_read(cq, &entry, 1)) == -FI_EAGAIN && seconds() < end)
        if (other) fi_cq_read(other, NULL, 0);
    if (count == -FI_EAVAIL) fi_cq_readerr(cq, &failure, 0);
    CHECK(count == 1, "%s: %zd, %s", what, count, fi_strerror(failure.err));
}

static unsigned char byte_of(size_t at) {
    return (unsigned char)(at * 7 + at / 251);
}

static void scalable(const char *own, const char *peer) {
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .rx_ctx_bits = 2};
    struct fid_ep *sep, *tx, *rx;
    struct fid_av *av;
    struct fid_cq *sent, *came;
    OK(fi_scalable_ep(domain, info, &sep, NULL));
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    OK(fi_scalable_ep_bind(sep, &av->fid, 0));
    OK(fi_enable(sep));
    OK(fi_cq_open(domain, &cq_attr, &sent, NULL));
    OK(fi_cq_open(domain, &cq_attr, &came, NULL));
    OK(fi_tx_context(sep, 0, NULL, &tx, NULL));
    OK(fi_ep_bind(tx, &sent->fid, FI_TRANSMIT));
    OK(fi_enable(tx));
    OK(fi_rx_context(sep, 0, NULL, &rx, NULL));
    OK(fi_ep_bind(rx, &came->fid, FI_RECV));
    OK(fi_enable(rx));
    show(own, &sep->fid);
    fi_addr_t to = find(av, peer);
    uint64_t first, last;
    OK(fi_trecv(rx, &first, 8, NULL, FI_ADDR_UNSPEC, FIRST, 0, &first));
    completion(came, sent, "the first message");
    ssize_t status;
    while ((status = fi_tsend(tx, &first, 8, NULL, to, ANSWER, &first)) == -FI_EAGAIN) fi_cq_read(came, NULL, 0);
    OK(status);
    completion(sent, came, "the answer");
    // In these 0.3 s the peer announces the long message.
    for (int turn = 0; turn < 300; turn++) {
        fi_cq_read(came, NULL, 0);
        usleep(1000);
    }
    OK(fi_trecv(rx, &last, 8, NULL, to, LAST, 0, &last));
    OK(fi_close(&tx->fid));
    for (int turn = 0; turn < 300; turn++) {
        fi_cq_read(came, NULL, 0);
        usleep(1000);
    }
    OK(fi_trecv(rx, bytes, LENGTH, NULL, FI_ADDR_UNSPEC, LONG, 0, bytes));
    completion(came, NULL, "the long message");
    completion(came, NULL, "the last message");
    for (size_t at = 0; at < LENGTH; at++) CHECK(bytes[at] == byte_of(at), "byte %zu", at);
    OK(fi_close(&rx->fid));
    OK(fi_close(&sep->fid));
    OK(fi_close(&av->fid));
    OK(fi_close(&sent->fid));
    OK(fi_close(&came->fid));
}

static void plain(const char *own, const char *peer) {
    struct side me;
    uint64_t value = 1, answer;
    open_side(&me, 0, 2);
    show(own, &me.ep->fid);
    fi_addr_t to = find(me.av, peer);
    OK(fi_trecv(me.ep, &answer, 8, NULL, FI_ADDR_UNSPEC, ANSWER, 0, &answer));
    const struct {
        const void *from;
        size_t len;
        uint64_t tag;
    } messages[] = {{&value, 8, FIRST}, {bytes, LENGTH, LONG}, {&value, 8, LAST}};
    for (size_t at = 0; at < LENGTH; at++) bytes[at] = byte_of(at);
    for (int i = 0; i < 3; i++) {
        ssize_t status;
        while ((status = fi_tsend(me.ep, messages[i].from, messages[i].len, NULL, to, messages[i].tag, &me)) == -FI_EAGAIN)
            fi_cq_read(me.cq, NULL, 0);
        OK(status);
        completion(me.cq, NULL, "a send");
        if (i == 0) completion(me.cq, NULL, "the answer");
    }
    close_side(&me);
}

int main(int count, char **words) {
    CHECK(count == 5, "closed_tx DIRECTORY OWN PEER WHAT");
    directory = words[1];
    open_domain(FI_MSG | FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    if (!strcmp(words[4], "scalable")) scalable(words[2], words[3]);
    else plain(words[2], words[3]);
    close_domain();
    printf("%s: 3 messages\n", words[2]);
    return 0;
}
