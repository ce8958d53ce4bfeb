/* SPDX-License-Identifier: Apache-2.0 */
/* From a planned run to what theory is asked of it: the model's constants, the method's settings,
 * the platform's network and devices, and the keys `bounds.*` over all of them. */
#ifndef ADL_APP_BOUNDS_INPUT_H
#define ADL_APP_BOUNDS_INPUT_H

#include "analysis/bounds_case.h"
#include "core/plan.h"
#include "core/registry.h"

struct adl_bounds_subject {
    struct adl_problem problem;
    struct adl_bounds_input input; /* points into problem and the planned run */
};

/* ADL_ERR_INPUT where the model gives no constants and the experiment none either. */
enum adl_status adl_bounds_subject_open(const struct adl_registry *registry,
                                        const struct adl_plan *plan, const struct adl_planned *run,
                                        struct adl_bounds_subject *out, struct adl_err *err);
void adl_bounds_subject_close(struct adl_bounds_subject *subject);

#endif
