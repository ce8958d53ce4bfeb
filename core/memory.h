/* SPDX-License-Identifier: Apache-2.0 */
/* What a model instance takes of a device's memory, and the largest micro-batch that is left room
 * for. Known for models that are stood in for (model.stand_in.params). */
#ifndef ADL_CORE_MEMORY_H
#define ADL_CORE_MEMORY_H

#include "core/settings.h"

struct adl_memory {      /* of one instance, which one worker trains */
    double weights;      /* bytes a parameter: 2 and 2 for weights and gradients in 16 bits, */
    double inner, outer; /* 4 a value for the optimizers', master weights included */
    double param_bytes;  /* the three together, or model.stand_in.state_bytes */
    double state_bytes;
    double sample_bytes; /* activations of one sample */
};

/* State in mixed precision: weights 2 + gradients 2; master weights 4, and 4 for each value that
 * the inner optimizer keeps (AdamW 8, momentum 4); parameters at the round's start 4 where
 * pseudo-gradients are exchanged, and outer momentum 4. AdamW under Nesterov: 24 a parameter.
 *
 * Activations: model.stand_in.activation_bytes a token. Unset, 34 h L bytes a token
 * (Korthikanti et al. 2022, eq. 2 without the attention scores, which are recomputed) of a
 * transformer with 12 h^2 L parameters that is as wide as 128 layers (GPT-3: 12288 and 96; 20e9
 * parameters: h = 5980, L = 46.7, 9.5 MB). A logits buffer and the runtime's own are left out. */
struct adl_memory adl_memory_of(const struct adl_settings *settings);

/* Samples of a micro-batch, a multiple of `gpus`, for which a device of as many GPUs has room
 * beside each of its `instances`' states; below 0: the states alone do not fit. */
double adl_memory_samples(const struct adl_memory *memory, double device_bytes, int64_t gpus,
                          int64_t instances);

#endif
