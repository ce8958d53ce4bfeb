/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>

#include "analysis/validate.h"
#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/plan_platform.h"

struct args {
    bool json;
    struct adl_err *err;
};

static const struct argp_option options[] = {
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    if (key == 'j') {
        args->json = true;
        return 0;
    }
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    adl_fail(args->err, ADL_ERR_INPUT, "adloco validate: takes no arguments, found '%.80s'", arg);
    return EINVAL;
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .doc = "Hold the formulas against published figures: value, ours, ratio, band, verdict. Exit "
           "code 3 where a judged row is out of its band.",
};

static enum adl_status validate(bool json, struct adl_err *err)
{
    char dir[PATH_MAX];
    struct adl_validation validation;
    snprintf(dir, sizeof dir, "%s/analysis/published", adl_data_dir());
    ADL_TRY(adl_validate(dir, &adl_formulas, &validation, err));
    if (json)
        adl_validation_json(&validation, stdout);
    else
        adl_validation_print(&validation, stdout);
    const size_t n_failed = validation.n_failed, n_judged = validation.n_judged;
    adl_validation_free(&validation);
    if (n_failed > 0)
        return adl_fail(err, ADL_ERR_CHECK, "%zu of %zu judged rows are out of their bands",
                        n_failed, n_judged);
    return ADL_OK;
}

int adl_cmd_validate(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.err = &err};
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = validate(args.json, &err);
    return adl_cli_finish(status, &err);
}
