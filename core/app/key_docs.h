/* SPDX-License-Identifier: Apache-2.0 */
/* The documentation of keys, from the rows that declare them. */
#ifndef ADL_APP_KEY_DOCS_H
#define ADL_APP_KEY_DOCS_H

#include <stdio.h>

#include "core/registry.h"

/* Calls fn for each table of options with its owner: "experiment", "transport sim", ... */
void adl_each_table(const struct adl_registry *registry,
                    void (*fn)(const struct adl_field *table, const char *owner, void *arg),
                    void *arg);

/* Everything about one key; ADL_ERR_INPUT with the nearest name where there is none. */
enum adl_status adl_key_print(const struct adl_registry *registry, const char *key, FILE *out,
                              struct adl_err *err);
/* A line for each key. */
void adl_keys_print(const struct adl_registry *registry, FILE *out);
/* The reference page: all keys, methods and batch policies. */
void adl_keys_markdown(const struct adl_registry *registry, FILE *out);

#endif
