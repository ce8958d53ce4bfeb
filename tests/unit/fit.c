/* SPDX-License-Identifier: Apache-2.0 */
/* Laws recovered from points that follow them, and told apart by AIC. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/fit.h"
#include "analysis/stats_gsl.h"
#include "core/rng.h"

enum { POINTS = 40 };

static void need_gsl(void)
{
    struct adl_err err = {0};
    if (adl_gsl_check(&err) != ADL_OK) {
        fprintf(stderr, "skipped: %s\n", err.message);
        cr_skip_test("%s", err.message);
    }
}

static double law(enum adl_law kind, double N)
{
    switch (kind) {
    case ADL_LAW_LOG:
        return 5 + 12 * log(N);
    case ADL_LAW_POWER:
        return 0.7 * pow(N, 0.38);
    default:
        return 3 + 0.002 * N;
    }
}

Test(fit, every_law_is_recognised)
{
    need_gsl();
    const double want[ADL_N_LAWS][2] = {{5, 12}, {0.7, 0.38}, {3, 0.002}};
    for (int kind = 0; kind < ADL_N_LAWS; kind++)
        for (int noisy = 0; noisy < 2; noisy++) {
            double N[POINTS], C[POINTS], z[POINTS];
            const struct adl_rng rng = adl_rng_make(1, ADL_RNG_TEST, (uint64_t)kind, 0);
            adl_rng_normals(&rng, 0, POINTS, z);
            for (int i = 0; i < POINTS; i++) {
                N[i] = 100 * pow(1.4, i);
                C[i] = law((enum adl_law)kind, N[i]) * (1 + 0.002 * noisy * z[i]);
            }
            struct adl_laws laws;
            struct adl_err err = {0};
            cr_assert_eq(adl_fit_laws(N, C, POINTS, &laws, &err), ADL_OK, "%s", err.message);
            cr_expect_eq(laws.best, (enum adl_law)kind, "%s is taken for %s", adl_law_names[kind],
                         adl_law_names[laws.best]);
            const struct adl_law_fit *fit = &laws.fits[kind];
            cr_expect_gt(fit->r2, noisy ? 0.999 : 1 - 1e-12);
            cr_expect_float_eq(fit->b, want[kind][1], (noisy ? 0.02 : 1e-8) * want[kind][1],
                               "%s: %.12g", adl_law_names[kind], fit->b);
            if (!noisy)
                cr_expect_float_eq(fit->a, want[kind][0], 1e-6 * want[kind][0], "%s: %.12g",
                                   adl_law_names[kind], fit->a);
            if (kind == ADL_LAW_POWER)
                cr_expect_float_eq(laws.exponent, 0.38, 0.005);
        }
}

Test(fit, windows)
{
    const double x[6] = {1, 2, 4, 8, 16, 32};
    size_t first, n;
    adl_fit_window(x, 6, 3, 16, &first, &n);
    cr_expect(first == 2 && n == 3);
    adl_fit_window(x, 6, 33, 40, &first, &n);
    cr_expect_eq(n, 0);
    adl_fit_window(x, 6, 0, INFINITY, &first, &n);
    cr_expect(first == 0 && n == 6);
}

static double saturating(double x, const double *p)
{
    return p[0] * x / (p[1] + x);
}

/* A nonlinear fit with its errors, on the steps-over-batch curve's inverse. */
Test(fit, nonlinear)
{
    need_gsl();
    double x[30], y[30], z[30], p[2] = {1, 1}, errors[2];
    const struct adl_rng rng = adl_rng_make(2, ADL_RNG_TEST, 0, 0);
    adl_rng_normals(&rng, 0, 30, z);
    for (int i = 0; i < 30; i++) {
        x[i] = 1 + i;
        y[i] = 7 * x[i] / (4 + x[i]) + 0.01 * z[i];
    }
    struct adl_err err = {0};
    cr_assert_eq(adl_gsl_fit(saturating, x, y, 30, p, 2, errors, &err), ADL_OK, "%s", err.message);
    cr_expect_lt(fabs(p[0] - 7), 4 * errors[0], "%g +- %g", p[0], errors[0]);
    cr_expect_lt(fabs(p[1] - 4), 4 * errors[1], "%g +- %g", p[1], errors[1]);
    cr_expect(errors[0] > 1e-4 && errors[0] < 0.1, "%g", errors[0]);
    cr_expect_eq(adl_gsl_fit(saturating, x, y, 2, p, 2, NULL, &err), ADL_ERR_INPUT);
}

static double never_finite(double x, const double *p)
{
    return log(-fabs(x) - fabs(p[0]));
}

Test(fit, failures_are_errors)
{
    need_gsl();
    const double N[4] = {1, 2, 0, 4}, C[4] = {1, 2, 3, 4};
    double p[1] = {1};
    struct adl_laws laws;
    struct adl_err err = {0};
    cr_expect_eq(adl_fit_laws(N, C, 4, &laws, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "point 3"), "%s", err.message);
    cr_expect_eq(adl_fit_laws(C, C, 3, &laws, &err), ADL_ERR_INPUT);
    err = (struct adl_err){0};
    cr_expect_eq(adl_gsl_fit(never_finite, C, C, 4, p, 1, NULL, &err), ADL_ERR_RUNTIME);
    cr_expect(*err.message != '\0');
}
