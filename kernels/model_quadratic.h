/* SPDX-License-Identifier: Apache-2.0 */
/* The noisy quadratic model as a model of the framework: kernels/nqm.h has the mathematics.
 *
 * Noise. draw: batch draws once per slice (one worker's samples of one inner step), addressed by
 * the slice's first sample, and adds the whole slice's gradient and loss with its last
 * micro-batch: a step has the same bits however it is split. draw: sample draws for each sample
 * index: splits over micro-batches and workers agree to rounding. Both have the same law. Losses
 * are exact, without noise.
 *
 * Heterogeneous workers. Worker m minimises f_m(x) = 1/2 sum h_mi (x_i - x*_mi)^2 with
 * h_mi = h_i exp(s z - s^2/2), z ~ N(0, 1), s = hetero.curvature (so that E h_mi = h_i), and
 * x*_mi ~ N(0, hetero.shift^2). It reports its own f_m; eval is the average of f_m over all
 * workers minus its minimum, 1/2 sum hbar_i (x_i - xbar_i)^2 with hbar = avg h_m and
 * xbar = avg(h_m x*_m) / hbar. Multiplicative noise follows the worker: beta_i = noise x h_mi^2,
 * times the distance to x*_m. Additive noise is the same for all.
 *
 * Drift. The optimum takes a step N(0, drift^2) in every coordinate, the same for all workers,
 * each time a trainer has seen drift_every more samples. Parameters and losses are told in the
 * optimum's own frame, where theta takes the opposite step at the round's end. */
#ifndef ADL_KERNELS_MODEL_QUADRATIC_H
#define ADL_KERNELS_MODEL_QUADRATIC_H

#include "core/model.h"

enum adl_draw { ADL_DRAW_BATCH, ADL_DRAW_SAMPLE };
enum adl_shortcut { ADL_SHORTCUT_AUTO, ADL_SHORTCUT_NEVER };

struct adl_quadratic_config { /* keys "model.*", in the order of the rows */
    int64_t dim;
    double condition;
    int spectrum; /* enum adl_spectrum */
    double power, lipschitz;
    int noise_kind; /* enum adl_noise */
    double noise_total, noise_multiplicative;
    double start;
    double hetero_curvature, hetero_shift;
    double drift, drift_every;
    int draw;     /* enum adl_draw */
    int shortcut; /* enum adl_shortcut */
};

extern const struct adl_model_ops adl_model_quadratic;

#endif
