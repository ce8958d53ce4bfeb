/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from an experiment's keys: those left unset, and what cannot be. */
#ifndef ADL_CORE_PLAN_DERIVE_H
#define ADL_CORE_PLAN_DERIVE_H

#include "core/config.h"
#include "core/plan_platform.h"

/* Sets the keys that are unset and follow from others (name, cluster.workers, cluster.layout.*,
 * cluster.speeds), then checks the whole. `label` names the run in messages. */
enum adl_status adl_plan_derive(const struct adl_registry *registry,
                                struct adl_platform_cache *platforms, const char *experiment_path,
                                const char *label, struct adl_config *config, struct adl_err *err);

#endif
