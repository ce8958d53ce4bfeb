/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of an nccl run as processes of a test, which find each other by a file and exchange through
 * tests/nccl_double. */
#ifndef ADL_TESTS_NCCL_RANKS_H
#define ADL_TESTS_NCCL_RANKS_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS_MOST = 8, RANKS_DEADLINE_S = 120 };

/* Where they meet next: each call all ranks alike. */
static inline void ranks_meet_anew(void)
{
    static int meetings;
    char place[256];
    snprintf(place, sizeof place, "%s/meet-%d", getenv("ADL_TEST_DIR"), meetings++);
    setenv("ADLOCO_RENDEZVOUS", place, 1);
}

static inline void ranks_set(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

/* Runs fn as ranks 0..n-1, in a process each. codes [n]: exit codes, or minus a signal. Returns how
 * many did not end with 0. */
static inline int ranks_run(int n, int (*fn)(void *arg), void *arg, int *codes)
{
    char dir[] = "/tmp/adloco-test-XXXXXX";
    pid_t pids[RANKS_MOST];
    int failed = 0;
    if (!mkdtemp(dir))
        exit(1);
    setenv("ADL_TEST_DIR", dir, 1);
    fflush(NULL);
    for (int rank = 0; rank < n; rank++) {
        pids[rank] = fork();
        if (pids[rank] < 0)
            exit(1);
        if (pids[rank] > 0)
            continue;
        alarm(RANKS_DEADLINE_S);
        ranks_set("RANK", rank);
        ranks_set("WORLD_SIZE", n);
        exit(fn(arg));
    }
    for (int rank = 0; rank < n; rank++) {
        int status = 0;
        waitpid(pids[rank], &status, 0);
        codes[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        failed += codes[rank] != 0;
        if (codes[rank] < 0)
            printf("rank %d of %d: signal %d\n", rank, n, -codes[rank]);
    }
    rmdir(dir);
    return failed;
}

#endif
