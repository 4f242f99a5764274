// SPDX-License-Identifier: BSD-2-Clause
// Posts receives in lambdas: two that are functions, and one that the compiler puts into its caller.
#include "exchange.h"

namespace halo {
template <typename F> __attribute__((noinline)) void each(F post) {
    EACH_OTHER(from) {
        post(from);
        posted++;
    }
}

void exchange(int tag) {
    each([tag](int from) __attribute__((noinline)) {
        MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests[posted]);
        asm volatile("");
    });
}
} // namespace halo

int main(int argc, char **argv) {
    start(&argc, &argv);
    for (int round = 0; round < 20; round++) {
        halo::exchange(7);
        halo::each([](auto from) __attribute__((noinline)) {
            MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
            asm volatile("");
        });
        halo::each([](int from) __attribute__((always_inline)) {
            MPI_Irecv(bytes[posted], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
            asm volatile("");
        });
        send_all(3);
    }
    MPI_Finalize();
}
