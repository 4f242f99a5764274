// SPDX-License-Identifier: BSD-2-Clause
// Tests that waiting calls sleep and lose no event: fi_cq_sread, fi_cntr_wait, and poll() after
// fi_trywait. Runs between processes and between threads, with one and with two endpoints per
// queue.
//   wait [ROUNDS]
#include "fabric.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum how { SREAD, DESCRIPTOR, TWO_ENDPOINTS, COUNTER, YIELD };
static const char *names[] = {"sread", "descriptor", "two endpoints", "counter", "yield"};

struct player {
    struct fid_ep *ep, *idle;
    struct fid_cq *cq;
    struct fid_cntr *cntr;
    struct fid_av *av;
    fi_addr_t peer;
    uint64_t counted;
};

static struct fid_ep *endpoint(struct player *player, enum how how) {
    struct fid_ep *ep;
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &player->av->fid, 0));
    OK(fi_ep_bind(ep, &player->cq->fid, FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION));
    if (how == COUNTER) OK(fi_ep_bind(ep, &player->cntr->fid, FI_RECV));
    OK(fi_enable(ep));
    return ep;
}

static void open_player(struct player *player, enum how how) {
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_CONTEXT};
    cq.wait_obj = how == DESCRIPTOR ? FI_WAIT_FD : how == YIELD ? FI_WAIT_YIELD : FI_WAIT_UNSPEC;
    struct fi_cntr_attr cntr = {.wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av = {.type = FI_AV_TABLE};
    memset(player, 0, sizeof *player);
    OK(fi_cq_open(domain, &cq, &player->cq, NULL));
    OK(fi_cntr_open(domain, &cntr, &player->cntr, NULL));
    OK(fi_av_open(domain, &av, &player->av, NULL));
    player->ep = endpoint(player, how);
    if (how == TWO_ENDPOINTS) player->idle = endpoint(player, how);
}

static void close_player(struct player *player) {
    OK(fi_close(&player->ep->fid));
    if (player->idle) OK(fi_close(&player->idle->fid));
    OK(fi_close(&player->cq->fid));
    OK(fi_close(&player->cntr->fid));
    OK(fi_close(&player->av->fid));
}

static void post(struct player *player, uint64_t *value) {
    struct iovec iov = {value, 8};
    struct fi_msg_tagged msg = {.msg_iov = &iov, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = value};
    OK(fi_trecvmsg(player->ep, &msg, FI_COMPLETION));
}

static void await(struct player *player, enum how how, uint64_t *value) {
    struct fi_cq_entry entry;
    ssize_t count;
    if (how == COUNTER) {
        OK(fi_cntr_wait(player->cntr, ++player->counted, (int)within(20000)));
        CHECK(fi_cq_read(player->cq, &entry, 1) == 1, "counted, but no entry");
        return;
    }
    if (how == DESCRIPTOR) {
        struct pollfd poller = {.events = POLLIN};
        OK(fi_control(&player->cq->fid, FI_GETWAIT, &poller.fd));
        double end = seconds() + within(20);
        while ((count = fi_cq_read(player->cq, &entry, 1)) == -FI_EAGAIN && seconds() < end) {
            struct fid *fid = &player->cq->fid;
            int status = fi_trywait(fabric, &fid, 1);
            if (status == 0) poll(&poller, 1, (int)within(20000));
            else CHECK(status == -FI_EAGAIN, "fi_trywait: %d", status);
        }
    } else
        count = fi_cq_sread(player->cq, &entry, 1, NULL, (int)within(20000));
    CHECK(count == 1 && entry.op_context == value, "%zd", count);
}

// The last value that is exchanged has this bit. On a busy host, it is sent after `longest`
// seconds, even if fewer than the requested rounds are complete.
static const uint64_t LAST = 1ull << 63;
static double longest = 3;

// Exchanges values until one has the bit LAST. Returns the number of rounds.
static uint64_t play(struct player *player, enum how how, int starts, uint64_t rounds) {
    uint64_t value = 0, round = 0;
    double end = seconds() + longest;
    while (!(value & LAST)) {
        round++;
        post(player, &value);
        uint64_t sent = round | (round == rounds || seconds() > end ? LAST : 0);
        if (starts) OK(fi_tinject(player->ep, &sent, 8, player->peer, 0));
        await(player, how, &value);
        CHECK((value & ~LAST) == round, "%lx, not %lx", value, round);
        if (!starts) OK(fi_tinject(player->ep, &value, 8, player->peer, 0));
    }
    return round;
}

static void know(struct player *player, const char name[16]) {
    CHECK(fi_av_insert(player->av, name, 1, &player->peer, 0, NULL) == 1, "not inserted");
}

static void name_of(struct player *player, char name[16]) {
    size_t len = 16;
    OK(fi_getname(&player->ep->fid, name, &len));
}

// Runs the exchange between two processes, which pass their names to each other through shared
// memory.
static void processes(enum how how, uint64_t rounds) {
    struct { char name[2][16]; volatile int known[2]; } *shared =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset((void *)shared, 0, sizeof *shared);
    pid_t child = fork();
    int me = child == 0;
    struct player player;
    open_domain(FI_TAGGED, FI_THREAD_DOMAIN, 0);
    open_player(&player, how);
    name_of(&player, shared->name[me]);
    shared->known[me] = 1;
    while (!shared->known[!me]) usleep(100);
    know(&player, shared->name[!me]);
    double start = seconds();
    rounds = play(&player, how, !me, rounds);
    double took = seconds() - start;
    close_player(&player);
    close_domain();
    if (me) _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0, "child: %x", status);
    munmap((void *)shared, 4096);
    printf("%s: %.2f us a round\n", names[how], took / (double)rounds * 1e6);
}

static struct player players[2];
static atomic_int waits;
static enum how thread_how;
static uint64_t thread_rounds;

static void *player_thread(void *arg) {
    play(arg, thread_how, arg == &players[0], thread_rounds);
    return NULL;
}

static void threads(enum how how, uint64_t rounds) {
    pthread_t thread;
    char name[16];
    thread_how = how;
    thread_rounds = rounds;
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    for (int i = 0; i < 2; i++) open_player(&players[i], how);
    for (int i = 0; i < 2; i++) {
        name_of(&players[!i], name);
        know(&players[i], name);
    }
    OK(pthread_create(&thread, NULL, player_thread, &players[1]));
    player_thread(&players[0]);
    OK(pthread_join(thread, NULL));
    for (int i = 0; i < 2; i++) close_player(&players[i]);
    close_domain();
}

// Adds to the counter `arg` after 30 ms, or signals the queue if `arg` is null.
static void *report_later(void *arg) {
    usleep(30000);
    if (arg) OK(fi_cntr_add(arg, 1));
    else OK(fi_cq_signal(players[0].cq));
    return NULL;
}

static double cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec
        + (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
}

// Checks that an event ends a sleep, whether another thread reports it or a call of this thread.
static void reports(void) {
    struct fi_cntr_attr with_fd = {.wait_obj = FI_WAIT_FD};
    struct fi_eq_attr eq_attr = {.flags = FI_WRITE, .wait_obj = FI_WAIT_FD};
    struct fi_cq_entry entry;
    struct fid_cntr *cntr;
    struct fid_eq *eq;
    struct pollfd poller = {.events = POLLIN};
    struct fid *fid;
    pthread_t thread;
    uint64_t value = 0;
    enum fi_wait_obj obj;
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    open_player(&players[0], DESCRIPTOR);
    OK(fi_cntr_open(domain, &with_fd, &cntr, NULL));
    OK(fi_eq_open(fabric, &eq_attr, &eq, NULL));

    // One thread counts while another sleeps, on the counter and on its descriptor.
    OK(pthread_create(&thread, NULL, report_later, cntr));
    OK(fi_cntr_wait(cntr, 1, (int)within(5000)));
    OK(pthread_join(thread, NULL));
    OK(fi_control(&cntr->fid, FI_GETWAITOBJ, &obj));
    CHECK(obj == FI_WAIT_FD, "%d", obj);
    OK(fi_control(&cntr->fid, FI_GETWAIT, &poller.fd));
    fid = &cntr->fid;
    OK(fi_trywait(fabric, &fid, 1));
    CHECK(poll(&poller, 1, 0) == 0, "readable, though nothing happened");
    OK(pthread_create(&thread, NULL, report_later, cntr));
    CHECK(poll(&poller, 1, (int)within(5000)) == 1, "slept through a count");
    OK(pthread_join(thread, NULL));
    FAILS(FI_EAGAIN, fi_trywait(fabric, &fid, 1));
    CHECK(fi_cntr_read(cntr) == 2, "count");
    OK(fi_trywait(fabric, &fid, 1));

    // A message of the endpoint to itself makes the descriptor readable.
    fid = &players[0].cq->fid;
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    name_of(&players[0], (char[16]){0});
    char name[16];
    name_of(&players[0], name);
    know(&players[0], name);
    while (fi_trywait(fabric, &fid, 1) == -FI_EAGAIN) usleep(100);
    post(&players[0], &value);
    OK(fi_tinject(players[0].ep, &value, 8, players[0].peer, 0));
    CHECK(poll(&poller, 1, (int)within(5000)) == 1, "slept through a message");
    FAILS(FI_EAGAIN, fi_trywait(fabric, &fid, 1));
    CHECK(fi_cq_read(players[0].cq, &entry, 1) == 1, "no entry");
    OK(fi_trywait(fabric, &fid, 1));
    CHECK(poll(&poller, 1, 50) == 0, "readable, though all is read");

    // fi_cq_signal ends fi_cq_sread, and makes the descriptor readable.
    OK(pthread_create(&thread, NULL, report_later, NULL));
    double since = seconds();
    FAILS(FI_EAGAIN, fi_cq_sread(players[0].cq, &entry, 1, NULL, (int)within(5000)));
    CHECK(seconds() - since < within(4), "slept through a signal");
    OK(pthread_join(thread, NULL));
    while (fi_trywait(fabric, &fid, 1) == -FI_EAGAIN) usleep(100);
    OK(fi_cq_signal(players[0].cq));
    CHECK(poll(&poller, 1, (int)within(5000)) == 1, "slept through a signal");
    FAILS(FI_EAGAIN, fi_trywait(fabric, &fid, 1));
    OK(fi_trywait(fabric, &fid, 1));

    // A sleep takes no processor time.
    double start = cpu();
    FAILS(FI_EAGAIN, fi_cq_sread(players[0].cq, &entry, 1, NULL, 300));
    FAILS(FI_ETIMEDOUT, fi_cntr_wait(players[0].cntr, 1000, 300));
    CHECK(cpu() - start < 0.1, "%.3f s of processor time", cpu() - start);

    // An event in an event queue makes the descriptor of the queue readable.
    uint32_t number;
    fid = &eq->fid;
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    OK(fi_trywait(fabric, &fid, 1));
    CHECK(poll(&poller, 1, 0) == 0, "no event");
    CHECK(fi_eq_write(eq, FI_NOTIFY, &value, 8, 0) == 8, "write");
    CHECK(poll(&poller, 1, (int)within(5000)) == 1, "slept through an event");
    FAILS(FI_EAGAIN, fi_trywait(fabric, &fid, 1));
    CHECK(fi_eq_read(eq, &number, &value, 8, 0) == 8, "read");
    OK(fi_trywait(fabric, &fid, 1));
    OK(fi_close(&eq->fid));
    OK(fi_close(&cntr->fid));
    close_player(&players[0]);

    // A queue with FI_WAIT_UNSPEC has no descriptor to sleep on.
    open_player(&players[0], SREAD);
    fid = &players[0].cq->fid;
    FAILS(FI_EINVAL, fi_trywait(fabric, &fid, 1));
    FAILS(FI_ENOSYS, fi_control(fid, FI_GETWAIT, &poller.fd));
    close_player(&players[0]);
    close_domain();
}

// A sleep on a descriptor ends when the death of a peer is noticed, because a receive from this
// peer then fails.
static void death(void) {
    int names[2], status;
    OK(pipe(names));
    pid_t child = fork();
    struct player player;
    char name[16];
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_player(&player, DESCRIPTOR);
    if (!child) {
        name_of(&player, name);
        CHECK(write(names[1], name, 16) == 16, "write");
        for (;;) pause();
    }
    CHECK(read(names[0], name, 16) == 16, "read");
    know(&player, name);
    uint64_t value = 0;
    OK(fi_trecv(player.ep, &value, 8, NULL, player.peer, 0, 0, &value));
    OK(fi_tinject(player.ep, &value, 8, player.peer, 0));
    OK(kill(child, SIGKILL));
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    struct pollfd poller = {.events = POLLIN};
    struct fid *fid = &player.cq->fid;
    struct fi_cq_entry entry;
    ssize_t count;
    OK(fi_control(fid, FI_GETWAIT, &poller.fd));
    double start = seconds();
    while ((count = fi_cq_read(player.cq, &entry, 1)) == -FI_EAGAIN && seconds() - start < within(10))
        if (fi_trywait(fabric, &fid, 1) == 0) poll(&poller, 1, (int)within(10000));
    CHECK(count == -FI_EAVAIL, "%zd", count);
    CHECK(seconds() - start < within(5), "slept through a death");
    close_player(&player);
    close_domain();
}

// Waits for a completion that does not come. The endpoint closes meanwhile.
static void *wait_in_vain(void *arg) {
    struct fi_cq_entry entry;
    atomic_store(&waits, 1);
    FAILS(FI_EAGAIN, fi_cq_sread(players[0].cq, &entry, 1, NULL, 100));
    return arg;
}

// The address vector can be closed right after its only endpoint, although a thread sleeps on the
// endpoint's queue.
static void closes(void) {
    struct player *player = &players[0];
    pthread_t thread;
    open_domain(FI_TAGGED, FI_THREAD_SAFE, 0);
    for (int i = 0; i < 20; i++) {
        open_player(player, SREAD);
        atomic_store(&waits, 0);
        OK(pthread_create(&thread, NULL, wait_in_vain, NULL));
        while (!atomic_load(&waits)) usleep(100);
        usleep((useconds_t)(i * 500));
        // The fast path of posts refers to the address vector.
        uint64_t value = 0;
        char name[16];
        name_of(player, name);
        know(player, name);
        post(player, &value);
        OK(fi_close(&player->ep->fid));
        OK(fi_close(&player->av->fid));
        OK(pthread_join(thread, NULL));
        OK(fi_close(&player->cq->fid));
        OK(fi_close(&player->cntr->fid));
    }
    close_domain();
}

int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20000;
    if (argc > 1) longest = 50;
    alarm((unsigned)within(argc > 1 ? 600 : 50));
    for (enum how how = SREAD; how <= YIELD; how++) {
        processes(how, rounds);
        threads(how, rounds / 4);
    }
    reports();
    death();
    closes();
    puts("wait: ok");
}
