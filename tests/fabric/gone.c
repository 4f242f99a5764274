// SPDX-License-Identifier: BSD-2-Clause
// A member of a shared receive context closes while messages arrive. Each receive of the context
// completes, with success or an error, or stays posted for the other member.
#include "card.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define CAPS (FI_MSG | FI_TAGGED | FI_DIRECTED_RECV | FI_MULTI_RECV)
#define BYTES (1 << 20)
enum { ROUNDS = 24, MESSAGES = 8 };

static struct fid_ep *srx;
static struct fid_cq *cq;
static struct fid_av *av;
static char buffers[MESSAGES][4 * BYTES];
static int posted[MESSAGES];

// Reads cards of endpoints, and sends messages of all lengths to each, until the pipe is closed.
static void sender(int in) {
    static char bytes[MESSAGES][BYTES];
    static const size_t lengths[] = {8, 1000, 20000, BYTES};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_card(CAPS, NULL, 0);
    struct card of;
    while (read(in, &of, sizeof of) == sizeof of) {
        fi_addr_t to = enter(&of);
        int left = 0;
        for (int i = 0; i < MESSAGES; i++)
            left += fi_send(mine.ep, bytes[i], lengths[(size_t)i % 4], NULL, to, bytes[i]) == 0;
        for (double end = seconds() + within(10); left > 0 && seconds() < end;) {
            struct fi_cq_tagged_entry entry;
            struct fi_cq_err_entry failure = {0};
            ssize_t count = fi_cq_read(mine.cq, &entry, 1);
            if (count == -FI_EAVAIL) count = fi_cq_readerr(mine.cq, &failure, 0);
            left -= count == 1;
        }
        CHECK(left == 0, "%d sends have no completion", left);
        OK(fi_av_remove(mine.av, &to, 1, 0));
    }
    close_card();
    exit(0);
}

static struct fid_ep *open_member(struct card *of) {
    struct fid_ep *ep;
    size_t len = sizeof of->name;
    OK(fi_endpoint(domain, info, &ep, NULL));
    OK(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV));
    OK(fi_ep_bind(ep, &av->fid, 0));
    OK(fi_ep_bind(ep, &srx->fid, 0));
    OK(fi_enable(ep));
    OK(fi_getname(&ep->fid, of->name, &len));
    return ep;
}

// Reads completions for `time` seconds. Marks the receives that ended as no longer posted.
static void take(double time, int multi) {
    for (double end = seconds() + time; seconds() < end;) {
        struct fi_cq_tagged_entry entry;
        struct fi_cq_err_entry failure = {0};
        ssize_t count = fi_cq_read(cq, &entry, 1);
        if (count == -FI_EAVAIL) CHECK(fi_cq_readerr(cq, &failure, 0) == 1, "no error entry");
        if (count != 1 && count != -FI_EAVAIL) continue;
        int *which = count == 1 ? entry.op_context : failure.op_context;
        CHECK(*which, "completed twice");
        int over = (count == 1 ? entry.flags : failure.flags) & FI_MULTI_RECV || !multi;
        if (over || failure.err == FI_ECANCELED) *which = 0;
    }
}

static int any_posted(int count) {
    for (int i = 0; i < count; i++)
        if (posted[i]) return 1;
    return 0;
}

static void rounds(int to, int multi) {
    struct card of;
    struct fid_ep *stays = open_member(&of);
    int count = multi ? 2 : MESSAGES;
    for (int round = 0; round < ROUNDS; round++) {
        struct fid_ep *leaves = open_member(&of);
        for (int i = 0; i < count; i++) {
            struct iovec part = {buffers[i], multi ? 4 * BYTES : BYTES};
            struct fi_msg msg = {
                .msg_iov = &part, .iov_count = 1, .addr = FI_ADDR_UNSPEC, .context = &posted[i]};
            posted[i] = 1;
            OK(fi_recvmsg(srx, &msg, FI_COMPLETION | (multi ? FI_MULTI_RECV : 0)));
        }
        tell(to, &of);
        take(round * 0.0002, multi);
        OK(fi_close(&leaves->fid));
        take(0.002, multi);
        for (int i = 0; i < count; i++)
            if (posted[i]) fi_cancel(&srx->fid, &posted[i]);
        take(0.005, multi);
        // A copy in progress delays the last completions, and takes longer on a busy machine.
        for (double end = seconds() + within(5); any_posted(count) && seconds() < end;) take(0.001, multi);
        for (int i = 0; i < count; i++) CHECK(!posted[i], "round %d: receive %d is lost", round, i);
    }
    OK(fi_close(&stays->fid));
}

int main(void) {
    int there[2], status;
    CHECK(pipe(there) == 0, "pipe");
    pid_t pid = fork();
    if (!pid) close(there[1]), sender(there[0]);
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .size = 4096};
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    size_t least = BYTES;
    open_domain(CAPS, FI_THREAD_SAFE, 0);
    info->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT;
    OK(fi_srx_context(domain, info->rx_attr, &srx, NULL));
    OK(fi_setopt(&srx->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, &least, sizeof least));
    OK(fi_cq_open(domain, &cq_attr, &cq, NULL));
    OK(fi_av_open(domain, &av_attr, &av, NULL));
    for (int multi = 0; multi < 2; multi++) rounds(there[1], multi);
    close(there[1]);
    CHECK(waitpid(pid, &status, 0) == pid && status == 0, "the sender: %d", status);
    OK(fi_close(&srx->fid));
    OK(fi_close(&cq->fid));
    OK(fi_close(&av->fid));
    close_domain();
    printf("gone: ok\n");
}
