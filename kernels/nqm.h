/* SPDX-License-Identifier: Apache-2.0 */
/* The noisy quadratic model (Zhang et al. 2019): f(x) = 1/2 sum h_i x_i^2, and a sample's gradient
 * in coordinate i is
 *
 *     h_i x_i + sqrt(c_i) xi + sqrt(beta_i) x_i zeta,      xi, zeta ~ N(0, 1) independent.
 *
 * A batch of b divides the covariance by b. analysis/recursion.h has its moments. Arrays have d
 * elements. */
#ifndef ADL_KERNELS_NQM_H
#define ADL_KERNELS_NQM_H

#include "core/problem.h"

enum adl_spectrum {
    ADL_SPECTRUM_FLAT,        /* h_i = L */
    ADL_SPECTRUM_LOG,         /* from L to L/kappa, evenly in ln h */
    ADL_SPECTRUM_LINEAR,      /* from L to L/kappa, evenly in h */
    ADL_SPECTRUM_POWER,       /* L i^-p, i = 1..d */
    ADL_SPECTRUM_TWO_CLUSTERS /* the first half L, the rest L/kappa */
};
enum adl_noise {
    ADL_NOISE_CONSTANT,  /* c_i the same for all */
    ADL_NOISE_CURVATURE, /* c_i ~ h_i */
    ADL_NOISE_CURVATURE2 /* c_i ~ h_i^2 */
};

/* h [d]: curvatures, descending, largest L. */
void adl_nqm_spectrum(enum adl_spectrum kind, size_t d, double kappa, double p, double L,
                      double *h);
/* c [d]: variances of a sample's gradient, with sum c_i = trace. */
void adl_nqm_noise(enum adl_noise kind, size_t d, const double *h, double trace, double *c);

#endif
