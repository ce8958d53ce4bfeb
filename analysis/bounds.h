/* SPDX-License-Identifier: Apache-2.0 */
/* How many synchronisations theory promises, in closed form (theory section 3). All logarithms
 * are natural, all statements are about expectations.
 *
 * DP is data-parallel SGD with global batch B. Local SGD has M workers, batch b each, H inner
 * steps between synchronisations. T1-PL and T2-avg are guarantees for their class of functions;
 * T1-quad and T2-quad hold on quadratics, where they are close to what is measured. */
#ifndef ADL_ANALYSIS_BOUNDS_H
#define ADL_ANALYSIS_BOUNDS_H

#include "core/problem.h"

struct adl_bound {
    double rounds; /* synchronisations; 0 where the start is good enough */
    double steps;  /* inner steps of each worker, rounded up */
    double alpha;  /* the rate the bound holds for */
    double rho;    /* 1 - alpha mu */
};

/* T1-PL (mu-PL, last iterate): d_K <= (1 - alpha mu)^K d0 + alpha L s2/(2 mu B) with
 * alpha = min(1/L, eps mu B/(L s2)): ln(2 d0/eps) / -ln(1 - alpha mu). */
struct adl_bound adl_bound_t1_pl(const struct adl_problem *problem, double B, double eps);

/* T1-avg (strongly convex, weighted average of the iterates): alpha = min(1/(2L), eps B/(2 s2)),
 * ln(1 + 2 mu D2/eps) / -ln(1 - alpha mu). */
struct adl_bound adl_bound_t1_avg(const struct adl_problem *problem, double B, double eps);

/* T1-quad (quadratics, last iterate): alpha = min(1/L, eps B/s2),
 * ln(2 d0/eps) / (-2 ln(1 - alpha mu)). */
struct adl_bound adl_bound_t1_quad(const struct adl_problem *problem, double B, double eps);

/* T2-avg (Local SGD, identical workers, strongly convex; the form of Stich 2019 and Khaled et al.
 * 2020): alpha = min{1/(4L), eps M b/(3 s2), sqrt(2 eps M b/(9 L (H-1)(M-1) s2))}, steps
 * ln(1 + 3 mu D2/eps) / -ln(1 - alpha mu), rounds = steps/H. */
struct adl_bound adl_bound_t2_avg(const struct adl_problem *problem, double M, double b, double H,
                                  double eps);

/* T2-quad: T1-quad with B = M b, in rounds of H steps: on quadratics H is free. */
struct adl_bound adl_bound_t2_quad(const struct adl_problem *problem, double M, double b, double H,
                                   double eps);

/* T3 (norm test, H = 1, mu-PL; Byrd et al. 2012, Bollapragada et al. 2018): with
 * E|g - grad f|^2 <= eta^2 |grad f|^2 and alpha = 1/(L (1 + eta^2)),
 * ln(d0/eps) / -ln rho, rho = 1 - mu/(L (1 + eta^2)). The augmented test's bound is that of
 * eta^2 = theta^2 + nu^2; the plug-in test's that of eta / sqrt(1 - eta^2). */
struct adl_bound adl_bound_t3_pl(const struct adl_problem *problem, double eta, double eps);

/* T3, samples: of the schedule B_k = s2/(2 eta^2 mu d0 rho^k) rounded up, which has the same
 * guarantee: N <= C + s2/(2 eta^2 mu eps (1 - rho)), C the rounds of T3. */
double adl_bound_t3_samples(const struct adl_problem *problem, double eta, double eps);

/* Lower bound on the samples of any method, additive noise: tr(C H^-1)/(2 eps) (Cramer-Rao). */
double adl_bound_samples_lower(double trace_C_over_H, double eps);

/* Lower bound on the sequential steps H C of any first-order method (Nesterov 2004):
 * ln(mu D2/(2 eps)) / (-2 ln((sqrt kappa - 1)/(sqrt kappa + 1))), kappa = L/mu; at least 0. */
double adl_bound_depth_lower(const struct adl_problem *problem, double eps);

#endif
