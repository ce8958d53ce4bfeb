/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cost.h"

#include <math.h>

#include "core/optimizer.h"
#include "core/wire.h"

struct adl_size adl_size_of(const struct adl_settings *settings, const struct adl_model_ops *ops,
                            const struct adl_model *model)
{
    struct adl_size size = {.params = (double)ops->n_params(model),
                            .tokens_per_sample = ops->tokens_per_sample(model)};
    size.cost.flops_per_sample = ops->flops_per_sample(model);
    if (!isnan(settings->model.stand_in_params)) {
        size.params = settings->model.stand_in_params;
        if (!isnan(settings->model.stand_in_tokens_per_sample))
            size.tokens_per_sample = settings->model.stand_in_tokens_per_sample;
        /* forward 2, backward 4 per parameter and token (Kaplan et al. 2020) */
        size.cost.flops_per_sample = 6 * size.params * size.tokens_per_sample;
    }
    size.wire_bytes = size.params * (double)adl_wire_bytes(settings->model.wire_dtype);
    size.cost.vector_bytes = size.wire_bytes;
    size.cost.step_bytes = size.params * adl_inner_traffic_bytes(settings);
    size.cost.outer_bytes = size.params * adl_outer_traffic_bytes(settings);
    return size;
}
