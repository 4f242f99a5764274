// SPDX-License-Identifier: BSD-2-Clause
// Counts the receives that a program posts by the address to which each call returns, for
// tests/gate/sites.py. Preloaded, before the MPI. Writes a line for each address to
// $SITES_COUNTED/PID: the file of the module, the address in the file, and the number of receives.
// The names are those of MPI in C and Fortran; no argument is looked at.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MOST = 8192 };
static struct { char *address; long count; } counted[MOST];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
// Set while a function of Fortran calls the one of C.
static __thread int inside;

static void count(char *address) {
    pthread_mutex_lock(&lock);
    int at = (int)((unsigned long)address * 0x9e3779b97f4a7c15ul >> 51);
    while (counted[at].address && counted[at].address != address) at = (at + 1) % MOST;
    counted[at].address = address;
    counted[at].count++;
    pthread_mutex_unlock(&lock);
}

__attribute__((destructor)) static void write_counts(void) {
    char path[4096], program[4096] = "";
    const char *place = getenv("SITES_COUNTED");
    FILE *file = NULL;
    for (int at = 0; place && at < MOST; at++) {
        Dl_info info;
        if (!counted[at].address || !dladdr(counted[at].address, &info)) continue;
        snprintf(path, sizeof path, "%s/%d", place, (int)getpid());
        if (!file && !(file = fopen(path, "w"))) return;
        // The name of the program may be relative.
        if (info.dli_fname[0] != '/' && readlink("/proc/self/exe", program, sizeof program - 1) < 0) return;
        const char *name = info.dli_fname[0] == '/' ? info.dli_fname : program;
        fprintf(file, "%lx %lx %ld %s\n", (long)counted[at].address,
                (long)(counted[at].address - (char *)info.dli_fbase), counted[at].count, name);
    }
    if (file) fclose(file);
}

#define COUNTED(name, next)                                                                        \
    long name(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j,      \
              long k, long l, long m) {                                                            \
        static long (*call)(long, long, long, long, long, long, long, long, long, long, long,      \
                            long, long);                                                           \
        if (!call) call = (long (*)())dlsym(RTLD_NEXT, next);                                      \
        if (!inside) count(__builtin_return_address(0));                                           \
        inside++;                                                                                  \
        long result = call(a, b, c, d, e, f, g, h, i, j, k, l, m);                                 \
        inside--;                                                                                  \
        return result;                                                                             \
    }

COUNTED(MPI_Irecv, "MPI_Irecv")
COUNTED(MPI_Recv, "MPI_Recv")
COUNTED(MPI_Sendrecv, "MPI_Sendrecv")
COUNTED(MPI_Start, "MPI_Start")
COUNTED(mpi_irecv_, "mpi_irecv_")
COUNTED(mpi_recv_, "mpi_recv_")
COUNTED(mpi_sendrecv_, "mpi_sendrecv_")
