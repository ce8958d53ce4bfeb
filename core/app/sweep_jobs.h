/* SPDX-License-Identifier: Apache-2.0 */
/* The bookkeeping of a sweep: which run is next, how far all are, how long the rest will take.
 * It starts nothing and asks no clock. */
#ifndef ADL_APP_SWEEP_JOBS_H
#define ADL_APP_SWEEP_JOBS_H

#include <stddef.h>

enum adl_job_state {
    ADL_JOB_TODO,
    ADL_JOB_RUNNING,
    ADL_JOB_DONE,
    ADL_JOB_FAILED,
    ADL_JOB_KEPT /* complete before this sweep began */
};

struct adl_job {
    enum adl_job_state state;
    double fraction; /* of a running one, 0..1 */
};

struct adl_jobs {
    struct adl_job *v; /* [n] */
    size_t n, next;    /* no job before next is still to do */
};

/* How a sweep stands at a moment. */
struct adl_standing {
    size_t total, complete, running, failed, kept; /* complete: failed and kept ones too */
    double elapsed_s;
    double left_s; /* NAN before anything can be said */
};

/* All to do. Returns 0, or -1 without memory. */
int adl_jobs_init(struct adl_jobs *jobs, size_t n);
void adl_jobs_free(struct adl_jobs *jobs);

/* Takes the next job that is to do and sets it running; n if none is left. */
size_t adl_jobs_take(struct adl_jobs *jobs);

/* Extrapolates from the work done in this sweep, running jobs' fractions included. */
struct adl_standing adl_jobs_standing(const struct adl_jobs *jobs, double elapsed_s);

#endif
