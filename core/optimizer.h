/* SPDX-License-Identifier: Apache-2.0 */
/* Inner and outer optimizers and the learning-rate schedule, over any space. */
#ifndef ADL_CORE_OPTIMIZER_H
#define ADL_CORE_OPTIMIZER_H

#include <stddef.h>
#include <stdint.h>

#include "core/settings.h"
#include "core/space.h"

/* The rate of inner step `step` (from 0) of `total`: linear warm-up over inner.warmup steps,
 * then constant, or cosine from inner.lr to 0 at `total`. */
double adl_schedule_lr(const struct adl_settings *settings, int64_t step, int64_t total);

/* State of one inner optimizer: persists across rounds. */
struct adl_inner_state {
    void *m, *v;   /* SGD: v = momentum (NULL without); AdamW: both moments */
    int64_t steps; /* AdamW's t */
};
/* Whether a state needs m and v under these settings. */
void adl_inner_needs(const struct adl_settings *settings, int *needs_m, int *needs_v);
void adl_inner_reset(struct adl_inner_state *state, const struct adl_space *space, size_t n,
                     enum adl_dtype dtype);

/* One update of x [n] by mean gradient g [n] (clipped in place by global norm if asked for; norm2:
 * g's squared norm where that is known already, or NULL). */
void adl_inner_step(const struct adl_settings *settings, const struct adl_space *space, double lr,
                    void *x, void *g, const double *norm2, struct adl_inner_state *state, size_t n,
                    enum adl_dtype dtype);

/* The outer step on theta [n], from the averaged pseudo-gradient p: average: theta -= p;
 * sgd: theta -= lr p (with momentum m: v = m v + p, theta -= lr v); nesterov (PyTorch form):
 * v = m v + p, theta -= lr (p + m v). v may be NULL where no momentum is kept. */
void adl_outer_step(const struct adl_settings *settings, const struct adl_space *space, void *theta,
                    const void *p, void *v, size_t n, enum adl_dtype dtype);
/* Whether the outer step keeps momentum. */
int adl_outer_needs_v(const struct adl_settings *settings);

/* Memory traffic of a step in bytes per parameter, mixed precision (fp32 master weights and
 * state, bf16 working copy): inner reads gradient (4), reads and writes master (8) and each state
 * vector (8), writes the copy (2); outer reads the sum (4), reads and writes theta (8) and
 * momentum (8). */
double adl_inner_traffic_bytes(const struct adl_settings *settings);
double adl_outer_traffic_bytes(const struct adl_settings *settings);

#endif
