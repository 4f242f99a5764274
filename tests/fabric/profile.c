// SPDX-License-Identifier: BSD-2-Clause
// Tests fi_profile(3), which returns the lengths of the queues. Declares its interface, which the
// headers of libfabric 1.17 lack.
#include "fabric.h"
#include <stddef.h>

struct variable {
    uint32_t id, kind, type;
    uint64_t flags;
    size_t size;
    const char *name, *help;
};

struct profile;

struct operations {
    size_t size;
    void (*reset)(struct profile *, uint64_t);
    ssize_t (*variables)(struct profile *, struct variable *, size_t *);
    ssize_t (*events)(struct profile *, struct variable *, size_t *);
    ssize_t (*read)(struct profile *, uint32_t, void *, size_t *);
    void *callback;
    void (*start)(struct profile *, uint64_t);
    void (*end)(struct profile *, uint64_t);
};

struct profile {
    struct fid fid;
    struct operations *ops;
};

static struct side a, b;
static struct variable variables[32];
static size_t count;

static struct profile *open_profile(struct fid *fid) {
    struct operations **ops;
    OK(fi_open_ops(fid, "fi_profile_ops", 0, (void **)&ops, NULL));
    struct profile *profile = (struct profile *)((char *)ops - offsetof(struct profile, ops));
    CHECK(profile->ops->variables(profile, NULL, &count) == 0 && count == 9, "%zu", count);
    count = 32;
    CHECK(profile->ops->variables(profile, variables, &count) == 9 && count == 9, "%zu", count);
    return profile;
}

static uint64_t value(struct profile *profile, const char *name) {
    uint64_t value = ~0UL;
    size_t size = sizeof value;
    for (size_t i = 0; i < count; i++)
        if (!strcmp(variables[i].name, name)) {
            CHECK(profile->ops->read(profile, variables[i].id, &value, &size) == 8, "%s", name);
            return value;
        }
    CHECK(0, "no variable %s", name);
    return 0;
}

int main(void) {
    char byte;
    void *none;
    open_domain(FI_MSG | FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_pair(&a, &b, 0);
    FAILS(FI_ENOSYS, fi_open_ops(&b.ep->fid, "other_ops", 0, &none, NULL));
    FAILS(FI_ENOSYS, fi_open_ops(&b.cq->fid, "fi_profile_ops", 0, &none, NULL));
    struct profile *profile = open_profile(&b.ep->fid);
    const char *entries = getenv("FI_TCAM_PRQ_ENTRIES");
    uint64_t room = entries ? strtoul(entries, NULL, 10) : 4096;
    for (int i = 0; i < 10; i++) OK(fi_trecv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, 1, 0, &byte));
    for (int i = 0; i < 10; i++) OK(fi_tinject(a.ep, &byte, 1, a.peer, 2));
    for (int i = 0; i < 3; i++) OK(fi_inject(a.ep, &byte, 1, a.peer));
    double end = seconds() + within(10);
    while (value(profile, "unexp_msg_cnt") < 13 && seconds() < end) fi_cq_read(b.cq, NULL, 0);
    CHECK(value(profile, "unexp_msg_cnt") == 13, "%lu", value(profile, "unexp_msg_cnt"));
    uint64_t in_table = room < 10 ? room : 10;
    CHECK(value(profile, "tcam_tagged_prq_table") == in_table, "%lu", value(profile, "tcam_tagged_prq_table"));
    CHECK(value(profile, "tcam_tagged_prq_host") == 10 - in_table, "host");
    CHECK(value(profile, "tcam_tagged_umq_table") == in_table, "table");
    CHECK(value(profile, "tcam_msg_umq_table") + value(profile, "tcam_msg_umq_host") == 3, "msg");
    // A snapshot does not change.
    profile->ops->start(profile, 0);
    OK(fi_recv(b.ep, &byte, 1, NULL, FI_ADDR_UNSPEC, &byte));
    CHECK(value(profile, "unexp_msg_cnt") == 13, "snapshot");
    profile->ops->end(profile, 0);
    CHECK(value(profile, "unexp_msg_cnt") == 12, "%lu", value(profile, "unexp_msg_cnt"));
    uint64_t data;
    size_t size = 8;
    FAILS(FI_EINVAL, profile->ops->read(profile, 4711, &data, &size));
    size = 4;
    FAILS(FI_ETOOSMALL, profile->ops->read(profile, 0, &data, &size));
    CHECK(profile->ops->events(profile, NULL, &size) == 0 && size == 0, "events");
    FAILS(FI_EBUSY, fi_close(&b.ep->fid));
    OK(fi_close(&profile->fid));
    close_side(&a);
    close_side(&b);
    close_domain();
    puts("profile: ok");
}
