/* SPDX-License-Identifier: Apache-2.0 */
/* From an experiment's layers to the list of its runs. */
#ifndef ADL_CORE_PLAN_EXPAND_H
#define ADL_CORE_PLAN_EXPAND_H

#include "core/plan.h"
#include "core/plan_platform.h"
#include "core/plan_resolve.h"

/* Appends to plan->runs (sweep point, variant, seed in this order; equal runs once) and to
 * plan->warnings. variant: the only one to keep, or NULL. Texts of the runs point into the
 * experiment. What was appended before a failure stays for adl_plan_free. */
enum adl_status adl_plan_expand(const struct adl_resolver *resolver,
                                struct adl_platform_cache *platforms, const char *variant,
                                struct adl_plan *plan);

#endif
