/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/plan_expand.h"

/* A plan and what its texts point into. */
struct owner {
    struct adl_plan plan;
    struct adl_experiment *experiment;
};

void adl_plan_free(struct adl_plan *plan)
{
    if (!plan)
        return;
    struct owner *owner = (struct owner *)plan;
    for (size_t i = 0; i < plan->n_runs; i++) {
        adl_config_free(plan->runs[i].config);
        free((void *)plan->runs[i].point);
    }
    for (size_t i = 0; i < plan->n_warnings; i++)
        free(plan->warnings[i]);
    free(plan->runs);
    free(plan->warnings);
    free((void *)plan->swept);
    adl_experiment_free(owner->experiment);
    free(owner);
}

static void add_swept(struct adl_plan *plan, const char **swept, const struct adl_grid *grid)
{
    for (size_t a = 0; a < grid->n; a++) {
        size_t i = 0;
        while (i < plan->n_swept && strcmp(swept[i], grid->axes[a].key))
            i++;
        if (i == plan->n_swept)
            swept[plan->n_swept++] = grid->axes[a].key;
    }
}

static enum adl_status list_swept(struct adl_plan *plan, const struct adl_experiment *experiment,
                                  const char *variant, struct adl_err *err)
{
    size_t most = experiment->sweep.n + 1;
    for (size_t v = 0; v < experiment->n_variants; v++)
        most += experiment->variants[v].sweep.n;
    const char **swept = calloc(most, sizeof *swept);
    if (!swept)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", plan->path);
    plan->swept = swept;
    add_swept(plan, swept, &experiment->sweep);
    for (size_t v = 0; v < experiment->n_variants; v++)
        if (!variant || !strcmp(variant, experiment->variants[v].name))
            add_swept(plan, swept, &experiment->variants[v].sweep);
    return ADL_OK;
}

static void hash_plan(struct adl_plan *plan)
{
    uint64_t hash = ADL_HASH_START;
    for (size_t i = 0; i < plan->n_runs; i++)
        hash = adl_hash_text(hash, plan->runs[i].run_id);
    adl_hash_print(hash, plan->id);
}

/* ---- --set ---- */

/* "KEY=VALUE" texts as a layer; one block holds its settings and their copied texts. */
static enum adl_status read_sets(const char *const *sets, size_t n, struct adl_layer *out,
                                 struct adl_err *err)
{
    size_t bytes = (n + 1) * sizeof *out->v;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(sets[i]) + 1;
    *out = (struct adl_layer){malloc(bytes), 0};
    if (!out->v)
        return adl_fail(err, ADL_ERR_NOMEM, "--set: out of memory");
    char *text = (char *)(out->v + n + 1);
    for (size_t i = 0; i < n; i++) {
        char *key = text;
        text = stpcpy(text, sets[i]) + 1;
        char *equals = strchr(key, '=');
        if (!equals || equals == key)
            return adl_fail(err, ADL_ERR_INPUT, "--set: '%.80s' is not of the form KEY=VALUE",
                            sets[i]);
        *equals = '\0';
        out->v[out->n++] = (struct adl_setting){key, equals + 1, 0, 0};
    }
    return ADL_OK;
}

/* ---- the whole ---- */

static enum adl_status fill_plan(struct owner *owner, const struct adl_registry *registry,
                                 const struct adl_layer *sets, const char *variant,
                                 struct adl_err *err)
{
    struct adl_config *defaults;
    ADL_TRY(list_swept(&owner->plan, owner->experiment, variant, err));
    ADL_TRY(adl_config_create(registry, &defaults, err));
    struct adl_resolver resolver = {registry, owner->experiment, defaults, sets, err};
    struct adl_platform_cache *platforms = adl_platform_cache_create();
    enum adl_status status =
        platforms ? adl_plan_expand(&resolver, platforms, variant, &owner->plan)
                  : adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", owner->plan.path);
    adl_platform_cache_free(platforms);
    adl_config_free(defaults);
    return status;
}

enum adl_status adl_plan_load(const struct adl_registry *registry, const char *path,
                              const char *const *sets, size_t n_sets, const char *variant,
                              struct adl_plan **out, struct adl_err *err)
{
    struct owner *owner = calloc(1, sizeof *owner);
    if (!owner)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", path);
    struct adl_layer layer;
    enum adl_status status = read_sets(sets, n_sets, &layer, err);
    if (status == ADL_OK)
        status = adl_experiment_load(registry, path, &owner->experiment, err);
    if (status == ADL_OK) {
        owner->plan.path = owner->experiment->path;
        status = fill_plan(owner, registry, &layer, variant, err);
    }
    free(layer.v);
    if (status != ADL_OK) {
        adl_plan_free(&owner->plan);
        return status;
    }
    owner->plan.name = owner->plan.runs[0].settings.name;
    hash_plan(&owner->plan);
    *out = &owner->plan;
    return ADL_OK;
}
