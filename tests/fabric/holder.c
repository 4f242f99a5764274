// SPDX-License-Identifier: BSD-2-Clause
// A member of a shared receive context closes while messages that it holds are being received. A
// receive whose message is lost with the member waits for the next message. No receive is lost.
#include "fabric.h"
#include <pthread.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV)
enum { ROUNDS = 200, MESSAGES = 16 };

static struct fid_ep *srx;
static struct fid_cq *cq;
static struct fid_av *av;
static pthread_barrier_t start;

static struct fid_ep *member(void) {
    struct fid_ep *ep;
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &srx->fid, 0));
    OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_enable(ep));
    return ep;
}

static fi_addr_t address_of(struct fid_ep *ep) {
    char name[64];
    size_t len = sizeof name;
    fi_addr_t address;
    OK(fi_getname(&ep->fid, name, &len));
    CHECK(fi_av_insert(av, name, 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

static void *closes(void *ep) {
    pthread_barrier_wait(&start);
    OK(fi_close(&((struct fid_ep *)ep)->fid));
    return NULL;
}

int main(void) {
    struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED};
    struct fi_av_attr of = {.type = FI_AV_TABLE, .count = 4};
    struct fi_cq_tagged_entry entry;
    struct side sender;
    static uint64_t in[MESSAGES];
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    OK(fi_cq_open(domain, &attr, &cq, NULL));
    OK(fi_av_open(domain, &of, &av, NULL));
    pthread_barrier_init(&start, NULL, 2);
    struct fid_ep *stays = member();
    open_side(&sender, 0, 4);
    fi_addr_t to_stays = insert(&sender, stays);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct fid_ep *leaves = member();
        fi_addr_t to = insert(&sender, leaves), self = address_of(leaves);
        for (uint64_t i = 0; i < MESSAGES; i++) OK(fi_tinject(sender.ep, &i, 8, to, round));
        for (double end = seconds() + 0.001; seconds() < end;) fi_cq_read(cq, NULL, 0);
        pthread_t thread;
        pthread_create(&thread, NULL, closes, leaves);
        pthread_barrier_wait(&start);
        for (int i = 0; i < MESSAGES; i++)
            OK(fi_trecv(srx, &in[i], 8, NULL, FI_ADDR_UNSPEC, round, 0, &in[i]));
        pthread_join(thread, NULL);
        // The messages that were lost with the closed member are sent again, to the other member.
        int done = 0;
        for (ssize_t count; (count = fi_cq_read(cq, &entry, 1)) != -FI_EAGAIN; done++)
            CHECK(count == 1, "round %lu: %zd", round, count);
        for (uint64_t i = done; i < MESSAGES; i++)
            while (fi_tinject(sender.ep, &i, 8, to_stays, round) == -FI_EAGAIN) fi_cq_read(cq, NULL, 0);
        double end = seconds() + within(10);
        while (done < MESSAGES) {
            ssize_t count = fi_cq_read(cq, &entry, 1);
            CHECK(count == 1 || count == -FI_EAGAIN, "round %lu: %zd", round, count);
            done += count == 1;
            CHECK(seconds() < end, "round %lu: %d of %d receives ended", round, done, MESSAGES);
        }
        OK(fi_av_remove(sender.av, &to, 1, 0));
        OK(fi_av_remove(av, &self, 1, 0));
    }
    OK(fi_close(&stays->fid));
    OK(fi_close(&srx->fid));
    OK(fi_close(&cq->fid));
    OK(fi_close(&av->fid));
    close_side(&sender);
    close_domain();
    puts("holder: ok");
}
