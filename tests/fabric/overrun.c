// SPDX-License-Identifier: BSD-2-Clause
// A test of tests/nightly/asan.sh, not of the provider. The application passes a length that is
// larger than its buffer, so the provider writes beyond the buffer, and AddressSanitizer must
// report it.
#include "fabric.h"

int main(void) {
    static struct side a, b;
    char *bytes = malloc(8), sent[32] = "more than eight bytes";
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_SAFE, 0);
    open_pair(&a, &b, 0);
    OK(fi_trecv(b.ep, bytes, sizeof sent, NULL, b.peer, 1, 0, bytes));
    OK(fi_tinject(a.ep, sent, sizeof sent, a.peer, 1));
    next_ok(&b, &a, bytes);
    puts(bytes);
}
