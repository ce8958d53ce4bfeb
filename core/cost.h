/* SPDX-License-Identifier: Apache-2.0 */
/* What a model costs devices and networks: its own sizes, or those of the larger model it stands
 * in for (model.stand_in.*). */
#ifndef ADL_CORE_COST_H
#define ADL_CORE_COST_H

#include "core/model.h"
#include "core/transport.h"

struct adl_size {
    double params; /* of one instance */
    double tokens_per_sample;
    double wire_bytes;    /* S: one vector of parameters on the wire */
    struct adl_cost cost; /* flops: 6 x parameters x tokens for a stand-in */
};
struct adl_size adl_size_of(const struct adl_settings *settings, const struct adl_model_ops *ops,
                            const struct adl_model *model);

#endif
