// SPDX-License-Identifier: BSD-2-Clause
// Tests an address vector that processes share by name, and the addresses of peers in completions.
#include "fabric.h"
#include <sys/wait.h>
#include <unistd.h>

static struct side a, b;
static char name[64];

static struct fid_av *open_av(uint64_t flags, fi_addr_t **map) {
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = 8, .name = name, .flags = flags};
    struct fid_av *av;
    OK(fi_av_open(domain, &attr, &av, NULL));
    CHECK(attr.map_addr, "no map");
    *map = attr.map_addr;
    return av;
}

static struct fid_ep *endpoint(struct fid_av *av, struct fid_cq **cq) {
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fid_ep *ep;
    OK(fi_cq_open(domain, &attr, cq, NULL));
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_ep_bind(ep, &(*cq)->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_enable(ep));
    return ep;
}

// A child opens the address vector read-only, finds the addresses that its parent inserts, and sends
// to one of them.
static void processes(void) {
    int ready[2], inserted[2], status;
    char byte, address[16];
    OK(pipe(ready));
    OK(pipe(inserted));
    snprintf(name, sizeof name, "test-%d", getpid());
    pid_t child = fork();
    open_domain(FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV | FI_SHARED_AV, FI_THREAD_DOMAIN, 0);
    struct fid_cq *cq;
    struct fi_cq_tagged_entry entry;
    fi_addr_t *map, found, from;
    if (!child) {
        CHECK(read(ready[0], &byte, 1) == 1, "read");
        struct fid_av *av = open_av(FI_READ, &map);
        CHECK(map[0] == FI_ADDR_NOTAVAIL, "%lu", map[0]);
        struct fid_ep *ep = endpoint(av, &cq);
        size_t len = 16;
        OK(fi_getname(&ep->fid, address, &len));
        FAILS(FI_EACCES, fi_av_insert(av, address, 1, &found, 0, NULL));
        CHECK(write(inserted[1], address, 16) == 16, "write");
        CHECK(read(ready[0], &byte, 1) == 1, "read");
        CHECK(map[0] == 0 && map[1] == 1 && map[2] == FI_ADDR_NOTAVAIL, "%lu %lu", map[0], map[1]);
        OK(fi_tinject(ep, "hello", 6, map[0], 1));
        FAILS(FI_EINVAL, fi_tinject(ep, "hello", 6, 2, 1));
        CHECK(read(ready[0], &byte, 1) == 1, "read");
        FAILS(FI_EINVAL, fi_tinject(ep, "hello", 6, 0, 1));
        OK(fi_close(&ep->fid));
        OK(fi_close(&cq->fid));
        OK(fi_close(&av->fid));
        close_domain();
        _exit(0);
    }
    struct fid_av *av = open_av(0, &map);
    struct fid_ep *ep = endpoint(av, &cq);
    CHECK(write(ready[1], "x", 1) == 1, "write");
    char theirs[16], ours[16], text[6];
    size_t len = 16;
    CHECK(read(inserted[0], theirs, 16) == 16, "read");
    OK(fi_getname(&ep->fid, ours, &len));
    CHECK(fi_av_insert(av, ours, 1, &found, 0, NULL) == 1 && found == 0, "%lu", found);
    CHECK(fi_av_insert(av, theirs, 1, &found, 0, NULL) == 1 && found == 1, "%lu", found);
    OK(fi_trecv(ep, text, 6, NULL, found, 1, 0, text));
    CHECK(write(ready[1], "x", 1) == 1, "write");
    double end = seconds() + within(10);
    ssize_t count;
    while ((count = fi_cq_readfrom(cq, &entry, 1, &from)) == -FI_EAGAIN && seconds() < end);
    CHECK(count == 1 && from == 1 && !strcmp(text, "hello"), "%zd from %lu", count, from);
    found = 0;
    OK(fi_av_remove(av, &found, 1, 0));
    CHECK(map[0] == FI_ADDR_NOTAVAIL, "%lu", map[0]);
    CHECK(write(ready[1], "x", 1) == 1, "write");
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
    // Removed indices are reused; there is room for the requested number.
    CHECK(fi_av_insert(av, ours, 1, &found, 0, NULL) == 1 && found == 0, "%lu", found);
    OK(fi_close(&ep->fid));
    OK(fi_close(&cq->fid));
    OK(fi_close(&av->fid));
    struct fi_av_attr attr = {.name = name, .flags = FI_READ};
    FAILS(FI_ENOENT, fi_av_open(domain, &attr, &av, NULL));
    attr.name = NULL;
    FAILS(FI_EINVAL, fi_av_open(domain, &attr, &av, NULL));
    close_domain();
}

static fi_addr_t source_of_message(struct fid_ep *from, struct fid_ep *to, struct fid_cq *cq) {
    struct fi_cq_tagged_entry entry;
    fi_addr_t source;
    ssize_t count;
    OK(fi_trecv(to, NULL, 0, NULL, FI_ADDR_UNSPEC, 1, 0, cq));
    OK(fi_tinject(from, NULL, 0, 0, 1));
    double end = seconds() + within(10);
    while ((count = fi_cq_readfrom(cq, &entry, 1, &source)) == -FI_EAGAIN && seconds() < end);
    CHECK(count == 1, "%zd", count);
    return source;
}

// Two openers share an address vector. One inserts an endpoint at an index that it has freed. The other
// finds the endpoint at this index.
static void reused(void) {
    fi_addr_t *map, at;
    char bytes[16];
    struct fid_cq *cqs[3];
    struct fid_ep *eps[3];
    open_domain(FI_TAGGED | FI_SOURCE | FI_DIRECTED_RECV | FI_SHARED_AV, FI_THREAD_DOMAIN, 0);
    struct fid_av *theirs = open_av(0, &map), *own = open_av(0, &map);
    for (int i = 0; i < 3; i++) eps[i] = endpoint(i ? theirs : own, &cqs[i]);
    for (int i = 0; i < 3; i++) {
        size_t len = sizeof bytes;
        at = 1;
        if (i == 2) OK(fi_av_remove(theirs, &at, 1, 0));
        OK(fi_getname(&eps[i]->fid, bytes, &len));
        CHECK(fi_av_insert(theirs, bytes, 1, &at, 0, NULL) == 1 && at == (i > 0), "%lu", at);
        if (i) CHECK((at = source_of_message(eps[i], eps[0], cqs[0])) == 1, "%d from %lu", i, at);
    }
    for (int i = 0; i < 3; i++) {
        OK(fi_close(&eps[i]->fid));
        OK(fi_close(&cqs[i]->fid));
    }
    OK(fi_close(&own->fid));
    OK(fi_close(&theirs->fid));
    close_domain();
}

static fi_addr_t source_of_next(void) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t source = 0;
    uint64_t value = 0;
    OK(fi_trecv(b.ep, &value, 8, NULL, FI_ADDR_UNSPEC, 1, 0, &value));
    OK(fi_tinject(a.ep, &value, 8, a.peer, 1));
    CHECK(!next_entry(&b, &a, &entry, &source, &failure), "error");
    return source;
}

// If an address is inserted with FI_AV_USER_ID, completions contain the identifier of the user
// instead of the address.
static void user_ids(void) {
    open_domain(FI_TAGGED | FI_SOURCE, FI_THREAD_DOMAIN, 0);
    open_side(&a, 0, 2);
    open_side(&b, 0, 2);
    a.peer = insert(&a, b.ep);
    char theirs[16];
    size_t len = 16;
    OK(fi_getname(&a.ep->fid, theirs, &len));
    fi_addr_t address = 4711;
    CHECK(fi_av_insert(b.av, theirs, 1, &address, FI_AV_USER_ID, NULL) == 1, "not inserted");
    CHECK(address == 0, "%lu", address);
    CHECK(source_of_next() == 4711, "user id");
    OK(fi_av_remove(b.av, &address, 1, 0));
    CHECK(source_of_next() == FI_ADDR_NOTAVAIL, "removed");
    CHECK(fi_av_insert(b.av, theirs, 1, &address, 0, NULL) == 1, "not inserted");
    CHECK(source_of_next() == address, "address");
    FAILS(FI_EINVAL, fi_av_insert(b.av, theirs, 1, NULL, FI_AV_USER_ID, NULL));
    close_side(&a);
    close_side(&b);
    close_domain();
}

int main(void) {
    alarm((unsigned)within(50));
    processes();
    reused();
    user_ids();
    puts("shared_av: ok");
}
