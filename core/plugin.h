/* SPDX-License-Identifier: Apache-2.0 */
/* The head of every ops table, so that everything pluggable is listed, documented and
 * configured in one way. */
#ifndef ADL_CORE_PLUGIN_H
#define ADL_CORE_PLUGIN_H

#include <stddef.h>

#include "core/field.h"

struct adl_plugin {
    const char *name;
    const char *doc;                 /* one sentence, for `adloco list` */
    const struct adl_field *options; /* own rows, ends at key == NULL; NULL: none */
    size_t config_size;              /* of the struct the rows fill */
};

#endif
