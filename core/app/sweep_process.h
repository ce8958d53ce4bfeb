/* SPDX-License-Identifier: Apache-2.0 */
/* Carries out a sweep: a forked process per run, because the simulator allows one engine per
 * process and because a crash then costs one run. */
#ifndef ADL_APP_SWEEP_PROCESS_H
#define ADL_APP_SWEEP_PROCESS_H

#include "core/app/sweep_line.h"
#include "core/app/sweep_jobs.h"
#include "core/plan.h"

struct adl_sweep {
    const struct adl_registry *registry;
    const struct adl_plan *plan;
    const char *dir;
    size_t n_parallel;    /* runs at once; 0: one for each core */
    struct adl_jobs jobs; /* a job per planned run, in its order */
    struct adl_line line;
    FILE *messages; /* a line for each run that fails */
};

/* Runs what is to do. A run that fails is recorded and does not stop the others: see the
 * jobs afterwards. SIGINT or SIGTERM: kills what is running, leaves what is done and returns
 * ADL_ERR_CANCELLED within a second. */
enum adl_status adl_sweep_execute(struct adl_sweep *sweep, struct adl_err *err);

#endif
