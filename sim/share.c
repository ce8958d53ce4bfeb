/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/share.h"

#include <math.h>
#include <stdlib.h>

void adl_share_free(struct adl_share *share)
{
    free(share->jobs);
    *share = (struct adl_share){0};
}

void adl_share_clear(struct adl_share *share)
{
    share->n = 0;
}

/* Max-min fair rates: those who want less than an equal part of what is left get what they want.
 * Jobs are kept by `most`, so that they come first. */
static void set_rates(struct adl_job *const *jobs, int n)
{
    double left = 1;
    for (int i = 0; i < n; i++) {
        jobs[i]->rate = fmin(jobs[i]->most, left / (n - i));
        left -= jobs[i]->rate;
    }
}

/* Seconds at full speed until the first job is done. */
static double first_end(struct adl_job *const *jobs, int n)
{
    double first = INFINITY;
    for (int i = 0; i < n; i++)
        first = fmin(first, jobs[i]->left_s / jobs[i]->rate);
    return first;
}

/* Works off dt seconds at full speed; who ends then is done at end_s and leaves. */
static void work_off(struct adl_share *share, double dt, bool ends, double end_s)
{
    int kept = 0;
    for (int i = 0; i < share->n; i++) {
        struct adl_job *job = share->jobs[i];
        job->done = ends && job->left_s / job->rate <= dt;
        job->left_s = job->done ? 0 : fmax(0, job->left_s - dt * job->rate);
        job->finish_s = end_s;
        if (!job->done)
            share->jobs[kept++] = job;
    }
    share->n = kept;
    share->at_s = end_s;
}

void adl_share_advance(struct adl_share *share, const struct adl_profile *profile, double now_s)
{
    now_s = fmax(now_s, share->at_s);
    while (share->n > 0) { /* an end may lie less than a bit ahead */
        set_rates(share->jobs, share->n);
        double dt = first_end(share->jobs, share->n);
        double end_s = adl_profile_finish(profile, share->at_s, dt);
        if (end_s > now_s)
            break;
        work_off(share, dt, true, end_s);
    }
    if (share->n > 0)
        work_off(share, adl_profile_work(profile, share->at_s, now_s), false, now_s);
    share->at_s = now_s;
}

bool adl_share_add(struct adl_share *share, const struct adl_profile *profile, double now_s,
                   double busy_s, double solo_s, struct adl_job *job)
{
    if (share->n == share->cap) {
        int cap = share->cap ? 2 * share->cap : 4;
        struct adl_job **jobs = realloc(share->jobs, (size_t)cap * sizeof *jobs);
        if (!jobs)
            return false;
        share->jobs = jobs;
        share->cap = cap;
    }
    adl_share_advance(share, profile, now_s);
    *job = (struct adl_job){.left_s = busy_s, .most = busy_s / solo_s};
    int i = share->n++;
    for (; i > 0 && share->jobs[i - 1]->most > job->most; i--)
        share->jobs[i] = share->jobs[i - 1];
    share->jobs[i] = job;
    return true;
}

double adl_share_predict(const struct adl_share *share, const struct adl_profile *profile,
                         const struct adl_job *job)
{
    struct adl_job copies[share->n];
    struct adl_job *jobs[share->n];
    struct adl_share future = {jobs, share->n, share->n, share->at_s};
    const struct adl_job *mine = NULL;
    for (int i = 0; i < share->n; i++) {
        copies[i] = *share->jobs[i];
        jobs[i] = &copies[i];
        if (share->jobs[i] == job)
            mine = &copies[i];
    }
    while (!mine->done) {
        set_rates(future.jobs, future.n);
        double dt = first_end(future.jobs, future.n);
        work_off(&future, dt, true, adl_profile_finish(profile, future.at_s, dt));
    }
    return mine->finish_s;
}
