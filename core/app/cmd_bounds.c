/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/app/bounds_input.h"
#include "core/app/bounds_runs.h"
#include "core/app/cli.h"
#include "core/app/commands.h"

struct args {
    struct adl_cli_plan plan;
    bool json, measure, quiet;
};

static const struct argp_option options[] = {
    ADL_CLI_PLAN_OPTIONS,
    {"json", 'j', NULL, 0, "Print one JSON object: of several variants one each, by name", 0},
    {"measure", 'm', NULL, 0, "Run the experiment too; exit 3 where a guarantee is violated", 0},
    {"quiet", 'q', NULL, 0, "Show no progress", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (key) {
    case 'j':
        args->json = true;
        return 0;
    case 'm':
        args->measure = true;
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
    .doc = "Print what theory says of each variant: rounds, samples, messages, time; guarantee or "
           "prediction, and whether its condition on the rate is met. The keys bounds.* replace "
           "or override what model and platform give.",
};

struct printing {
    const struct args *args;
    const struct adl_plan *plan;
    struct adl_json json;
    size_t n_groups;
    struct adl_bounds_sweep *sweep; /* NULL: nothing is measured */
    bool violated;
};

/* Runs that differ only in their seed are one case: this one is its first. */
static bool starts_group(const struct adl_plan *plan, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (adl_bounds_same_group(&plan->runs[k], &plan->runs[i]))
            return false;
    return true;
}

static void open_case(struct printing *p, const struct adl_planned *run)
{
    char name[700];
    if (p->n_groups == 1)
        return;
    snprintf(name, sizeof name, "%s%s%s", run->variant, *run->variant && *run->point ? " " : "",
             run->point);
    adl_json_open(&p->json, name, '{');
}

static enum adl_status print_case(struct printing *p, size_t first, struct adl_err *err)
{
    struct adl_bounds_subject subject;
    struct adl_bounds bounds;
    struct adl_bounds_measured measured;
    const struct adl_planned *run = &p->plan->runs[first];
    ADL_TRY(adl_bounds_subject_open(adl_registry(), p->plan, run, &subject, err));
    enum adl_status status = adl_bounds_make(&subject.input, &bounds, err);
    if (status == ADL_OK && p->sweep)
        status = adl_bounds_measure(p->sweep, first, &bounds, &measured, err);
    if (status == ADL_OK && p->args->json) {
        open_case(p, run);
        adl_bounds_json(&subject.input, &bounds, &p->json);
        if (p->sweep)
            adl_bounds_measured_json(&measured, &p->json);
        if (p->n_groups > 1)
            adl_json_close(&p->json, '}');
    } else if (status == ADL_OK) {
        adl_bounds_print(&subject.input, &bounds, stdout);
        if (p->sweep)
            adl_bounds_measured_print(&measured, &bounds, stdout);
        putchar('\n');
    }
    if (status == ADL_OK && p->sweep)
        p->violated |= measured.any_violated;
    adl_bounds_subject_close(&subject);
    return status;
}

static enum adl_status print_cases(const struct args *args, const struct adl_plan *plan,
                                   struct adl_bounds_sweep *sweep, struct adl_err *err)
{
    struct printing p = {
        .args = args, .plan = plan, .json = {.out = stdout, .pretty = true}, .sweep = sweep};
    enum adl_status status = ADL_OK;
    for (size_t i = 0; i < plan->n_runs; i++)
        p.n_groups += starts_group(plan, i);
    if (args->json)
        adl_json_open(&p.json, NULL, '{');
    if (args->json && p.n_groups > 1)
        adl_json_open(&p.json, "variants", '{');
    for (size_t i = 0; i < plan->n_runs && status == ADL_OK; i++)
        if (starts_group(plan, i))
            status = print_case(&p, i, err);
    if (args->json && p.n_groups > 1)
        adl_json_close(&p.json, '}');
    if (args->json)
        adl_json_close(&p.json, '}');
    if (status == ADL_OK && p.violated)
        return adl_fail(err, ADL_ERR_CHECK, "%s: runs violate a guarantee; see above", plan->path);
    return status;
}

static enum adl_status bounds(const struct args *args, const struct adl_plan *plan,
                              struct adl_err *err)
{
    struct adl_bounds_sweep *sweep = NULL;
    if (args->measure)
        ADL_TRY(adl_bounds_sweep_run(adl_registry(), plan, args->quiet, &sweep, err));
    enum adl_status status = print_cases(args, plan, sweep, err);
    adl_bounds_sweep_free(sweep);
    return status;
}

int adl_cmd_bounds(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.plan.err = &err};
    struct adl_plan *plan = NULL;
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = adl_cli_plan_load(&args.plan, &plan, &err);
    if (status == ADL_OK) {
        adl_cli_warn(plan);
        status = bounds(&args, plan, &err);
    }
    adl_plan_free(plan);
    adl_cli_plan_free(&args.plan);
    return adl_cli_finish(status, &err);
}
