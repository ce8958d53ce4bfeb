/* SPDX-License-Identifier: Apache-2.0 */
/* Several simulated runs in one test: a process holds one engine, so each run has a child. */
#ifndef ADL_TESTS_SIM_RUNS_H
#define ADL_TESTS_SIM_RUNS_H

#include <sys/mman.h>
#include <sys/wait.h>

#include "build_config.h"
#include "run_helper.h"

struct sim_run_result {
    bool done;
    struct test_run run;
    char records[1 << 22];
};

/* As test_run_in; without a directory as test_run_text. */
static inline struct test_run sim_run_in(const char *dir, const char *yaml,
                                         const char *const *sets, enum adl_run_mode mode,
                                         const struct adl_run_observer *observer)
{
    struct test_run failed = {.status = ADL_ERR_RUNTIME, .err.message = "the run's process died"};
    struct sim_run_result *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r == MAP_FAILED)
        return failed;
    pid_t child = fork();
    if (child == 0) {
        r->run = dir ? test_run_in(dir, yaml, sets, mode, observer) : test_run_text(yaml, sets);
        if (r->run.records)
            snprintf(r->records, sizeof r->records, "%s", r->run.records);
        r->done = true;
        _exit(0);
    }
    if (child > 0)
        waitpid(child, NULL, 0);
    struct test_run run = r->done ? r->run : failed;
    run.records = run.records ? strdup(r->records) : NULL;
    munmap(r, sizeof *r);
    return run;
}

static inline struct test_run sim_run_text(const char *yaml, const char *const *sets)
{
    return sim_run_in(NULL, yaml, sets, ADL_RUN_NEW, NULL);
}

#endif
