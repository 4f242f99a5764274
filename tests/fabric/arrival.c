// SPDX-License-Identifier: BSD-2-Clause
// Tests FI_TCAM_ARRIVAL=nic: a message arrives when it comes, and not when the receiver polls. Two
// processes send, and this one posts, probes and cancels in the order of a random plan, which a word
// in shared memory enforces. A naive matcher follows the plan. After each operation the queues of
// the device must have the lengths of its lists, and each receive must get its message.
//     arrival [SEED]
// If HOST_OF_SENDERS is set, it is the command that runs the senders on another host.
#include "fabric.h"
#include <stddef.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

enum { SENDERS = 2, PLANS = 60, STEPS = 80, TAGS = 4, MOST = 2 * STEPS, LONGEST = 40000, AT_CLOSE = 200 };
static const size_t lengths[] = {8, 8, 8, 100, 208, 209, 3000, LONGEST};

// State that the processes share.
struct plan {
    char names[SENDERS + 1][64];
    size_t name_len[SENDERS + 1];
    // Number of the next message of each sender, and of those that it has sent.
    volatile unsigned wanted[SENDERS], sent[SENDERS];
    volatile unsigned tag[SENDERS];
    volatile size_t len[SENDERS];
    volatile int end;
};
static struct plan *shared;
// Without the kernel copy, parts of the longest messages come at any time. A sender that is preempted
// while it writes a part holds up later messages of the other sender. So these messages are left out.
static unsigned lengths_used = sizeof lengths / sizeof *lengths;
static unsigned state;

static unsigned below(unsigned limit) {
    state = state * 1664525u + 1013904223u;
    return (state >> 16) % limit;
}

static struct plan *map(const char *path) {
    int file = open(path, O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && !ftruncate(file, sizeof(struct plan)), "%s", path);
    void *mapped = mmap(NULL, sizeof(struct plan), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(mapped != MAP_FAILED, "%s", path);
    close(file);
    return mapped;
}

static void publish(int number, struct fid_ep *ep) {
    size_t len = sizeof shared->names[number];
    OK(fi_getname(&ep->fid, shared->names[number], &len));
    __atomic_store_n(&shared->name_len[number], len, __ATOMIC_RELEASE);
}

static fi_addr_t find(struct fid_av *av, int number) {
    fi_addr_t address;
    double end = seconds() + within(20);
    while (!__atomic_load_n(&shared->name_len[number], __ATOMIC_ACQUIRE)) {
        CHECK(seconds() < end, "process %d has no name", number);
        usleep(100);
    }
    CHECK(fi_av_insert(av, shared->names[number], 1, &address, 0, NULL) == 1, "not inserted");
    return address;
}

// Sends a message each time that the receiver asks for one.
static void send_on_request(int self) {
    static char bytes[MOST][LONGEST];
    struct side side;
    struct fi_cq_tagged_entry entry;
    unsigned under_way = 0;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 2);
    publish(self, side.ep);
    fi_addr_t to = find(side.av, SENDERS);
    pid_t receiver = getppid();
    for (unsigned next = 1; !shared->end;) {
        CHECK(getppid() == receiver, "the receiver has failed");
        if (fi_cq_read(side.cq, &entry, 1) == 1) under_way--;
        if (__atomic_load_n(&shared->wanted[self], __ATOMIC_ACQUIRE) != next) {
            sched_yield();
            continue;
        }
        char *message = bytes[next % MOST];
        unsigned tag = shared->tag[self];
        memcpy(message, &next, sizeof next);
        ssize_t sent;
        while ((sent = fi_tsend(side.ep, message, shared->len[self], NULL, to, tag, NULL)) == -FI_EAGAIN)
            if (fi_cq_read(side.cq, &entry, 1) == 1) under_way--;
        OK(sent);
        under_way++;
        __atomic_store_n(&shared->sent[self], next++, __ATOMIC_RELEASE);
    }
    for (double end = seconds() + within(10); under_way > 0 && seconds() < end;)
        if (fi_cq_read(side.cq, &entry, 1) == 1) under_way--;
    CHECK(!under_way, "%u sends have not ended", under_way);
    close_side(&side);
    close_domain();
}

// fi_profile(3), whose interface is as in profile.c.
struct variables {
    size_t size;
    void *reset, *list, *events;
    ssize_t (*read)(void *, uint32_t, void *, size_t *);
};
static struct variables **profile;

static unsigned long length(unsigned first) {
    unsigned long sum = 0;
    for (unsigned variable = first; variable < first + 2; variable++) {
        uint64_t value;
        size_t size = sizeof value;
        void *of = (char *)profile - sizeof(struct fid);
        CHECK((*profile)->read(of, 1 << 16 | variable, &value, &size) == 8, "variable %u", variable);
        sum += value;
    }
    return sum;
}

static struct message {
    unsigned tag, number;
    int sender;
} unexpected[MOST];
static struct receive {
    unsigned tag, number;
    int sender, ends, is_any_tag;
    char bytes[LONGEST];
} receives[MOST], *posted[MOST];
// Whether the senders are on another host. Messages of two of them that come between two operations
// are handled in any order. So each receive then names its sender.
static int is_far;
static int messages, waiting, count, probe_found;
static struct fid_cq *queue;
static fi_addr_t sources[SENDERS];
static char probe_context;

static void take(void *list, size_t size, int at, int *len) {
    memmove((char *)list + (size_t)at * size, (char *)list + (size_t)(at + 1) * size, (size_t)(--*len - at) * size);
}

static int fits(const struct receive *receive, unsigned tag, int sender) {
    return (receive->is_any_tag || receive->tag == tag) && (receive->sender < 0 || receive->sender == sender);
}

// Handles the completions that have come.
static void complete(void) {
    struct fi_cq_tagged_entry entry;
    for (;;) {
        ssize_t read = fi_cq_read(queue, &entry, 1);
        if (read == -FI_EAGAIN) return;
        int error = 0;
        if (read == -FI_EAVAIL) {
            struct fi_cq_err_entry failure = {0};
            CHECK(fi_cq_readerr(queue, &failure, 0) == 1, "no error entry");
            entry.op_context = failure.op_context;
            error = failure.err;
        } else
            CHECK(read == 1, "%zd", read);
        if (entry.op_context == &probe_context) {
            CHECK(!error || error == FI_ENOMSG, "a probe ended with %d", error);
            probe_found = !error;
            continue;
        }
        struct receive *receive = entry.op_context;
        CHECK(receive->ends == error, "receive %td ended with %d, not %d", receive - receives, error, receive->ends);
        receive->ends = -1;
        unsigned number;
        memcpy(&number, receive->bytes, sizeof number);
        CHECK(error || number == receive->number, "receive %td got message %u, not %u", receive - receives, number, receive->number);
    }
}

// Lets a sender send a message. `polls`: this process polls until the message is sent. Returns the
// number of the message.
static unsigned request(int sender, unsigned tag, size_t len, int polls) {
    shared->tag[sender] = tag;
    shared->len[sender] = len;
    unsigned number = shared->wanted[sender] + 1;
    __atomic_store_n(&shared->wanted[sender], number, __ATOMIC_RELEASE);
    double end = seconds() + within(20);
    while (__atomic_load_n(&shared->sent[sender], __ATOMIC_ACQUIRE) != number) {
        CHECK(seconds() < end, "sender %d does not send", sender);
        if (polls) fi_cq_read(queue, NULL, 0);
        sched_yield();
    }
    return number;
}

static void send_one(void) {
    int sender = (int)below(SENDERS);
    unsigned tag = below(TAGS), number = request(sender, tag, lengths[below(lengths_used)], 0);
    // A message of another host takes some time.
    if (is_far) usleep((useconds_t)within(20000));
    for (int at = 0; at < waiting; at++)
        if (fits(posted[at], tag, sender)) {
            posted[at]->number = number;
            take(posted, sizeof *posted, at, &waiting);
            return;
        }
    unexpected[messages++] = (struct message){tag, number, sender};
}

// Receives a message of each sender. A peer of another host connects with its first message, and a
// connection needs polls at both ends.
static void connect_senders(struct fid_ep *ep) {
    for (int sender = 0; sender < SENDERS; sender++) {
        receives[0] = (struct receive){0};
        OK(fi_trecv(ep, receives[0].bytes, LONGEST, NULL, sources[sender], 0, 0, &receives[0]));
        receives[0].number = request(sender, 0, 8, 1);
        for (double end = seconds() + within(20); receives[0].ends == 0; complete())
            CHECK(seconds() < end, "sender %d does not connect", sender);
    }
}

static void post(struct fid_ep *ep) {
    struct receive *receive = &receives[count++];
    *receive = (struct receive){.tag = below(TAGS), .is_any_tag = !below(5), .sender = (int)below(SENDERS + !is_far) - !is_far};
    fi_addr_t from = receive->sender < 0 ? FI_ADDR_UNSPEC : sources[receive->sender];
    uint64_t ignore = receive->is_any_tag ? TAGS - 1 : 0;
    OK(fi_trecv(ep, receive->bytes, LONGEST, NULL, from, receive->tag, ignore, receive));
    for (int at = 0; at < messages; at++)
        if (fits(receive, unexpected[at].tag, unexpected[at].sender)) {
            receive->number = unexpected[at].number;
            take(unexpected, sizeof *unexpected, at, &messages);
            return;
        }
    posted[waiting++] = receive;
}

static void probe(struct fid_ep *ep) {
    struct fi_msg_tagged msg = {.addr = FI_ADDR_UNSPEC, .tag = below(TAGS), .context = &probe_context};
    int expected = 0;
    for (int at = 0; at < messages; at++) expected |= unexpected[at].tag == msg.tag;
    probe_found = -1;
    OK(fi_trecvmsg(ep, &msg, FI_PEEK | FI_COMPLETION));
    complete();
    CHECK(probe_found == expected, "a probe found %d, not %d", probe_found, expected);
}

static void cancel(struct fid_ep *ep) {
    if (!count) post(ep);
    struct receive *receive = &receives[below((unsigned)count)];
    for (int at = 0; at < waiting; at++)
        if (posted[at] == receive) {
            receive->ends = FI_ECANCELED;
            OK(fi_cancel(&ep->fid, receive));
            take(posted, sizeof *posted, at, &waiting);
            return;
        }
    FAILS(FI_ENOENT, fi_cancel(&ep->fid, receive));
}

static void run_plan(struct fid_ep *ep) {
    messages = waiting = count = 0;
    for (int step = 0; step < STEPS; step++) {
        unsigned what = below(20);
        if (what < 9) {
            send_one();
            continue;
        }
        if (what < 15) post(ep);
        else if (what < 17) probe(ep);
        else if (what < 18) cancel(ep);
        else if (what < 19) complete();
        else usleep(below(100));
        if (what < 18) {
            CHECK(length(2) == (unsigned long)messages, "step %d: UMQ %lu, not %d", step, length(2), messages);
            CHECK(length(0) == (unsigned long)waiting, "step %d: PRQ %lu, not %d", step, length(0), waiting);
        }
    }
    // Ends what is left, so that the next plan begins with empty queues.
    while (waiting) {
        posted[waiting - 1]->ends = FI_ECANCELED;
        OK(fi_cancel(&ep->fid, posted[--waiting]));
    }
    while (messages) {
        struct receive *receive = &receives[count++];
        *receive = (struct receive){.tag = unexpected[0].tag, .number = unexpected[0].number, .sender = unexpected[0].sender};
        OK(fi_trecv(ep, receive->bytes, LONGEST, NULL, sources[receive->sender], receive->tag, 0, receive));
        take(unexpected, sizeof *unexpected, 0, &messages);
    }
    double end = seconds() + within(20);
    for (int at = 0; at < count; complete())
        if (receives[at].ends < 0) at++;
        else CHECK(seconds() < end, "receive %d has not ended", at);
}

// Returns the messages that the reports in a directory count, and removes the directory.
static unsigned long reported(const char *directory) {
    static char text[1 << 20];
    glob_t files;
    char pattern[64];
    unsigned long sum = 0;
    snprintf(pattern, sizeof pattern, "%s/*", directory);
    CHECK(!glob(pattern, 0, NULL, &files), "%s has no report", directory);
    for (size_t at = 0; at < files.gl_pathc; at++) {
        const char *path = files.gl_pathv[at];
        if (strstr(path, ".json")) {
            FILE *file = fopen(path, "r");
            CHECK(file, "%s", path);
            text[fread(text, 1, sizeof text - 1, file)] = 0;
            fclose(file);
            const char *tagged = strstr(text, "\"tagged\": {"), *name = "\"arrivals\": ";
            const char *arrivals = tagged ? strstr(tagged, name) : NULL;
            CHECK(arrivals, "%s has no arrivals", path);
            sum += strtoul(arrivals + strlen(name), NULL, 10);
        }
        remove(path);
    }
    globfree(&files);
    CHECK(!rmdir(directory), "%s", directory);
    return sum;
}

// Runs the plans. If `report` is a directory, reports are written there. Messages that come before
// the endpoint closes are counted, too.
static void run_plans(enum fi_threading threading, int is_shared, const char *report) {
    struct side side = {0};
    struct fid_ep *srx = NULL;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, threading, 0);
    if (is_shared) OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    open_unbound(&side, 0, SENDERS + 1);
    if (srx) OK(fi_ep_bind(side.ep, &srx->fid, 0));
    OK(fi_enable(side.ep));
    publish(SENDERS, side.ep);
    for (int sender = 0; sender < SENDERS; sender++) sources[sender] = find(side.av, sender);
    queue = side.cq;
    struct fid_ep *ep = srx ? srx : side.ep;
    OK(fi_open_ops(&ep->fid, "fi_profile_ops", 0, (void **)&profile, NULL));
    connect_senders(ep);
    for (int plan = 0; plan < (is_far ? 3 : PLANS); plan++) run_plan(ep);
    for (int message = 0; report && message < AT_CLOSE; message++) request(message % SENDERS, 0, 8, 0);
    shared->end = 1;
    OK(fi_close((struct fid *)((char *)profile - sizeof(struct fid))));
    if (report) OK(fi_close(&side.ep->fid));
    for (int sender = 0, status; sender < SENDERS; sender++) {
        double end = seconds() + within(20);
        while (waitpid(-1, &status, WNOHANG) <= 0) {
            CHECK(seconds() < end, "a sender does not end");
            fi_cq_read(queue, NULL, 0);
        }
        CHECK(!status, "a sender failed: %#x", status);
    }
    if (!report) OK(fi_close(&side.ep->fid));
    if (srx) OK(fi_close(&srx->fid));
    OK(fi_close(&side.cq->fid));
    OK(fi_close(&side.av->fid));
    close_domain();
    if (!report) return;
    unsigned long sent = 0, counted = reported(report);
    for (int sender = 0; sender < SENDERS; sender++) sent += shared->sent[sender];
    CHECK(counted == sent, "the reports count %lu messages, not %lu", counted, sent);
}

int main(int argc, char **argv) {
    setenv("FI_TCAM_ARRIVAL", "nic", 1);
    if (argc == 4) {
        shared = map(argv[2]);
        send_on_request(atoi(argv[3]));
        return 0;
    }
    state = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    if (!state) state = (unsigned)getpid();
    const char *copy = getenv("FI_TCAM_KERNEL_COPY");
    if (copy && !strcmp(copy, "off")) lengths_used--;
    printf("arrival: seed %u\n", state);
    fflush(stdout);
    const char *host = getenv("HOST_OF_SENDERS");
    is_far = host != NULL;
    const struct {
        enum fi_threading threading;
        int is_shared;
        const char *engine;
        int is_reported;
    } configurations[] = {
        {FI_THREAD_DOMAIN, 0, "col-pnp", 1}, {FI_THREAD_SAFE, 0, "col-pnp", 0}, {FI_THREAD_SAFE, 0, "tail-queues", 1},
        {FI_THREAD_DOMAIN, 1, "col-pnp", 0}, {FI_THREAD_SAFE, 1, "col-pnp", 1},
    };
    for (size_t at = 0; at < sizeof configurations / sizeof *configurations; at++) {
        char path[] = "/tmp/arrival-XXXXXX";
        close(mkstemp(path));
        shared = map(path);
        for (int sender = 0; sender < SENDERS; sender++)
            if (!fork()) {
                char command[4096];
                snprintf(command, sizeof command, "exec %s %s sender %s %d", host ? host : "", argv[0], path, sender);
                execl("/bin/sh", "sh", "-c", command, NULL);
                _exit(1);
            }
        setenv("FI_TCAM_HOST_ENGINE", configurations[at].engine, 1);
        // Reports are of this process only, and a connection to another host ends by polls.
        char directory[] = "/tmp/arrivals-XXXXXX", pattern[64] = "";
        const char *report = configurations[at].is_reported && !is_far ? mkdtemp(directory) : NULL;
        if (report) snprintf(pattern, sizeof pattern, "%s/%%p", directory);
        setenv("FI_TCAM_REPORT", pattern, 1);
        run_plans(configurations[at].threading, configurations[at].is_shared, report);
        munmap(shared, sizeof *shared);
        unlink(path);
    }
    return 0;
}
