/* SPDX-License-Identifier: Apache-2.0 */
/* An experiment file as its layers, before they are laid over each other. Every key and value
 * in it has been checked against its row. */
#ifndef ADL_CORE_EXPERIMENT_H
#define ADL_CORE_EXPERIMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "core/config.h"

struct adl_setting {
    const char *key, *text; /* key dotted; a list as "[a, b]" */
    int line, column;       /* of the key; column 0: unknown */
};

struct adl_layer {
    struct adl_setting *v; /* [n] no key twice */
    size_t n;
};
const struct adl_setting *adl_layer_get(const struct adl_layer *layer, const char *key);

struct adl_axis { /* one swept key */
    const char *key;
    const char **values; /* [n >= 1] canonical */
    size_t n;
    int line, column;
};

struct adl_grid {
    struct adl_axis *axes; /* [n]; the first varies slowest */
    size_t n;
};
/* Number of points, at most `limit` + 1. A grid without axes has one. */
size_t adl_grid_points(const struct adl_grid *grid, size_t limit);
/* The value of each axis at point i: values [grid->n]. */
void adl_grid_point(const struct adl_grid *grid, size_t i, const char **values);

struct adl_when {            /* keys that apply where another one has a value */
    const char *key, *value; /* value canonical */
    struct adl_layer layer;
    int line, column;
};

struct adl_variant {
    const char *name;
    struct adl_layer layer;
    struct adl_grid sweep;
    struct adl_when *whens; /* [n_whens] */
    size_t n_whens;
};

struct adl_experiment {
    const char *path;
    struct adl_layer file;
    struct adl_grid sweep;
    struct adl_variant *variants; /* [n_variants] */
    size_t n_variants;
    bool resolved; /* every core key is set: what a run wrote */

    void **owned; /* [n_owned] all memory above */
    size_t n_owned;
};

/* Reads a YAML experiment or, where the build has no YAML, a flat file. */
enum adl_status adl_experiment_load(const struct adl_registry *registry, const char *path,
                                    struct adl_experiment **out, struct adl_err *err);
void adl_experiment_free(struct adl_experiment *experiment); /* NULL is fine */

/* "path:line:column: " in buf: what goes in front of a message. */
const char *adl_experiment_where(const struct adl_experiment *experiment, int line, int column,
                                 char *buf, size_t size);

#endif
