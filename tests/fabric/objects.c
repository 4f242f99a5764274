// SPDX-License-Identifier: BSD-2-Clause
// Tests counters, event queues, address vectors, waiting, and calls that must fail.
#include "fabric.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>

static struct side a, b;

static void counters(void) {
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fid_cntr *sent, *received;
    struct side side = {0};
    struct fi_av_attr av = {.type = FI_AV_MAP};
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT};
    OK(fi_cntr_open(domain, &attr, &sent, NULL));
    OK(fi_cntr_open(domain, &attr, &received, NULL));
    OK(fi_endpoint(domain, info, &side.ep, NULL));
    OK(fi_cq_open(domain, &cq, &side.cq, NULL));
    OK(fi_av_open(domain, &av, &side.av, NULL));
    FAILS(FI_ENOAV, fi_enable(side.ep));
    OK(fi_ep_bind(side.ep, &side.av->fid, 0));
    FAILS(FI_ENOCQ, fi_enable(side.ep));
    OK(fi_ep_bind(side.ep, &side.cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(side.ep, &sent->fid, FI_SEND));
    OK(fi_ep_bind(side.ep, &received->fid, FI_RECV));
    OK(fi_enable(side.ep));
    side.self = insert(&side, side.ep);
    char byte = 1;
    for (int i = 0; i < 5; i++) {
        OK(fi_recv(side.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, NULL));
        OK(fi_inject(side.ep, &byte, 1, side.self));
    }
    OK(fi_cntr_wait(received, 5, (int)within(5000)));
    CHECK(fi_cntr_read(sent) == 5 && fi_cntr_read(received) == 5, "counts");
    OK(fi_recv(side.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
    OK(fi_cancel(&side.ep->fid, &byte));
    CHECK(fi_cntr_readerr(received) == 1, "errors");
    FAILS(FI_ETIMEDOUT, fi_cntr_wait(received, 100, 20));
    OK(fi_cntr_set(received, 90));
    OK(fi_cntr_add(received, 10));
    OK(fi_cntr_wait(received, 100, 20));
    FAILS(FI_EBUSY, fi_close(&received->fid));
    close_side(&side);
    OK(fi_close(&sent->fid));
    OK(fi_close(&received->fid));
}

// A failed bind leaves earlier bindings intact; objects of another domain cannot be bound.
static void binding(void) {
    struct fi_cntr_attr attr = {.events = FI_CNTR_EVENTS_COMP};
    struct fi_eq_attr eq_attr = {.wait_obj = FI_WAIT_NONE};
    struct fid_domain *first = domain, *second;
    struct fid_cntr *sent, *other;
    struct fid_poll *set;
    struct fid_stx *stx;
    struct fid_ep *srx;
    struct fid_eq *eq;
    struct side mine, theirs;
    OK(fi_domain(fabric, info, &second, NULL));
    domain = second;
    open_unbound(&theirs, 0, 1);
    OK(fi_srx_context(second, info->rx_attr, &srx, NULL));
    OK(fi_stx_context(second, info->tx_attr, &stx, NULL));
    OK(fi_cntr_open(second, &attr, &other, NULL));
    domain = first;
    OK(fi_endpoint(domain, info, &mine.ep, NULL));
    FAILS(FI_EDOMAIN, fi_ep_bind(mine.ep, &theirs.cq->fid, FI_TRANSMIT | FI_RECV));
    FAILS(FI_EDOMAIN, fi_ep_bind(mine.ep, &theirs.av->fid, 0));
    FAILS(FI_EDOMAIN, fi_ep_bind(mine.ep, &other->fid, FI_SEND));
    FAILS(FI_EDOMAIN, fi_ep_bind(mine.ep, &srx->fid, 0));
    FAILS(FI_EDOMAIN, fi_ep_bind(mine.ep, &stx->fid, 0));
    OK(fi_poll_open(domain, &(struct fi_poll_attr){0}, &set));
    FAILS(FI_EDOMAIN, fi_poll_add(set, &other->fid, 0));
    OK(fi_close(&set->fid));
    OK(fi_close(&mine.ep->fid));
    OK(fi_close(&other->fid));
    OK(fi_close(&stx->fid));
    OK(fi_close(&srx->fid));
    close_side(&theirs);
    OK(fi_close(&second->fid));

    open_unbound(&mine, 0, 2);
    OK(fi_cntr_open(domain, &attr, &sent, NULL));
    OK(fi_cntr_open(domain, &attr, &other, NULL));
    OK(fi_eq_open(fabric, &eq_attr, &eq, NULL));
    OK(fi_ep_bind(mine.ep, &eq->fid, 0));
    FAILS(FI_EBUSY, fi_close(&eq->fid));
    OK(fi_ep_bind(mine.ep, &sent->fid, FI_SEND));
    FAILS(FI_EINVAL, fi_ep_bind(mine.ep, &other->fid, FI_SEND | FI_RECV));
    FAILS(FI_EBADFLAGS, fi_ep_bind(mine.ep, &other->fid, FI_RECV | FI_PEEK));
    FAILS(FI_EINVAL, fi_ep_bind(mine.ep, &a.av->fid, 0));
    OK(fi_ep_bind(mine.ep, &other->fid, FI_RECV));
    OK(fi_enable(mine.ep));
    mine.self = insert(&mine, mine.ep);
    OK(fi_inject(mine.ep, "x", 1, mine.self));
    CHECK(fi_cntr_read(sent) == 1 && fi_cntr_read(other) == 0, "%lu", fi_cntr_read(other));
    close_side(&mine);
    OK(fi_close(&sent->fid));
    OK(fi_close(&other->fid));
    OK(fi_close(&eq->fid));
}

static void options(void) {
    size_t value = 5, len = sizeof value;
    OK(fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, sizeof value));
    FAILS(FI_ENOPROTOOPT, fi_getopt(&a.ep->fid, FI_OPT_ENDPOINT, 99, &value, &len));
    FAILS(FI_ENOPROTOOPT, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, 99, &value, sizeof value));
    FAILS(FI_ENOPROTOOPT, fi_setopt(&a.ep->fid, 99, FI_OPT_MIN_MULTI_RECV, &value, sizeof value));
    FAILS(FI_EINVAL, fi_setopt(&a.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &value, 1));
}

static void event_queue(void) {
    struct fi_eq_attr attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_eq_entry entry = {.data = 5}, read = {0};
    struct fid_eq *eq;
    uint32_t event;
    OK(fi_eq_open(fabric, &attr, &eq, NULL));
    FAILS(FI_EBADFLAGS, fi_domain_bind(domain, &eq->fid, FI_REG_MR));
    FAILS(FI_EAGAIN, fi_eq_read(eq, &event, &read, sizeof read, 0));
    FAILS(FI_EAGAIN, fi_eq_sread(eq, &event, &read, sizeof read, 10, 0));
    CHECK(fi_eq_write(eq, FI_NOTIFY, &entry, sizeof entry, 0) == sizeof entry, "write");
    CHECK(fi_eq_read(eq, &event, &read, sizeof read, FI_PEEK) == sizeof read, "peek");
    FAILS(FI_ETOOSMALL, fi_eq_read(eq, &event, &read, 8, 0));
    CHECK(fi_eq_sread(eq, &event, &read, sizeof read, 1000, 0) == sizeof read, "read");
    CHECK(event == FI_NOTIFY && read.data == 5, "event %u", event);

    // An insertion that reports to the event queue.
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .flags = FI_EVENT};
    struct fid_av *av;
    struct sockaddr_in address[2] = {{.sin_family = AF_INET, .sin_port = htons(5), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
                                     {.sin_family = AF_UNIX}};
    fi_addr_t addresses[2];
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    FAILS(FI_ENOEQ, fi_av_insert(av, address, 2, addresses, 0, &av));
    OK(fi_av_bind(av, &eq->fid, 0));
    OK(fi_av_insert(av, address, 2, addresses, 0, &av));
    struct fi_eq_err_entry failure = {0};
    FAILS(FI_EAVAIL, fi_eq_read(eq, &event, &read, sizeof read, 0));
    CHECK(fi_eq_readerr(eq, &failure, 0) == sizeof failure && failure.data == 1 && failure.err == FI_EINVAL, "%d", failure.err);
    CHECK(fi_eq_read(eq, &event, &read, sizeof read, 0) == sizeof read, "no event");
    CHECK(event == FI_AV_COMPLETE && read.data == 1 && read.fid == &av->fid && read.context == &av, "%lu", read.data);
    OK(fi_close(&av->fid));
    OK(fi_close(&eq->fid));
}

static void address_vector(void) {
    struct fi_av_attr attr = {.type = FI_AV_TABLE, .count = 16};
    struct fid_av *av;
    fi_addr_t address, again;
    char text[64];
    struct sockaddr_in found;
    size_t len = sizeof found, text_len = sizeof text;
    int errors[1] = {77};
    struct sockaddr_in wrong = {.sin_family = AF_INET6};
    OK(fi_av_open(domain, &attr, &av, NULL));
    CHECK(fi_av_insertsvc(av, "127.0.0.1", "4711", &address, 0, NULL) == 1, "insertsvc");
    CHECK(address == 0, "the first index of a table is 0, not %lu", address);
    OK(fi_av_lookup(av, address, &found, &len));
    CHECK(len == sizeof found && ntohs(found.sin_port) == 4711, "lookup");
    CHECK(!strcmp(fi_av_straddr(av, &found, text, &text_len), "fi_sockaddr_in://127.0.0.1:4711"), "%s", text);
    CHECK(fi_av_insert(av, &wrong, 1, &again, FI_SYNC_ERR, errors) == 0, "a wrong address was inserted");
    CHECK(errors[0] == FI_EINVAL && again == FI_ADDR_NOTAVAIL, "%d", errors[0]);
    OK(fi_av_remove(av, &address, 1, 0));
    FAILS(FI_EINVAL, fi_av_lookup(av, address, &found, &len));
    FAILS(FI_EINVAL, fi_av_remove(av, &address, 1, 0));
    for (int i = 0; i < 1000; i++)
        CHECK(fi_av_insertsvc(av, "127.0.0.1", "4712", NULL, 0, NULL) == 1, "insertsvc %d", i);
    // The lowest index is reused first.
    static const fi_addr_t some[] = {7, 3, 5};
    OK(fi_av_remove(av, (fi_addr_t *)some, 3, 0));
    CHECK(fi_av_insertsvc(av, "127.0.0.1", "4711", &address, 0, NULL) == 1 && address == 3, "%lu", address);
    CHECK(fi_av_insertsvc(av, "127.0.0.1", "4711", &address, 0, NULL) == 1 && address == 5, "%lu", address);
    OK(fi_close(&av->fid));
    // The time of a removal must not grow with the number of addresses. It once did, and these removals
    // took 4 s.
    OK(fi_av_open(domain, &attr, &av, NULL));
    struct sockaddr_in many = {.sin_family = AF_INET, .sin_port = htons(5), .sin_addr.s_addr = htonl(0x0a000001)};
    for (int i = 0; i < 40000; i++) CHECK(fi_av_insert(av, &many, 1, &again, 0, NULL) == 1, "insert %d", i);
    double start = seconds();
    for (address = 0; address < 40000; address++) OK(fi_av_remove(av, &address, 1, 0));
    CHECK(seconds() - start < within(2), "%.1f s", seconds() - start);
    OK(fi_close(&av->fid));
}

static void *send_later(void *arg) {
    struct timespec wait = {.tv_nsec = 30 * 1000 * 1000};
    nanosleep(&wait, NULL);
    OK(arg ? fi_cq_signal(b.cq) : (int)fi_inject(a.ep, "x", 1, a.peer));
    return NULL;
}

static void waiting(void) {
    char byte;
    struct fi_cq_tagged_entry entry;
    pthread_t thread;
    double start = seconds();
    FAILS(FI_EAGAIN, fi_cq_sread(b.cq, &entry, 1, NULL, 50));
    CHECK(seconds() - start >= 0.045, "returned early");
    OK(fi_recv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
    OK(pthread_create(&thread, NULL, send_later, NULL));
    CHECK(fi_cq_sread(b.cq, &entry, 1, NULL, (int)within(5000)) == 1, "sread");
    OK(pthread_join(thread, NULL));
    OK(pthread_create(&thread, NULL, send_later, &byte));
    start = seconds();
    FAILS(FI_EAGAIN, fi_cq_sread(b.cq, &entry, 1, NULL, (int)within(5000)));
    CHECK(seconds() - start < within(4), "slept through a signal");
    OK(pthread_join(thread, NULL));
}

// Programs for libfabric before 1.5 have shorter error entries.
static void old_program(void) {
    struct fi_info *hints = fi_allocinfo(), *of_now = info;
    struct fid_fabric *fabric_of_now = fabric;
    struct fid_domain *domain_of_now = domain;
    struct { char entry[72]; uint64_t behind; } failure = {.behind = 7};
    struct side side;
    char byte;
    hints->fabric_attr->prov_name = strdup("tcam");
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->data_progress = progress;
    OK(fi_getinfo(FI_VERSION(1, 4), NULL, NULL, 0, hints, &info));
    OK(fi_fabric(info->fabric_attr, &fabric, NULL));
    OK(fi_domain(fabric, info, &domain, NULL));
    open_side(&side, 0, 1);
    OK(fi_recv(side.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
    OK(fi_cancel(&side.ep->fid, &byte));
    CHECK(fi_cq_readerr(side.cq, (struct fi_cq_err_entry *)&failure, 0) == 1, "no error");
    CHECK(failure.behind == 7, "%#lx", failure.behind);
    close_side(&side);
    close_domain();
    info = of_now, fabric = fabric_of_now, domain = domain_of_now;
    fi_freeinfo(hints);
}

// An endpoint can only have an address of this host.
static void sources(void) {
    struct sockaddr_in near = {.sin_family = AF_INET}, far = near;
    struct fi_info *hints = fi_dupinfo(info), *found = NULL;
    struct fid_ep *ep;
    inet_pton(AF_INET, "127.0.0.1", &near.sin_addr);
    inet_pton(AF_INET, "240.0.0.1", &far.sin_addr);
    FAILS(FI_ENODATA, fi_getinfo(FI_VERSION(1, 14), "240.0.0.1", "0", FI_SOURCE, NULL, &found));
    free(hints->src_addr);
    hints->src_addrlen = sizeof far;
    hints->src_addr = memcpy(malloc(sizeof far), &far, sizeof far);
    FAILS(FI_ENODATA, fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &found));
    FAILS(FI_ENODATA, fi_getinfo(FI_VERSION(1, 14), "127.0.0.1", "4711", 0, hints, &found));
    memcpy(hints->src_addr, &near, sizeof near);
    OK(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &found));
    OK(fi_endpoint(domain, found, &ep, NULL));
    OK(fi_close(&ep->fid));
    fi_freeinfo(found);
    fi_freeinfo(hints);
}

// Hints that cannot be met are refused.
static void refused(void) {
    for (int i = 0; i < 5; i++) {
        struct fi_info *hints = fi_allocinfo(), *found = NULL;
        hints->fabric_attr->prov_name = strdup("tcam");
        switch (i) {
        case 0: hints->caps = FI_HMEM; break;
        case 1: hints->ep_attr->type = FI_EP_MSG; break;
        case 2: hints->domain_attr->name = strdup("eth0"); break;
        case 3: hints->tx_attr->inject_size = 1 << 20; break;
        case 4: hints->tx_attr->comp_order = FI_ORDER_STRICT; break;
        }
        FAILS(FI_ENODATA, fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &found));
        fi_freeinfo(hints);
    }
    struct fi_info *found = NULL;
    FAILS(FI_ENODATA, fi_getinfo(FI_VERSION(1, 14), "no.such.host.invalid", "1", 0, info, &found));
    OK(fi_getinfo(FI_VERSION(1, 14), "127.0.0.1", "4711", 0, info, &found));
    CHECK(found->dest_addrlen == 16 && found->src_addrlen == 16, "addresses");
    fi_freeinfo(found);
}

int main(void) {
    open_domain(FI_MSG | FI_TAGGED, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    counters();
    binding();
    options();
    event_queue();
    address_vector();
    waiting();
    refused();
    sources();
    old_program();
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("objects: ok");
}
