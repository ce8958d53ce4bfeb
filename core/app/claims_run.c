/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/claims_run.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/app/cli.h"
#include "core/app/sweep_dir.h"
#include "core/app/sweep_process.h"

enum adl_status adl_claims_make_dir(const char *path, struct adl_err *err)
{
    char prefix[PATH_MAX];
    const size_t n = strlen(path);
    if (n == 0 || n >= sizeof prefix)
        return adl_fail(err, ADL_ERR_INPUT, "'%.200s': not a usable path", path);
    for (size_t i = 1; i <= n; i++) {
        struct stat there;
        if (path[i] != '/' && path[i] != '\0')
            continue;
        memcpy(prefix, path, i);
        prefix[i] = '\0';
        if (mkdir(prefix, 0777) != 0 && (stat(prefix, &there) != 0 || !S_ISDIR(there.st_mode)))
            return adl_fail(err, ADL_ERR_INPUT, "%s: cannot be made a directory: %s", prefix,
                            strerror(errno));
    }
    return ADL_OK;
}

/* Whether the run's seed is one of the first `limit` of the plan. */
static bool is_early(const struct adl_plan *plan, size_t run, size_t limit)
{
    const int64_t seed = plan->runs[run].settings.seed;
    size_t before = 0;
    for (size_t i = 0; i < plan->n_runs && plan->runs[i].settings.seed != seed; i++) {
        size_t k = 0;
        while (plan->runs[k].settings.seed != plan->runs[i].settings.seed)
            k++;
        before += k == i;
    }
    return limit == 0 || before < limit;
}

static bool is_wanted(const struct adl_claims_runner *runner, const struct adl_claim *claim,
                      const struct adl_plan *plan, size_t run)
{
    const struct adl_planned *r = &plan->runs[run];
    const struct adl_claim_curve *curve = &claim->curve;
    bool wanted = false;
    for (size_t i = 0; i < (runner->quick ? 1 : claim->n); i++)
        wanted = wanted || adl_claim_wants(&claim->asks[i], r->variant, r->point);
    for (size_t i = 0; curve->y && !runner->quick && i < curve->of->n; i++)
        wanted = wanted || (!strcmp(curve->of->children[i].text, r->variant) &&
                            adl_claim_at(curve->at, r->point) && is_early(plan, run, 1));
    return wanted && is_early(plan, run, runner->seeds);
}

/* A question needs one run of each seed of its variants: a misspelt point would pass for one that
 * was not run, a missing one for twice the evidence. */
static enum adl_status check_ask(const struct adl_claim *claim, const struct adl_claim_ask *ask,
                                 const char *variant, const struct adl_plan *plan,
                                 struct adl_err *err)
{
    const struct adl_planned *first = NULL;
    for (size_t i = 0; i < plan->n_runs; i++) {
        const struct adl_planned *r = &plan->runs[i];
        if (strcmp(r->variant, variant) || !adl_claim_at(ask->at, r->point))
            continue;
        first = first ? first : r;
        if (strcmp(r->point, first->point))
            return adl_fail(err, ADL_ERR_INPUT,
                            "%s: claim: asks: '%.80s': variant '%.80s' has more than one run of a "
                            "seed (%.200s; %.200s); 'at' must say at which point",
                            claim->path, ask->regime, variant, first->point, r->point);
    }
    if (first)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_INPUT,
                    "%s: claim: asks: '%.80s': no run of variant '%.80s' is at that point",
                    claim->path, ask->regime, variant);
}

static enum adl_status check_asks(const struct adl_claim *claim, const struct adl_plan *plan,
                                  struct adl_err *err)
{
    for (size_t i = 0; i < claim->n; i++) {
        const struct adl_claim_ask *ask = &claim->asks[i];
        ADL_TRY(check_ask(claim, ask, ask->of, plan, err));
        if (*ask->over)
            ADL_TRY(check_ask(claim, ask, ask->over, plan, err));
    }
    return ADL_OK;
}

/* part: the wanted runs of the plan that dir is for. */
static enum adl_status execute(const struct adl_claims_runner *runner,
                               const struct adl_claim *claim, const struct adl_plan *part,
                               const char *dir, struct adl_err *err)
{
    struct adl_sweep sweep = {
        .registry = runner->registry,
        .plan = part,
        .dir = dir,
        .n_parallel = runner->n_parallel,
        .line = adl_line_open(runner->quiet ? NULL : stderr),
        .messages = stderr,
    };
    if (adl_jobs_init(&sweep.jobs, part->n_runs) != 0)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu runs", part->n_runs);
    for (size_t i = 0; i < part->n_runs; i++)
        if (adl_sweep_dir_complete(dir, &part->runs[i]))
            sweep.jobs.v[i].state = ADL_JOB_KEPT;
    if (!runner->quiet)
        fprintf(stderr, "%s: %s\n", claim->id, claim->title);
    enum adl_status status = adl_sweep_execute(&sweep, err);
    const size_t failed = adl_jobs_standing(&sweep.jobs, 0).failed;
    adl_jobs_free(&sweep.jobs);
    if (status == ADL_OK && failed > 0)
        return adl_fail(err, ADL_ERR_RUNTIME,
                        "%s: %zu of %zu runs failed; see %s/runs/*/failed.json", claim->path,
                        failed, part->n_runs, dir);
    return status;
}

static enum adl_status run_plan(const struct adl_claims_runner *runner,
                                const struct adl_claim *claim, const struct adl_plan *plan,
                                const char *dir, struct adl_err *err)
{
    struct adl_plan part = *plan; /* shares all but the list */
    int lock;
    ADL_TRY(check_asks(claim, plan, err));
    ADL_TRY(adl_sweep_dir_open(dir, plan, runner->resume, &lock, err));
    enum adl_status status = ADL_OK;
    part.n_runs = 0;
    part.runs = calloc(plan->n_runs, sizeof *part.runs);
    if (part.runs) {
        for (size_t i = 0; i < plan->n_runs; i++)
            if (is_wanted(runner, claim, plan, i))
                part.runs[part.n_runs++] = plan->runs[i];
        status = execute(runner, claim, &part, dir, err);
    } else {
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu runs", plan->n_runs);
    }
    free(part.runs);
    close(lock);
    return status;
}

/* The plan of the claim's experiment; a quick one with its settings of --set's rank. */
static enum adl_status load_plan(const struct adl_claims_runner *runner,
                                 const struct adl_claim *claim, struct adl_plan **out,
                                 struct adl_err *err)
{
    struct adl_cli_plan args = {.path = claim->path, .err = err};
    const struct adl_tree *quick = runner->quick ? claim->quick : NULL;
    error_t failed = 0;
    for (size_t i = 0; quick && !failed && i < quick->n; i++)
        failed = adl_cli_plan_set(quick->children[i].key, quick->children[i].text, &args);
    const enum adl_status status =
        failed ? adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for a plan", claim->path)
               : adl_cli_plan_load(&args, out, err);
    adl_cli_plan_free(&args);
    return status;
}

enum adl_status adl_claim_run(const struct adl_claims_runner *runner, const struct adl_claim *claim,
                              const char *dir, struct adl_err *err)
{
    struct adl_plan *plan;
    ADL_TRY(load_plan(runner, claim, &plan, err));
    adl_cli_warn(plan);
    enum adl_status status = run_plan(runner, claim, plan, dir, err);
    adl_plan_free(plan);
    return status;
}
