/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of an nccl run as processes of a test, which find each other by a file and exchange through
 * tests/nccl_double. */
#ifndef ADL_TESTS_NCCL_RANKS_H
#define ADL_TESTS_NCCL_RANKS_H

#include <signal.h>
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

/* The exit code of a process, or minus the signal that ended it; minus SIGSTOP while it stands
 * still. */
static inline int ranks_wait(pid_t pid, int flags)
{
    int status = 0;
    waitpid(pid, &status, flags);
    if (WIFSTOPPED(status))
        return -SIGSTOP;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Runs fn as ranks 0..n-1, in a process each. codes [n]: exit codes, or minus a signal. Who stands
 * still is killed when all others have ended. Returns how many did not end with 0. */
static inline int ranks_run(int n, int (*fn)(void *arg), void *arg, int *codes)
{
    char dir[] = "/tmp/adloco-test-XXXXXX";
    char command[64];
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
        codes[rank] = ranks_wait(pids[rank], WUNTRACED);
        failed += codes[rank] != 0;
    }
    for (int rank = 0; rank < n; rank++)
        if (codes[rank] == -SIGSTOP) {
            kill(pids[rank], SIGKILL);
            ranks_wait(pids[rank], 0);
        }
    snprintf(command, sizeof command, "rm -rf %s", dir);
    if (system(command) != 0)
        printf("cannot remove %s\n", dir);
    return failed;
}

#endif
