/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/json.h"
#include "core/model.h"

struct args {
    struct adl_cli_plan plan;
    bool json, layout;
};

static const struct argp_option options[] = {
    ADL_CLI_PLAN_OPTIONS,
    {"json", 'j', NULL, 0, "Print one JSON object", 0},
    {"layout", 'l', NULL, 0, "Print instead where the parameters of the first run's model lie", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    if (key == 'j') {
        args->json = true;
        return 0;
    }
    if (key == 'l') {
        args->layout = true;
        return 0;
    }
    return adl_cli_plan_key(key, arg, &args->plan);
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .args_doc = "FILE",
    .doc = "List an experiment's runs and their ids without running.",
};

enum { N_COLUMNS = 6 };
static const char *const titles[N_COLUMNS] = {"run",  "variant",   "point",
                                              "seed", "transport", "method"};

static const char *cell(const struct adl_planned *run, int column)
{
    switch (column) {
    case 0:
        return run->run_id;
    case 1:
        return *run->variant ? run->variant : "-";
    case 2:
        return *run->point ? run->point : "-";
    case 3:
        return adl_config_get(run->config, "seed");
    case 4:
        return run->settings.transport;
    default:
        return run->settings.method;
    }
}

static void print_table(const struct adl_plan *plan)
{
    int widths[N_COLUMNS];
    for (int c = 0; c < N_COLUMNS; c++) {
        widths[c] = (int)strlen(titles[c]);
        for (size_t r = 0; r < plan->n_runs; r++) {
            int width = (int)strlen(cell(&plan->runs[r], c));
            widths[c] = width > widths[c] ? width : widths[c];
        }
    }
    for (size_t r = 0; r <= plan->n_runs; r++)
        for (int c = 0; c < N_COLUMNS; c++)
            printf("%-*s%s", c + 1 < N_COLUMNS ? widths[c] : 0,
                   r ? cell(&plan->runs[r - 1], c) : titles[c], c + 1 < N_COLUMNS ? "  " : "\n");
}

static void print_json(const struct adl_plan *plan)
{
    struct adl_json j = {.out = stdout, .pretty = true};
    adl_json_open(&j, NULL, '{');
    adl_json_text(&j, "name", plan->name);
    adl_json_text(&j, "path", plan->path);
    adl_json_text(&j, "id", plan->id);
    adl_json_open(&j, "swept", '[');
    for (size_t i = 0; i < plan->n_swept; i++)
        adl_json_text(&j, NULL, plan->swept[i]);
    adl_json_close(&j, ']');
    adl_json_open(&j, "runs", '[');
    for (size_t i = 0; i < plan->n_runs; i++) {
        const struct adl_planned *run = &plan->runs[i];
        adl_json_open(&j, NULL, '{');
        adl_json_text(&j, "run_id", run->run_id);
        adl_json_text(&j, "variant", run->variant);
        adl_json_text(&j, "point", run->point);
        adl_json_int(&j, "seed", run->settings.seed);
        adl_json_text(&j, "transport", run->settings.transport);
        adl_json_text(&j, "method", run->settings.method);
        adl_json_close(&j, '}');
    }
    adl_json_close(&j, ']');
    adl_json_open(&j, "warnings", '[');
    for (size_t i = 0; i < plan->n_warnings; i++)
        adl_json_text(&j, NULL, plan->warnings[i]);
    adl_json_close(&j, ']');
    adl_json_close(&j, '}');
}

static enum adl_status print_layout(const struct adl_planned *run, struct adl_err *err)
{
    const struct adl_model_ops *const *model = adl_registry()->models;
    while (strcmp((*model)->plugin.name, run->settings.model.kind) != 0)
        model++; /* the plan has checked that there is one */
    const struct adl_plugin *plugin = &(*model)->plugin;
    if (!(*model)->describe)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "model %s has no layout to print", plugin->name);
    void *config = calloc(1, plugin->config_size);
    if (!config)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the options of %s", plugin->name);
    enum adl_status status = adl_config_fill(run->config, plugin->options, config, err);
    if (status == ADL_OK)
        status = (*model)->describe(config, stdout, err);
    free(config);
    return status;
}

int adl_cmd_plan(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.plan.err = &err};
    struct adl_plan *plan = NULL;
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = adl_cli_plan_load(&args.plan, &plan, &err);
    if (status == ADL_OK) {
        adl_cli_warn(plan);
        if (args.layout)
            status = print_layout(&plan->runs[0], &err);
        else if (args.json)
            print_json(plan);
        else
            print_table(plan);
    }
    adl_plan_free(plan);
    adl_cli_plan_free(&args.plan);
    return adl_cli_finish(status, &err);
}
