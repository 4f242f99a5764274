// SPDX-License-Identifier: BSD-2-Clause
// A master that repeatedly spawns a worker, exchanges messages with it and disconnects:
//   spawn ROUNDS
// Prints the resources of the master after a fifth of the rounds and at the end.
#include "check.h"
#include <dirent.h>
#include <unistd.h>

enum { SHORT = 8, LONG = 100000 };

static unsigned char out[LONG], in[LONG];

static int listed(const char *path) {
    int count = 0;
    DIR *directory = opendir(path);
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count ? count - 2 : 0;
}

static void tell(int round) {
    char line[128], path[64];
    long memory = 0;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (sscanf(line, "VmRSS: %ld", &memory) == 1) break;
    fclose(status);
    snprintf(path, sizeof path, "/dev/shm/tcam.%u", (unsigned)geteuid());
    printf("spawn round=%d rss_kib=%ld descriptors=%d shared_files=%d\n", round, memory,
           listed("/proc/self/fd"), listed(path));
    fflush(stdout);
}

int main(int argc, char **argv) {
    MPI_Comm parent, worker;
    app_name = "spawn";
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(in, SHORT, MPI_BYTE, 0, 1, parent, MPI_STATUS_IGNORE);
        MPI_Send(in, SHORT, MPI_BYTE, 0, 2, parent);
        MPI_Recv(in, LONG, MPI_BYTE, 0, 3, parent, MPI_STATUS_IGNORE);
        MPI_Send(in, LONG, MPI_BYTE, 0, 4, parent);
        MPI_Comm_disconnect(&parent);
        MPI_Finalize();
        return 0;
    }
    int rounds = argc > 1 ? atoi(argv[1]) : 10;
    for (int round = 1; round <= rounds; round++) {
        char *none[] = {NULL};
        MPI_Comm_spawn(argv[0], none, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &worker, MPI_ERRCODES_IGNORE);
        for (int length = SHORT, tag = 1; tag < 5; length = LONG, tag += 2) {
            fill(out, (size_t)length, (uint64_t)(round + tag));
            memset(in, 0, (size_t)length);
            MPI_Send(out, length, MPI_BYTE, 0, tag, worker);
            MPI_Recv(in, length, MPI_BYTE, 0, tag + 1, worker, MPI_STATUS_IGNORE);
            CHECK(!memcmp(in, out, (size_t)length), "round %d: %d other bytes", round, length);
        }
        MPI_Comm_disconnect(&worker);
        if (round == (rounds + 4) / 5 || round == rounds) tell(round);
    }
    MPI_Finalize();
    return 0;
}
