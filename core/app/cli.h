/* SPDX-License-Identifier: Apache-2.0 */
/* What all subcommands share: argp with one-line errors, and the way a command ends. */
#ifndef ADL_APP_CLI_H
#define ADL_APP_CLI_H

#include <argp.h>
#include <stddef.h>

#include "core/plan.h"

/* argp_parse, options before and after arguments, whose every complaint is one line in err with
 * the nearest option. argp may have no children. --help prints and exits 0. A parser that fails
 * calls adl_fail on err and returns EINVAL. */
enum adl_status adl_cli_parse(const struct argp *argp, int argc, char **argv, void *input,
                              struct adl_err *err);

/* *out = the value of --option, an integer from 1 to most; else err names it, and EINVAL. */
error_t adl_cli_integer(const char *option, const char *text, long most, long *out,
                        struct adl_err *err);
enum { ADL_MOST_JOBS = 4096 }; /* of --jobs */

/* Prints err's message, if there is one, as one line on stderr, flushes stdout, and returns the
 * exit code; a full disk behind stdout is a failure. */
int adl_cli_finish(enum adl_status status, struct adl_err *err);

/* FILE, --set, --variant and --seed, which choose runs of an experiment. */
struct adl_cli_plan {
    const char *path;
    const char *variant; /* NULL: all */
    const char **sets;   /* [n_sets] "KEY=VALUE"; --seed N is "seeds=N" */
    size_t n_sets;
    char **owned; /* [n_owned] texts made here */
    size_t n_owned;
    struct adl_err *err;
};
/* Their rows, for a command's own table of options. */
/* clang-format off */
#define ADL_CLI_PLAN_OPTIONS                                                                       \
    {"set", 's', "KEY=VALUE", 0, "Set a key, whatever file and variant say; may be repeated", 0},  \
    {"variant", 'v', "NAME", 0, "Keep only this variant", 0},                                      \
    {"seed", 'S', "N", 0, "Keep only this seed", 0}
/* clang-format on */
/* A parser to call first: ARGP_ERR_UNKNOWN where the key is another one's. */
error_t adl_cli_plan_key(int key, char *arg, struct adl_cli_plan *plan);
/* What --set KEY=VALUE does: for options of a command that stand for a key. */
error_t adl_cli_plan_set(const char *key, const char *value, struct adl_cli_plan *plan);
enum adl_status adl_cli_plan_load(const struct adl_cli_plan *args, struct adl_plan **out,
                                  struct adl_err *err);
void adl_cli_plan_free(struct adl_cli_plan *plan);

/* The plan's warnings, a line each, on stderr. */
void adl_cli_warn(const struct adl_plan *plan);

#endif
