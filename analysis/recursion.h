/* SPDX-License-Identifier: Apache-2.0 */
/* Exact moments of Local SGD on the noisy quadratic model (Zhang et al. 2019; theory section 2):
 * f(x) = 1/2 sum h_i x_i^2, a sample's gradient has mean h_i x_i and variance c_i + beta_i x_i^2 in
 * coordinate i, and a batch of b divides the variance by b. Coordinates are independent, so every
 * moment is a recursion per coordinate. Symbols: d coordinates, alpha the inner rate, H inner steps
 * a round, M workers, b samples per worker and step; arrays have d elements. */
#ifndef ADL_ANALYSIS_RECURSION_H
#define ADL_ANALYSIS_RECURSION_H

#include <stddef.h>

/* H steps of rate alpha: x -> A x + noise of variance alpha^2 (c/b) V, with a = 1 - alpha h,
 * A = a^H, V = 1 + a^2 + ... + a^(2H-2) = (1 - a^2H)/(1 - a^2). */
struct adl_local_map {
    double A, V;
};
struct adl_local_map adl_nqm_local_map(double h, double alpha, double H);

/* One round of Local SGD on the average of M workers; H = 1 is minibatch SGD:
 * mean' = A mean, var' = A^2 var + alpha^2 c V / (M b). Mb = M b. In place. */
void adl_nqm_round_sgd(size_t d, const double *h, const double *c, double alpha, double H,
                       double Mb, double *mean, double *var);

/* One round with multiplicative noise; x2 = E x^2 of the average, in place. With
 * lam = a^2 + alpha^2 beta/b: one worker's second moment after H steps is
 * Q = lam^H x2 + alpha^2 (c/b) (1 - lam^H)/(1 - lam), two workers' product P = a^2H x2, and
 * x2' = Q/M + (1 - 1/M) P. */
void adl_nqm_round_multiplicative(size_t d, const double *h, const double *c, const double *beta,
                                  double alpha, double H, double M, double b, double *x2);

/* One coordinate under outer Nesterov (PyTorch form: p = x - average, v' = m v + p,
 * x' = x - lr (p + m v')): mean and covariance of z = (x, v). */
struct adl_nqm_outer {
    double mean[2], cov[2][2];
};
/* One round: z' = T z + g xi, Var xi = alpha^2 c V / (M b),
 * T = [[1 - lr (1+m)(1-A), -lr m^2], [1-A, m]], g = [lr (1+m), -1]; cov' = T cov T' + g g' Var xi.
 * Stable iff 0 < lr (1-A) < (2+2m)/(1+2m); m = 0 is outer SGD. z [d], in place. */
void adl_nqm_round_nesterov(size_t d, const double *h, const double *c, double alpha, double H,
                            double Mb, double lr, double m, struct adl_nqm_outer *z);

/* The same for one coordinate, given A and the variance of the average's noise. */
void adl_nqm_step_nesterov(double A, double noise, double lr, double m, struct adl_nqm_outer *z);

/* Moments of f for independent Gaussian coordinates:
 * E f = 1/2 sum h (mean^2 + var), Var f = 1/2 sum h^2 (var^2 + 2 mean^2 var). */
struct adl_nqm_loss {
    double mean, var;
};
struct adl_nqm_loss adl_nqm_loss_moments(size_t d, const double *h, const double *mean,
                                         const double *var);

/* One round under the exact norm test, b = tr C / (M eta^2 sum h_j^2 E x_j^2) without rounding
 * (theorem T3-Q): x2' = A^2 x2 + (alpha^2 eta^2 / tr C) c V (h^2 . x2). Any M. In place. */
void adl_nqm_round_norm_test(size_t d, const double *h, const double *c, double alpha, double H,
                             double eta, double *x2);
/* The factor by which E f shrinks per round in the end under that test (T3-Q): the largest root r
 * of sum alpha^2 h_i^2 c_i V_i / (r - A_i^2) = tr C / eta^2, by bisection; r >= 1: no progress.
 * d >= 1. */
double adl_nqm_norm_test_rate(size_t d, const double *h, const double *c, double alpha, double H,
                              double eta);

/* tr C, and the trace tr(C H^-1) that bounds from below the samples to a loss eps, whatever the
 * method: N >= tr(C H^-1) / (2 eps) (Cramer-Rao, additive noise). */
double adl_nqm_trace(size_t d, const double *c);
double adl_nqm_trace_over_h(size_t d, const double *h, const double *c);

#endif
