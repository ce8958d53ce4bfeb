/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/bounds_runs.h"

#include <errno.h>
#include <ftw.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/app/sweep_dir.h"
#include "core/app/sweep_process.h"
#include "core/summary.h"

struct adl_bounds_sweep {
    const struct adl_plan *plan;
    struct adl_summary *summaries; /* [plan->n_runs] */
};

bool adl_bounds_same_group(const struct adl_planned *a, const struct adl_planned *b)
{
    return !strcmp(a->variant, b->variant) && !strcmp(a->point, b->point);
}

static enum adl_status check_target(const struct adl_plan *plan, struct adl_err *err)
{
    for (size_t i = 0; i < plan->n_runs; i++) {
        const struct adl_planned *run = &plan->runs[i];
        const char *epsilon = adl_config_get(run->config, "bounds.epsilon");
        if (isnan(run->settings.stop.loss))
            return adl_fail(err, ADL_ERR_INPUT,
                            "%s: --measure counts rounds to stop.loss, which is not set",
                            plan->path);
        if (epsilon && *epsilon && strtod(epsilon, NULL) != run->settings.stop.loss)
            return adl_fail(err, ADL_ERR_INPUT,
                            "%s: bounds.epsilon: %s is not what is measured, stop.loss = %g",
                            plan->path, epsilon, run->settings.stop.loss);
    }
    return ADL_OK;
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    remove(path); /* what stays is only a temporary file */
    return 0;
}

static enum adl_status execute(const struct adl_registry *registry, const struct adl_plan *plan,
                               const char *dir, bool quiet, struct adl_err *err)
{
    struct adl_sweep sweep = {.registry = registry,
                              .plan = plan,
                              .dir = dir,
                              .line = adl_line_open(quiet ? NULL : stderr),
                              .messages = stderr};
    int lock;
    ADL_TRY(adl_sweep_dir_open(dir, plan, false, &lock, err));
    enum adl_status status = ADL_ERR_NOMEM;
    if (adl_jobs_init(&sweep.jobs, plan->n_runs) == 0) {
        status = adl_sweep_execute(&sweep, err);
        const size_t failed = adl_jobs_standing(&sweep.jobs, 0).failed;
        if (status == ADL_OK && failed > 0)
            status = adl_fail(err, ADL_ERR_RUNTIME, "%zu of %zu runs failed", failed, plan->n_runs);
    } else {
        adl_fail(err, status, "no memory for %zu runs", plan->n_runs);
    }
    adl_jobs_free(&sweep.jobs);
    close(lock);
    return status;
}

static enum adl_status read_summaries(struct adl_bounds_sweep *sweep, const char *dir,
                                      struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    for (size_t i = 0; i < sweep->plan->n_runs && status == ADL_OK; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/runs/%s/summary.json", dir, sweep->plan->runs[i].run_id) < 0)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
        status = adl_summary_read(path, &sweep->summaries[i], err);
        free(path);
    }
    return status;
}

enum adl_status adl_bounds_sweep_run(const struct adl_registry *registry,
                                     const struct adl_plan *plan, bool quiet,
                                     struct adl_bounds_sweep **out, struct adl_err *err)
{
    ADL_TRY(check_target(plan, err));
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    struct adl_bounds_sweep *sweep = calloc(1, sizeof *sweep);
    if (sweep) {
        sweep->plan = plan;
        sweep->summaries = calloc(plan->n_runs, sizeof *sweep->summaries);
    }
    if (!sweep || !sweep->summaries ||
        asprintf(&dir, "%s/adloco-bounds-XXXXXX", base && *base ? base : "/tmp") < 0) {
        adl_bounds_sweep_free(sweep);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu runs", plan->n_runs);
    }
    enum adl_status status = ADL_OK;
    if (!mkdtemp(dir))
        status = adl_fail(err, ADL_ERR_IO, "%s: %s", dir, strerror(errno));
    if (status == ADL_OK) {
        status = execute(registry, plan, dir, quiet, err);
        if (status == ADL_OK)
            status = read_summaries(sweep, dir, err);
        nftw(dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    free(dir);
    if (status == ADL_OK)
        *out = sweep;
    else
        adl_bounds_sweep_free(sweep);
    return status;
}

void adl_bounds_sweep_free(struct adl_bounds_sweep *sweep)
{
    if (sweep)
        free(sweep->summaries);
    free(sweep);
}

static void add_run(const struct adl_planned *run, const struct adl_summary *summary,
                    struct adl_bounds_runs *runs)
{
    const bool reached = !strcmp(summary->status, "target_reached");
    runs->rounds[runs->n] = (double)summary->outer_steps * runs->block;
    /* a run that diverged would never arrive, however many rounds it had */
    if (!strcmp(summary->status, "diverged"))
        runs->rounds[runs->n] = (double)run->settings.outer.steps * runs->block;
    runs->samples[runs->n] = summary->samples;
    runs->reached[runs->n++] = reached;
}

enum adl_status adl_bounds_measure(const struct adl_bounds_sweep *sweep, size_t first,
                                   const struct adl_bounds *bounds, struct adl_bounds_measured *out,
                                   struct adl_err *err)
{
    const struct adl_plan *plan = sweep->plan;
    const struct adl_settings *s = &plan->runs[first].settings;
    struct adl_bounds_runs runs = {.rounds = calloc(plan->n_runs, sizeof(double)),
                                   .samples = calloc(plan->n_runs, sizeof(double)),
                                   .reached = calloc(plan->n_runs, sizeof(bool)),
                                   .block = 1};
    enum adl_status status = ADL_ERR_NOMEM;
    if (s->outer.exchange == ADL_EXCHANGE_GRADIENTS)
        runs.block = (double)s->inner.steps;
    if (runs.rounds && runs.samples && runs.reached) {
        for (size_t i = first; i < plan->n_runs; i++)
            if (adl_bounds_same_group(&plan->runs[first], &plan->runs[i]))
                add_run(&plan->runs[i], &sweep->summaries[i], &runs);
        adl_bounds_judge(bounds, &runs, out);
        status = ADL_OK;
    } else {
        adl_fail(err, status, "no memory for %zu runs", plan->n_runs);
    }
    free(runs.rounds);
    free(runs.samples);
    free(runs.reached);
    return status;
}
