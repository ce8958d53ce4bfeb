/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/sweep_jobs.h"

#include <math.h>
#include <stdlib.h>

int adl_jobs_init(struct adl_jobs *jobs, size_t n)
{
    *jobs = (struct adl_jobs){.v = calloc(n, sizeof *jobs->v), .n = n};
    return jobs->v ? 0 : -1;
}

void adl_jobs_free(struct adl_jobs *jobs)
{
    free(jobs->v);
    *jobs = (struct adl_jobs){0};
}

size_t adl_jobs_take(struct adl_jobs *jobs)
{
    while (jobs->next < jobs->n && jobs->v[jobs->next].state != ADL_JOB_TODO)
        jobs->next++;
    if (jobs->next < jobs->n)
        jobs->v[jobs->next].state = ADL_JOB_RUNNING;
    return jobs->next;
}

struct adl_standing adl_jobs_standing(const struct adl_jobs *jobs, double elapsed_s)
{
    struct adl_standing s = {.total = jobs->n, .elapsed_s = elapsed_s, .left_s = NAN};
    double work = 0; /* done in this sweep, in runs */
    for (size_t i = 0; i < jobs->n; i++) {
        const struct adl_job *job = &jobs->v[i];
        s.kept += job->state == ADL_JOB_KEPT;
        s.failed += job->state == ADL_JOB_FAILED;
        s.running += job->state == ADL_JOB_RUNNING;
        s.complete += job->state != ADL_JOB_TODO && job->state != ADL_JOB_RUNNING;
        if (job->state == ADL_JOB_RUNNING)
            work += job->fraction;
    }
    work += (double)(s.complete - s.kept);
    if (s.complete == s.total)
        s.left_s = 0;
    else if (work > 0)
        s.left_s = elapsed_s * ((double)(s.total - s.kept) - work) / work;
    return s;
}
