/* SPDX-License-Identifier: Apache-2.0 */
/* The runs behind `adloco bounds --measure`: a sweep into a directory that is then removed. */
#ifndef ADL_APP_BOUNDS_RUNS_H
#define ADL_APP_BOUNDS_RUNS_H

#include "analysis/bounds_measured.h"
#include "core/plan.h"
#include "core/registry.h"

struct adl_bounds_sweep;

/* Whether two runs differ only in their seed. */
bool adl_bounds_same_group(const struct adl_planned *a, const struct adl_planned *b);

/* Runs the plan, every run of which must have stop.loss; a run that fails fails the whole. */
enum adl_status adl_bounds_sweep_run(const struct adl_registry *registry,
                                     const struct adl_plan *plan, bool quiet,
                                     struct adl_bounds_sweep **out, struct adl_err *err);
void adl_bounds_sweep_free(struct adl_bounds_sweep *sweep); /* NULL is fine */

/* The group that run `first` begins, beside its bounds. */
enum adl_status adl_bounds_measure(const struct adl_bounds_sweep *sweep, size_t first,
                                   const struct adl_bounds *bounds, struct adl_bounds_measured *out,
                                   struct adl_err *err);

#endif
