// SPDX-License-Identifier: BSD-2-Clause
// Common code of clients with several processes: an endpoint with a memory region, the card that
// describes it to other processes, and its segment in /dev/shm.
#pragma once
#include "fabric.h"
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

// The description of an endpoint that is sent to other processes through a pipe.
struct card {
    char name[16];
    uint64_t base, key;
};

static struct side mine;
static struct fid_mr *mr;
static struct card card;

// Opens this process's endpoint, and registers a region with it unless `bytes` is 0.
static void open_card(uint64_t caps, void *region, size_t bytes) {
    size_t len = sizeof card.name;
    open_domain(caps, FI_THREAD_SAFE, 0);
    open_side(&mine, 0, 4);
    OK(fi_getname(&mine.ep->fid, card.name, &len));
    if (!bytes) return;
    OK(fi_mr_reg(domain, region, bytes, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 7, 0, &mr, NULL));
    if (info->domain_attr->mr_mode & FI_MR_ENDPOINT) {
        OK(fi_mr_bind(mr, &mine.ep->fid, 0));
        OK(fi_mr_enable(mr));
    }
    card.base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uint64_t)(uintptr_t)region : 0;
    card.key = fi_mr_key(mr);
}

static void close_card(void) {
    if (mr) OK(fi_close(&mr->fid));
    close_side(&mine);
    close_domain();
}

// Inserts the endpoint of a card into this process's address vector.
static fi_addr_t enter(const struct card *of) {
    fi_addr_t address;
    CHECK(fi_av_insert(mine.av, of->name, 1, &address, 0, NULL) == 1, "insert");
    return address;
}

// Writes a card to a pipe.
static void tell(int to, const struct card *what) {
    CHECK(write(to, what, sizeof *what) == sizeof *what, "write");
}

// Reads a card from a pipe.
static struct card hear(int from) {
    struct card heard;
    CHECK(read(from, &heard, sizeof heard) == sizeof heard, "read");
    return heard;
}

// Returns the glob pattern of the segments at a port, or at all ports if `port` is "*". The pattern
// names the network namespace, because other namespaces may use the same ports.
static const char *segments(const char *port) {
    static char pattern[64];
    struct stat network;
    CHECK(stat("/proc/self/ns/net", &network) == 0, "no network namespace");
    snprintf(pattern, sizeof pattern, "/dev/shm/tcam.*/segment.%lu.%s", (unsigned long)network.st_ino, port);
    return pattern;
}

// Returns the number of segment files of an endpoint. Stores the path of the last one in `path`, if
// `path` is not null.
static int segments_of(const struct card *of, char path[300]) {
    char port[8];
    glob_t found;
    snprintf(port, sizeof port, "%d", (unsigned char)of->name[2] << 8 | (unsigned char)of->name[3]);
    if (glob(segments(port), 0, NULL, &found)) return 0;
    int count = (int)found.gl_pathc;
    if (path) snprintf(path, 300, "%s", found.gl_pathv[count - 1]);
    globfree(&found);
    return count;
}

static int leftovers(const struct card *of) {
    return segments_of(of, NULL);
}
