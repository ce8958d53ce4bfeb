/* SPDX-License-Identifier: Apache-2.0 */
/* A resolved configuration: one text value for every key of every table, each with the place
 * it came from. It is what a run is made of, what its id is the hash of, and what
 * `experiment.yaml` in its output directory holds ("key: value  # origin" lines, which this
 * file reads back without a YAML library). */
#ifndef ADL_CORE_CONFIG_H
#define ADL_CORE_CONFIG_H

#include <stdio.h>

#include "core/registry.h"
#include "core/settings.h"

struct adl_config; /* opaque */

/* All keys at their defaults. The registry is borrowed and must outlive the config. */
enum adl_status adl_config_create(const struct adl_registry *registry, struct adl_config **out,
                                  struct adl_err *err);
struct adl_config *adl_config_clone(const struct adl_config *config); /* NULL: no memory */
void adl_config_free(struct adl_config *config);                      /* NULL is fine */

/* Sets a key. text is checked against its row; unknown keys fail with the nearest name.
 * `where` goes in front of a message ("exp.yaml:3:5: ", may be ""); `origin` is what the dump
 * says ("default", "method diloco", "exp.yaml:3", "sweep", "variant", "--set"). Both copied. */
enum adl_status adl_config_set(struct adl_config *config, const char *key, const char *text,
                               const char *where, const char *origin, struct adl_err *err);
const char *adl_config_get(const struct adl_config *config, const char *key);    /* or NULL */
const char *adl_config_origin(const struct adl_config *config, const char *key); /* or NULL */

/* Fills a struct from the rows of one table: adl_core_options and struct adl_settings, or a
 * plugin's. Texts and lists in it are owned by the config and live as long. */
enum adl_status adl_config_fill(struct adl_config *config, const struct adl_field *table,
                                void *out, struct adl_err *err);

/* Writes "key: value  # origin" for every key, in table order. */
void adl_config_dump(const struct adl_config *config, FILE *out);
/* Sets every key found in a dumped file. */
enum adl_status adl_config_read(struct adl_config *config, const char *path, struct adl_err *err);

/* 16 hex digits: hash of all "key: value" lines but `name`, `checkpoint.*` and `nccl.rendezvous`,
 * which change no result; not of origins. */
void adl_config_hash(const struct adl_config *config, char out[17]);

/* Calls fn for each row of all tables, in order (documentation, option reference). */
void adl_config_each_field(const struct adl_registry *registry,
                           void (*fn)(const struct adl_field *, void *), void *arg);
/* NULL-ended names of a NAME row's list ("@models", ...), static storage or owned by the
 * registry; NULL for other rows. */
const char *const *adl_config_names(const struct adl_registry *registry,
                                    const struct adl_field *field);

#endif
