/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/app/sweep_dir.h"
#include "core/app/sweep_process.h"

struct args {
    struct adl_cli_plan plan;
    long n_parallel; /* 0: a run per core */
    const char *out; /* NULL: out/NAME */
    bool resume, quiet;
};

static const struct argp_option options[] = {
    ADL_CLI_PLAN_OPTIONS,
    {"jobs", 'j', "N", 0, "Runs at once (default: the number of cores)", 0},
    {"out", 'o', "DIR", 0, "Where runs and results go (default: out/NAME)", 0},
    {"resume", 'r', NULL, 0, "Complete what DIR holds of this experiment", 0},
    {"quiet", 'q', NULL, 0, "Show no progress", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (key) {
    case 'j':
        return adl_cli_integer("jobs", arg, ADL_MOST_JOBS, &args->n_parallel, args->plan.err);
    case 'o':
        args->out = arg;
        return 0;
    case 'r':
        args->resume = true;
        return 0;
    case 'q':
        args->quiet = true;
        return 0;
    default:
        return adl_cli_plan_key(key, arg, &args->plan);
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .args_doc = "FILE",
    .doc = "Do all runs of an experiment in parallel processes, and report.",
};

/* Sets aside what an earlier sweep completed. */
static void keep_complete(struct adl_sweep *sweep)
{
    for (size_t i = 0; i < sweep->plan->n_runs; i++)
        if (adl_sweep_dir_complete(sweep->dir, &sweep->plan->runs[i]))
            sweep->jobs.v[i].state = ADL_JOB_KEPT;
    struct adl_standing standing = adl_jobs_standing(&sweep->jobs, 0);
    if (standing.kept > 0)
        fprintf(sweep->messages, "adloco: kept from before: %zu of %zu runs\n", standing.kept,
                standing.total);
}

/* A report that this machine cannot make costs a line, not the sweep. */
static enum adl_status report(const char *dir, struct adl_err *err)
{
    const struct adl_report_ops *const *reports = adl_registry()->reports;
    for (size_t i = 0; reports[i]; i++) {
        struct adl_err failure = {0};
        enum adl_status status = reports[i]->make(dir, stdout, &failure);
        if (status == ADL_ERR_UNSUPPORTED)
            fprintf(stderr, "adloco: %s\n", failure.message);
        else if (status != ADL_OK)
            adl_fail(err, status, "report '%s': %s", reports[i]->name, failure.message);
    }
    return err->status;
}

static enum adl_status finish(const struct adl_sweep *sweep, enum adl_status status,
                              const char *experiment, struct adl_err *err)
{
    struct adl_standing standing = adl_jobs_standing(&sweep->jobs, 0);
    if (status == ADL_ERR_CANCELLED) {
        *err = (struct adl_err){0};
        return adl_fail(err, status,
                        "stopped; %zu of %zu runs are done; to go on: adloco sweep %s --out %s "
                        "--resume (with the same --set and --variant)",
                        standing.complete - standing.failed, standing.total, experiment,
                        sweep->dir);
    }
    if (status != ADL_OK)
        return status;
    ADL_TRY(report(sweep->dir, err));
    printf("%s: %zu runs\n", sweep->dir, standing.total);
    if (standing.failed > 0)
        return adl_fail(err, ADL_ERR_RUNTIME, "%zu of %zu runs failed; see %s/runs/*/failed.json",
                        standing.failed, standing.total, sweep->dir);
    return ADL_OK;
}

static enum adl_status sweep_plan(const struct args *args, const struct adl_plan *plan,
                                  const char *dir, struct adl_err *err)
{
    struct adl_sweep sweep = {
        .registry = adl_registry(),
        .plan = plan,
        .dir = dir,
        .n_parallel = (size_t)args->n_parallel,
        .line = adl_line_open(args->quiet ? NULL : stderr),
        .messages = stderr,
    };
    int lock;
    ADL_TRY(adl_sweep_dir_open(dir, plan, args->resume, &lock, err));
    enum adl_status status = ADL_ERR_NOMEM;
    if (adl_jobs_init(&sweep.jobs, plan->n_runs) == 0) {
        keep_complete(&sweep);
        status = adl_sweep_execute(&sweep, err);
        status = finish(&sweep, status, plan->path, err);
    }
    adl_jobs_free(&sweep.jobs);
    close(lock);
    return status;
}

int adl_cmd_sweep(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.plan.err = &err};
    struct adl_plan *plan = NULL;
    char *dir = NULL;
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = adl_cli_plan_load(&args.plan, &plan, &err);
    if (status == ADL_OK &&
        asprintf(&dir, "%s%s", args.out ? "" : "out/", args.out ? args.out : plan->name) < 0) {
        dir = NULL;
        status = adl_fail(&err, ADL_ERR_NOMEM, "no memory for a path");
    }
    if (status == ADL_OK) {
        adl_cli_warn(plan);
        status = sweep_plan(&args, plan, dir, &err);
    }
    free(dir);
    adl_plan_free(plan);
    adl_cli_plan_free(&args.plan);
    return adl_cli_finish(status, &err);
}
