/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds.h"

#include <math.h>

/* Steps until exp(-speed K) <= 1/ratio: none where ratio <= 1, else at least one, also where one
 * step contracts all the way (infinite speed). NAN stays NAN. */
static double steps_until(double log_ratio, double speed)
{
    if (log_ratio <= 0.0)
        return 0.0;
    const double steps = ceil(log_ratio / speed);
    return steps < 1.0 ? 1.0 : steps;
}

/* A bound of log_ratio / (-power ln(1 - alpha mu)) steps, in rounds of H. */
static struct adl_bound bound(const struct adl_problem *problem, double alpha, double log_ratio,
                              double power, double H)
{
    const double steps = steps_until(log_ratio, -power * log1p(-alpha * problem->mu));
    return (struct adl_bound){
        .rounds = ceil(steps / H),
        .steps = steps,
        .alpha = alpha,
        .rho = 1.0 - alpha * problem->mu,
    };
}

struct adl_bound adl_bound_t1_pl(const struct adl_problem *problem, double B, double eps)
{
    const double L = problem->L, mu = problem->mu;
    const double alpha = fmin(1.0 / L, eps * mu * B / (L * problem->s2));
    return bound(problem, alpha, log(2.0 * problem->d0 / eps), 1.0, 1.0);
}

struct adl_bound adl_bound_t1_avg(const struct adl_problem *problem, double B, double eps)
{
    const double alpha = fmin(1.0 / (2.0 * problem->L), eps * B / (2.0 * problem->s2));
    return bound(problem, alpha, log1p(2.0 * problem->mu * problem->D2 / eps), 1.0, 1.0);
}

struct adl_bound adl_bound_t1_quad(const struct adl_problem *problem, double B, double eps)
{
    return adl_bound_t2_quad(problem, B, 1.0, 1.0, eps);
}

struct adl_bound adl_bound_t2_avg(const struct adl_problem *problem, double M, double b, double H,
                                  double eps)
{
    const double L = problem->L, s2 = problem->s2;
    const double drift = 9.0 * L * (H - 1.0) * (M - 1.0) * s2;
    double alpha = fmin(1.0 / (4.0 * L), eps * M * b / (3.0 * s2));
    if (drift > 0.0)
        alpha = fmin(alpha, sqrt(2.0 * eps * M * b / drift));
    return bound(problem, alpha, log1p(3.0 * problem->mu * problem->D2 / eps), 1.0, H);
}

struct adl_bound adl_bound_t2_quad(const struct adl_problem *problem, double M, double b, double H,
                                   double eps)
{
    const double alpha = fmin(1.0 / problem->L, eps * M * b / problem->s2);
    return bound(problem, alpha, log(2.0 * problem->d0 / eps), 2.0, H);
}

struct adl_bound adl_bound_t3_pl(const struct adl_problem *problem, double eta, double eps)
{
    const double alpha = 1.0 / (problem->L * (1.0 + eta * eta));
    return bound(problem, alpha, log(problem->d0 / eps), 1.0, 1.0);
}

double adl_bound_t3_samples(const struct adl_problem *problem, double eta, double eps)
{
    const struct adl_bound t3 = adl_bound_t3_pl(problem, eta, eps);
    return t3.rounds + problem->s2 / (2.0 * eta * eta * problem->mu * eps * (1.0 - t3.rho));
}

double adl_bound_t5_rounds(const struct adl_problem *problem, double eta, double N)
{
    return eta * sqrt(2.0 * problem->L * (1.0 + eta * eta) * problem->d0 * N / problem->s2);
}

double adl_bound_plug_in_eta(double eta)
{
    return eta < 1.0 ? eta / sqrt(1.0 - eta * eta) : INFINITY;
}

struct adl_bound adl_bound_of(enum adl_theorem theorem, const struct adl_problem *problem,
                              const struct adl_bound_case *c, double eps)
{
    const double B = c->M * c->b;
    switch (theorem) {
    case ADL_T1_PL:
        return adl_bound_t1_pl(problem, B, eps);
    case ADL_T1_AVG:
        return adl_bound_t1_avg(problem, B, eps);
    case ADL_T1_QUAD:
        return adl_bound_t1_quad(problem, B, eps);
    case ADL_T2_AVG:
        return adl_bound_t2_avg(problem, c->M, c->b, c->H, eps);
    case ADL_T2_QUAD:
        return adl_bound_t2_quad(problem, c->M, c->b, c->H, eps);
    default:
        return adl_bound_t3_pl(problem, c->eta, eps);
    }
}

/* What the theorem leaves of the noise, however long it runs. */
static double noise_floor(enum adl_theorem theorem, const struct adl_problem *problem,
                          const struct adl_bound_case *c, double alpha)
{
    const double L = problem->L, noise = problem->s2 / (c->M * c->b);
    switch (theorem) {
    case ADL_T1_PL:
        return alpha * L * noise / (2.0 * problem->mu);
    case ADL_T1_AVG:
        return alpha * noise;
    case ADL_T1_QUAD:
    case ADL_T2_QUAD:
        return alpha * noise / (2.0 * (2.0 - alpha * L));
    case ADL_T2_AVG:
        return alpha * noise + 1.5 * L * alpha * alpha * (c->H - 1.0) * (c->M - 1.0) * noise;
    default:
        return 0.0;
    }
}

static double rate_limit(enum adl_theorem theorem, const struct adl_problem *problem, double eta)
{
    switch (theorem) {
    case ADL_T1_AVG:
        return 1.0 / (2.0 * problem->L);
    case ADL_T2_AVG:
        return 1.0 / (4.0 * problem->L);
    case ADL_T3_PL:
        return 2.0 / (problem->L * (1.0 + eta * eta));
    default:
        return 1.0 / problem->L;
    }
}

struct adl_bound_at adl_bound_at_rate(enum adl_theorem theorem, const struct adl_problem *problem,
                                      const struct adl_bound_case *c, double alpha, double eps)
{
    struct adl_bound_at at = {.limit = rate_limit(theorem, problem, c->eta),
                              .floor = noise_floor(theorem, problem, c, alpha),
                              .rounds = NAN};
    at.met = alpha > 0.0 && alpha <= at.limit;
    if (!at.met)
        return at;
    const double left = eps - at.floor, speed = -log1p(-alpha * problem->mu);
    double steps;
    if (left <= 0.0)
        steps = INFINITY;
    else if (theorem == ADL_T1_AVG || theorem == ADL_T2_AVG)
        steps = steps_until(log1p(problem->mu * problem->D2 / left), speed);
    else if (theorem == ADL_T1_QUAD || theorem == ADL_T2_QUAD)
        steps = steps_until(log(problem->d0 / left), 2.0 * speed);
    else if (theorem == ADL_T3_PL)
        steps = steps_until(log(problem->d0 / left),
                            -log1p(-2.0 * alpha * problem->mu * (1.0 - alpha / at.limit)));
    else
        steps = steps_until(log(problem->d0 / left), speed);
    const bool local = theorem == ADL_T2_AVG || theorem == ADL_T2_QUAD;
    at.rounds = ceil(steps / (local ? c->H : 1.0));
    return at;
}

double adl_bound_samples_lower(double trace_C_over_H, double eps)
{
    return trace_C_over_H / (2.0 * eps);
}

double adl_bound_depth_lower(const struct adl_problem *problem, double eps)
{
    const double root = sqrt(problem->L / problem->mu);
    const double q = (root - 1.0) / (root + 1.0);
    const double steps = log(problem->mu * problem->D2 / (2.0 * eps)) / (-2.0 * log(q));
    return isnan(steps) || steps > 0.0 ? steps : 0.0;
}
