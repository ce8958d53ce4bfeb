/* SPDX-License-Identifier: Apache-2.0 */
#include "core/memory.h"

#include <math.h>

#include "core/optimizer.h"

static double outer_bytes(const struct adl_settings *settings)
{
    if (settings->outer.exchange == ADL_EXCHANGE_GRADIENTS)
        return 0;
    double start = settings->outer.exchange == ADL_EXCHANGE_PSEUDO_GRADIENTS ||
                           settings->outer.optimizer != ADL_OUTER_AVERAGE
                       ? 4
                       : 0;
    return start + 4 * adl_outer_needs_v(settings);
}

static double token_bytes(const struct adl_settings *settings)
{
    if (!isnan(settings->model.stand_in_activation_bytes))
        return settings->model.stand_in_activation_bytes;
    double layers = cbrt(settings->model.stand_in_params / (12.0 * 128 * 128));
    return 34 * (128 * layers) * layers;
}

struct adl_memory adl_memory_of(const struct adl_settings *settings)
{
    int m, v;
    adl_inner_needs(settings, &m, &v);
    struct adl_memory memory = {
        .weights = 2 + 2, .inner = 4 + 4 * (m + v), .outer = outer_bytes(settings)};
    double given = settings->model.stand_in_state_bytes;
    memory.param_bytes = isnan(given) ? memory.weights + memory.inner + memory.outer : given;
    memory.state_bytes = settings->model.stand_in_params * memory.param_bytes;
    double tokens = settings->model.stand_in_tokens_per_sample;
    memory.sample_bytes = token_bytes(settings) * (isnan(tokens) ? 1 : tokens);
    return memory;
}

double adl_memory_samples(const struct adl_memory *memory, double device_bytes, int64_t gpus,
                          int64_t instances)
{
    double left = device_bytes / (double)instances - memory->state_bytes;
    return left < 0 ? -1 : floor(left / memory->sample_bytes / (double)gpus) * (double)gpus;
}
