/* SPDX-License-Identifier: Apache-2.0 */
/* Flat files: one "key: value  # origin" a line, the form of every resolved experiment. It is
 * valid YAML, but reading it needs no YAML library. */
#ifndef ADL_CORE_FLAT_H
#define ADL_CORE_FLAT_H

#include <stdio.h>

#include "core/status.h"

/* Called for each line; key and value live during the call only. */
typedef enum adl_status adl_flat_fn(const char *key, const char *value, int line, void *arg,
                                    struct adl_err *err);

/* ADL_ERR_INPUT "path:line: cause" for a line of any other form. */
enum adl_status adl_flat_read(const char *path, adl_flat_fn *fn, void *arg, struct adl_err *err);

/* Writes one line; value is quoted where YAML would take it for something else. */
void adl_flat_write(FILE *out, const char *key, const char *value, const char *origin);

#endif
