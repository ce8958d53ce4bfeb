/* SPDX-License-Identifier: Apache-2.0 */
/* What theory knows of an optimisation problem: the constants that bounds are made of and, where
 * the problem is a noisy quadratic, its arrays, from which moments follow exactly. A model fills
 * it (core/model.h, `problem`), analysis reads it. */
#ifndef ADL_CORE_PROBLEM_H
#define ADL_CORE_PROBLEM_H

#include <stdbool.h>
#include <stddef.h>

struct adl_problem { /* NAN: unknown */
    double L, mu;    /* smoothness; PL or strong convexity */
    double s2;       /* trace of a sample's gradient covariance, largest over the path */
    double s2_optimum; /* the same at the optimum, which lower bounds go by; where it differs from
                          s2, noise depends on theta */
    double d0;       /* f(x0) - f* */
    double D2;       /* |x0 - x*|^2 */
    double shift;    /* what a run's loss is above f(x) - f*: f* itself, 0 where it is taken off */
    bool unequal;    /* workers minimise different functions: bounds for identical ones are off */

    /* Noisy quadratic in the basis of its Hessian, measured from the optimum: curvatures h,
     * noise variance of a sample c + beta x^2, start x0. dim = 0 and NULL for other problems. */
    size_t dim;
    double *h, *c, *beta, *x0; /* [dim] owned; beta NULL where noise is additive */
};

/* Arrays h, c, x0 of dim zeros, and beta if asked for. False: no memory, nothing is allocated. */
bool adl_problem_allocate(struct adl_problem *problem, size_t dim, bool multiplicative);
void adl_problem_free(struct adl_problem *problem);

/* What SGD steps of rates lr [steps] do to a coordinate of curvature h: x -> A x + noise of
 * variance (c/b) V, A = prod_k (1 - lr_k h), V = sum_k lr_k^2 prod_{j>k} (1 - lr_j h)^2. */
struct adl_nqm_map {
    double A, V;
};
struct adl_nqm_map adl_nqm_hop_map(double h, const double *lr, size_t steps);

#endif
