/* SPDX-License-Identifier: Apache-2.0 */
/* From a trainer's request to what its workers run: shares, micro-batches, accumulation, and
 * steps (design 5). Pure functions. */
#ifndef ADL_CORE_BATCH_H
#define ADL_CORE_BATCH_H

#include <stdint.h>

#include "core/settings.h"

/* Splits total over n by weights (> 0; NULL: equal) by largest remainder, ties to the lower
 * index, at least 1 each: if total < n, everyone gets 1 and the sum is n. */
void adl_share(int64_t total, const double *weights, int n, int64_t *shares);

/* One inner step of one worker. Accumulation divides the share, it never multiplies it. */
struct adl_step_plan {
    int64_t samples;       /* that run: the share, or less where a switch mode caps it */
    int64_t micro_batches; /* their number; as even as possible, the larger ones first */
};
/* max: largest micro-batch, 0 = no limit. threshold: up to max one micro-batch; up to
 * factor * max capped at max; beyond, ceil(share / max) micro-batches. always: accumulate as
 * soon as share > max. never: cap. */
struct adl_step_plan adl_switch_plan(int64_t share, int64_t max, enum adl_switch_mode mode,
                                     int64_t factor);
/* Start and size of micro-batch a of `samples` split into n. */
void adl_micro_batch(int64_t samples, int64_t n, int64_t a, int64_t *offset, int64_t *size);

/* Micro-batches of the step in which the micro_batch statistic is taken: at least 2 where the
 * samples allow, max(accumulation, min(samples, 8)). */
int64_t adl_statistic_micro_batches(int64_t samples, int64_t accumulation);

/* balance: steps. H of a worker: H * speed / fastest, rounded, at least 1. */
int64_t adl_balanced_steps(int64_t H, double speed, double fastest);

#endif
