/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads that split one computation: they sleep in between, so that nothing spins beside
 * OpenBLAS or a transport's threads. */
#ifndef ADL_KERNELS_TEAM_H
#define ADL_KERNELS_TEAM_H

#include "core/status.h"

struct adl_team; /* opaque */

/* n >= 1: the caller and n - 1 threads. */
enum adl_status adl_team_create(int n, struct adl_team **out, struct adl_err *err);
void adl_team_free(struct adl_team *team); /* NULL is fine */

/* Calls fn(arg, i) for i = 0..n-1 at once, 0 on the caller, and returns when all have. One caller
 * at a time. */
void adl_team_run(struct adl_team *team, void (*fn)(void *arg, int i), void *arg);

#endif
