// SPDX-License-Identifier: BSD-2-Clause
// A thread sleeps in fi_cq_sread without timeout. Meanwhile another thread closes the endpoint of the
// queue and binds other endpoints to the queue. fi_close does not wait for the sleeping thread, and a
// message to the last endpoint wakes that thread.
#include "fabric.h"
#include <pthread.h>
#include <unistd.h>

static struct fid_cq *cq;
static struct fid_av *av;
static char in[8];

static void *sleeps(void *arg) {
    struct fi_cq_tagged_entry entry;
    // -FI_EAGAIN means that there was no entry, and that the program must repeat the call.
    ssize_t count;
    while ((count = fi_cq_sread(cq, &entry, 1, NULL, -1)) == -FI_EAGAIN) {}
    CHECK(count == 1 && entry.op_context == in, "%zd", count);
    return arg;
}

static struct fid_ep *open_ep(void) {
    struct fid_ep *ep;
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_enable(ep));
    return ep;
}

int main(void) {
    static const enum fi_wait_obj objects[] = {FI_WAIT_UNSPEC, FI_WAIT_FD};
    alarm((unsigned)within(30));
    open_domain(FI_MSG | FI_TAGGED, FI_THREAD_SAFE, 0);
    for (int i = 0; i < 2; i++) {
        struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = objects[i]};
        struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
        struct side other;
        pthread_t thread;
        OK(fi_cq_open(domain, &attr, &cq, NULL));
        OK(fi_av_open(domain, &av_attr, &av, NULL));
        struct fid_ep *ep = open_ep();
        OK(pthread_create(&thread, NULL, sleeps, NULL));
        usleep(300000);
        for (int round = 0; round < 3; round++) {
            double began = seconds();
            OK(fi_close(&ep->fid));
            usleep(100000);
            ep = open_ep();
            CHECK(seconds() < began + within(1.5), "round %d took %.3f s", round, seconds() - began);
        }
        usleep(300000);
        OK(fi_trecv(ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
        open_side(&other, 0, 1);
        double began = seconds();
        OK(fi_tinject(other.ep, "message", 8, insert(&other, ep), 1));
        OK(pthread_join(thread, NULL));
        CHECK(seconds() < began + within(1), "the sleeper slept for %.3f s", seconds() - began);
        close_side(&other);
        OK(fi_close(&ep->fid));
        OK(fi_close(&cq->fid));
        OK(fi_close(&av->fid));
    }
    close_domain();
    printf("rebind: ok\n");
    return 0;
}
