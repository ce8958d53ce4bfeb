/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite: every transport of the registry that lives in one process x every case x
 * 1, 2, 3 and 8 workers, each in a process of its own (the simulator allows one engine a process; a
 * crash or a hang is then one failure). Usage: conformance_transport [TRANSPORT [CASE]]. Exit 1 if
 * one failed, 77 if nothing ran. */
#include "tests/plain/conformance_faults.h"
#include "tests/plain/conformance_sums.h"
#include "tests/plain/conformance_time.h"

#include <signal.h>
#include <sys/wait.h>

enum { DEADLINE_S = 60, SKIPPED = 77 };

/* Transports that the suite expects; one that a build leaves out is reported as skipped. */
static const char *const expected[] = {"threads", "sim"};

static int n_passed, n_failed, n_skipped;

static _Noreturn void child(const struct adl_transport_ops *ops,
                            const struct conformance_case *test, int n_workers)
{
    alarm(DEADLINE_S);
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = world_open(&w, ops, n_workers, &err);
    if (status == ADL_OK)
        test->run(&w);
    else
        fprintf(stderr, "%s: %s\n", ops->plugin.name, err.message);
    world_close(&w);
    if (status != ADL_OK)
        exit(status == ADL_ERR_UNSUPPORTED ? SKIPPED : 1);
    exit(atomic_load(&n_failed_checks) ? 1 : 0);
}

static void count(int wait_status, const char *transport, const char *name, int n_workers)
{
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
        n_passed++;
        return;
    }
    const char *verdict = "FAILED", *why = "";
    if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == SKIPPED) {
        verdict = "SKIPPED";
        n_skipped++;
    } else {
        n_failed++;
    }
    if (WIFSIGNALED(wait_status))
        why = WTERMSIG(wait_status) == SIGALRM ? ": past the deadline" : ": crashed";
    printf("%s %s/%s/%d workers%s\n", verdict, transport, name, n_workers, why);
}

static void run_case(const struct adl_transport_ops *ops, const struct conformance_case *test)
{
    static const int sizes[] = {1, 2, 3, MAX_WORKERS};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        fflush(NULL);
        pid_t pid = fork();
        if (pid == 0)
            child(ops, test, sizes[i]);
        int wait_status = 0;
        if (pid < 0 || waitpid(pid, &wait_status, 0) < 0) {
            perror("conformance_transport");
            exit(1);
        }
        count(wait_status, ops->plugin.name, test->name, sizes[i]);
    }
}

static void run_cases(const struct adl_transport_ops *ops, const struct conformance_case *tests,
                      const char *only)
{
    for (; tests->name; tests++)
        if (!only || strcmp(only, tests->name) == 0)
            run_case(ops, tests);
}

static bool in_build(const char *name)
{
    for (const struct adl_transport_ops *const *ops = adl_registry()->transports; *ops; ops++)
        if (strcmp((*ops)->plugin.name, name) == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    const char *transport = argc > 1 ? argv[1] : NULL, *only = argc > 2 ? argv[2] : NULL;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        if ((transport && strcmp(transport, expected[i]) != 0) || in_build(expected[i]))
            continue;
        printf("SKIPPED %s: not in this build\n", expected[i]);
        n_skipped++;
    }
    for (const struct adl_transport_ops *const *ops = adl_registry()->transports; *ops; ops++) {
        if (transport && strcmp(transport, (*ops)->plugin.name) != 0)
            continue;
        if ((*ops)->process) {
            printf("%s: its world has several processes, see %s_conformance\n",
                   (*ops)->plugin.name, (*ops)->plugin.name);
            continue;
        }
        run_cases(*ops, sum_cases, only);
        run_cases(*ops, fault_cases, only);
        run_cases(*ops, time_cases, only);
    }
    printf("conformance_transport: %d passed, %d failed, %d skipped\n", n_passed, n_failed,
           n_skipped);
    if (n_failed > 0)
        return 1;
    return n_passed > 0 ? 0 : SKIPPED;
}
