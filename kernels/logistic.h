/* SPDX-License-Identifier: Apache-2.0 */
/* L2-regularised softmax regression. With W [K x D] (row k: class k), z = W x, p = softmax(z):
 *
 *     f(W) = sum_i w_i (-ln p_{i, y_i}) + lambda/2 |W|^2,      sum_i w_i = 1.
 *
 * Convex and not quadratic; all of W is regularised, so that f is lambda-strongly convex. Its
 * Hessian is sum_i w_i (diag(p_i) - p_i p_i') (x) x_i x_i' + lambda I, and diag(p) - p p' has no
 * eigenvalue above 1/2. */
#ifndef ADL_KERNELS_LOGISTIC_H
#define ADL_KERNELS_LOGISTIC_H

#include "kernels/logistic_data.h"

struct adl_logistic {
    const struct adl_logistic_data *data;
    const double *w; /* [n] weights of the samples */
    double lambda;
};

/* Loss -ln p_y of one sample; grad [K x D] += w times its gradient, without the regulariser's
 * part. grad may be NULL. p [K]: scratch, holds the probabilities afterwards. */
double adl_logistic_sample(const struct adl_logistic_data *data, size_t i, const double *W,
                           double w, double *grad, double *p);

/* f(W), and grad [K x D] = its gradient where that is not NULL. p [K]: scratch. */
double adl_logistic_value(const struct adl_logistic *f, const double *W, double *grad, double *p);

struct adl_logistic_constants {
    double L;          /* lambda_max(sum w_i x_i x_i') / 2 + lambda: largest over all W */
    double s2_most;    /* 2 sum w_i |x_i|^2: no W has more gradient variance, as |p - e_y|^2 <= 2 */
    double s2_optimum; /* sum w_i |g_i|^2 - |sum w_i g_i|^2 at W*, of the samples' own gradients */
    double least;      /* f(W*) */
    double start;      /* f(0) */
};

/* The optimum W* [K x D], by Newton's method with conjugate gradients and halved steps from 0,
 * until the gradient is rounding. Deterministic. ADL_ERR_NOMEM; ADL_ERR_INPUT where 200 steps do
 * not get there (lambda too small for the data's scale). */
enum adl_status adl_logistic_solve(const struct adl_logistic *f, double *W,
                                   struct adl_logistic_constants *out, struct adl_err *err);

#endif
