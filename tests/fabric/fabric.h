// SPDX-License-Identifier: BSD-2-Clause
// Common code of the clients of libtcam-fi.so: opening endpoints, and checks that print the error.
#pragma once
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CHECK(condition, ...)                                              \
    do {                                                                   \
        if (!(condition)) {                                                \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                  \
            fputc('\n', stderr);                                           \
            exit(1);                                                       \
        }                                                                  \
    } while (0)

// Checks that a call of libfabric succeeds.
#define OK(call)                                                           \
    do {                                                                   \
        long status_ = (long)(call);                                       \
        CHECK(status_ == 0, "%ld (%s)", status_, fi_strerror((int)-status_)); \
    } while (0)

// Checks that a call fails with this error.
#define FAILS(error, call)                                                 \
    do {                                                                   \
        long status_ = (long)(call);                                       \
        CHECK(status_ == -(error), "%ld, not %d", status_, -(error));      \
    } while (0)

// An endpoint with its queue and its address vector, which contains the endpoint itself and its peer.
struct side {
    struct fid_ep *ep;
    struct fid_cq *cq;
    struct fid_av *av;
    fi_addr_t self, peer;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
// API version that open_domain requests.
static uint32_t api = FI_VERSION(1, 14);
// Progress model that open_domain requests; FI_PROGRESS_AUTO if AUTO_PROGRESS is set in the
// environment.
static enum fi_progress progress = FI_PROGRESS_MANUAL;

static void open_domain(uint64_t caps, enum fi_threading threading, uint64_t tx_flags) {
    struct fi_info *hints = fi_allocinfo();
    if (getenv("AUTO_PROGRESS")) progress = FI_PROGRESS_AUTO;
    hints->caps = caps;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup("tcam");
    hints->domain_attr->threading = threading;
    hints->domain_attr->mr_mode =
        FI_MR_ENDPOINT | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->data_progress = progress;
    hints->tx_attr->op_flags = tx_flags;
    OK(fi_getinfo(api, NULL, NULL, 0, hints, &info));
    CHECK(!strcmp(info->fabric_attr->prov_name, "tcam"), "%s", info->fabric_attr->prov_name);
    CHECK(info->domain_attr->data_progress == progress, "%d", info->domain_attr->data_progress);
    fi_freeinfo(hints);
    OK(fi_fabric(info->fabric_attr, &fabric, NULL));
    OK(fi_domain(fabric, info, &domain, NULL));
}

static void close_domain(void) {
    OK(fi_close(&domain->fid));
    OK(fi_close(&fabric->fid));
    fi_freeinfo(info);
}

// Opens the domain of a named provider, for tagged messages.
static void open_named(const char *provider, enum fi_threading level) {
    struct fi_info *hints = fi_allocinfo();
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->fabric_attr->prov_name = strdup(provider);
    hints->domain_attr->threading = level;
    OK(fi_getinfo(FI_VERSION(1, 14), NULL, NULL, 0, hints, &info));
    fi_freeinfo(hints);
    OK(fi_fabric(info->fabric_attr, &fabric, NULL));
    OK(fi_domain(fabric, info, &domain, NULL));
}

// Opens an endpoint to which more can be bound before it is enabled.
static void open_unbound(struct side *side, uint64_t cq_flags, size_t av_count) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = av_count};
    OK(fi_endpoint(domain, info, &side->ep, NULL));
    OK(fi_cq_open(domain, &cq, &side->cq, NULL));
    OK(fi_av_open(domain, &av, &side->av, NULL));
    OK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV | cq_flags));
    OK(fi_ep_bind(side->ep, &side->av->fid, 0));
}

static void open_side(struct side *side, uint64_t cq_flags, size_t av_count) {
    open_unbound(side, cq_flags, av_count);
    OK(fi_enable(side->ep));
}

static fi_addr_t insert(struct side *side, struct fid_ep *ep) {
    char name[64];
    size_t len = sizeof name;
    fi_addr_t address;
    OK(fi_getname(&ep->fid, name, &len));
    CHECK(fi_av_insert(side->av, name, 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

// Inserts two endpoints into each other's address vectors, and each into its own one.
static void meet(struct side *a, struct side *b) {
    a->self = insert(a, a->ep);
    a->peer = insert(a, b->ep);
    b->self = insert(b, b->ep);
    b->peer = insert(b, a->ep);
}

// Opens two endpoints of this process that know each other and themselves.
static void open_pair(struct side *a, struct side *b, uint64_t cq_flags) {
    open_side(a, cq_flags, 2);
    open_side(b, cq_flags, 2);
    meet(a, b);
}

static void close_side(struct side *side) {
    OK(fi_close(&side->ep->fid));
    OK(fi_close(&side->cq->fid));
    OK(fi_close(&side->av->fid));
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Factor by which programs take longer here than on a quiet machine (tests/lib/slowness.py).
static double slowness = 1;

__attribute__((constructor)) static void read_slowness(void) {
    const char *measured = getenv("TCAM_TEST_SLOWNESS");
    if (measured && atof(measured) > 1) slowness = atof(measured);
}

// Scales a time limit for a quiet machine, in any unit, by the slowness.
static double within(double limit) {
    return limit * slowness;
}

// Waits for the next completion of `side`, while `other` makes progress as well. Returns 0, or the
// error of the error entry in `failure`.
static int next_entry(struct side *side, struct side *other, struct fi_cq_tagged_entry *entry,
                      fi_addr_t *source, struct fi_cq_err_entry *failure) {
    double end = seconds() + within(20);
    while (seconds() < end) {
        if (other) fi_cq_read(other->cq, NULL, 0);
        ssize_t count = fi_cq_readfrom(side->cq, entry, 1, source);
        if (count == 1) return 0;
        if (count == -FI_EAVAIL) {
            memset(failure, 0, sizeof *failure);
            CHECK(fi_cq_readerr(side->cq, failure, 0) == 1, "no error entry");
            return failure->err;
        }
        CHECK(count == -FI_EAGAIN, "fi_cq_readfrom: %zd", count);
    }
    CHECK(0, "no completion within %.0f s", within(20));
    return -1;
}

// Like next_entry, and checks that the operation succeeded and has this context. Returns its completion.
static struct fi_cq_tagged_entry next_ok(struct side *side, struct side *other, void *context) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t source;
    int error = next_entry(side, other, &entry, &source, &failure);
    CHECK(error == 0, "error %d (%s)", error, fi_strerror(error));
    CHECK(entry.op_context == context, "context %p, not %p", entry.op_context, context);
    return entry;
}

// Like next_entry, and checks that the operation failed with this error. Returns the error entry.
static struct fi_cq_err_entry next_error(struct side *side, struct side *other, int error) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    fi_addr_t source;
    int found = next_entry(side, other, &entry, &source, &failure);
    CHECK(found == error, "error %d (%s), not %d", found, fi_strerror(found), error);
    return failure;
}

// Polls 100 times and checks that no completion arrives.
static void nothing(struct side *side) {
    struct fi_cq_tagged_entry entry;
    for (int i = 0; i < 100; i++) FAILS(FI_EAGAIN, fi_cq_read(side->cq, &entry, 1));
}
