/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config.h"

#include <stdlib.h>
#include <string.h>

#include "core/flat.h"
#include "core/hash.h"
#include "core/model.h"
#include "core/policy.h"
#include "core/transport.h"

struct entry {
    const struct adl_field *field;
    char *text; /* canonical; NULL: required and not set yet */
    char *origin;
};

struct adl_config {
    const struct adl_registry *registry;
    struct entry *entries; /* [n] in table order */
    size_t n;
    void **owned; /* [n_owned] what filled structs point to */
    size_t n_owned;
};

static void each_row(const struct adl_field *table, void (*fn)(const struct adl_field *, void *),
                     void *arg)
{
    for (; table && table->key; table++)
        fn(table, arg);
}

void adl_config_each_field(const struct adl_registry *registry,
                           void (*fn)(const struct adl_field *, void *), void *arg)
{
    each_row(adl_core_options, fn, arg);
    for (size_t i = 0; registry->transports && registry->transports[i]; i++)
        each_row(registry->transports[i]->plugin.options, fn, arg);
    for (size_t i = 0; registry->models && registry->models[i]; i++)
        each_row(registry->models[i]->plugin.options, fn, arg);
    for (size_t i = 0; registry->more_options && registry->more_options[i]; i++)
        each_row(registry->more_options[i], fn, arg);
}

/* ---- names of registry lists ---- */

enum { MAX_NAMES = 64 }; /* of one list: nothing pluggable comes in such numbers */

static const char *transport_name(const struct adl_registry *registry, size_t i)
{
    const struct adl_transport_ops *const *list = registry->transports;
    return list && list[i] ? list[i]->plugin.name : NULL;
}

static const char *model_name(const struct adl_registry *registry, size_t i)
{
    const struct adl_model_ops *const *list = registry->models;
    return list && list[i] ? list[i]->plugin.name : NULL;
}

static const char *method_name(const struct adl_registry *registry, size_t i)
{
    return registry->methods ? registry->methods[i].name : NULL;
}

static const char *batch_policy_name(const struct adl_registry *registry, size_t i)
{
    (void)registry;
    return adl_batch_policies[i] ? adl_batch_policies[i]->name : NULL;
}

static const struct {
    const char *list;
    const char *(*name)(const struct adl_registry *registry, size_t i);
} lists[] = {{"@transports", transport_name},
             {"@models", model_name},
             {"@methods", method_name},
             {"@batch_policies", batch_policy_name}};
enum { N_LISTS = sizeof lists / sizeof *lists };

const char *const *adl_config_names(const struct adl_registry *registry,
                                    const struct adl_field *field)
{
    static _Thread_local const char *names[N_LISTS][MAX_NAMES + 1];
    if (field->type != ADL_TYPE_NAME)
        return NULL;
    for (size_t l = 0; l < N_LISTS; l++) {
        if (strcmp(lists[l].list, field->choices))
            continue;
        size_t n = 0;
        while (n < MAX_NAMES && (names[l][n] = lists[l].name(registry, n)))
            n++;
        names[l][n] = NULL;
        return names[l];
    }
    return NULL;
}

/* ---- the entries ---- */

static struct entry *find(const struct adl_config *config, const char *key)
{
    for (size_t i = 0; i < config->n; i++)
        if (!strcmp(config->entries[i].field->key, key))
            return &config->entries[i];
    return NULL;
}

static void count_row(const struct adl_field *field, void *arg)
{
    (void)field;
    ++*(size_t *)arg;
}

/* Two plugins may share a key (both their structs then hold it): the first row keeps it. */
static void add_row(const struct adl_field *field, void *arg)
{
    struct adl_config *config = arg;
    if (!find(config, field->key))
        config->entries[config->n++].field = field;
}

static bool set_entry(struct entry *entry, const char *text, const char *origin)
{
    char *canonical = adl_field_canonical(entry->field, text);
    char *from = strdup(origin);
    if (!canonical || !from) {
        free(canonical);
        free(from);
        return false;
    }
    free(entry->text);
    free(entry->origin);
    entry->text = canonical;
    entry->origin = from;
    return true;
}

static enum adl_status no_memory(struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_NOMEM, "configuration: out of memory");
}

enum adl_status adl_config_create(const struct adl_registry *registry, struct adl_config **out,
                                  struct adl_err *err)
{
    size_t rows = 0;
    adl_config_each_field(registry, count_row, &rows);
    struct adl_config *config = calloc(1, sizeof *config);
    if (!config || !(config->entries = calloc(rows, sizeof *config->entries))) {
        free(config);
        return no_memory(err);
    }
    config->registry = registry;
    adl_config_each_field(registry, add_row, config);
    for (size_t i = 0; i < config->n; i++) {
        struct entry *entry = &config->entries[i];
        if (entry->field->dflt && !set_entry(entry, entry->field->dflt, "default")) {
            adl_config_free(config);
            return no_memory(err);
        }
    }
    *out = config;
    return ADL_OK;
}

struct adl_config *adl_config_clone(const struct adl_config *config)
{
    struct adl_config *clone = calloc(1, sizeof *clone);
    if (!clone || !(clone->entries = calloc(config->n, sizeof *clone->entries))) {
        free(clone);
        return NULL;
    }
    clone->registry = config->registry;
    clone->n = config->n;
    for (size_t i = 0; i < config->n; i++) {
        const struct entry *from = &config->entries[i];
        struct entry *to = &clone->entries[i];
        to->field = from->field;
        to->text = from->text ? strdup(from->text) : NULL;
        to->origin = from->origin ? strdup(from->origin) : NULL;
        if (!to->text != !from->text || !to->origin != !from->origin) {
            adl_config_free(clone);
            return NULL;
        }
    }
    return clone;
}

void adl_config_free(struct adl_config *config)
{
    if (!config)
        return;
    for (size_t i = 0; i < config->n; i++) {
        free(config->entries[i].text);
        free(config->entries[i].origin);
    }
    for (size_t i = 0; i < config->n_owned; i++)
        free(config->owned[i]);
    free(config->owned);
    free(config->entries);
    free(config);
}

static enum adl_status fail_unknown(const struct adl_config *config, const char *key,
                                    const char *where, struct adl_err *err)
{
    const char **keys = calloc(config->n, sizeof *keys);
    if (!keys)
        return no_memory(err);
    const char *section = NULL;
    size_t length = strlen(key);
    for (size_t i = 0; i < config->n; i++) {
        keys[i] = config->entries[i].field->key;
        if (!section && !strncmp(keys[i], key, length) && keys[i][length] == '.')
            section = keys[i];
    }
    const char *nearest = adl_nearest(key, keys, config->n);
    free(keys);
    if (section)
        return adl_fail(err, ADL_ERR_INPUT, "%s%s: is a section of keys like %s, not a value",
                        where, key, section);
    if (nearest)
        return adl_fail(err, ADL_ERR_INPUT, "%sunknown key '%.80s'; did you mean '%s'?", where, key,
                        nearest);
    return adl_fail(err, ADL_ERR_INPUT, "%sunknown key '%.80s'; 'adloco help keys' lists all",
                    where, key);
}

enum adl_status adl_config_set(struct adl_config *config, const char *key, const char *text,
                               const char *where, const char *origin, struct adl_err *err)
{
    struct entry *entry = find(config, key);
    if (!entry)
        return fail_unknown(config, key, where, err);
    union { /* room for a value of any type, which only the check needs */
        int64_t integer;
        double real;
        const char *text;
        struct adl_ints ints;
        struct adl_reals reals;
    } value;
    ADL_TRY(adl_field_parse(entry->field, text, adl_config_names(config->registry, entry->field),
                            where, &value, err));
    adl_field_free(entry->field, &value);
    return set_entry(entry, text, origin) ? ADL_OK : no_memory(err);
}

const char *adl_config_get(const struct adl_config *config, const char *key)
{
    const struct entry *entry = find(config, key);
    return entry ? entry->text : NULL;
}

const char *adl_config_origin(const struct adl_config *config, const char *key)
{
    const struct entry *entry = find(config, key);
    return entry ? entry->origin : NULL;
}

/* ---- filling structs ---- */

/* The memory a parsed value holds; NULL where it holds none. */
static void *value_memory(const struct adl_field *field, void *value)
{
    switch (field->type) {
    case ADL_TYPE_TEXT:
    case ADL_TYPE_NAME:
        return (void *)*(const char **)value;
    case ADL_TYPE_INTS:
        return (void *)((struct adl_ints *)value)->v;
    case ADL_TYPE_REALS:
        return (void *)((struct adl_reals *)value)->v;
    default:
        return NULL;
    }
}

static bool own(struct adl_config *config, void *memory)
{
    if (!memory)
        return true;
    void **owned = realloc(config->owned, (config->n_owned + 1) * sizeof *owned);
    if (!owned)
        return false;
    config->owned = owned;
    owned[config->n_owned++] = memory;
    return true;
}

enum adl_status adl_config_fill(struct adl_config *config, const struct adl_field *table, void *out,
                                struct adl_err *err)
{
    for (const struct adl_field *field = table; field && field->key; field++) {
        const struct entry *entry = find(config, field->key);
        if (!entry)
            return adl_fail(err, ADL_ERR_BUG, "%s: is in no table of the registry", field->key);
        if (!entry->text)
            return adl_fail(err, ADL_ERR_INPUT, "%s: must be set: %s", field->key, field->doc);
        void *value = (char *)out + field->offset;
        ADL_TRY(adl_field_parse(field, entry->text, adl_config_names(config->registry, field), "",
                                value, err));
        if (!own(config, value_memory(field, value))) {
            adl_field_free(field, value);
            return no_memory(err);
        }
    }
    return ADL_OK;
}

/* ---- dump, read, hash ---- */

void adl_config_dump(const struct adl_config *config, FILE *out)
{
    for (size_t i = 0; i < config->n; i++) {
        const struct entry *entry = &config->entries[i];
        if (entry->text)
            adl_flat_write(out, entry->field->key, entry->text, entry->origin);
    }
}

struct read_target {
    struct adl_config *config;
    const char *path;
};

static enum adl_status read_key(const char *key, const char *value, int line, void *arg,
                                struct adl_err *err)
{
    struct read_target *target = arg;
    char where[1024], origin[1024];
    snprintf(where, sizeof where, "%s:%d: ", target->path, line);
    snprintf(origin, sizeof origin, "%s:%d", target->path, line);
    return adl_config_set(target->config, key, value, where, origin, err);
}

enum adl_status adl_config_read(struct adl_config *config, const char *path, struct adl_err *err)
{
    struct read_target target = {config, path};
    return adl_flat_read(path, read_key, &target, err);
}

void adl_config_hash(const struct adl_config *config, char out[17])
{
    uint64_t hash = ADL_HASH_START;
    for (size_t i = 0; i < config->n; i++) {
        const struct entry *entry = &config->entries[i];
        if (!entry->text || entry->field->aside)
            continue;
        hash = adl_hash_text(hash, entry->field->key);
        hash = adl_hash_text(hash, ": ");
        hash = adl_hash_text(hash, entry->text);
        hash = adl_hash_text(hash, "\n");
    }
    adl_hash_print(hash, out);
}
