// SPDX-License-Identifier: BSD-2-Clause
// Tests endpoints that close and reopen at the same port, as sender or as receiver. Messages,
// buffers and answers of the earlier endpoint never reach the later one.
//     again             senders and receivers that close and reopen; a server that is killed and restarts
//     again workers N   a server, and N rounds of 64 short-lived workers with ports from the kernel
#define _GNU_SOURCE
#include "card.h"
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_SOURCE | FI_RMA | FI_ATOMIC)
#define LONGEST (1 << 20)

static const size_t lengths[] = {8, 200, 1000, 16000, 100000, LONGEST};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static unsigned char received[LONGEST], sent[LONGEST];

// Opens an endpoint at a fixed port, or at any port if `port` is 0.
static void open_at(struct side *side, int port) {
    struct fi_info *at = fi_dupinfo(info);
    struct sockaddr_in {
        uint16_t family, port;
        unsigned char ip[4], zero[8];
    } *address = calloc(1, 16);
    address->family = 2;
    address->port = (uint16_t)(port >> 8 | port << 8);
    address->ip[0] = 127, address->ip[3] = 1;
    free(at->src_addr);
    at->src_addr = address;
    at->src_addrlen = 16;
    struct fi_cq_attr cq = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_UNSPEC};
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 4};
    OK(fi_endpoint(domain, at, &side->ep, NULL));
    OK(fi_cq_open(domain, &cq, &side->cq, NULL));
    OK(fi_av_open(domain, &av, &side->av, NULL));
    OK(fi_ep_bind(side->ep, &side->cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(side->ep, &side->av->fid, 0));
    OK(fi_enable(side->ep));
    fi_freeinfo(at);
}

static int port_of(const struct side *side) {
    unsigned char name[16];
    size_t len = sizeof name;
    OK(fi_getname(&side->ep->fid, name, &len));
    return name[2] << 8 | name[3];
}

static void fill(unsigned char *bytes, size_t len, unsigned seed) {
    for (size_t i = 0; i < len; i++) bytes[i] = (unsigned char)(seed * 37 + i * 7 + (i >> 8));
}

static int is_filled(const unsigned char *bytes, size_t len, unsigned seed) {
    for (size_t i = 0; i < len; i++)
        if (bytes[i] != (unsigned char)(seed * 37 + i * 7 + (i >> 8))) return 0;
    return 1;
}

// Waits for a completion of `side`, while `other` makes progress as well. Returns its error, or 0.
static int ended(struct side *side, struct side *other) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry failure;
    return next_entry(side, other, &entry, NULL, &failure);
}

// Sends a message from `from`. While there is no room, `other` makes progress, if it is not null.
static void send_to(struct side *from, struct side *other, fi_addr_t to, size_t len, uint64_t tag) {
    double end = seconds() + within(20);
    ssize_t status;
    while ((status = fi_tsend(from->ep, sent, len, NULL, to, tag, sent)) == -FI_EAGAIN) {
        CHECK(seconds() < end, "no room within %.0f s", within(20));
        if (other) fi_cq_read(other->cq, NULL, 0);
        fi_cq_read(from->cq, NULL, 0);
    }
    CHECK(status == 0, "fi_tsend: %zd", status);
}

// A sender closes, and the next endpoint at its port sends other bytes. If `unexpected` is set, each
// message arrives before its receive is posted.
static void sender_comes_back(size_t len, int unexpected) {
    struct side receiver, sender;
    open_side(&receiver, 0, 4);
    int port = 0;
    for (unsigned life = 1; life <= 4; life++) {
        open_at(&sender, port);
        port = port_of(&sender);
        fi_addr_t to = insert(&sender, receiver.ep), from = insert(&receiver, sender.ep);
        memset(received, 0, len);
        if (!unexpected) OK(fi_trecv(receiver.ep, received, len, NULL, from, life, 0, received));
        fill(sent, len, life);
        send_to(&sender, &receiver, to, len, life);
        if (unexpected) {
            for (int i = 0; i < 10; i++) fi_cq_read(receiver.cq, NULL, 0);
            OK(fi_trecv(receiver.ep, received, len, NULL, from, life, 0, received));
        }
        CHECK(ended(&receiver, &sender) == 0, "life %u, %zu bytes: receive failed", life, len);
        CHECK(is_filled(received, len, life), "life %u, %zu bytes: of another sender", life, len);
        CHECK(ended(&sender, &receiver) == 0, "life %u, %zu bytes: send failed", life, len);
        close_side(&sender);
    }
    close_side(&receiver);
}

// A receiver closes, and its sender continues with the next endpoint at the receiver's port.
static void receiver_comes_back(size_t len) {
    struct side receiver, sender;
    open_side(&sender, 0, 4);
    int port = 0;
    fi_addr_t to = 0;
    for (unsigned life = 1; life <= 4; life++) {
        open_at(&receiver, port);
        port = port_of(&receiver);
        if (life == 1) to = insert(&sender, receiver.ep);
        OK(fi_trecv(receiver.ep, received, len, NULL, FI_ADDR_UNSPEC, life, 0, received));
        fill(sent, len, life);
        send_to(&sender, &receiver, to, len, life);
        CHECK(ended(&receiver, &sender) == 0, "life %u, %zu bytes: receive failed", life, len);
        CHECK(is_filled(received, len, life), "life %u, %zu bytes: wrong bytes", life, len);
        CHECK(ended(&sender, &receiver) == 0, "life %u, %zu bytes: send failed", life, len);
        // This receiver closes without receiving the message. The send fails, and the message does not
        // reach the next receiver.
        if (len > 16384) send_to(&sender, &receiver, to, len, 1000);
        close_side(&receiver);
        if (len > 16384) CHECK(ended(&sender, NULL) == ECONNABORTED, "a send that is never received succeeds");
    }
    close_side(&sender);
}

// A sender closes before the receiver has answered it. The answer must not go to the next sender at
// its port, whose operations have the same numbers. The receiver must not read a long message of the
// earlier sender from the memory of the later one.
static void nothing_is_owed_to_the_next(int claimed) {
    struct side receiver, sender;
    struct fi_context2 claims;
    open_side(&receiver, 0, 4);
    open_at(&sender, 0);
    int port = port_of(&sender);
    fi_addr_t to = insert(&sender, receiver.ep);
    struct iovec part = {.iov_base = sent, .iov_len = 8};
    struct fi_msg_tagged msg = {.msg_iov = &part, .iov_count = 1, .addr = to, .tag = 1, .context = sent};
    fill(sent, LONGEST, 1);
    OK(fi_tsendmsg(sender.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    OK(fi_tsend(sender.ep, sent, LONGEST, NULL, to, 3, sent));
    for (int i = 0; i < 100; i++) fi_cq_read(receiver.cq, NULL, 0);
    if (claimed) {
        struct fi_msg_tagged peek = {.addr = FI_ADDR_UNSPEC, .tag = 1, .context = &claims};
        OK(fi_trecvmsg(receiver.ep, &peek, FI_PEEK | FI_CLAIM | FI_COMPLETION));
        CHECK(ended(&receiver, NULL) == 0, "not claimed");
    }
    close_side(&sender);
    open_at(&sender, port);
    to = insert(&sender, receiver.ep);
    fill(sent, LONGEST, 2);
    msg.addr = to, msg.tag = 2;
    OK(fi_tsendmsg(sender.ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
    OK(fi_tsend(sender.ep, sent, LONGEST, NULL, to, 4, sent));
    for (int i = 0; i < 100; i++) fi_cq_read(receiver.cq, NULL, 0);
    // The short message of the first sender is complete, because its slot contained it. The long one is
    // lost, because its sender has closed.
    memset(received, 0, 8);
    if (claimed) {
        struct iovec into = {.iov_base = received, .iov_len = 8};
        struct fi_msg_tagged take = {.msg_iov = &into, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .tag = 1, .context = &claims};
        OK(fi_trecvmsg(receiver.ep, &take, FI_CLAIM | FI_COMPLETION));
    } else {
        OK(fi_trecv(receiver.ep, received, 8, NULL, FI_ADDR_UNSPEC, 1, 0, received));
    }
    CHECK(ended(&receiver, NULL) == 0 && is_filled(received, 8, 1), "the first one's message");
    OK(fi_trecv(receiver.ep, received, LONGEST, NULL, FI_ADDR_UNSPEC, 3, 0, received));
    CHECK(ended(&receiver, NULL) == ECONNABORTED, "the first one's long message");
    for (int i = 0; i < 1000; i++) {
        struct fi_cq_tagged_entry entry;
        fi_cq_read(receiver.cq, NULL, 0);
        FAILS(FI_EAGAIN, fi_cq_read(sender.cq, &entry, 1));
    }
    OK(fi_trecv(receiver.ep, received, 8, NULL, FI_ADDR_UNSPEC, 2, 0, received));
    CHECK(ended(&receiver, &sender) == 0 && is_filled(received, 8, 2), "the second one's message");
    CHECK(ended(&sender, &receiver) == 0, "its answer");
    OK(fi_trecv(receiver.ep, received, LONGEST, NULL, FI_ADDR_UNSPEC, 4, 0, received));
    CHECK(ended(&receiver, &sender) == 0 && is_filled(received, LONGEST, 2), "its long message");
    CHECK(ended(&sender, &receiver) == 0, "the long message's answer");
    close_side(&sender);
    close_side(&receiver);
}

// Returns each message to the client, until it is killed.
static void server(int in, int out, int port) {
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    open_at(&mine, port);
    size_t len = sizeof card.name;
    OK(fi_getname(&mine.ep->fid, card.name, &len));
    tell(out, &card);
    struct card client = hear(in);
    fi_addr_t to = enter(&client);
    for (;;) {
        OK(fi_trecv(mine.ep, received, 8, NULL, FI_ADDR_UNSPEC, 0, ~0ull, received));
        next_ok(&mine, NULL, received);
        while (fi_tinject(mine.ep, received, 8, to, 77) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
    }
}

// A server is killed and restarts at its port. Messages that the client sends after that arrive.
static void server_is_killed(void) {
    fi_addr_t to = FI_ADDR_UNSPEC;
    int port = 0;
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    struct side client;
    open_side(&client, 0, 4);
    struct card own;
    size_t len = sizeof own.name;
    OK(fi_getname(&client.ep->fid, own.name, &len));
    for (int life = 0; life < 5; life++) {
        int there[2], back[2];
        CHECK(pipe(there) == 0 && pipe(back) == 0, "pipe");
        fflush(NULL);
        pid_t pid = fork();
        if (!pid) {
            // The child opens its own endpoint, and must not use its parent's.
            server(there[0], back[1], port);
            _exit(0);
        }
        struct card of = hear(back[0]);
        tell(there[1], &own);
        if (life == 0) {
            CHECK(fi_av_insert(client.av, of.name, 1, &to, 0, NULL) == 1, "insert");
            port = (unsigned char)of.name[2] << 8 | (unsigned char)of.name[3];
        }
        // The client has not polled since the kill: the restarted server must report the death of the
        // earlier one.
        for (uint64_t i = 0; i < 5; i++) {
            uint64_t value = (uint64_t)life << 32 | i, answer = 0;
            OK(fi_trecv(client.ep, &answer, 8, NULL, to, 77, 0, &answer));
            CHECK(fi_tinject(client.ep, &value, 8, to, i) == 0, "life %d: inject", life);
            CHECK(ended(&client, NULL) == 0, "life %d: no answer", life);
            CHECK(answer == value, "life %d: %lx, not %lx", life, answer, value);
        }
        CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid, "kill");
        close(there[0]), close(there[1]), close(back[0]), close(back[1]);
    }
    close_side(&client);
    close_domain();
}

#define WORKERS 64
#define TOGETHER 8
#define HELLO (1ull << 40)

// A worker sends its name and a message, writes and adds to the server's memory, waits for the
// server's answer, and exits.
static void worker(const struct card *of, unsigned number) {
    open_card(CAPS, NULL, 0);
    fi_addr_t to = enter(of);
    size_t len = lengths[number % LENGTHS];
    memcpy(sent, card.name, sizeof card.name);
    send_to(&mine, NULL, to, sizeof card.name, HELLO | number);
    CHECK(ended(&mine, NULL) == 0, "worker %u: hello", number);
    fill(sent, len, number);
    send_to(&mine, NULL, to, len, number);
    CHECK(ended(&mine, NULL) == 0, "worker %u: send", number);
    uint64_t value = number, one = 1, was = 0, answer = 0;
    uint64_t place = of->base + 8 * (number % WORKERS);
    while (fi_write(mine.ep, &value, 8, NULL, to, place, of->key, &value) == -FI_EAGAIN)
        fi_cq_read(mine.cq, NULL, 0);
    CHECK(ended(&mine, NULL) == 0, "worker %u: write", number);
    while (fi_read(mine.ep, &was, 8, NULL, to, place, of->key, &was) == -FI_EAGAIN)
        fi_cq_read(mine.cq, NULL, 0);
    CHECK(ended(&mine, NULL) == 0 && was == value, "worker %u: read %lu", number, was);
    while (fi_atomic(mine.ep, &one, 1, NULL, to, of->base + 8 * WORKERS, of->key, FI_UINT64, FI_SUM, &one) == -FI_EAGAIN)
        fi_cq_read(mine.cq, NULL, 0);
    CHECK(ended(&mine, NULL) == 0, "worker %u: atomic", number);
    OK(fi_trecv(mine.ep, &answer, 8, NULL, to, 5, 0, &answer));
    CHECK(ended(&mine, NULL) == 0 && answer == ~(uint64_t)number, "worker %u: answer %lx", number, answer);
    close_card();
    exit(0);
}

// Sends a worker its number, inverted.
static void answer(const char *name, unsigned number) {
    fi_addr_t to;
    uint64_t inverted = ~(uint64_t)number;
    CHECK(fi_av_insert(mine.av, name, 1, &to, 0, NULL) == 1, "insert");
    ssize_t status;
    while ((status = fi_tinject(mine.ep, &inverted, 8, to, 5)) == -FI_EAGAIN) fi_cq_read(mine.cq, NULL, 0);
    CHECK(status == 0, "answer to %u: %zd", number, status);
    OK(fi_av_remove(mine.av, &to, 1, 0));
}

static void workers(unsigned rounds) {
    static char names[WORKERS][16];
    uint64_t *memory = calloc(WORKERS + 1, 8);
    int tasks[2];
    CHECK(pipe(tasks) == 0, "pipe");
    // Workers are children of a process without an endpoint.
    pid_t nursery = fork();
    if (!nursery) {
        // libfabric initialises all its providers at the first call, which takes long. This process
        // makes that call once for all workers.
        open_domain(CAPS, FI_THREAD_SAFE, 0);
        close_domain();
        struct card of = hear(tasks[0]);
        for (unsigned number = 0; number < rounds * WORKERS;) {
            for (int i = 0; i < TOGETHER; i++, number++)
                if (!fork()) worker(&of, number);
            for (int i = 0, status; i < TOGETHER; i++)
                CHECK(wait(&status) > 0 && status == 0, "a worker before %u failed: %d", number, status);
        }
        exit(0);
    }
    open_card(CAPS, memory, (WORKERS + 1) * 8);
    tell(tasks[1], &card);
    for (unsigned done = 0; done < rounds * WORKERS;) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure;
        OK(fi_trecv(mine.ep, received, LONGEST, NULL, FI_ADDR_UNSPEC, 0, ~0ull, received));
        int error = next_entry(&mine, NULL, &entry, NULL, &failure);
        CHECK(error == 0, "message %u: error %d", done, error);
        unsigned number = (unsigned)entry.tag;
        if (entry.tag & HELLO) {
            memcpy(names[number % WORKERS], received, 16);
            continue;
        }
        size_t len = lengths[number % LENGTHS];
        CHECK(entry.len == len && is_filled(received, len, number), "worker %u: other bytes", number);
        answer(names[number % WORKERS], number);
        done++;
    }
    int status;
    // The last workers still have to read their answers and close.
    while (waitpid(nursery, &status, WNOHANG) == 0) fi_cq_read(mine.cq, NULL, 0);
    CHECK(status == 0, "workers: %d", status);
    CHECK(memory[WORKERS] == rounds * WORKERS, "%lu added, not %u", memory[WORKERS], rounds * WORKERS);
    close_card();
}

int main(int argc, char **argv) {
    if (argc > 2) {
        workers((unsigned)atoi(argv[2]));
    } else {
        server_is_killed();
        open_domain(CAPS, FI_THREAD_SAFE, 0);
        for (size_t i = 0; i < LENGTHS; i++) {
            sender_comes_back(lengths[i], 0);
            sender_comes_back(lengths[i], 1);
            receiver_comes_back(lengths[i]);
        }
        nothing_is_owed_to_the_next(0);
        nothing_is_owed_to_the_next(1);
        close_domain();
    }
    puts("again: ok");
}
