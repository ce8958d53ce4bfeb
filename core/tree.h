/* SPDX-License-Identifier: Apache-2.0 */
/* YAML and JSON documents as a plain tree with places: the one file that knows libfyaml.
 * Without it (ADL_HAVE_YAML undefined) loading returns ADL_ERR_UNSUPPORTED. */
#ifndef ADL_CORE_TREE_H
#define ADL_CORE_TREE_H

#include <stddef.h>

#include "core/status.h"

enum adl_tree_kind { ADL_TREE_SCALAR, ADL_TREE_LIST, ADL_TREE_MAP };

struct adl_tree {
    enum adl_tree_kind kind;
    const char *key;  /* within a parent map, else NULL */
    int key_line, key_column;
    const char *text; /* scalars; "" for null */
    int line, column; /* from 1; of the value (a collection: of its first child) */
    struct adl_tree *children; /* [n] */
    size_t n;
};

/* Reads a file (UTF-8, checked; no control bytes; duplicate keys are errors; a directory, a
 * missing or an unreadable file too): ADL_ERR_INPUT with "path:line:column: cause". */
enum adl_status adl_tree_load(const char *path, struct adl_tree **out, struct adl_err *err);
/* The same for text in memory; name stands for the path in messages. */
enum adl_status adl_tree_parse(const char *name, const char *text, size_t n,
                               struct adl_tree **out, struct adl_err *err);
void adl_tree_free(struct adl_tree *tree);
const struct adl_tree *adl_tree_get(const struct adl_tree *map, const char *key); /* or NULL */

#endif
