/* SPDX-License-Identifier: Apache-2.0 */
#include "core/experiment.h"

#include <stdlib.h>
#include <string.h>

#include "core/flat.h"
#include "core/tree.h"

enum { MAX_WHERE = 1100, MAX_NAME = 100 };

struct loader {
    struct adl_experiment *experiment;
    struct adl_config *scratch; /* checks and normalizes values */
    struct adl_err *err;
};

/* ---- memory ---- */

static enum adl_status no_memory(const struct loader *loader)
{
    return adl_fail(loader->err, ADL_ERR_NOMEM, "%s: out of memory", loader->experiment->path);
}

/* Hands memory to the experiment; NULL where it or the list could not be had. */
static void *keep(struct adl_experiment *experiment, void *memory)
{
    if (!memory)
        return NULL;
    void **owned = realloc(experiment->owned, (experiment->n_owned + 1) * sizeof *owned);
    if (!owned) {
        free(memory);
        return NULL;
    }
    experiment->owned = owned;
    return owned[experiment->n_owned++] = memory;
}

/* Zeroed room for a list that is filled later. */
static void *keep_array(struct adl_experiment *experiment, size_t n, size_t size)
{
    return keep(experiment, calloc(n ? n : 1, size));
}

void adl_experiment_free(struct adl_experiment *experiment)
{
    if (!experiment)
        return;
    for (size_t i = 0; i < experiment->n_owned; i++)
        free(experiment->owned[i]);
    free(experiment->owned);
    free(experiment);
}

/* ---- small things ---- */

const struct adl_setting *adl_layer_get(const struct adl_layer *layer, const char *key)
{
    for (size_t i = 0; i < layer->n; i++)
        if (!strcmp(layer->v[i].key, key))
            return &layer->v[i];
    return NULL;
}

size_t adl_grid_points(const struct adl_grid *grid, size_t limit)
{
    size_t points = 1;
    for (size_t a = 0; a < grid->n; a++) {
        if (grid->axes[a].n > limit / points)
            return limit + 1;
        points *= grid->axes[a].n;
    }
    return points;
}

void adl_grid_point(const struct adl_grid *grid, size_t i, const char **values)
{
    for (size_t a = grid->n; a-- > 0; i /= grid->axes[a].n)
        values[a] = grid->axes[a].values[i % grid->axes[a].n];
}

const char *adl_experiment_where(const struct adl_experiment *experiment, int line, int column,
                                 char *buf, size_t size)
{
    if (column > 0)
        snprintf(buf, size, "%s:%d:%d: ", experiment->path, line, column);
    else
        snprintf(buf, size, "%s:%d: ", experiment->path, line);
    return buf;
}

static enum adl_status fail_at(const struct loader *loader, const struct adl_tree *node,
                               const char *what, const char *text)
{
    char where[MAX_WHERE];
    adl_experiment_where(loader->experiment, node->key ? node->key_line : node->line,
                         node->key ? node->key_column : node->column, where, sizeof where);
    return adl_fail(loader->err, ADL_ERR_INPUT, "%s'%.80s' %s", where, text, what);
}

/* ---- values ---- */

/* Writes a scalar, or a map of scalars as "{a: b, c: d}". False: something else. */
static bool write_item(const struct adl_tree *item, FILE *out)
{
    if (item->kind == ADL_TREE_SCALAR)
        return fputs(item->text, out) >= 0;
    if (item->kind != ADL_TREE_MAP)
        return false;
    fputc('{', out);
    for (size_t i = 0; i < item->n; i++) {
        if (item->children[i].kind != ADL_TREE_SCALAR)
            return false;
        fprintf(out, "%s%s: %s", i ? ", " : "", item->children[i].key, item->children[i].text);
    }
    fputc('}', out);
    return true;
}

/* A scalar's text, or "[a, b]" of a list of scalars or maps of scalars (core/entries.h); *out is
 * kept by the experiment. */
static enum adl_status value_text(const struct loader *loader, const struct adl_tree *node,
                                  const char *key, const char **out)
{
    char *text = NULL;
    size_t size;
    FILE *stream = node->kind != ADL_TREE_MAP ? open_memstream(&text, &size) : NULL;
    if (!stream)
        return node->kind == ADL_TREE_MAP
                   ? fail_at(loader, node, "needs a value or a list of values", key)
                   : no_memory(loader);
    bool understood = true;
    if (node->kind == ADL_TREE_SCALAR) {
        fputs(node->text, stream);
    } else {
        fputc('[', stream);
        for (size_t i = 0; i < node->n && understood; i++) {
            fputs(i ? ", " : "", stream);
            understood = write_item(&node->children[i], stream);
        }
        fputc(']', stream);
    }
    bool written = fclose(stream) == 0;
    *out = keep(loader->experiment, text);
    if (!understood)
        return fail_at(loader, node, "needs a value or a list of values", key);
    return written && *out ? ADL_OK : no_memory(loader);
}

/* Checks a value against its row, and puts its canonical form in its place if asked to. */
static enum adl_status check_value(const struct loader *loader, const char *key, int line,
                                   int column, const char **text, bool normalize)
{
    char where[MAX_WHERE];
    adl_experiment_where(loader->experiment, line, column, where, sizeof where);
    ADL_TRY(adl_config_set(loader->scratch, key, *text, where, "", loader->err));
    if (!normalize)
        return ADL_OK;
    *text = keep(loader->experiment, strdup(adl_config_get(loader->scratch, key)));
    return *text ? ADL_OK : no_memory(loader);
}

/* ---- walking maps of keys, dotted and nested alike ---- */

typedef enum adl_status leaf_fn(const struct loader *loader, const char *key,
                                const struct adl_tree *node, void *arg);

static bool is_reserved(const char *key, const char *const *reserved)
{
    for (; reserved && *reserved; reserved++)
        if (!strcmp(key, *reserved))
            return true;
    return false;
}

static size_t count_leaves(const struct adl_tree *map)
{
    size_t n = 0;
    for (size_t i = 0; i < map->n; i++)
        n += map->children[i].kind == ADL_TREE_MAP ? count_leaves(&map->children[i]) : 1;
    return n;
}

/* Calls fn for each value in a map and the maps within it; keys in `reserved` (outermost only)
 * are left to others. */
static enum adl_status each_leaf(const struct loader *loader, const struct adl_tree *map,
                                 const char *prefix, const char *const *reserved, leaf_fn *fn,
                                 void *arg)
{
    for (size_t i = 0; i < map->n; i++) {
        const struct adl_tree *node = &map->children[i];
        if (is_reserved(node->key, reserved))
            continue;
        size_t size = strlen(prefix) + strlen(node->key) + 2;
        char *key = keep(loader->experiment, malloc(size));
        if (!key)
            return no_memory(loader);
        snprintf(key, size, "%s%s%s", prefix, *prefix ? "." : "", node->key);
        if (node->kind == ADL_TREE_MAP)
            ADL_TRY(each_leaf(loader, node, key, NULL, fn, arg));
        else
            ADL_TRY(fn(loader, key, node, arg));
    }
    return ADL_OK;
}

static enum adl_status fail_twice(const struct loader *loader, const char *key, int line,
                                  int column, int first)
{
    char where[MAX_WHERE];
    adl_experiment_where(loader->experiment, line, column, where, sizeof where);
    return adl_fail(loader->err, ADL_ERR_INPUT, "%skey '%.80s' stands twice, first in line %d",
                    where, key, first);
}

static enum adl_status add_setting(const struct loader *loader, const char *key, const char *text,
                                   int line, int column, struct adl_layer *layer)
{
    ADL_TRY(check_value(loader, key, line, column, &text, false));
    const struct adl_setting *twin = adl_layer_get(layer, key);
    if (twin)
        return fail_twice(loader, key, line, column, twin->line);
    layer->v[layer->n++] = (struct adl_setting){key, text, line, column};
    return ADL_OK;
}

static enum adl_status leaf_setting(const struct loader *loader, const char *key,
                                    const struct adl_tree *node, void *arg)
{
    const char *text;
    ADL_TRY(value_text(loader, node, key, &text));
    return add_setting(loader, key, text, node->key_line, node->key_column, arg);
}

static enum adl_status load_layer(const struct loader *loader, const struct adl_tree *map,
                                  const char *const *reserved, struct adl_layer *layer)
{
    layer->v = keep_array(loader->experiment, count_leaves(map), sizeof *layer->v);
    if (!layer->v)
        return no_memory(loader);
    return each_leaf(loader, map, "", reserved, leaf_setting, layer);
}

/* ---- sweeps ---- */

static enum adl_status leaf_axis(const struct loader *loader, const char *key,
                                 const struct adl_tree *node, void *arg)
{
    struct adl_grid *grid = arg;
    if (node->kind != ADL_TREE_LIST)
        return fail_at(loader, node, "needs a list of values to sweep over", key);
    if (node->n == 0)
        return fail_at(loader, node, "sweeps over an empty list", key);
    for (size_t a = 0; a < grid->n; a++)
        if (!strcmp(grid->axes[a].key, key))
            return fail_twice(loader, key, node->key_line, node->key_column, grid->axes[a].line);
    struct adl_axis *axis = &grid->axes[grid->n];
    *axis = (struct adl_axis){key, NULL, node->n, node->key_line, node->key_column};
    axis->values = keep_array(loader->experiment, node->n, sizeof *axis->values);
    if (!axis->values)
        return no_memory(loader);
    for (size_t i = 0; i < node->n; i++) {
        const struct adl_tree *item = &node->children[i];
        ADL_TRY(value_text(loader, item, key, &axis->values[i]));
        ADL_TRY(check_value(loader, key, item->line, item->column, &axis->values[i], true));
    }
    grid->n++;
    return ADL_OK;
}

/* The grid under `sweep` of a map, if there is one. */
static enum adl_status load_grid(const struct loader *loader, const struct adl_tree *map,
                                 struct adl_grid *grid)
{
    const struct adl_tree *sweep = adl_tree_get(map, "sweep");
    if (!sweep)
        return ADL_OK;
    if (sweep->kind != ADL_TREE_MAP)
        return fail_at(loader, sweep, "needs keys with lists of values", "sweep");
    grid->axes = keep_array(loader->experiment, count_leaves(sweep), sizeof *grid->axes);
    if (!grid->axes)
        return no_memory(loader);
    ADL_TRY(each_leaf(loader, sweep, "", NULL, leaf_axis, grid));
    return grid->n ? ADL_OK : fail_at(loader, sweep, "is empty", "sweep");
}

/* ---- variants ---- */

static enum adl_status load_when(const struct loader *loader, const struct adl_tree *node,
                                 struct adl_when *when)
{
    const char *equals = strchr(node->key, '=');
    if (!equals || equals == node->key)
        return fail_at(loader, node, "is not a condition of the form KEY=VALUE", node->key);
    if (node->kind != ADL_TREE_MAP)
        return fail_at(loader, node, "needs the keys that apply there", node->key);
    when->key = keep(loader->experiment, strndup(node->key, (size_t)(equals - node->key)));
    when->value = equals + 1;
    when->line = node->key_line;
    when->column = node->key_column;
    if (!when->key)
        return no_memory(loader);
    ADL_TRY(check_value(loader, when->key, when->line, when->column, &when->value, true));
    ADL_TRY(load_layer(loader, node, NULL, &when->layer));
    if (adl_layer_get(&when->layer, "method"))
        return fail_at(loader, node, "may not choose the method; write a variant for each",
                       node->key);
    return ADL_OK;
}

static enum adl_status load_whens(const struct loader *loader, const struct adl_tree *map,
                                  struct adl_variant *variant)
{
    const struct adl_tree *whens = adl_tree_get(map, "when");
    if (!whens)
        return ADL_OK;
    if (whens->kind != ADL_TREE_MAP || whens->n == 0)
        return fail_at(loader, whens, "needs conditions of the form KEY=VALUE: {...}", "when");
    variant->whens = keep_array(loader->experiment, whens->n, sizeof *variant->whens);
    if (!variant->whens)
        return no_memory(loader);
    for (; variant->n_whens < whens->n; variant->n_whens++)
        ADL_TRY(load_when(loader, &whens->children[variant->n_whens],
                          &variant->whens[variant->n_whens]));
    return ADL_OK;
}

static bool is_variant_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= MAX_NAME &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-") == n;
}

static enum adl_status load_variant(const struct loader *loader, const struct adl_tree *node,
                                    struct adl_variant *variant)
{
    static const char *const reserved[] = {"sweep", "when", NULL};
    if (!is_variant_name(node->key))
        return fail_at(loader, node,
                       "is no name for a variant: letters, digits and _.+- are, up to 100",
                       node->key);
    if (node->kind == ADL_TREE_LIST || (node->kind == ADL_TREE_SCALAR && *node->text))
        return fail_at(loader, node, "needs a map of keys", node->key);
    variant->name = keep(loader->experiment, strdup(node->key));
    if (!variant->name)
        return no_memory(loader);
    ADL_TRY(load_layer(loader, node, reserved, &variant->layer));
    ADL_TRY(load_grid(loader, node, &variant->sweep));
    return load_whens(loader, node, variant);
}

static enum adl_status load_variants(const struct loader *loader, const struct adl_tree *root)
{
    struct adl_experiment *experiment = loader->experiment;
    const struct adl_tree *variants = adl_tree_get(root, "variants");
    if (!variants)
        return ADL_OK;
    if (variants->kind != ADL_TREE_MAP || variants->n == 0)
        return fail_at(loader, variants, "needs at least one NAME: {...}", "variants");
    experiment->variants = keep_array(experiment, variants->n, sizeof *experiment->variants);
    if (!experiment->variants)
        return no_memory(loader);
    for (; experiment->n_variants < variants->n; experiment->n_variants++)
        ADL_TRY(load_variant(loader, &variants->children[experiment->n_variants],
                             &experiment->variants[experiment->n_variants]));
    return ADL_OK;
}

/* ---- files ---- */

static enum adl_status load_tree(const struct loader *loader, const struct adl_tree *root)
{
    static const char *const reserved[] = {"sweep", "variants", "claim", NULL};
    if (root->kind != ADL_TREE_MAP)
        return fail_at(loader, root, "stands where a map of keys is needed",
                       root->kind == ADL_TREE_SCALAR ? root->text : "a list");
    ADL_TRY(load_layer(loader, root, reserved, &loader->experiment->file));
    ADL_TRY(load_grid(loader, root, &loader->experiment->sweep));
    return load_variants(loader, root);
}

static void count_row(const struct adl_field *field, void *arg)
{
    (void)field;
    ++*(size_t *)arg;
}

static enum adl_status flat_setting(const char *key, const char *value, int line, void *arg,
                                    struct adl_err *err)
{
    (void)err; /* the loader's */
    const struct loader *loader = arg;
    char *own_key = keep(loader->experiment, strdup(key));
    char *own_value = keep(loader->experiment, strdup(value));
    if (!own_key || !own_value)
        return no_memory(loader);
    return add_setting(loader, own_key, own_value, line, 0, &loader->experiment->file);
}

/* No layer is longer than the table: unknown keys and repeated ones fail. */
static enum adl_status load_flat(struct loader *loader, const struct adl_registry *registry)
{
    size_t rows = 0;
    adl_config_each_field(registry, count_row, &rows);
    struct adl_layer *file = &loader->experiment->file;
    file->v = keep_array(loader->experiment, rows, sizeof *file->v);
    if (!file->v)
        return no_memory(loader);
    struct adl_err *err = loader->err, flat_err = {0};
    loader->err = &flat_err;
    enum adl_status status =
        adl_flat_read(loader->experiment->path, flat_setting, loader, &flat_err);
    loader->err = err;
    if (status != ADL_OK)
        return adl_fail(err, status, "%s (without libfyaml only flat 'key: value' files are read)",
                        flat_err.message);
    return ADL_OK;
}

static enum adl_status load_file(struct loader *loader, const struct adl_registry *registry)
{
    struct adl_tree *root;
    struct adl_err tree_err = {0}; /* apart: where there is no YAML, that is no failure */
    enum adl_status status = adl_tree_load(loader->experiment->path, &root, &tree_err);
    if (status == ADL_ERR_UNSUPPORTED)
        return load_flat(loader, registry);
    if (status != ADL_OK)
        return adl_fail(loader->err, status, "%s", tree_err.message);
    status = load_tree(loader, root);
    adl_tree_free(root);
    return status;
}

static bool sets_all(const struct adl_layer *layer, const struct adl_field *table)
{
    for (; table->key; table++)
        if (!adl_layer_get(layer, table->key))
            return false;
    return true;
}

enum adl_status adl_experiment_load(const struct adl_registry *registry, const char *path,
                                    struct adl_experiment **out, struct adl_err *err)
{
    struct loader loader = {calloc(1, sizeof *loader.experiment), NULL, err};
    if (!loader.experiment)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", path);
    loader.experiment->path = path;
    loader.experiment->path = keep(loader.experiment, strdup(path));
    enum adl_status status = loader.experiment->path
                                 ? adl_config_create(registry, &loader.scratch, err)
                                 : adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", path);
    if (status == ADL_OK)
        status = load_file(&loader, registry);
    adl_config_free(loader.scratch);
    if (status != ADL_OK) {
        adl_experiment_free(loader.experiment);
        return status;
    }
    loader.experiment->resolved = sets_all(&loader.experiment->file, adl_core_options);
    *out = loader.experiment;
    return ADL_OK;
}
