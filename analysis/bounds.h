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

/* T5 (norm test, any smooth f, H = 1, alpha = 1/(L (1 + eta^2))): N samples allow at most
 * C <= (eta / sqrt s2) sqrt(2 L (1 + eta^2) d0 N) synchronisations. Needs no mu. */
double adl_bound_t5_rounds(const struct adl_problem *problem, double eta, double N);

/* The plug-in test takes noise for signal: its tolerance eta means eta / sqrt(1 - eta^2);
 * infinite from eta = 1 on, where it never asks for growth. */
double adl_bound_plug_in_eta(double eta);

/* ---- all theorems alike, for tables */

enum adl_theorem { /* T1 takes B = M b and H = 1; T3 takes H = 1 */
                   ADL_T1_PL,
                   ADL_T1_AVG,
                   ADL_T1_QUAD,
                   ADL_T2_AVG,
                   ADL_T2_QUAD,
                   ADL_T3_PL,
                   ADL_N_THEOREMS
};
struct adl_bound_case {
    double M, b, H; /* workers, samples of one per step, inner steps */
    double eta;     /* of the exact norm test: see adl_bound_plug_in_eta */
};
struct adl_bound adl_bound_of(enum adl_theorem theorem, const struct adl_problem *problem,
                              const struct adl_bound_case *c, double eps);

/* What a theorem says of a rate other than its own: f - f* after K steps is at most what decays
 * with (1 - alpha mu)^K (T3: rho^K, rho = 1 - 2 alpha mu (1 - alpha L (1 + eta^2)/2)), and a floor.
 *   T1-PL   alpha <= 1/L                  floor alpha L s2 / (2 mu B)
 *   T1-avg  alpha <= 1/(2L)               floor alpha s2 / B
 *   quad    alpha <= 1/L                  floor alpha s2 / (2 B (2 - alpha L))
 *   T2-avg  alpha <= 1/(4L)               floor alpha s2/B + 3/2 L alpha^2 (H-1)(M-1) s2/B
 *   T3      alpha <  2/(L (1 + eta^2))    floor 0 */
struct adl_bound_at {
    double limit; /* largest rate the theorem allows */
    bool met;     /* 0 < alpha <= limit */
    double floor;
    double rounds; /* to eps; INFINITY where the floor is not below eps, NAN where not met */
};
struct adl_bound_at adl_bound_at_rate(enum adl_theorem theorem, const struct adl_problem *problem,
                                      const struct adl_bound_case *c, double alpha, double eps);

/* Lower bound on the samples of any method, additive noise: tr(C H^-1)/(2 eps) (Cramer-Rao). */
double adl_bound_samples_lower(double trace_C_over_H, double eps);

/* Lower bound on the sequential steps H C of any first-order method (Nesterov 2004):
 * ln(mu D2/(2 eps)) / (-2 ln((sqrt kappa - 1)/(sqrt kappa + 1))), kappa = L/mu; at least 0. */
double adl_bound_depth_lower(const struct adl_problem *problem, double eps);

#endif
