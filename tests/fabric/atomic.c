// SPDX-License-Identifier: BSD-2-Clause
// Tests atomic operations. Every pair of datatype and operation must be offered as the man page
// says. Results with integers and floating-point numbers must be those of C.
#include "fabric.h"
#include <complex.h>
#include <rdma/fi_atomic.h>

#define COUNT 8

static struct side a, b;
static struct fid_mr *mr;
static union {
    int32_t i[4096 / 4];
    uint64_t u[4096 / 8];
    double d[4096 / 8];
    long double l[4096 / 16];
    double _Complex c[4096 / 16];
    uint8_t bytes[4096];
} memory;

static void done(void) {
    next_ok(&a, &b, &a);
}
#define DO(call) do { OK(call); done(); } while (0)

static void what_is_offered(void) {
    int pairs = 0;
    for (int type = FI_INT8; type <= FI_UINT128; type++)
        for (int op = FI_MIN; op < FI_ATOMIC_OP_LAST; op++) {
            size_t count[3] = {0};
            int valid[3] = {
                fi_atomicvalid(a.ep, type, op, &count[0]),
                fi_fetch_atomicvalid(a.ep, type, op, &count[1]),
                fi_compare_atomicvalid(a.ep, type, op, &count[2]),
            };
            const uint64_t flags[3] = {0, FI_FETCH_ATOMIC, FI_COMPARE_ATOMIC};
            for (int form = 0; form < 3; form++) {
                struct fi_atomic_attr attr = {0};
                int query = fi_query_atomic(domain, type, op, &attr, flags[form]);
                CHECK(query == valid[form], "%d, %d: %d, %d", type, op, query, valid[form]);
                CHECK(query == 0 || query == -FI_EOPNOTSUPP, "%d", query);
                if (query == 0) {
                    CHECK(attr.count == count[form] && attr.count * attr.size == 4096, "%zu", attr.count);
                    pairs++;
                }
            }
        }
    // Pairs in the forms base + fetch + compare: 10 integer types with 11 + 12 + 7 each, 3 real
    // types with 8 + 9 + 6, and 3 complex types with 6 + 7 + 2.
    CHECK(pairs == 10 * 30 + 3 * 23 + 3 * 15, "%d pairs", pairs);
    FAILS(FI_EOPNOTSUPP, fi_atomic(a.ep, memory.d, 1, NULL, a.peer, 0, 1, FI_DOUBLE, FI_BOR, NULL));
    FAILS(FI_EMSGSIZE, fi_atomic(a.ep, memory.i, 4097, NULL, a.peer, 0, 1, FI_INT8, FI_SUM, NULL));
}

static void base_fetch_compare(void) {
    int32_t operand[COUNT], old[COUNT], compare[COUNT];
    for (int i = 0; i < COUNT; i++) memory.i[i] = 10 * i, operand[i] = i, compare[i] = i % 2 ? 11 * i : 0;
    DO(fi_atomic(a.ep, operand, COUNT, NULL, a.peer, 0, 1, FI_INT32, FI_SUM, &a));
    for (int i = 0; i < COUNT; i++) CHECK(memory.i[i] == 11 * i, "%d", memory.i[i]);
    DO(fi_compare_atomic(a.ep, operand, COUNT, NULL, compare, NULL, old, NULL, a.peer, 0, 1, FI_INT32, FI_CSWAP, &a));
    for (int i = 0; i < COUNT; i++) {
        CHECK(old[i] == 11 * i, "%d", old[i]);
        CHECK(memory.i[i] == (i % 2 || i == 0 ? i : 11 * i), "%d", memory.i[i]);
    }
    DO(fi_fetch_atomic(a.ep, NULL, COUNT, NULL, old, NULL, a.peer, 0, 1, FI_INT32, FI_ATOMIC_READ, &a));
    CHECK(!memcmp(old, memory.i, sizeof old), "read");
    // The maximum number of elements, which does not fit into a slot.
    static uint64_t ones[512], was[512];
    for (int i = 0; i < 512; i++) ones[i] = 1, memory.u[i] = (uint64_t)i;
    DO(fi_fetch_atomic(a.ep, ones, 512, NULL, was, NULL, a.peer, 0, 1, FI_UINT64, FI_SUM, &a));
    for (int i = 0; i < 512; i++) CHECK(was[i] == (uint64_t)i && memory.u[i] == (uint64_t)i + 1, "%d", i);
    OK(fi_inject_atomic(a.ep, ones, 4, a.peer, 0, 1, FI_UINT64, FI_SUM));
    double end = seconds() + within(10);
    while (memory.u[3] != 5 && seconds() < end) fi_cq_read(b.cq, NULL, 0);
    CHECK(memory.u[3] == 5, "%lu", memory.u[3]);
    fi_cq_read(a.cq, NULL, 0);
}

static void other_numbers(void) {
    double d[2] = {0.5, -7}, old[2];
    memory.d[0] = 1.25, memory.d[1] = 2;
    DO(fi_fetch_atomic(a.ep, d, 2, NULL, old, NULL, a.peer, 0, 1, FI_DOUBLE, FI_MIN, &a));
    CHECK(memory.d[0] == 0.5 && memory.d[1] == -7 && old[0] == 1.25, "%g", memory.d[0]);
    long double l = 3.5L;
    memory.l[0] = 1.0L / 3;
    long double product = memory.l[0] * l, third = memory.l[0];
    DO(fi_atomic(a.ep, &l, 1, NULL, a.peer, 0, 1, FI_LONG_DOUBLE, FI_PROD, &a));
    CHECK(memory.l[0] == product, "%Lg", memory.l[0]);
    long double seen = 0;
    DO(fi_compare_atomic(a.ep, &third, 1, NULL, &product, NULL, &seen, NULL, a.peer, 0, 1, FI_LONG_DOUBLE, FI_CSWAP_LE, &a));
    CHECK(memory.l[0] == third && seen == product, "%Lg", memory.l[0]);
    double _Complex c = 1 + 2 * I;
    memory.c[0] = 3 - I;
    double _Complex expected = memory.c[0] * c;
    DO(fi_atomic(a.ep, &c, 1, NULL, a.peer, 0, 1, FI_DOUBLE_COMPLEX, FI_PROD, &a));
    CHECK(memory.c[0] == expected, "%g", creal(memory.c[0]));
}

static void vectors(void) {
    uint64_t x = 1, y[2] = {2, 3};
    struct fi_ioc here[2] = {{&x, 1}, {y, 2}};
    struct fi_rma_ioc there[2] = {{64, 2, 1}, {8, 1, 1}};
    struct fi_msg_atomic msg = {here, NULL, 2, a.peer, there, 2, FI_UINT64, FI_ATOMIC_WRITE, &a, 0};
    DO(fi_atomicmsg(a.ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    CHECK(memory.u[8] == 1 && memory.u[9] == 2 && memory.u[1] == 3, "%lu", memory.u[8]);
}

static void refused(void) {
    struct fi_cq_tagged_entry entry;
    struct fi_cq_err_entry error;
    fi_addr_t source;
    uint64_t one = 1, before = memory.u[511];
    OK(fi_atomic(a.ep, &one, 1, NULL, a.peer, 4089, 1, FI_UINT64, FI_SUM, &a));
    CHECK(next_entry(&a, &b, &entry, &source, &error) == FI_EFAULT, "%d", error.err);
    OK(fi_atomic(a.ep, &one, 1, NULL, a.peer, 0, 2, FI_UINT64, FI_SUM, &a));
    CHECK(next_entry(&a, &b, &entry, &source, &error) == FI_ENOKEY, "%d", error.err);
    CHECK(memory.u[511] == before, "memory was touched");
}

int main(void) {
    open_domain(FI_MSG | FI_ATOMIC, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    OK(fi_mr_reg(domain, &memory, sizeof memory, FI_REMOTE_READ | FI_REMOTE_WRITE, 0, 1, 0, &mr, NULL));
    what_is_offered();
    base_fetch_compare();
    other_numbers();
    vectors();
    refused();
    OK(fi_close(&mr->fid));
    close_side(&a);
    close_side(&b);
    close_domain();
    return 0;
}
