/* SPDX-License-Identifier: Apache-2.0 */
/* Intervals: known values, coverage on known distributions, and what is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analysis/stats.h"
#include "analysis/stats_gsl.h"
#include "core/rng.h"

static void need_gsl(void)
{
    struct adl_err err = {0};
    if (adl_gsl_check(&err) != ADL_OK) {
        fprintf(stderr, "skipped: %s\n", err.message);
        cr_skip_test("%s", err.message);
    }
}

static const double ten[10] = {4.1, 5.0, 6.3, 3.8, 5.5, 4.7, 5.9, 7.2, 4.4, 5.2};
static const struct adl_question plain = {.level = 0.95, .seed = 1};

Test(stats, t_interval_has_known_ends)
{
    need_gsl();
    /* mean 4.94, variance 1.043, t(4, .975) = 2.7764451 */
    struct adl_estimate e;
    struct adl_err err = {0};
    cr_assert_eq(adl_stats_sample(&plain, ten, 5, &e, &err), ADL_OK);
    cr_expect_str_eq(e.method, "t");
    cr_expect_float_eq(e.value, 4.94, 1e-12);
    const double half = 2.7764451051977987 * sqrt(1.043 / 5);
    cr_expect_float_eq(e.high - e.value, half, 1e-9, "%g", e.high - e.value);
    cr_expect_float_eq(e.value - e.low, half, 1e-9);
}

Test(stats, p_value_meets_the_interval)
{
    need_gsl();
    for (int bootstrap = 0; bootstrap < 2; bootstrap++) {
        struct adl_question q = {.level = 0.90, .seed = 3};
        struct adl_estimate e;
        struct adl_err err = {0};
        enum adl_status (*ask)(const struct adl_question *, const double *, size_t,
                               struct adl_estimate *, struct adl_err *) =
            bootstrap ? adl_stats_bca : adl_stats_t;
        cr_assert_eq(ask(&q, ten, 10, &e, &err), ADL_OK);
        q.threshold = e.low;
        cr_assert_eq(ask(&q, ten, 10, &e, &err), ADL_OK);
        cr_expect_float_eq(e.p_above, 0.05, 2e-3, "%s: %g", e.method, e.p_above);
        q.threshold = e.high;
        cr_assert_eq(ask(&q, ten, 10, &e, &err), ADL_OK);
        cr_expect_float_eq(e.p_above, 0.95, 2e-3, "%s: %g", e.method, e.p_above);
    }
}

Test(stats, few_ratios_use_logarithms)
{
    need_gsl();
    const double a[4] = {2, 4, 8, 16}, b[4] = {1, 2, 2, 2}; /* ratios 2, 2, 4, 8 */
    struct adl_question q = {.contrast = ADL_CONTRAST_RATIO, .level = 0.95, .threshold = 1};
    struct adl_estimate e;
    struct adl_err err = {0};
    cr_assert_eq(adl_stats_paired(&q, a, b, 4, &e, &err), ADL_OK);
    cr_expect_str_eq(e.method, "t on logs");
    cr_expect_float_eq(e.value, pow(128, 0.25), 1e-12);
    cr_expect_float_eq(e.high * e.low, e.value * e.value, 1e-9, "symmetric in logarithms");
    q.contrast = ADL_CONTRAST_DIFFERENCE;
    cr_assert_eq(adl_stats_paired(&q, a, b, 4, &e, &err), ADL_OK);
    cr_expect_str_eq(e.method, "t");
    cr_expect_float_eq(e.value, 5.75, 1e-12);
}

Test(stats, pairs_matter)
{
    need_gsl();
    double a[12], b[12];
    const struct adl_rng rng = adl_rng_make(5, ADL_RNG_TEST, 0, 0);
    for (size_t i = 0; i < 12; i++) { /* seeds differ by far more than the methods */
        b[i] = 10 + 100 * adl_rng_uniform(&rng, i);
        a[i] = b[i] + 1 + 0.1 * adl_rng_uniform(&rng, 100 + i);
    }
    struct adl_question q = {.location = ADL_LOCATION_MEDIAN, .level = 0.95, .seed = 1};
    struct adl_estimate e;
    struct adl_err err = {0};
    cr_assert_eq(adl_stats_paired(&q, a, b, 12, &e, &err), ADL_OK);
    cr_expect_str_eq(e.method, "BCa bootstrap");
    cr_expect(e.low > 1.0 && e.high < 1.1 && e.low <= e.value && e.value <= e.high, "%g in %g..%g",
              e.value, e.low, e.high);
    cr_expect_lt(e.p_above, 1e-3);
}

Test(stats, same_seed_same_interval)
{
    need_gsl();
    struct adl_estimate e[3];
    struct adl_question q = plain;
    struct adl_err err = {0};
    for (int i = 0; i < 3; i++) {
        q.seed = i < 2 ? 7 : 8;
        cr_assert_eq(adl_stats_bca(&q, ten, 10, &e[i], &err), ADL_OK);
    }
    cr_expect(e[0].low == e[1].low && e[0].high == e[1].high);
    cr_expect(e[0].low != e[2].low, "another seed draws otherwise");
}

/* The share of 1000 samples of 30 whose 90% interval holds the truth. */
static double coverage(enum adl_location location, double (*draw)(const struct adl_rng *, uint64_t),
                       double truth)
{
    int held = 0;
    for (uint64_t trial = 0; trial < 1000; trial++) {
        const struct adl_rng rng = adl_rng_make(11, ADL_RNG_TEST, trial, 1);
        struct adl_question q = {.location = location, .level = 0.90, .seed = trial};
        struct adl_estimate e;
        struct adl_err err = {0};
        double x[30];
        for (uint64_t i = 0; i < 30; i++)
            x[i] = draw(&rng, i);
        cr_assert_eq(adl_stats_sample(&q, x, 30, &e, &err), ADL_OK);
        held += e.low <= truth && truth <= e.high;
    }
    return held / 1000.0;
}

static double draw_normal(const struct adl_rng *rng, uint64_t i)
{
    double z;
    adl_rng_normals(rng, i, 1, &z);
    return z;
}

static double draw_exponential(const struct adl_rng *rng, uint64_t i)
{
    return -log(adl_rng_uniform(rng, i));
}

static double draw_lognormal(const struct adl_rng *rng, uint64_t i)
{
    return exp(0.5 * draw_normal(rng, i));
}

Test(stats, bootstrap_covers)
{
    need_gsl();
    const struct {
        const char *what;
        enum adl_location location;
        double (*draw)(const struct adl_rng *, uint64_t);
        double truth;
    } cases[] = {
        {"mean, normal", ADL_LOCATION_MEAN, draw_normal, 0},
        {"mean, exponential", ADL_LOCATION_MEAN, draw_exponential, 1},
        {"median, lognormal", ADL_LOCATION_MEDIAN, draw_lognormal, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double held = coverage(cases[i].location, cases[i].draw, cases[i].truth);
        cr_expect(held >= 0.86 && held <= 0.94, "%s: a 90%% interval covers %.1f%%", cases[i].what,
                  100 * held);
    }
}

/* Five pairs, as on the language model: t on logarithms keeps its promise. */
Test(stats, t_covers_five_pairs)
{
    need_gsl();
    int held = 0;
    for (uint64_t trial = 0; trial < 2000; trial++) {
        const struct adl_rng rng = adl_rng_make(13, ADL_RNG_TEST, trial, 2);
        struct adl_question q = {.contrast = ADL_CONTRAST_RATIO, .level = 0.90, .threshold = 1};
        struct adl_estimate e;
        struct adl_err err = {0};
        double x[5];
        for (uint64_t i = 0; i < 5; i++)
            x[i] = 2 * draw_lognormal(&rng, i);
        cr_assert_eq(adl_stats_sample(&q, x, 5, &e, &err), ADL_OK);
        held += e.low <= 2 && 2 <= e.high;
    }
    cr_expect(held > 1750 && held < 1850, "%d of 2000", held);
}

Test(stats, holm)
{
    const double p[4] = {0.01, 0.04, 0.03, 0.005};
    double adjusted[4];
    adl_stats_holm(p, 4, adjusted);
    const double want[4] = {0.03, 0.06, 0.06, 0.02};
    for (int i = 0; i < 4; i++)
        cr_expect_float_eq(adjusted[i], want[i], 1e-15, "%d: %g", i, adjusted[i]);
    const double large[2] = {0.9, 0.8};
    adl_stats_holm(large, 2, adjusted);
    cr_expect(adjusted[0] == 1.0 && adjusted[1] == 1.0, "never above 1");
}

Test(stats, critical_batch)
{
    /* steps = 100 (1 + 64/B) */
    const struct adl_critical_batch c = adl_stats_critical_batch(16, 500, 256, 125);
    cr_expect_float_eq(c.critical, 64, 1e-9);
    cr_expect_float_eq(c.least_steps, 100, 1e-9);
    /* |grad|^2 = 2, tr C = 30: norms 2 + 30/B */
    cr_expect_float_eq(adl_stats_noise_scale(5, 8, 30, 3), 15, 1e-9);
}

Test(stats, refusals)
{
    need_gsl();
    const double a[3] = {1, NAN, 2}, b[3] = {1, 1, 0}, good[3] = {1, 2, 3};
    struct adl_question q = plain;
    struct adl_estimate e;
    struct adl_err err = {0};
    cr_expect_eq(adl_stats_paired(&q, a, b, 3, &e, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "pair 2 of 3"), "%s", err.message);
    err = (struct adl_err){0};
    q.contrast = ADL_CONTRAST_RATIO;
    cr_expect_eq(adl_stats_paired(&q, good, b, 3, &e, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "pair 3 of 3"), "%s", err.message);
    err = (struct adl_err){0};
    cr_expect_eq(adl_stats_sample(&q, good, 1, &e, &err), ADL_ERR_INPUT);
    q.level = 95;
    cr_expect_eq(adl_stats_sample(&q, good, 3, &e, &err), ADL_ERR_INPUT);
}

/* All equal: no scatter, no interval, no crash. */
Test(stats, constant_samples)
{
    need_gsl();
    const double x[12] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    struct adl_question q = plain;
    struct adl_estimate e;
    struct adl_err err = {0};
    cr_assert_eq(adl_stats_sample(&q, x, 12, &e, &err), ADL_OK);
    cr_expect(e.low == 3 && e.high == 3 && e.value == 3);
    cr_expect_lt(e.p_above, 1e-3);
    cr_assert_eq(adl_stats_sample(&q, x, 5, &e, &err), ADL_OK);
    cr_expect(e.low == 3 && e.high == 3 && e.p_above == 0);
    q.threshold = 3; /* what is on neither side passes neither way */
    cr_assert_eq(adl_stats_sample(&q, x, 12, &e, &err), ADL_OK);
    cr_expect_float_eq(e.p_above, 0.5, 1e-9);
    cr_assert_eq(adl_stats_sample(&q, x, 5, &e, &err), ADL_OK);
    cr_expect_eq(e.p_above, 0.5);
}
