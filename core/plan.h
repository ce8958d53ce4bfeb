/* SPDX-License-Identifier: Apache-2.0 */
/* experiment file -> plan: the list of fully resolved runs. A run knows nothing of sweeps.
 *
 * Precedence: default < method preset < file < sweep < variant's own keys < --set; a method's
 * outer.exchange yields only to a variant or --set. A variant may hold `sweep:` (a grid of its
 * own) and `when: {KEY=VALUE: {...}}` (keys that apply where the resolved KEY equals VALUE,
 * evaluated after the variant's other keys: per-platform tuning). Runs are ordered by sweep
 * point, variant, seed; runs with equal ids are kept once. */
#ifndef ADL_CORE_PLAN_H
#define ADL_CORE_PLAN_H

#include "core/config.h"

struct adl_planned {
    char run_id[17];
    const char *variant;        /* "" without variants */
    const char *point;          /* "cluster.platform=h100-64 inner.lr=0.1"; "" without a sweep */
    struct adl_config *config;
    struct adl_settings settings; /* filled and checked; texts owned by config */
};

struct adl_plan {
    const char *name;   /* of the experiment */
    const char *path;   /* of its file */
    char id[17];        /* hash over all runs' ids: which experiment a directory holds */
    struct adl_planned *runs;
    size_t n_runs;
    const char *const *swept; /* [n_swept] swept keys */
    size_t n_swept;
    char **warnings;    /* [n_warnings] lines without newline, e.g. swept keys that change no run */
    size_t n_warnings;
};

/* Reads a YAML experiment, or a resolved flat file, and resolves every run: fills derived keys
 * (cluster.workers, cluster.layout.*, cluster.speeds from the platform), checks what can be
 * checked without running: more trainers than workers, too few devices, an empty sweep, unknown
 * variant. sets: "KEY=VALUE" texts of --set, [n_sets]. variant: NULL or the only one to keep. */
enum adl_status adl_plan_load(const struct adl_registry *registry, const char *path,
                              const char *const *sets, size_t n_sets, const char *variant,
                              struct adl_plan **out, struct adl_err *err);
void adl_plan_free(struct adl_plan *plan);

/* The file behind cluster.platform: a shipped name ("h100-64" -> platforms/h100-64.xml in the
 * installed or source tree), a path relative to the experiment file, or what makes it
 * ("fat_tree(gpus=64)": core/platform_maker.h). malloc'ed. */
enum adl_status adl_plan_platform_path(const struct adl_registry *registry, const char *platform,
                                       const char *experiment_path, char **out,
                                       struct adl_err *err);

#endif
