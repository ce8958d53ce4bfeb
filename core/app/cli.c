/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/cli.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* ---- checking options before argp sees them: its own complaints take three lines ---- */

enum { MAX_OPTIONS = 64 };

/* Every command understands these beside its own. */
static const struct argp_option common[] = {
    {"help", '?', NULL, 0, NULL, 0}, {"usage", -1, NULL, 0, NULL, 0}, {0}};

static bool is_end(const struct argp_option *option)
{
    return !option->name && !option->key && !option->doc;
}

/* An exact name, or the only one that begins so, as getopt allows. */
static const struct argp_option *find_long(const struct argp_option *const tables[2],
                                           const char *name, size_t n)
{
    const struct argp_option *found = NULL;
    int matches = 0;
    for (int t = 0; t < 2; t++)
        for (const struct argp_option *o = tables[t]; o && !is_end(o); o++) {
            if (!o->name || strncmp(o->name, name, n))
                continue;
            if (strlen(o->name) == n)
                return o;
            found = o;
            matches++;
        }
    return matches == 1 ? found : NULL;
}

static const struct argp_option *find_short(const struct argp_option *const tables[2], char c)
{
    for (int t = 0; t < 2; t++)
        for (const struct argp_option *o = tables[t]; o && !is_end(o); o++)
            if (o->key == c)
                return o;
    return NULL;
}

static enum adl_status fail_unknown(const struct argp_option *const tables[2], const char *command,
                                    const char *arg, struct adl_err *err)
{
    const char *names[MAX_OPTIONS];
    size_t n = 0;
    for (int t = 0; t < 2; t++)
        for (const struct argp_option *o = tables[t]; o && !is_end(o) && n < MAX_OPTIONS; o++)
            if (o->name)
                names[n++] = o->name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(arg + 2, "="), arg + 2);
    const char *nearest = adl_nearest(word, names, n);
    if (nearest)
        return adl_fail(err, ADL_ERR_INPUT, "%s: unknown option '%.80s'; did you mean '--%s'?",
                        command, arg, nearest);
    return adl_fail(err, ADL_ERR_INPUT, "%s: unknown option '%.80s'; see '%s --help'", command, arg,
                    command);
}

/* *takes_next: whether the following word is the option's value. */
static enum adl_status check_long(const struct argp_option *const tables[2], const char *command,
                                  const char *arg, bool *takes_next, struct adl_err *err)
{
    size_t n = strcspn(arg + 2, "=");
    bool has_value = arg[2 + n] == '=';
    const struct argp_option *option = find_long(tables, arg + 2, n);
    if (!option)
        return fail_unknown(tables, command, arg, err);
    if (has_value && !option->arg)
        return adl_fail(err, ADL_ERR_INPUT, "%s: option '--%s' takes no value", command,
                        option->name);
    *takes_next = option->arg && !has_value;
    return ADL_OK;
}

static enum adl_status check_short(const struct argp_option *const tables[2], const char *command,
                                   const char *arg, bool *takes_next, struct adl_err *err)
{
    for (const char *c = arg + 1; *c; c++) {
        const struct argp_option *option = find_short(tables, *c);
        if (!option)
            return adl_fail(err, ADL_ERR_INPUT, "%s: unknown option '-%c'; see '%s --help'",
                            command, *c, command);
        *takes_next = option->arg && !c[1];
        if (option->arg)
            return ADL_OK;
    }
    return ADL_OK;
}

static enum adl_status check_options(const struct argp *argp, int argc, char **argv,
                                     struct adl_err *err)
{
    const struct argp_option *const tables[2] = {argp->options, common};
    for (int i = 1; i < argc && strcmp(argv[i], "--"); i++) {
        bool takes_next = false;
        if (argv[i][0] != '-' || !argv[i][1])
            continue;
        if (argv[i][1] == '-')
            ADL_TRY(check_long(tables, argv[0], argv[i], &takes_next, err));
        else
            ADL_TRY(check_short(tables, argv[0], argv[i], &takes_next, err));
        if (takes_next && i + 1 == argc)
            return adl_fail(err, ADL_ERR_INPUT, "%s: option '%s' needs a value", argv[0], argv[i]);
        i += takes_next;
    }
    return ADL_OK;
}

enum adl_status adl_cli_parse(const struct argp *argp, int argc, char **argv, void *input,
                              struct adl_err *err)
{
    ADL_TRY(check_options(argp, argc, argv, err));
    if (argp_parse(argp, argc, argv, ARGP_IN_ORDER, NULL, input) == 0)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_INPUT,
                    "%s: cannot make sense of the command line; see '%s --help'", argv[0], argv[0]);
}

error_t adl_cli_integer(const char *option, const char *text, long most, long *out,
                        struct adl_err *err)
{
    char *end;
    errno = 0;
    *out = strtol(text, &end, 10);
    if (*text && !*end && errno == 0 && *out >= 1 && *out <= most)
        return 0;
    adl_fail(err, ADL_ERR_INPUT, "--%s: '%.80s' is not an integer (1..%ld)", option, text, most);
    return EINVAL;
}

int adl_cli_finish(enum adl_status status, struct adl_err *err)
{
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == ADL_OK)
        status = adl_fail(err, ADL_ERR_IO, "cannot write to standard output: %s", strerror(errno));
    if (status != ADL_OK)
        fprintf(stderr, "adloco: %s\n", *err->message ? err->message : "failed");
    return adl_exit_code(status);
}

/* ---- choosing runs ---- */

static error_t add_set(struct adl_cli_plan *plan, const char *text)
{
    const char **sets = realloc(plan->sets, (plan->n_sets + 1) * sizeof *sets);
    if (!sets)
        return ENOMEM;
    plan->sets = sets;
    sets[plan->n_sets++] = text;
    return 0;
}

error_t adl_cli_plan_set(const char *key, const char *value, struct adl_cli_plan *plan)
{
    char *text = NULL;
    char **owned = realloc(plan->owned, (plan->n_owned + 1) * sizeof *owned);
    if (!owned)
        return ENOMEM;
    plan->owned = owned;
    if (asprintf(&text, "%s=%s", key, value) < 0)
        return ENOMEM;
    owned[plan->n_owned++] = text;
    return add_set(plan, text);
}

error_t adl_cli_plan_key(int key, char *arg, struct adl_cli_plan *plan)
{
    switch (key) {
    case 's':
        return add_set(plan, arg);
    case 'v':
        plan->variant = arg;
        return 0;
    case 'S':
        return adl_cli_plan_set("seeds", arg, plan);
    case ARGP_KEY_ARG:
        if (!plan->path) {
            plan->path = arg;
            return 0;
        }
        adl_fail(plan->err, ADL_ERR_INPUT, "'%.80s' is one argument too many: one FILE is needed",
                 arg);
        return EINVAL;
    case ARGP_KEY_END:
        if (plan->path)
            return 0;
        adl_fail(plan->err, ADL_ERR_INPUT,
                 "an experiment FILE is needed, as in "
                 "'adloco plan experiments/quickstart.yaml'");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

enum adl_status adl_cli_plan_load(const struct adl_cli_plan *args, struct adl_plan **out,
                                  struct adl_err *err)
{
    return adl_plan_load(adl_registry(), args->path, args->sets, args->n_sets, args->variant, out,
                         err);
}

void adl_cli_plan_free(struct adl_cli_plan *plan)
{
    for (size_t i = 0; i < plan->n_owned; i++)
        free(plan->owned[i]);
    free(plan->owned);
    free(plan->sets);
}

void adl_cli_warn(const struct adl_plan *plan)
{
    for (size_t i = 0; i < plan->n_warnings; i++)
        fprintf(stderr, "adloco: warning: %s\n", plan->warnings[i]);
}
