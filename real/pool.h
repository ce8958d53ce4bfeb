/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed set of threads on which the tasks of a process run their workers. */
#ifndef ADL_REAL_POOL_H
#define ADL_REAL_POOL_H

#include "core/status.h"

struct adl_pool; /* opaque */

/* n_threads >= 1. ADL_ERR_RUNTIME where the system grants no thread. */
enum adl_status adl_pool_create(int n_threads, struct adl_pool **out, struct adl_err *err);
/* NULL is fine. Nothing may be running. */
void adl_pool_free(struct adl_pool *pool);
int adl_pool_n_lanes(const struct adl_pool *pool);

/* Item i, on the thread number lane < n_lanes: no two items at once share one. */
typedef enum adl_status adl_pool_fn(void *arg, int i, int lane, struct adl_err *err);

/* Runs fn for i = 0..n-1, started in this order, and returns when all that started have ended.
 * After a failure no further item starts; the failure of the smallest i is returned. Several
 * threads may call at once: first come, first served. */
enum adl_status adl_pool_run(struct adl_pool *pool, int n, adl_pool_fn *fn, void *arg,
                             struct adl_err *err);

#endif
