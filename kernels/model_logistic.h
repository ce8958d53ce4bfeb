/* SPDX-License-Identifier: Apache-2.0 */
/* The softmax regression of kernels/logistic.h as a model of the framework: convex, not quadratic,
 * with every constant that the general theorems ask for.
 *
 * theta is W [K x D], 0 at the start. A sample is one of the data's, drawn with replacement by
 * (seed, stream, index): gradients are independent draws, as the theorems have them. Losses, a
 * run's and a sample's, are told above the optimum: f - f*, f* by adl_logistic_solve once when the
 * model is opened. The data do not depend on the run's seed: over seeds the problem is one.
 *
 * Heterogeneous workers (label_skew s): worker m draws with probability s from class m mod K alone,
 * else from all; it minimises f_m. f is then the average of f_m over the workers, so sample i
 * weighs w_i = (1 - s)/n + s (share of workers that favour its class) / (samples of the class).
 *
 * problem: L is the bound of kernels/logistic.h over all W, mu = lambda, s2 the most that any W
 * has, s2_optimum the variance at the optimum, d0 and D2 from W = 0. */
#ifndef ADL_KERNELS_MODEL_LOGISTIC_H
#define ADL_KERNELS_MODEL_LOGISTIC_H

#include "core/model.h"

struct adl_logistic_config { /* keys "model.*", in the order of the rows */
    const char *data, *label;
    bool standardise;
    double l2;
    int64_t classes, features, samples;
    double separation;
    int64_t data_seed;
    double label_skew;
};

extern const struct adl_model_ops adl_model_logistic;

#endif
