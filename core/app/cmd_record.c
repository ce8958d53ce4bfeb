/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>

#include "analysis/record_table.h"
#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/file.h"
#include "core/summary.h"

struct args {
    const char *dir;
    const char *output; /* NULL: stdout */
    long window;
    struct adl_err *err;
};

static const struct argp_option options[] = {
    {"output", 'o', "FILE", 0, "Write to FILE instead of stdout", 0},
    {"window", 'w', "ROUNDS", 0, "Rounds that a row stands for, at least (1)", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (key) {
    case 'o':
        args->output = arg;
        return 0;
    case 'w':
        return adl_cli_integer("window", arg, 1000000, &args->window, args->err);
    case ARGP_KEY_ARG:
        if (!args->dir) {
            args->dir = arg;
            return 0;
        }
        adl_fail(args->err, ADL_ERR_INPUT, "adloco record: '%.80s' is one argument too many", arg);
        return EINVAL;
    case ARGP_KEY_END:
        if (args->dir)
            return 0;
        adl_fail(args->err, ADL_ERR_INPUT, "adloco record: a run's directory is needed");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .args_doc = "RUN",
    .doc = "Turn what a run wrote (its directory: `run --out RUN`, or RUN/runs/ID of a sweep) into "
           "the table that model.kind: recorded takes: tokens, loss, noise scale, batch, gradient "
           "norm. The run has one trainer and measured its gradients.",
};

static enum adl_status write_table(const void *arg, FILE *out, struct adl_err *err)
{
    const struct args *args = arg;
    struct adl_summary summary;
    char *summary_path = NULL, *records_path = NULL;
    enum adl_status status = ADL_OK;
    if (asprintf(&summary_path, "%s/summary.json", args->dir) < 0)
        summary_path = NULL;
    if (asprintf(&records_path, "%s/records.jsonl", args->dir) < 0)
        records_path = NULL;
    if (!summary_path || !records_path)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    if (status == ADL_OK)
        status = adl_summary_read(summary_path, &summary, err);
    if (status == ADL_OK)
        status = adl_record_table(records_path, summary.tokens / summary.samples, args->window, out,
                                  err);
    free(summary_path);
    free(records_path);
    return status;
}

/* What does not end in a table is not printed. */
static enum adl_status print_table(const struct args *args, struct adl_err *err)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a table");
    enum adl_status status = write_table(args, out, err);
    fclose(out);
    if (status == ADL_OK)
        fwrite(text, 1, size, stdout);
    free(text);
    return status;
}

int adl_cmd_record(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.window = 1, .err = &err};
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = args.output ? adl_file_write(args.output, write_table, &args, &err)
                             : print_table(&args, &err);
    return adl_cli_finish(status, &err);
}
