// SPDX-License-Identifier: BSD-2-Clause
// Tests capabilities of libfabric 2.x that are offered only on request: receives that must name a
// source, and tagged buffers for several messages. In older API versions their bits mean something
// else, or nothing.
#include "fabric.h"

#ifndef FI_EXACT_DIRECTED_RECV
#define FI_TAGGED_DIRECTED_RECV (1ULL << 45)
#define FI_TAGGED_MULTI_RECV (1ULL << 46)
#define FI_EXACT_DIRECTED_RECV (1ULL << 48)
#endif

static struct side a, b;
static char in[1000], out[100];

static void with(uint64_t caps, void (*check)(void)) {
    open_domain(FI_MSG | FI_TAGGED | FI_MULTI_RECV | caps, FI_THREAD_DOMAIN, 0);
    CHECK((info->caps & caps) == caps, "%#lx", info->caps);
    open_pair(&a, &b, 0);
    check();
    close_side(&a);
    close_side(&b);
    close_domain();
}

static void exact(void) {
    FAILS(FI_EINVAL, fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    FAILS(FI_EINVAL, fi_recv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
    // The receive from the endpoint itself is posted first. The message of the other endpoint arrives
    // first, and must match the second receive.
    OK(fi_trecv(b.ep, in, 8, NULL, b.self, 1, 0, in));
    OK(fi_trecv(b.ep, in + 8, 8, NULL, b.peer, 1, 0, in + 8));
    OK(fi_tinject(a.ep, out, 8, a.peer, 1));
    next_ok(&b, &a, in + 8);
    OK(fi_tinject(b.ep, out, 8, b.self, 1));
    next_ok(&b, &a, in);
}

static void tagged_exact(void) {
    FAILS(FI_EINVAL, fi_trecv(b.ep, in, 8, NULL, FI_ADDR_UNSPEC, 1, 0, in));
    // Untagged receives accept any source, whatever they name.
    OK(fi_recv(b.ep, in, 8, NULL, b.self, in));
    OK(fi_inject(a.ep, out, 8, a.peer));
    next_ok(&b, &a, in);
}

static void tagged_multi(void) {
    size_t minimum = 100;
    struct iovec iov = {in, 350};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 3, .context = in};
    OK(fi_setopt(&b.ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &minimum, sizeof minimum));
    OK(fi_trecvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
    for (int i = 0; i < 3; i++) {
        memset(out, i + 1, sizeof out);
        OK(fi_tinject(a.ep, out, 100, a.peer, 4));
        OK(fi_tinject(a.ep, out, 100, a.peer, 3));
        struct fi_cq_tagged_entry entry = next_ok(&b, &a, in);
        CHECK(entry.buf == in + 100 * i && !memcmp(entry.buf, out, 100), "message %d", i);
        CHECK(entry.flags == (FI_RECV | FI_TAGGED | (i == 2 ? FI_MULTI_RECV : 0)), "%#lx", entry.flags);
    }
}

static void not_asked_for(void) {
    struct iovec iov = {in, 300};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 3, .context = in};
    CHECK(!(info->caps & (FI_EXACT_DIRECTED_RECV | FI_TAGGED_MULTI_RECV)), "%#lx", info->caps);
    FAILS(FI_EBADFLAGS, fi_trecvmsg(b.ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
}

static void unknown_before(void) {
    static const uint64_t bits[] = {FI_TAGGED_DIRECTED_RECV, FI_TAGGED_MULTI_RECV, FI_EXACT_DIRECTED_RECV};
    static const uint32_t versions[] = {FI_VERSION(1, 9), FI_VERSION(1, 14)};
    for (int i = 0; i < 6; i++) {
        struct fi_info *hints = fi_allocinfo(), *found = NULL;
        struct fi_rx_attr shared = {.caps = FI_TAGGED | bits[i / 2]};
        struct fid_ep *ep;
        hints->fabric_attr->prov_name = strdup("tcam");
        hints->caps = FI_TAGGED | bits[i / 2];
        FAILS(FI_ENODATA, fi_getinfo(versions[i % 2], NULL, NULL, 0, hints, &found));
        hints->caps = 0;
        hints->rx_attr->caps = FI_TAGGED | bits[i / 2];
        FAILS(FI_ENODATA, fi_getinfo(versions[i % 2], NULL, NULL, 0, hints, &found));
        fi_freeinfo(hints);
        api = versions[i % 2];
        open_domain(FI_MSG | FI_TAGGED, FI_THREAD_DOMAIN, 0);
        info->caps |= bits[i / 2];
        FAILS(FI_EINVAL, fi_endpoint(domain, info, &ep, NULL));
        FAILS(FI_EINVAL, fi_srx_context(domain, &shared, &ep, NULL));
        close_domain();
    }
}

int main(void) {
    unknown_before();
    with(0, not_asked_for);
    api = FI_VERSION(2, 0);
    if (FI_VERSION_LT(fi_version(), api)) {
        printf("directed, API 2.0: skipped, this is libfabric %u.%u\n", FI_MAJOR(fi_version()), FI_MINOR(fi_version()));
        return 0;
    }
    with(FI_EXACT_DIRECTED_RECV, exact);
    with(FI_EXACT_DIRECTED_RECV | FI_DIRECTED_RECV, exact);
    with(FI_EXACT_DIRECTED_RECV | FI_TAGGED_DIRECTED_RECV, tagged_exact);
    with(FI_TAGGED_MULTI_RECV, tagged_multi);
    with(0, not_asked_for);
    puts("directed: ok");
}
