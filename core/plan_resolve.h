/* SPDX-License-Identifier: Apache-2.0 */
/* Laying an experiment's layers over each other: defaults, method, file, sweep, variant, --set. */
#ifndef ADL_CORE_PLAN_RESOLVE_H
#define ADL_CORE_PLAN_RESOLVE_H

#include "core/experiment.h"

struct adl_resolver {
    const struct adl_registry *registry;
    const struct adl_experiment *experiment;
    const struct adl_config *defaults;
    const struct adl_layer *sets; /* of --set */
    struct adl_err *err;
};

/* One point of all grids: a run but for its seed. */
struct adl_combination {
    const struct adl_variant *variant; /* NULL without variants */
    struct adl_layer point;            /* of the experiment's sweep */
    struct adl_layer variant_point;    /* of the variant's own */
    bool *when_used;                   /* [variant->n_whens] set where a condition held */
    bool exchange_yielded; /* set where the method overruled the file's outer.exchange */
};

/* Origins that swept keys get, for telling whether they had a say. */
#define ADL_ORIGIN_SWEEP         "sweep"
#define ADL_ORIGIN_VARIANT_SWEEP "variant's sweep"

enum adl_status adl_plan_resolve(const struct adl_resolver *resolver,
                                 struct adl_combination *combination, struct adl_config **out);

#endif
