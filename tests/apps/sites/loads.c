// SPDX-License-Identifier: BSD-2-Clause
// Posts receives in a module that it opens with dlopen (the first argument), and in threads, each in
// a function of its own. Sets LD_PRELOAD for a child process, and checks that the child keeps it.
#include "exchange.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

typedef void post_function(char *, int, MPI_Request *);

#define POSTER(name)                                                                               \
    static void *name(void *argument) {                                                            \
        int at = *(int *)argument;                                                                 \
        EACH_OTHER(from) {                                                                         \
            MPI_Irecv(bytes[at], 8, MPI_BYTE, from, 7, MPI_COMM_WORLD, &requests[at]);             \
            at++;                                                                                  \
        }                                                                                          \
        return NULL;                                                                               \
    }
POSTER(post_here)

POSTER(post_there)

int main(int argc, char **argv) {
    start(&argc, &argv);
    void *plugin = dlopen(argv[1], RTLD_NOW);
    post_function *post = plugin ? (post_function *)dlsym(plugin, "plugin_post") : NULL;
    if (!post) MPI_Abort(MPI_COMM_WORLD, 2);
    setenv("LD_PRELOAD", argv[2], 1);
    if (system("[ \"$LD_PRELOAD\" = \"$EXPECTED_PRELOAD\" ]") != 0) MPI_Abort(MPI_COMM_WORLD, 3);
    for (int round = 0; round < 20; round++) {
        pthread_t threads[2];
        int first[2] = {0, ranks - 1};
        pthread_create(&threads[0], NULL, post_here, &first[0]);
        pthread_create(&threads[1], NULL, post_there, &first[1]);
        for (int at = 0; at < 2; at++) pthread_join(threads[at], NULL);
        posted = 2 * (ranks - 1);
        EACH_OTHER(from) {
            post(bytes[posted], from, &requests[posted]);
            posted++;
        }
        send_all(3);
    }
    MPI_Finalize();
}
