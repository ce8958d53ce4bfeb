/* SPDX-License-Identifier: Apache-2.0 */
/* The bounds against numbers of an independent implementation, to 1e-12 relative. Inputs: h = 1,
 * 0.5, 0.1, 0.02; x0 = 1, -1, 2, 3 (f 1.04, |x0|^2 15); tr C 1; M 8, b 2, H 4, eta 0.5, eps 1e-3.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "analysis/bounds.h"

static const struct adl_problem problem = {.L = 1, .mu = 0.02, .s2 = 1, .d0 = 1.04, .D2 = 15};
static const double eps = 1e-3;

static void near(double got, double want, const char *what)
{
    cr_expect_float_eq(got, want, 1e-12 * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

static void expect(struct adl_bound got, double rounds, double steps, double alpha,
                   const char *what)
{
    cr_expect_eq(got.rounds, rounds, "%s: %g rounds, not %g", what, got.rounds, rounds);
    cr_expect_eq(got.steps, steps, "%s: %g steps, not %g", what, got.steps, steps);
    near(got.alpha, alpha, what);
    near(got.rho, 1.0 - alpha * problem.mu, what);
}

Test(bounds, golden)
{
    expect(adl_bound_t1_pl(&problem, 16, eps), 1193766, 1193766, 0.00032, "T1-PL");
    expect(adl_bound_t1_avg(&problem, 16, eps), 39989, 39989, 0.008, "T1-avg");
    expect(adl_bound_t1_quad(&problem, 16, eps), 11936, 11936, 0.016, "T1-quad");
    expect(adl_bound_t2_avg(&problem, 8, 2, 4, eps), 15945, 63780, 0.005333333333333333, "T2-avg");
    expect(adl_bound_t2_quad(&problem, 8, 2, 4, eps), 2984, 11936, 0.016, "T2-quad");
    expect(adl_bound_t2_quad(&problem, 8, 2, 7, eps), 1706, 11936, 0.016,
           "the last round is whole");
    expect(adl_bound_t3_pl(&problem, 0.5, eps), 431, 431, 0.8, "T3");
    near(adl_bound_t3_pl(&problem, 0.5, eps).rho, 0.984, "T3's rho");
    near(adl_bound_t3_samples(&problem, 0.5, eps), 6250430.9999999935, "T3's samples");
    near(adl_bound_samples_lower(8.0, eps), 4000, "lower bound on samples");
    near(adl_bound_depth_lower(&problem, eps), 8.798266302106718, "lower bound on depth");
}

/* The rate's three regimes: noise, drift, curvature. */
Test(bounds, rates_obey_the_theorems)
{
    near(adl_bound_t2_avg(&problem, 8, 2, 1000, eps).alpha, sqrt(2 * eps * 16 / (9.0 * 999 * 7)),
         "drift");
    near(adl_bound_t2_avg(&problem, 1, 1e9, 1000, eps).alpha, 0.25, "one worker has no drift");
    near(adl_bound_t1_pl(&problem, 1e9, eps).alpha, 1.0, "T1-PL at most 1/L");
    near(adl_bound_t1_avg(&problem, 1e9, eps).alpha, 0.5, "T1-avg at most 1/(2L)");
    near(adl_bound_t1_quad(&problem, 1e9, eps).alpha, 1.0, "T1-quad at most 1/L");
}

Test(bounds, edges)
{
    struct adl_problem easy = problem;
    easy.mu = easy.L; /* one step of rate 1/L lands on the optimum */
    easy.s2 = 0;
    cr_expect_eq(adl_bound_t1_quad(&easy, 16, eps).steps, 1);
    cr_expect_eq(adl_bound_depth_lower(&easy, eps), 0);
    cr_expect_eq(adl_bound_t3_pl(&problem, 0.5, 2.0).rounds, 0, "the start is good enough");
    cr_expect_eq(adl_bound_depth_lower(&problem, 1e3), 0);
    struct adl_problem unknown = problem;
    unknown.d0 = NAN;
    unknown.D2 = NAN;
    cr_expect(isnan(adl_bound_t1_pl(&unknown, 16, eps).rounds), "what is not known stays so");
    cr_expect(isnan(adl_bound_depth_lower(&unknown, eps)));
}
