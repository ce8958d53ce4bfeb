/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/platform_make.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/app/cli.h"
#include "core/platform_maker.h"

enum { KEY_ROW = 1000, MAX_DOC = 400 };

struct args {
    struct adl_making making;
    const char *path; /* NULL: stdout */
    struct adl_err *err;
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    if (key == 'o') {
        args->path = arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        adl_fail(args->err, ADL_ERR_INPUT, "%s: '%.80s' is one argument too many", state->argv[0],
                 arg);
        return EINVAL;
    }
    if (key < KEY_ROW || key >= KEY_ROW + ADL_MAX_MAKER_ROWS)
        return ARGP_ERR_UNKNOWN;
    enum adl_status status = adl_making_set(&args->making, (size_t)(key - KEY_ROW), arg, args->err);
    return status == ADL_OK ? 0 : EINVAL;
}

/* The maker's rows as argp's; options has room for two more, docs for a text each. */
static void describe(const struct adl_platform_maker *maker, struct argp_option *options,
                     char (*docs)[MAX_DOC])
{
    int n = 0;
    for (; n < ADL_MAX_MAKER_ROWS && maker->options[n].key; n++) {
        const struct adl_field *field = &maker->options[n];
        char allowed[MAX_DOC / 2];
        snprintf(docs[n], MAX_DOC, "%.*s Takes %s.", MAX_DOC / 2 - 9, field->doc,
                 adl_field_allowed(field, NULL, allowed, sizeof allowed));
        options[n] = (struct argp_option){field->key, KEY_ROW + n, "VALUE", 0, docs[n], 0};
    }
    options[n] = (struct argp_option){"output", 'o', "FILE", 0, "Write there; else print", 0};
}

static enum adl_status make(struct args *args, int argc, char **argv)
{
    struct argp_option options[ADL_MAX_MAKER_ROWS + 2] = {{0}};
    char docs[ADL_MAX_MAKER_ROWS][MAX_DOC];
    describe(args->making.maker, options, docs);
    struct argp argp = {.options = options, .parser = parse_key, .doc = args->making.maker->doc};
    ADL_TRY(adl_cli_parse(&argp, argc, argv, args, args->err));
    return args->path ? adl_making_write_file(&args->making, args->path, args->err)
                      : adl_making_write(&args->making, stdout, args->err);
}

enum adl_status adl_platform_make(int argc, char **argv, struct adl_err *err)
{
    const char *kind = argc > 1 ? argv[1] : "";
    struct args args = {.err = err};
    enum adl_status status =
        adl_making_open(adl_registry(), kind, strlen(kind), "--", &args.making, err);
    if (status == ADL_OK) {
        char name[128];
        snprintf(name, sizeof name, "adloco platform make %s", kind);
        argv[1] = name;
        status = make(&args, argc - 1, argv + 1);
    }
    adl_making_close(&args.making);
    return status;
}
