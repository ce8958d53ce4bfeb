/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_expand.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/model.h"
#include "core/plan_derive.h"
#include "core/transport.h"

enum { MAX_RUNS = 20000 };

struct expansion {
    struct adl_resolver resolver;
    struct adl_platform_cache *platforms;
    struct adl_plan *plan;
    const char *only;    /* the one variant to keep, or NULL */
    bool *sweep_matters; /* [experiment->sweep.n] */
    bool exchange_warned;
    struct adl_err *err;
};

static enum adl_status no_memory(const struct expansion *x)
{
    return adl_fail(x->err, ADL_ERR_NOMEM, "%s: out of memory", x->resolver.experiment->path);
}

static enum adl_status warn(struct expansion *x, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
static enum adl_status warn(struct expansion *x, const char *fmt, ...)
{
    struct adl_plan *plan = x->plan;
    char **warnings = realloc(plan->warnings, (plan->n_warnings + 1) * sizeof *warnings);
    if (!warnings)
        return no_memory(x);
    plan->warnings = warnings;
    va_list args;
    va_start(args, fmt);
    int length = vasprintf(&warnings[plan->n_warnings], fmt, args);
    va_end(args);
    if (length < 0)
        return no_memory(x);
    plan->n_warnings++;
    return ADL_OK;
}

/* ---- whether a swept key had a say in a run ---- */

static bool in_table(const struct adl_field *table, const char *key)
{
    for (; table && table->key; table++)
        if (!strcmp(table->key, key))
            return true;
    return false;
}

/* A key of a transport or model that the run does not use changes nothing in it. */
static bool is_relevant(const struct expansion *x, const struct adl_config *config, const char *key)
{
    const struct adl_registry *registry = x->resolver.registry;
    const char *transport = adl_config_get(config, "transport");
    const char *model = adl_config_get(config, "model.kind");
    if (!strcmp(key, "name"))
        return false;
    bool used = false, owned = false;
    for (size_t i = 0; registry->transports && registry->transports[i]; i++) {
        const struct adl_plugin *plugin = &registry->transports[i]->plugin;
        bool has = in_table(plugin->options, key);
        owned |= has;
        used |= has && !strcmp(plugin->name, transport);
    }
    for (size_t i = 0; registry->models && registry->models[i]; i++) {
        const struct adl_plugin *plugin = &registry->models[i]->plugin;
        bool has = in_table(plugin->options, key);
        owned |= has;
        used |= has && !strcmp(plugin->name, model);
    }
    return used || !owned;
}

static void mark_axes(const struct expansion *x, const struct adl_config *config,
                      const struct adl_grid *grid, const char *origin, bool *matters)
{
    for (size_t a = 0; a < grid->n; a++)
        if (!strcmp(adl_config_origin(config, grid->axes[a].key), origin) &&
            is_relevant(x, config, grid->axes[a].key))
            matters[a] = true;
}

static enum adl_status warn_axes(struct expansion *x, const struct adl_grid *grid, const char *in,
                                 const bool *matters)
{
    for (size_t a = 0; a < grid->n; a++)
        if (!matters[a])
            ADL_TRY(
                warn(x,
                     "%s:%d: swept key '%s' changes no run%s: variants or --set override it, or "
                     "nothing uses it",
                     x->plan->path, grid->axes[a].line, grid->axes[a].key, in));
    return ADL_OK;
}

/* ---- runs ---- */

static bool is_known(const struct adl_plan *plan, const char *run_id)
{
    for (size_t i = 0; i < plan->n_runs; i++)
        if (!strcmp(plan->runs[i].run_id, run_id))
            return true;
    return false;
}

/* Takes over config and point, failure included. */
static enum adl_status append_run(struct expansion *x, const char *variant, char *point,
                                  struct adl_config *config)
{
    struct adl_planned run = {.variant = variant, .point = point, .config = config};
    adl_config_hash(config, run.run_id);
    struct adl_plan *plan = x->plan;
    bool known = is_known(plan, run.run_id);
    enum adl_status status =
        known ? ADL_OK : adl_config_fill(config, adl_core_options, &run.settings, x->err);
    if (!known && status == ADL_OK && plan->n_runs == MAX_RUNS)
        status =
            adl_fail(x->err, ADL_ERR_INPUT, "%s: plans more than %d runs", plan->path, MAX_RUNS);
    struct adl_planned *runs = NULL;
    if (!known && status == ADL_OK) {
        runs = realloc(plan->runs, (plan->n_runs + 1) * sizeof *runs);
        status = runs ? ADL_OK : no_memory(x);
    }
    if (known || status != ADL_OK) {
        adl_config_free(config);
        free(point);
        return status;
    }
    plan->runs = runs;
    runs[plan->n_runs++] = run;
    return ADL_OK;
}

/* seed: NULL where the configuration's own holds. */
static enum adl_status append_seed(struct expansion *x, const char *variant, const char *point,
                                   const struct adl_config *config, const char *seed)
{
    struct adl_config *clone = adl_config_clone(config);
    char *own_point = strdup(point);
    enum adl_status status = clone && own_point ? ADL_OK : no_memory(x);
    if (status == ADL_OK && seed)
        status =
            adl_config_set(clone, "seed", seed, "", adl_config_origin(config, "seeds"), x->err);
    if (status == ADL_OK && seed)
        status = adl_config_set(clone, "seeds", "", "", "one run has one seed", x->err);
    if (status == ADL_OK)
        return append_run(x, variant, own_point, clone);
    adl_config_free(clone);
    free(own_point);
    return status;
}

static enum adl_status append_seeds(struct expansion *x, const char *variant, const char *point,
                                    struct adl_config *config)
{
    struct adl_settings settings;
    ADL_TRY(adl_config_fill(config, adl_core_options, &settings, x->err));
    if (settings.seeds.n == 0)
        return append_seed(x, variant, point, config, NULL);
    for (size_t i = 0; i < settings.seeds.n; i++) {
        char seed[32];
        snprintf(seed, sizeof seed, "%" PRId64, settings.seeds.v[i]);
        ADL_TRY(append_seed(x, variant, point, config, seed));
    }
    return ADL_OK;
}

/* ---- combinations ---- */

/* "key=value key=value" of both points. */
static char *point_text(const struct adl_combination *combination)
{
    const struct adl_layer *layers[] = {&combination->point, &combination->variant_point};
    char *text = strdup("");
    for (size_t l = 0; l < 2; l++)
        for (size_t i = 0; text && i < layers[l]->n; i++) {
            char *longer;
            int length = asprintf(&longer, "%s%s%s=%s", text, *text ? " " : "", layers[l]->v[i].key,
                                  layers[l]->v[i].text);
            free(text);
            text = length < 0 ? NULL : longer;
        }
    return text;
}

static enum adl_status warn_exchange(struct expansion *x, const struct adl_combination *combination,
                                     const struct adl_config *config)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    if (!combination->exchange_yielded || x->exchange_warned)
        return ADL_OK;
    const struct adl_setting *setting = adl_layer_get(&experiment->file, "outer.exchange");
    if (!strcmp(setting->text, adl_config_get(config, "outer.exchange")))
        return ADL_OK;
    x->exchange_warned = true;
    return warn(x,
                "%s:%d: outer.exchange: %s yields to method %s, which needs %s; only a variant "
                "or --set overrides that",
                experiment->path, setting->line, setting->text, adl_config_get(config, "method"),
                adl_config_get(config, "outer.exchange"));
}

static enum adl_status plan_combination(struct expansion *x, struct adl_combination *combination,
                                        bool *variant_matters)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    const struct adl_variant *variant = combination->variant;
    struct adl_config *config;
    ADL_TRY(adl_plan_resolve(&x->resolver, combination, &config));
    mark_axes(x, config, &experiment->sweep, ADL_ORIGIN_SWEEP, x->sweep_matters);
    if (variant)
        mark_axes(x, config, &variant->sweep, ADL_ORIGIN_VARIANT_SWEEP, variant_matters);
    char *point = point_text(combination);
    char label[1024];
    snprintf(label, sizeof label, "%.500s%s%s%s%.300s", experiment->path,
             variant ? ": variant " : "", variant ? variant->name : "", point && *point ? ": " : "",
             point ? point : "");
    enum adl_status status = point ? warn_exchange(x, combination, config) : no_memory(x);
    if (status == ADL_OK)
        status = adl_plan_derive(x->resolver.registry, x->platforms, experiment->path, label,
                                 config, x->err);
    if (status == ADL_OK)
        status = append_seeds(x, variant ? variant->name : "", point, config);
    free(point);
    adl_config_free(config);
    return status;
}

/* The settings of point i of a grid: layer->v has room for all axes. */
static void fill_point(const struct adl_grid *grid, size_t i, const char **values,
                       struct adl_layer *layer)
{
    adl_grid_point(grid, i, values);
    for (size_t a = 0; a < grid->n; a++)
        layer->v[a] = (struct adl_setting){grid->axes[a].key, values[a], grid->axes[a].line,
                                           grid->axes[a].column};
    layer->n = grid->n;
}

/* State of one variant (or of none) over all points. */
struct variant_state {
    const struct adl_variant *variant;
    bool *sweep_matters; /* [variant->sweep.n] */
    bool *when_used;     /* [variant->n_whens] */
};

static enum adl_status plan_variant(struct expansion *x, const struct variant_state *state,
                                    const struct adl_layer *point, struct adl_setting *room,
                                    const char **values)
{
    static const struct adl_grid none;
    const struct adl_grid *grid = state->variant ? &state->variant->sweep : &none;
    size_t points = adl_grid_points(grid, MAX_RUNS);
    for (size_t i = 0; i < points; i++) {
        struct adl_combination combination = {.variant = state->variant,
                                              .point = *point,
                                              .variant_point = {room, 0},
                                              .when_used = state->when_used};
        fill_point(grid, i, values, &combination.variant_point);
        ADL_TRY(plan_combination(x, &combination, state->sweep_matters));
    }
    return ADL_OK;
}

static enum adl_status plan_points(struct expansion *x, const struct variant_state *states,
                                   size_t n, struct adl_setting *room, const char **values)
{
    const struct adl_grid *grid = &x->resolver.experiment->sweep;
    size_t points = adl_grid_points(grid, MAX_RUNS);
    for (size_t i = 0; i < points; i++) {
        struct adl_layer point = {room, 0};
        fill_point(grid, i, values, &point);
        for (size_t v = 0; v < n; v++)
            ADL_TRY(plan_variant(x, &states[v], &point, room + grid->n, values));
    }
    return ADL_OK;
}

static size_t most_axes(const struct adl_experiment *experiment)
{
    size_t most = 0;
    for (size_t v = 0; v < experiment->n_variants; v++)
        if (experiment->variants[v].sweep.n > most)
            most = experiment->variants[v].sweep.n;
    return most + experiment->sweep.n;
}

static enum adl_status expand_states(struct expansion *x, const struct variant_state *states,
                                     size_t n)
{
    size_t axes = most_axes(x->resolver.experiment) + 1;
    struct adl_setting *room = calloc(axes, sizeof *room);
    const char **values = calloc(axes, sizeof *values);
    enum adl_status status =
        room && values ? plan_points(x, states, n, room, values) : no_memory(x);
    free(room);
    free(values);
    return status;
}

static enum adl_status warn_states(struct expansion *x, const struct variant_state *states,
                                   size_t n)
{
    ADL_TRY(warn_axes(x, &x->resolver.experiment->sweep, "", x->sweep_matters));
    for (size_t v = 0; v < n && states[v].variant; v++) {
        const struct adl_variant *variant = states[v].variant;
        char in[128];
        snprintf(in, sizeof in, " of variant %s", variant->name);
        ADL_TRY(warn_axes(x, &variant->sweep, in, states[v].sweep_matters));
        for (size_t w = 0; w < variant->n_whens; w++)
            if (!states[v].when_used[w] && !adl_layer_get(x->resolver.sets, variant->whens[w].key))
                ADL_TRY(warn(x, "%s:%d: '%s=%s' holds in no run of variant %s", x->plan->path,
                             variant->whens[w].line, variant->whens[w].key, variant->whens[w].value,
                             variant->name));
    }
    return ADL_OK;
}

static enum adl_status fail_variant(const struct expansion *x)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    if (experiment->n_variants == 0)
        return adl_fail(x->err, ADL_ERR_INPUT, "%s: variant '%.80s': the experiment has none",
                        experiment->path, x->only);
    char names[700] = "";
    for (size_t v = 0; v < experiment->n_variants; v++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", v ? ", " : "",
                 experiment->variants[v].name);
    return adl_fail(x->err, ADL_ERR_INPUT, "%s: no variant '%.80s'; there are %s", experiment->path,
                    x->only, names);
}

static enum adl_status check_size(const struct expansion *x)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    size_t points = adl_grid_points(&experiment->sweep, MAX_RUNS), per_point = 0;
    for (size_t v = 0; v < experiment->n_variants; v++)
        if (!x->only || !strcmp(x->only, experiment->variants[v].name))
            per_point += adl_grid_points(&experiment->variants[v].sweep, MAX_RUNS);
    if (points > MAX_RUNS || per_point > MAX_RUNS || points * per_point > MAX_RUNS)
        return adl_fail(x->err, ADL_ERR_INPUT,
                        "%s: sweeps over more than %d points; split it into several experiments",
                        experiment->path, MAX_RUNS);
    return ADL_OK;
}

/* Chooses the variants to plan: all, the one asked for, or the experiment itself. */
static enum adl_status choose_states(struct expansion *x, struct variant_state *states, size_t *n)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    *n = 0;
    for (size_t v = 0; v < experiment->n_variants; v++) {
        const struct adl_variant *variant = &experiment->variants[v];
        if (x->only && strcmp(x->only, variant->name))
            continue;
        struct variant_state *state = &states[(*n)++];
        *state = (struct variant_state){variant, calloc(variant->sweep.n + 1, sizeof(bool)),
                                        calloc(variant->n_whens + 1, sizeof(bool))};
        if (!state->sweep_matters || !state->when_used)
            return no_memory(x);
    }
    if (*n == 0 && x->only)
        return fail_variant(x);
    if (*n == 0)
        ++*n; /* no variant: one state, all zero */
    return ADL_OK;
}

static enum adl_status expand(struct expansion *x)
{
    const struct adl_experiment *experiment = x->resolver.experiment;
    size_t n = 0;
    struct variant_state *states = calloc(experiment->n_variants + 1, sizeof *states);
    x->sweep_matters = calloc(experiment->sweep.n + 1, sizeof *x->sweep_matters);
    enum adl_status status = states && x->sweep_matters ? check_size(x) : no_memory(x);
    if (status == ADL_OK)
        status = choose_states(x, states, &n);
    if (status == ADL_OK)
        status = expand_states(x, states, n);
    if (status == ADL_OK)
        status = warn_states(x, states, n);
    for (size_t v = 0; v < n; v++) {
        free(states[v].sweep_matters);
        free(states[v].when_used);
    }
    free(states);
    free(x->sweep_matters);
    return status;
}

enum adl_status adl_plan_expand(const struct adl_resolver *resolver,
                                struct adl_platform_cache *platforms, const char *variant,
                                struct adl_plan *plan)
{
    struct expansion x = {.resolver = *resolver,
                          .platforms = platforms,
                          .plan = plan,
                          .only = variant,
                          .err = resolver->err};
    return expand(&x);
}
