// SPDX-License-Identifier: BSD-2-Clause
// A program whose calls of MPI are all in one class: only the callers differ.
#include "exchange.h"

namespace halo {
template <typename T> class Comm {
  public:
    __attribute__((noinline)) void irecv(T *to, int from) {
        MPI_Irecv(to, sizeof(T), MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[posted]);
        posted++;
    }
};

__attribute__((noinline)) void west(Comm<double> &comm) {
    EACH_OTHER(from) comm.irecv(reinterpret_cast<double *>(bytes[posted]), from);
    asm volatile("");
}

__attribute__((noinline)) void east(Comm<double> &comm) {
    for (int times = 0; times < 3; times++)
        EACH_OTHER(from) comm.irecv(reinterpret_cast<double *>(bytes[posted]), from);
    asm volatile("");
}
} // namespace halo

int main(int argc, char **argv) {
    start(&argc, &argv);
    halo::Comm<double> comm;
    for (int round = 0; round < 10; round++) {
        halo::west(comm);
        halo::east(comm);
        send_all(4);
    }
    MPI_Finalize();
}
