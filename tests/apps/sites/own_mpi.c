// SPDX-License-Identifier: BSD-2-Clause
// The few functions of an MPI that linked.c calls, for tests of programs that contain their MPI. Each
// rank has one endpoint of libfabric and sends to itself. With -DALONE, for programs that are linked
// with -static, a rank copies its messages and has no endpoint: Debian has no libraries for a static
// program with libfabric.
#include <mpi.h>

#ifdef ALONE
#include <string.h>

static void *waiting;

int MPI_Init(int *argc, char ***argv) {
    return argc && argv ? MPI_SUCCESS : MPI_ERR_ARG;
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)count, (void)type, (void)from, (void)tag, (void)comm, (void)request;
    waiting = to;
    return MPI_SUCCESS;
}

int MPI_Send(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    (void)type, (void)to, (void)tag, (void)comm;
    memcpy(waiting, bytes, (size_t)count);
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    return MPI_SUCCESS;
}
#else
#include "../../fabric/fabric.h"

static struct side side;

int MPI_Init(int *argc, char ***argv) {
    (void)argc, (void)argv;
    open_domain(FI_TAGGED | FI_DIRECTED_RECV, FI_THREAD_DOMAIN, 0);
    open_side(&side, 0, 1);
    side.self = insert(&side, side.ep);
    return MPI_SUCCESS;
}

int MPI_Irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request) {
    (void)type, (void)from, (void)comm;
    OK(fi_trecv(side.ep, to, (size_t)count, NULL, side.self, (uint64_t)tag, 0, request));
    return MPI_SUCCESS;
}

int MPI_Send(const void *bytes, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm) {
    (void)type, (void)to, (void)comm;
    struct fi_cq_tagged_entry entry;
    OK(fi_tinject(side.ep, bytes, (size_t)count, side.self, (uint64_t)tag));
    while (fi_cq_read(side.cq, &entry, 1) != 1) {}
    return MPI_SUCCESS;
}

int MPI_Finalize(void) {
    close_side(&side);
    close_domain();
    return MPI_SUCCESS;
}
#endif
