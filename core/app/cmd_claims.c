/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/claims.h"
#include "analysis/stats_gsl.h"
#include "core/file.h"
#include "core/app/claims_run.h"
#include "core/app/cli.h"
#include "core/app/commands.h"
#include "core/plan_platform.h"

enum { QUICK_SEEDS = 3 };

struct args {
    const char *only, *out, *report, *from; /* NULL: all; a default of each */
    long n_parallel;                        /* 0: a run per core */
    bool quick, resume, quiet;
    struct adl_err *err;
};

static const struct argp_option options[] = {
    {"quick", 'k', NULL, 0, "Only the primary questions, on three seeds: seconds", 0},
    {"only", 'O', "LIST", 0, "Only these claims, as in E3,E5", 0},
    {"jobs", 'j', "N", 0, "Runs at once (default: the number of cores)", 0},
    {"out", 'o', "DIR", 0, "Where runs go (default: out/claims, quick: out/claims-quick)", 0},
    {"report", 'R', "DIR", 0, "Where CLAIMS.md and its pictures go (default: where runs go)", 0},
    {"from", 'f', "DIR", 0, "Where the claims are (default: the shipped experiments/claims)", 0},
    {"resume", 'r', NULL, 0, "Complete what DIR holds", 0},
    {"quiet", 'q', NULL, 0, "Show no progress", 0},
    {0},
};

static error_t parse_key(int key, char *arg, struct argp_state *state)
{
    struct args *args = state->input;
    switch (key) {
    case 'k':
        args->quick = true;
        return 0;
    case 'O':
        args->only = arg;
        return 0;
    case 'j':
        return adl_cli_integer("jobs", arg, ADL_MOST_JOBS, &args->n_parallel, args->err);
    case 'o':
        args->out = arg;
        return 0;
    case 'R':
        args->report = arg;
        return 0;
    case 'f':
        args->from = arg;
        return 0;
    case 'r':
        args->resume = true;
        return 0;
    case 'q':
        args->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        adl_fail(args->err, ADL_ERR_INPUT,
                 "'%.80s' is one argument too many; --only chooses claims, as in --only E3,E5",
                 arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp argp = {
    .options = options,
    .parser = parse_key,
    .doc = "Put the paper's claims to the test: run their experiments and write CLAIMS.md.",
};

/* "DIR/NAMEending"; a path too long is refused. */
static enum adl_status join(const struct args *args, const char *dir, const char *name,
                            char out[PATH_MAX])
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
    return n >= 0 && n < PATH_MAX
               ? ADL_OK
               : adl_fail(args->err, ADL_ERR_INPUT, "%.200s...: too long a path", dir);
}

/* ---- which claims ---- */

struct claims {
    struct adl_claim **v; /* [n] in the order of their numbers */
    size_t n;
};

static int is_yaml(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return n > 5 && entry->d_name[0] != '.' && !strcmp(entry->d_name + n - 5, ".yaml");
}

/* E2, E2-text, E10: by the length of what is before '-' or '.', then by that, then the rest. */
static int by_number(const struct dirent **a, const struct dirent **b)
{
    const char *one = (*a)->d_name, *other = (*b)->d_name;
    const size_t n = strcspn(one, "-."), m = strcspn(other, "-.");
    const int order = n != m ? (n > m) - (n < m) : strncmp(one, other, n);
    if (order != 0 || one[n] == other[m])
        return order ? order : strcmp(one, other);
    return one[n] == '.' ? -1 : 1;
}

/* Whether the comma-separated list has this word. */
static bool has_word(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (!strncmp(at, word, n) && (at[n] == ',' || !at[n]))
            return true;
    return false;
}

static void free_claims(struct claims *claims)
{
    for (size_t i = 0; i < claims->n; i++)
        adl_claim_free(claims->v[i]);
    free(claims->v);
}

static enum adl_status load_claim(const struct args *args, const char *dir, const char *name,
                                  struct claims *claims)
{
    char path[PATH_MAX], id[NAME_MAX + 1];
    ADL_TRY(join(args, dir, name, path));
    snprintf(id, sizeof id, "%.*s", (int)(strlen(name) - 5), name);
    bool is = false;
    if (!args->only || has_word(args->only, id))
        ADL_TRY(adl_claim_is(path, &is, args->err));
    if (!is)
        return ADL_OK;
    ADL_TRY(adl_claim_load(path, &claims->v[claims->n], args->err));
    claims->n++;
    return ADL_OK;
}

/* A word of --only that no claim has. */
static enum adl_status check_only(const struct args *args, const char *dir,
                                  const struct claims *claims)
{
    const char *at = args->only ? args->only : "";
    while (*at) {
        const int n = (int)strcspn(at, ",");
        size_t i = 0;
        while (i < claims->n &&
               ((int)strlen(claims->v[i]->id) != n || strncmp(claims->v[i]->id, at, (size_t)n)))
            i++;
        if (i == claims->n)
            return adl_fail(args->err, ADL_ERR_INPUT, "--only: no claim '%.*s' in %s",
                            n < 80 ? n : 80, at, dir);
        at += n;
        at += *at == ',';
    }
    if (claims->n == 0)
        return adl_fail(args->err, ADL_ERR_INPUT, "%s: holds no claims", dir);
    return ADL_OK;
}

static enum adl_status load_claims(const struct args *args, struct claims *claims)
{
    char shipped[PATH_MAX];
    struct dirent **entries = NULL;
    ADL_TRY(join(args, adl_data_dir(), "experiments/claims", shipped));
    const char *dir = args->from ? args->from : shipped;
    const int n = scandir(dir, &entries, is_yaml, by_number);
    if (n < 0)
        return adl_fail(args->err, ADL_ERR_INPUT, "%s: %s", dir, strerror(errno));
    enum adl_status status = ADL_OK;
    claims->v = calloc((size_t)n + 1, sizeof *claims->v);
    if (!claims->v)
        status = adl_fail(args->err, ADL_ERR_NOMEM, "no memory for claims");
    for (int i = 0; i < n; i++) {
        if (status == ADL_OK)
            status = load_claim(args, dir, entries[i]->d_name, claims);
        free(entries[i]);
    }
    free(entries);
    return status == ADL_OK ? check_only(args, dir, claims) : status;
}

/* ---- running and reporting ---- */

static enum adl_status run_claim(const struct args *args, const struct adl_claim *claim,
                                 const char *dir, const char *pictures,
                                 struct adl_claim_result *result)
{
    const struct adl_claims_runner runner = {.registry = adl_registry(),
                                             .n_parallel = (size_t)args->n_parallel,
                                             .seeds = args->quick ? QUICK_SEEDS : 0,
                                             .quick = args->quick,
                                             .resume = args->resume,
                                             .quiet = args->quiet};
    struct adl_claim_answer *answers = calloc(claim->n, sizeof *answers);
    *result = (struct adl_claim_result){.claim = claim, .answers = answers};
    if (!answers)
        return adl_fail(args->err, ADL_ERR_NOMEM, "no memory for answers");
    ADL_TRY(adl_claim_run(&runner, claim, dir, args->err));
    ADL_TRY(adl_claim_judge(claim, dir, args->quick, QUICK_SEEDS, answers, args->err));
    struct adl_err failure = {0};
    const enum adl_status status = adl_claims_draw(result, dir, pictures, &failure);
    if (status == ADL_ERR_UNSUPPORTED)
        fprintf(stderr, "adloco: %s\n", failure.message);
    else if (status != ADL_OK)
        return adl_fail(args->err, status, "%s", failure.message);
    return ADL_OK;
}

struct report {
    const struct adl_claim_result *results;
    size_t n;
    bool quick;
};

static enum adl_status put_report(const void *arg, FILE *out, struct adl_err *err)
{
    const struct report *report = arg;
    (void)err;
    adl_claims_write(report->results, report->n, report->quick, out);
    return ADL_OK;
}

static enum adl_status write_report(const struct args *args, const char *dir,
                                    const struct adl_claim_result *results, size_t n)
{
    const struct report report = {results, n, args->quick};
    char path[PATH_MAX];
    ADL_TRY(join(args, dir, "CLAIMS.md", path));
    ADL_TRY(adl_file_write(path, put_report, &report, args->err));
    for (size_t i = 0; i < n; i++)
        printf("%-4s %-8s %s\n", results[i].claim->id,
               results[i].answers[0].holds ? "holds" : "does not", results[i].claim->title);
    printf("%s\n", path);
    return ADL_OK;
}

static enum adl_status run_claims(const struct args *args, const struct claims *claims,
                                  struct adl_claim_result *results)
{
    char dir[PATH_MAX], pictures[PATH_MAX];
    const char *out = args->out ? args->out : args->quick ? "out/claims-quick" : "out/claims";
    const char *report = args->report ? args->report : out;
    ADL_TRY(join(args, report, "claims", pictures));
    ADL_TRY(adl_claims_make_dir(pictures, args->err));
    for (size_t i = 0; i < claims->n; i++) {
        ADL_TRY(join(args, out, claims->v[i]->id, dir));
        ADL_TRY(run_claim(args, claims->v[i], dir, pictures, &results[i]));
    }
    return write_report(args, report, results, claims->n);
}

static enum adl_status claims(const struct args *args)
{
    struct claims claims = {0};
    struct adl_claim_result *results = NULL;
    ADL_TRY(adl_gsl_check(args->err));
    enum adl_status status = load_claims(args, &claims);
    if (status == ADL_OK) {
        results = calloc(claims.n, sizeof *results);
        status = results ? run_claims(args, &claims, results)
                         : adl_fail(args->err, ADL_ERR_NOMEM, "no memory for claims");
    }
    for (size_t i = 0; results && i < claims.n; i++)
        free((void *)results[i].answers);
    free(results);
    free_claims(&claims);
    if (status == ADL_ERR_CANCELLED) {
        *args->err = (struct adl_err){0};
        adl_fail(args->err, status, "stopped; to go on: the same command with --resume");
    }
    return status;
}

int adl_cmd_claims(int argc, char **argv)
{
    struct adl_err err = {0};
    struct args args = {.err = &err};
    enum adl_status status = adl_cli_parse(&argp, argc, argv, &args, &err);
    if (status == ADL_OK)
        status = claims(&args);
    return adl_cli_finish(status, &err);
}
