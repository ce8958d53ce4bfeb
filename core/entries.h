/* SPDX-License-Identifier: Apache-2.0 */
/* A value that is a list of things with keys of their own, as a text row holds it:
 *   [{from: g0, to: g8, bandwidth: 5GB/s}, {...}]
 * The keys are rows of a table, as an experiment's are. An experiment may also write such a list
 * over several lines, as YAML allows. */
#ifndef ADL_CORE_ENTRIES_H
#define ADL_CORE_ENTRIES_H

#include "core/field.h"

/* Reads text into *out, an array [*n] of structs of `size` bytes that the table's rows fill; "" and
 * [] are no entries. key: of the value, for messages ("sim.background: entry 2: ..."). What is not
 * such a list, or has a key twice, an unknown one or none of a required one: ADL_ERR_INPUT. */
enum adl_status adl_entries_parse(const char *key, const char *text, const struct adl_field *table,
                                  size_t size, void **out, size_t *n, struct adl_err *err);
void adl_entries_free(const struct adl_field *table, size_t size, void *entries, size_t n);

#endif
