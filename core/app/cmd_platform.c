/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/app/platform_make.h"
#include "core/plan_platform.h"

/* One argument at most: list takes none, show takes a platform. */
struct args {
    const char *platform;
    const char *picture; /* NULL: none */
    bool takes_platform;
    struct adl_err *err;
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    if (key == 'p') {
        args->picture = arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG && args->takes_platform && !args->platform) {
        args->platform = arg;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        adl_fail(args->err, ADL_ERR_INPUT, "%s: '%.80s' is one argument too many", state->argv[0],
                 arg);
        return EINVAL;
    }
    if (key == ARGP_KEY_END && args->takes_platform && !args->platform) {
        adl_fail(args->err, ADL_ERR_INPUT, "%s: a platform's name or file is needed",
                 state->argv[0]);
        return EINVAL;
    }
    return ARGP_ERR_UNKNOWN;
}

/* The first sentence of a shipped platform's comment; "" where it has none. */
static const char *describe(const char *name, char *about, size_t size)
{
    char path[4352], text[1024];
    about[0] = '\0';
    snprintf(path, sizeof path, "%s/platforms/%s.xml", adl_data_dir(), name);
    FILE *file = fopen(path, "r");
    if (!file)
        return about;
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    const char *at = strstr(text, "<!--");
    size_t n = 0;
    for (at = at ? at + 4 : ""; *at && strncmp(at, "-->", 3) && n + 1 < size; at++) {
        bool space = *at == ' ' || *at == '\n';
        if (space && n > 0 && about[n - 1] == '.')
            break;
        if (!space || (n > 0 && about[n - 1] != ' '))
            about[n++] = space ? ' ' : *at;
    }
    bool cut = n + 1 == size;
    for (size_t dots = sizeof "..."; cut && n > 0 && (n + dots > size || about[n - 1] != ' ');)
        n--;
    while (n > 0 && strchr(".:, ", about[n - 1]))
        n--;
    snprintf(about + n, size - n, "%s", cut ? "..." : "");
    return about;
}

static enum adl_status list(int argc, char **argv, struct adl_err *err)
{
    static const struct argp argp = {.parser = parse_key,
                                     .doc = "List the platforms that are shipped."};
    struct args args = {.err = err};
    ADL_TRY(adl_cli_parse(&argp, argc, argv, &args, err));
    char **names = adl_platform_names();
    if (!names)
        return adl_fail(err, ADL_ERR_NOMEM, "out of memory");
    size_t width = 0;
    for (size_t i = 0; names[i]; i++)
        width = strlen(names[i]) > width ? strlen(names[i]) : width;
    for (size_t i = 0; names[i]; i++) {
        char about[120];
        printf("%-*s  %s\n", (int)width, names[i], describe(names[i], about, sizeof about));
    }
    free(names);
    return ADL_OK;
}

/* Beside its place first, as every file. */
static enum adl_status draw(const char *path, const char *picture, struct adl_err *err)
{
    char part[4352];
    snprintf(part, sizeof part, "%s.part", picture);
    FILE *out = fopen(part, "w");
    if (!out)
        return adl_fail(err, ADL_ERR_INPUT, "%s: cannot be written: %s", picture, strerror(errno));
    enum adl_status status = adl_registry()->platform_reader->draw(path, out, err);
    if (fclose(out) != 0 && status == ADL_OK)
        status = adl_fail(err, ADL_ERR_IO, "%s: cannot be written: %s", picture, strerror(errno));
    if (status == ADL_OK && rename(part, picture) != 0)
        status =
            adl_fail(err, ADL_ERR_INPUT, "%s: cannot be written: %s", picture, strerror(errno));
    if (status != ADL_OK)
        unlink(part);
    return status;
}

static enum adl_status show(int argc, char **argv, struct adl_err *err)
{
    static const struct argp_option options[] = {
        {"picture", 'p', "FILE.svg", 0, "Also draw it, as SVG", 0}, {0}};
    static const struct argp argp = {
        .options = options,
        .parser = parse_key,
        .args_doc = "PLATFORM",
        .doc = "Check a platform and show what is in it: a shipped name, a file, or what makes "
               "one, such as 'fat_tree(gpus=64)'."};
    struct args args = {.takes_platform = true, .err = err};
    char *path;
    ADL_TRY(adl_cli_parse(&argp, argc, argv, &args, err));
    ADL_TRY(adl_plan_platform_path(adl_registry(), args.platform, NULL, &path, err));
    enum adl_status status = adl_registry()->platform_reader->show(path, stdout, err);
    if (status == ADL_OK && args.picture)
        status = draw(path, args.picture, err);
    free(path);
    return status;
}

static const struct {
    const char *name;
    enum adl_status (*run)(int argc, char **argv, struct adl_err *err);
} actions[] = {{"list", list}, {"show", show}, {"make", adl_platform_make}};

static enum adl_status dispatch(int argc, char **argv, struct adl_err *err)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "--help") || !strcmp(word, "-?")) {
        puts("usage: adloco platform list\n"
             "       adloco platform show PLATFORM [--picture FILE.svg]\n"
             "       adloco platform make KIND [--OPTION VALUE]... [-o FILE]\n"
             "Each takes --help; so does each KIND ('adloco list' names them).");
        return ADL_OK;
    }
    for (size_t i = 0; i < sizeof actions / sizeof *actions; i++) {
        char name[64];
        if (strcmp(word, actions[i].name))
            continue;
        snprintf(name, sizeof name, "adloco platform %s", word);
        argv[1] = name;
        return actions[i].run(argc - 1, argv + 1, err);
    }
    if (!*word)
        return adl_fail(err, ADL_ERR_INPUT, "adloco platform: list, show or make is needed");
    return adl_fail(err, ADL_ERR_INPUT, "adloco platform: '%.80s' is not one of list, show, make",
                    word);
}

int adl_cmd_platform(int argc, char **argv)
{
    struct adl_err err = {0};
    enum adl_status status = dispatch(argc, argv, &err);
    return adl_cli_finish(status, &err);
}
