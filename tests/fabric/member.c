// SPDX-License-Identifier: BSD-2-Clause
// A peer of a shared receive context dies. Its last message, to one member, reaches a posted receive,
// although the other member notices the death first. Later receives that name the peer fail.
#include "fabric.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)
#define LIMIT 5.0 // seconds until all operations with the dead peer have ended
enum { FOUND_OUT, SENT_TO, MEMBERS };

struct name { char bytes[64]; };
static struct fid_ep *srx, *members[MEMBERS];
static struct fid_cq *cqs[MEMBERS];
static struct fid_av *av;
static char buffer[8];

static struct name name_of(struct fid_ep *ep) {
    struct name name = {{0}};
    size_t len = sizeof name.bytes;
    OK(fi_getname(&ep->fid, name.bytes, &len));
    return name;
}

static fi_addr_t known(const struct name *name) {
    fi_addr_t address;
    CHECK(fi_av_insert(av, name->bytes, 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

// The peer. It sends a message to one member and, after a byte from the parent, a message to the
// other member. Then it kills itself.
static void peer(int from, int to) {
    struct side side;
    struct name names[MEMBERS];
    char go;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm((unsigned)within(30));
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    open_side(&side, 0, MEMBERS);
    av = side.av;
    struct name own = name_of(side.ep);
    CHECK(write(to, &own, sizeof own) == sizeof own, "write");
    CHECK(read(from, names, sizeof names) == sizeof names, "read");
    OK(fi_tinject(side.ep, "first", 6, known(&names[FOUND_OUT]), 1));
    CHECK(read(from, &go, 1) == 1, "read");
    OK(fi_tinject(side.ep, "last", 5, known(&names[SENT_TO]), 1));
    kill(getpid(), SIGKILL);
}

static ssize_t read_one(int member, struct fi_cq_tagged_entry *entry, double longest) {
    ssize_t count;
    double end = seconds() + longest;
    while ((count = fi_cq_read(cqs[member], entry, 1)) == -FI_EAGAIN && seconds() < end);
    return count;
}

static void post(fi_addr_t from) {
    OK(fi_trecv(srx, buffer, sizeof buffer, NULL, from, 1, 0, buffer));
}

int main(void) {
    int there[2], back[2];
    CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) peer(there[0], back[1]);

    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    struct name names[MEMBERS], name;
    for (int i = 0; i < MEMBERS; i++) {
        OK(fi_cq_open(domain, &cq_attr, &cqs[i], NULL));
        OK(fi_endpoint(domain, info, &members[i], NULL));
        OK(fi_ep_bind(members[i], &av->fid, 0));
        OK(fi_ep_bind(members[i], &cqs[i]->fid, FI_TRANSMIT | FI_RECV));
        OK(fi_ep_bind(members[i], &srx->fid, 0));
        OK(fi_enable(members[i]));
        names[i] = name_of(members[i]);
    }
    CHECK(read(back[0], &name, sizeof name) == sizeof name, "read");
    fi_addr_t from = known(&name);
    CHECK(write(there[1], names, sizeof names) == sizeof names, "write");
    struct fi_cq_tagged_entry entry;
    post(from);
    CHECK(read_one(FOUND_OUT, &entry, within(LIMIT)) == 1 && !strcmp(buffer, "first"), "%s", buffer);

    // Only FOUND_OUT is polled for 0.3 s, so that it notices the death first. With automatic
    // progress, the device thread polls both members.
    post(from);
    CHECK(write(there[1], "g", 1) == 1, "write");
    CHECK(waitpid(pid, NULL, 0) == pid, "wait");
    ssize_t early = read_one(FOUND_OUT, &entry, 0.3);
    CHECK(early == -FI_EAGAIN, "%zd", early);
    CHECK(read_one(SENT_TO, &entry, within(LIMIT)) == 1 && !strcmp(buffer, "last"), "%s", buffer);

    post(from);
    struct fi_cq_err_entry failure = {0};
    ssize_t count = -FI_EAGAIN;
    int at = 0;
    double start = seconds();
    while (count == -FI_EAGAIN && seconds() - start < within(LIMIT))
        count = fi_cq_read(cqs[at = (at + 1) % MEMBERS], &entry, 1);
    CHECK(count == -FI_EAVAIL, "%zd", count);
    CHECK(fi_cq_readerr(cqs[at], &failure, 0) == 1 && failure.err == ECONNABORTED, "%d", failure.err);
    for (int i = 0; i < MEMBERS; i++) OK(fi_close(&members[i]->fid));
    OK(fi_close(&srx->fid));
    for (int i = 0; i < MEMBERS; i++) OK(fi_close(&cqs[i]->fid));
    OK(fi_close(&av->fid));
    close_domain();
    puts("member: ok");
}
