/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/platform_make.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/app/cli.h"

enum { KEY_ROW = 1000, MAX_ROWS = 32, MAX_DOC = 400 };

struct making {
    const struct adl_platform_maker *maker;
    void *config;
    bool set[MAX_ROWS]; /* whether a row has its value */
    const char *path;   /* NULL: stdout */
    struct adl_err *err;
};

static size_t count_rows(const struct adl_platform_maker *maker)
{
    size_t n = 0;
    while (maker->options[n].key && n < MAX_ROWS)
        n++;
    return n;
}

static void *value_of(const struct making *making, size_t row)
{
    return (char *)making->config + making->maker->options[row].offset;
}

static enum adl_status set_row(struct making *making, size_t row, const char *text)
{
    const struct adl_field *field = &making->maker->options[row];
    if (making->set[row])
        adl_field_free(field, value_of(making, row));
    making->set[row] = false;
    ADL_TRY(adl_field_parse(field, text, NULL, "--", value_of(making, row), making->err));
    making->set[row] = true;
    return ADL_OK;
}

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct making *making = state->input;
    if (key == 'o') {
        making->path = arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        adl_fail(making->err, ADL_ERR_INPUT, "%s: '%.80s' is one argument too many", state->argv[0],
                 arg);
        return EINVAL;
    }
    if (key < KEY_ROW || key >= KEY_ROW + MAX_ROWS)
        return ARGP_ERR_UNKNOWN;
    return set_row(making, (size_t)(key - KEY_ROW), arg) == ADL_OK ? 0 : EINVAL;
}

/* The maker's rows as argp's; options has room for MAX_ROWS + 2, docs for a text each. */
static void describe(const struct adl_platform_maker *maker, struct argp_option *options,
                     char (*docs)[MAX_DOC])
{
    size_t n = count_rows(maker);
    for (size_t i = 0; i < n; i++) {
        const struct adl_field *field = &maker->options[i];
        char allowed[MAX_DOC / 2];
        snprintf(docs[i], MAX_DOC, "%.*s Takes %s.", MAX_DOC / 2 - 9, field->doc,
                 adl_field_allowed(field, NULL, allowed, sizeof allowed));
        options[i] = (struct argp_option){field->key, (int)(KEY_ROW + i), "VALUE", 0, docs[i], 0};
    }
    options[n] = (struct argp_option){"output", 'o', "FILE", 0, "Write there; else print", 0};
}

static enum adl_status apply_defaults(struct making *making)
{
    for (size_t i = 0; i < count_rows(making->maker); i++)
        if (making->maker->options[i].dflt)
            ADL_TRY(set_row(making, i, making->maker->options[i].dflt));
    return ADL_OK;
}

static enum adl_status check_complete(const struct making *making)
{
    for (size_t i = 0; i < count_rows(making->maker); i++)
        if (!making->set[i])
            return adl_fail(making->err, ADL_ERR_INPUT, "platform %s: --%s is needed: %s",
                            making->maker->name, making->maker->options[i].key,
                            making->maker->options[i].doc);
    return ADL_OK;
}

static enum adl_status fail_write(const struct making *making)
{
    return adl_fail(making->err, ADL_ERR_INPUT, "%s: cannot be written: %s", making->path,
                    strerror(errno));
}

/* Beside its place first: a maker that fails leaves no half a platform. */
static enum adl_status write_file(const struct making *making)
{
    char *part;
    if (asprintf(&part, "%s.part", making->path) < 0)
        return adl_fail(making->err, ADL_ERR_NOMEM, "out of memory");
    FILE *out = fopen(part, "w");
    enum adl_status status =
        out ? making->maker->make(making->config, out, making->err) : fail_write(making);
    if (out && fclose(out) != 0 && status == ADL_OK)
        status = fail_write(making);
    if (status == ADL_OK && rename(part, making->path) != 0)
        status = fail_write(making);
    if (out && status != ADL_OK)
        unlink(part);
    free(part);
    return status;
}

static enum adl_status make(struct making *making, int argc, char **argv)
{
    struct argp_option options[MAX_ROWS + 2] = {{0}};
    char docs[MAX_ROWS][MAX_DOC];
    describe(making->maker, options, docs);
    struct argp argp = {.options = options, .parser = parse_key, .doc = making->maker->doc};
    ADL_TRY(apply_defaults(making));
    ADL_TRY(adl_cli_parse(&argp, argc, argv, making, making->err));
    ADL_TRY(check_complete(making));
    return making->path ? write_file(making)
                        : making->maker->make(making->config, stdout, making->err);
}

static enum adl_status fail_kind(const char *kind, struct adl_err *err)
{
    char names[512] = "";
    const struct adl_platform_maker *const *makers = adl_registry()->platform_makers;
    for (size_t i = 0; makers[i]; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", makers[i]->name);
    }
    return adl_fail(err, ADL_ERR_INPUT, "adloco platform make: '%.80s' is no kind; there are: %s",
                    kind, names);
}

enum adl_status adl_platform_make(int argc, char **argv, struct adl_err *err)
{
    const char *kind = argc > 1 ? argv[1] : "";
    const struct adl_platform_maker *const *makers = adl_registry()->platform_makers;
    while (*makers && strcmp((*makers)->name, kind))
        makers++;
    if (!*makers)
        return fail_kind(kind, err);
    struct making making = {.maker = *makers, .err = err};
    making.config = calloc(1, (*makers)->config_size);
    if (!making.config)
        return adl_fail(err, ADL_ERR_NOMEM, "out of memory");
    char name[128];
    snprintf(name, sizeof name, "adloco platform make %s", kind);
    argv[1] = name;
    enum adl_status status = make(&making, argc - 1, argv + 1);
    for (size_t i = 0; i < count_rows(making.maker); i++)
        if (making.set[i])
            adl_field_free(&making.maker->options[i], value_of(&making, i));
    free(making.config);
    return status;
}
