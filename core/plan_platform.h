/* SPDX-License-Identifier: Apache-2.0 */
/* Finding platform files, and reading each of them once for a plan. */
#ifndef ADL_CORE_PLAN_PLATFORM_H
#define ADL_CORE_PLAN_PLATFORM_H

#include "core/registry.h"

/* $ADL_DATA_DIR, else the source tree the program was built from, else where it is installed.
 * Holds platforms/ and experiments/. Static storage. */
const char *adl_data_dir(void);

/* The shipped platforms' names in order: NULL-ended, one malloc for all (free it); NULL on no
 * memory. */
char **adl_platform_names(void);

struct adl_platform_cache; /* facts by path */

struct adl_platform_cache *adl_platform_cache_create(void); /* NULL: no memory */
void adl_platform_cache_free(struct adl_platform_cache *cache);

/* What `platform` (a name or a path, as in the experiment) holds: *out is borrowed from the
 * cache. ADL_ERR_UNSUPPORTED where the registry cannot read platforms. */
enum adl_status adl_platform_cache_get(struct adl_platform_cache *cache,
                                       const struct adl_registry *registry, const char *platform,
                                       const char *experiment_path,
                                       const struct adl_platform_facts **out, struct adl_err *err);

#endif
