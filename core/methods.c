/* SPDX-License-Identifier: Apache-2.0 */
#include "core/methods.h"

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* AdLoCo but for what the released reference code does differently. */
#define ADLOCO_COMMON                                                                              \
    "trainers: 4", "cluster.workers_per_device: 4", "cluster.placement: spread",                   \
        "inner.optimizer: adamw", "outer.exchange: pseudo_gradients", "batch.policy: norm_test",   \
        "batch.balance: speed", "switch.mode: threshold", "switch.factor: 2",                      \
        "merge.policy: worst_with_worst", "merge.every: 2"

const struct adl_method adl_methods[] = {
    {"custom", "No preset: every key is as given, or at its default.", (const char *const[]){NULL}},
    {"ddp", "Synchronous data parallelism: gradients are averaged at every inner step.",
     SETTINGS("outer.exchange: gradients")},
    {"local_sgd", "H local SGD steps, then parameters are averaged.",
     SETTINGS("inner.optimizer: sgd", "outer.optimizer: average", "outer.exchange: parameters")},
    {"diloco", "H local AdamW steps, then an outer Nesterov step on the mean pseudo-gradient.",
     SETTINGS("inner.optimizer: adamw", "outer.optimizer: nesterov", "outer.lr: 0.7",
              "outer.momentum: 0.9", "outer.exchange: pseudo_gradients")},
    {"adloco",
     "DiLoCo with adaptive batches by the debiased norm test, several trainers on shared devices "
     "that merge pair by pair, and accumulation by threshold.",
     SETTINGS(ADLOCO_COMMON, "outer.optimizer: nesterov", "outer.lr: 0.7", "outer.momentum: 0.9",
              "batch.statistic: pseudo_gradient", "batch.debias: true")},
    {"official_adloco",
     "AdLoCo as released: plug-in test on the last inner gradients, plain outer SGD, fresh inner "
     "state each round.",
     SETTINGS(ADLOCO_COMMON, "outer.optimizer: sgd", "outer.lr: 0.5", "outer.momentum: 0",
              "batch.statistic: gradient", "batch.debias: false", "inner.keep_state: false")},
    {NULL, NULL, NULL},
};
