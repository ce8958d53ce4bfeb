/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_resolve.h"

#include <stdlib.h>
#include <string.h>

static const char exchange_key[] = "outer.exchange";

/* A later layer's `seed` stands against an earlier one's `seeds`. */
static enum adl_status set_key(const struct adl_resolver *resolver, struct adl_config *config,
                               const char *key, const char *text, const char *where,
                               const char *origin)
{
    ADL_TRY(adl_config_set(config, key, text, where, origin, resolver->err));
    if (!strcmp(key, "seed"))
        return adl_config_set(config, "seeds", "", where, origin, resolver->err);
    return ADL_OK;
}

/* Sets all keys of a layer but `skip` (may be NULL). origin NULL: the file and line. */
static enum adl_status apply(const struct adl_resolver *resolver, struct adl_config *config,
                             const struct adl_layer *layer, const char *origin, const char *skip)
{
    const char *path = resolver->experiment->path;
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < layer->n; i++) {
        const struct adl_setting *setting = &layer->v[i];
        char where[1100], line[300];
        if (skip && !strcmp(setting->key, skip))
            continue;
        adl_experiment_where(resolver->experiment, setting->line, setting->column, where,
                             sizeof where);
        snprintf(line, sizeof line, "%.250s:%d", slash ? slash + 1 : path, setting->line);
        ADL_TRY(
            set_key(resolver, config, setting->key, setting->text, where, origin ? origin : line));
    }
    return ADL_OK;
}

/* ---- the method: the one key that must be known before the others ---- */

static const struct adl_method *find_method(const struct adl_resolver *resolver,
                                            const struct adl_combination *combination)
{
    static const struct adl_layer none;
    const struct adl_layer *layers[] = {&resolver->experiment->file, &combination->point,
                                        combination->variant ? &combination->variant->layer : &none,
                                        &combination->variant_point, resolver->sets};
    const char *name = adl_config_get(resolver->defaults, "method");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        const struct adl_setting *setting = adl_layer_get(layers[i], "method");
        if (setting)
            name = setting->text;
    }
    const struct adl_method *method = resolver->registry->methods;
    while (method && method->name && strcmp(method->name, name))
        method++;
    return method && method->name ? method : NULL;
}

static bool decides_exchange(const struct adl_method *method)
{
    for (size_t i = 0; method && method->settings[i]; i++)
        if (!strncmp(method->settings[i], exchange_key, sizeof exchange_key - 1))
            return true;
    return false;
}

static enum adl_status apply_method(const struct adl_resolver *resolver, struct adl_config *config,
                                    const struct adl_method *method)
{
    char where[128], origin[128], key[128];
    snprintf(where, sizeof where, "method %s: ", method->name);
    snprintf(origin, sizeof origin, "method %s", method->name);
    for (size_t i = 0; method->settings[i]; i++) {
        const char *colon = strstr(method->settings[i], ": ");
        if (!colon || (size_t)(colon - method->settings[i]) >= sizeof key)
            return adl_fail(resolver->err, ADL_ERR_BUG, "method %s: '%s' is not 'key: value'",
                            method->name, method->settings[i]);
        snprintf(key, sizeof key, "%.*s", (int)(colon - method->settings[i]), method->settings[i]);
        ADL_TRY(set_key(resolver, config, key, colon + 2, where, origin));
    }
    return ADL_OK;
}

/* ---- the layers in order ---- */

static enum adl_status apply_sets(const struct adl_resolver *resolver, struct adl_config *config)
{
    for (size_t i = 0; i < resolver->sets->n; i++)
        ADL_TRY(set_key(resolver, config, resolver->sets->v[i].key, resolver->sets->v[i].text,
                        "--set: ", "--set"));
    return ADL_OK;
}

static enum adl_status apply_whens(const struct adl_resolver *resolver, struct adl_config *config,
                                   struct adl_combination *combination)
{
    const struct adl_variant *variant = combination->variant;
    for (size_t i = 0; i < variant->n_whens; i++) {
        const struct adl_when *when = &variant->whens[i];
        const char *value = adl_config_get(config, when->key);
        if (!value || strcmp(value, when->value))
            continue;
        char origin[512];
        snprintf(origin, sizeof origin, "variant %s when %s=%s", variant->name, when->key,
                 when->value);
        combination->when_used[i] = true;
        ADL_TRY(apply(resolver, config, &when->layer, origin, NULL));
    }
    return ADL_OK;
}

static enum adl_status apply_variant(const struct adl_resolver *resolver, struct adl_config *config,
                                     struct adl_combination *combination)
{
    char origin[128];
    if (!combination->variant)
        return ADL_OK;
    snprintf(origin, sizeof origin, "variant %s", combination->variant->name);
    ADL_TRY(apply(resolver, config, &combination->variant->layer, origin, NULL));
    ADL_TRY(apply(resolver, config, &combination->variant_point, ADL_ORIGIN_VARIANT_SWEEP, NULL));
    ADL_TRY(apply_sets(resolver, config)); /* conditions see what --set decided */
    return apply_whens(resolver, config, combination);
}

static enum adl_status apply_all(const struct adl_resolver *resolver, struct adl_config *config,
                                 struct adl_combination *combination)
{
    const struct adl_layer *file = &resolver->experiment->file;
    const struct adl_method *method = find_method(resolver, combination);
    /* a resolved file says what held in the end, whoever had decided it */
    bool decides = decides_exchange(method) && !resolver->experiment->resolved;
    const char *skip = decides ? exchange_key : NULL;
    combination->exchange_yielded = skip && adl_layer_get(file, skip);
    if (method)
        ADL_TRY(apply_method(resolver, config, method));
    ADL_TRY(apply(resolver, config, file, NULL, skip));
    ADL_TRY(apply(resolver, config, &combination->point, ADL_ORIGIN_SWEEP, skip));
    ADL_TRY(apply_variant(resolver, config, combination));
    return apply_sets(resolver, config);
}

enum adl_status adl_plan_resolve(const struct adl_resolver *resolver,
                                 struct adl_combination *combination, struct adl_config **out)
{
    struct adl_config *config = adl_config_clone(resolver->defaults);
    if (!config)
        return adl_fail(resolver->err, ADL_ERR_NOMEM, "%s: out of memory",
                        resolver->experiment->path);
    enum adl_status status = apply_all(resolver, config, combination);
    if (status == ADL_OK)
        *out = config;
    else
        adl_config_free(config);
    return status;
}
