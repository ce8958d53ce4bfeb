/* SPDX-License-Identifier: Apache-2.0 */
/* The batch statistics and the tests made of them: golden numbers of an independent
 * implementation, identities, and expectations over drawn gradients of known noise. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/policy.h"
#include "core/rng.h"
#include "core/statistic.h"

enum { MOST_WORKERS = 8, MOST_DIM = 8 };

struct gradients { /* of M workers, shares b */
    int M, dim;
    double b[MOST_WORKERS], g[MOST_WORKERS][MOST_DIM];
    double mean[MOST_DIM]; /* weighted by shares; set by sums_of */
};

static double dot(const double *x, const double *y, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static struct adl_stat_sums sums_of(struct gradients *x)
{
    struct adl_stat_sums sums = {.M = x->M};
    memset(x->mean, 0, sizeof x->mean);
    for (int m = 0; m < x->M; m++)
        sums.B += x->b[m];
    for (int m = 0; m < x->M; m++)
        for (int i = 0; i < x->dim; i++)
            x->mean[i] += x->b[m] * x->g[m][i] / sums.B;
    sums.G2 = dot(x->mean, x->mean, x->dim);
    for (int m = 0; m < x->M; m++) {
        double p = dot(x->g[m], x->mean, x->dim);
        sums.Q += x->b[m] * dot(x->g[m], x->g[m], x->dim);
        sums.P2 += x->b[m] * p * p;
    }
    return sums;
}

static struct adl_stat stat_of(struct gradients *x)
{
    struct adl_stat_sums sums = sums_of(x);
    return adl_stat_workers(&sums);
}

static void near(double got, double want, const char *what)
{
    cr_expect_float_eq(got, want, 1e-12 * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

static struct gradients golden(void)
{
    return (struct gradients){
        .M = 3, .dim = 3, .b = {4, 4, 4}, .g = {{1, 2, 0.5}, {0.5, 1, -0.5}, {2, 0, 1}}};
}

Test(statistic, golden_numbers)
{
    struct gradients x = golden();
    struct adl_stat stat = stat_of(&x);
    near(stat.S, 8.666666666666664, "S");
    near(stat.G2, 2.4722222222222228, "G2");
    near(stat.U, 1.7500000000000009, "U");
    near(stat.S_ip, 3.787037037037031, "S_ip");
    near(stat.S_orth, 7.134831460674157, "S_orth");
    near(stat.S / stat.U, 4.952380952380948, "B_simple");
    cr_expect_eq(stat.B, 12);
}

/* S_orth is what the workers' gradients have beside the mean's direction: summed over the
 * elements, weighted by the shares. */
static double orthogonal_directly(const struct gradients *x)
{
    double G2 = dot(x->mean, x->mean, x->dim), sum = 0;
    for (int m = 0; m < x->M; m++) {
        double along = dot(x->g[m], x->mean, x->dim) / G2, beside[MOST_DIM];
        for (int i = 0; i < x->dim; i++)
            beside[i] = x->g[m][i] - along * x->mean[i];
        sum += x->b[m] * dot(beside, beside, x->dim);
    }
    return sum / (x->M - 1);
}

Test(statistic, orthogonality_identity)
{
    struct gradients x = golden();
    double S_orth = stat_of(&x).S_orth;
    near(S_orth, orthogonal_directly(&x), "equal shares");
    x.b[0] = 1;
    x.b[2] = 16;
    S_orth = stat_of(&x).S_orth;
    near(S_orth, orthogonal_directly(&x), "unequal shares");
}

/* Twice the samples behind the same means: each per-sample variance is twice as large. */
Test(statistic, variances_carry_the_batch)
{
    struct gradients x = golden();
    struct adl_stat once = stat_of(&x);
    for (int m = 0; m < x.M; m++)
        x.b[m] *= 2;
    struct adl_stat twice = stat_of(&x);
    near(twice.S, 2 * once.S, "S");
    near(twice.S_ip, 2 * once.S_ip, "S_ip");
    near(twice.S_orth, 2 * once.S_orth, "S_orth");
    near(twice.U, once.U, "U");
}

Test(statistic, needs_two)
{
    /* Q is off by a rounding: without the rule S would be infinite */
    struct adl_stat_sums one = {.M = 1, .B = 4, .G2 = 5, .Q = 20.000000000000004, .P2 = 100};
    struct adl_stat stat = adl_stat_workers(&one);
    double S, U;
    adl_stat_micro(1, 4, one.Q, 5, &S, &U);
    cr_expect(isnan(stat.S) && isnan(stat.U) && isnan(stat.S_ip) && isnan(stat.S_orth));
    cr_expect(isnan(S) && isnan(U));
}

/* Micro-batches of one worker are to it what workers are to a trainer. */
Test(statistic, micro_batches_follow_the_same_formula)
{
    struct gradients x = golden();
    x.b[1] = 7;
    struct adl_stat_sums sums = sums_of(&x);
    struct adl_stat stat = adl_stat_workers(&sums);
    double S, U;
    adl_stat_micro(x.M, sums.B, sums.Q, sums.G2, &S, &U);
    near(S, stat.S, "S");
    near(U, stat.U, "U");
}

/* Mean and standard error of a stream of estimates. */
struct moments {
    double n, sum, squares;
};

static void collect(struct moments *m, double x)
{
    m->n++;
    m->sum += x;
    m->squares += x * x;
}

static double z_of(const struct moments *m, double expected)
{
    double mean = m->sum / m->n, variance = m->squares / m->n - mean * mean;
    return (mean - expected) / sqrt(variance / m->n);
}

static const double noise[] = {4, 2, 1, 0.5, 0.25, 0.125}; /* C = diag */
static const double slope[] = {1, -0.5, 0.3, 0.2, 0, 2};   /* grad f */

/* g_m = grad f + noise of covariance C / b_m. */
static void draw(struct gradients *x, uint64_t replicate)
{
    for (int m = 0; m < x->M; m++) {
        struct adl_rng rng = adl_rng_make(7, ADL_RNG_TEST, replicate, (uint64_t)m);
        double xi[MOST_DIM];
        adl_rng_normals(&rng, 0, (size_t)x->dim, xi);
        for (int i = 0; i < x->dim; i++)
            x->g[m][i] = slope[i] + sqrt(noise[i] / x->b[m]) * xi[i];
    }
}

/* E S = tr C, E U = |grad f|^2, E S_ip = g'Cg + tr C^2 / B (theory 1; Gaussian noise). */
static void expect_unbiased(struct gradients *x, const char *what)
{
    struct moments S = {0}, U = {0}, S_ip = {0};
    double trace = 0, trace2 = 0, along = 0, norm2 = dot(slope, slope, x->dim), B = 0;
    for (int i = 0; i < x->dim; i++) {
        trace += noise[i];
        trace2 += noise[i] * noise[i];
        along += slope[i] * noise[i] * slope[i];
    }
    for (uint64_t r = 0; r < 8000; r++) {
        draw(x, r);
        struct adl_stat stat = stat_of(x);
        collect(&S, stat.S);
        collect(&U, stat.U);
        collect(&S_ip, stat.S_ip);
        B = stat.B;
    }
    cr_expect_lt(fabs(z_of(&S, trace)), 4, "%s: z of S is %g", what, z_of(&S, trace));
    cr_expect_lt(fabs(z_of(&U, norm2)), 4, "%s: z of U is %g", what, z_of(&U, norm2));
    double z = z_of(&S_ip, along + trace2 / B);
    cr_expect_lt(fabs(z), 4, "%s: z of S_ip is %g", what, z);
}

Test(statistic, unbiased)
{
    struct gradients even = {.M = 4, .dim = 6, .b = {3, 3, 3, 3}};
    expect_unbiased(&even, "equal shares");
    struct gradients uneven = {.M = 5, .dim = 6, .b = {1, 2, 5, 16, 7}};
    expect_unbiased(&uneven, "unequal shares");
    struct gradients pair = {.M = 2, .dim = 6, .b = {1, 12}};
    expect_unbiased(&pair, "two workers");
}

static int64_t request(const char *policy, const struct adl_settings *settings,
                       struct adl_stat stat, int64_t present)
{
    struct adl_policy_obs obs = {.request = present, .initial = present, .stat = stat};
    return adl_policy_request(adl_batch_policy_find(policy), settings, &obs);
}

/* ceil(S / (eta^2 U)) and so on: of the whole trainer, not of each worker. */
Test(policy, requests_by_formula)
{
    struct gradients x = golden();
    struct adl_stat stat = stat_of(&x);
    struct adl_settings s = {.batch = {.eta = 0.5, .theta = 0.5, .nu = 0.5, .debias = true}};
    cr_expect_eq(request("norm_test", &s, stat, 1), 20);    /* 4.952 / 0.25 = 19.8 */
    cr_expect_eq(request("noise_scale", &s, stat, 1), 5);   /* 4.952 */
    cr_expect_eq(request("inner_product", &s, stat, 1), 5); /* 1.2366 / 0.25 = 4.95 */
    cr_expect_eq(request("augmented", &s, stat, 1), 17);    /* 4.0770 / 0.25 = 16.3 */
    s.batch.debias = false;
    cr_expect_eq(request("norm_test", &s, stat, 1), 15); /* 8.667 / 2.472 / 0.25 = 14.02 */
}

Test(policy, theta_and_nu_are_two_knobs)
{
    struct gradients x = golden();
    struct adl_stat stat = stat_of(&x);
    struct adl_settings s = {.batch = {.theta = 0.1, .nu = 1, .debias = true}};
    cr_expect_eq(request("augmented", &s, stat, 1), 124); /* 1.2366 / 0.01, inner product */
    s.batch.theta = 1;
    s.batch.nu = 0.1;
    cr_expect_eq(request("augmented", &s, stat, 1), 408); /* 4.0770 / 0.01, orthogonality */
    cr_expect_eq(request("inner_product", &s, stat, 1), 2);
}

Test(policy, ratchet_cap_and_unknown)
{
    struct gradients x = golden();
    struct adl_stat stat = stat_of(&x), unknown = stat;
    unknown.S = unknown.U = NAN;
    struct adl_settings s = {.batch = {.eta = 0.5, .debias = true}};
    cr_expect_eq(request("norm_test", &s, stat, 64), 64, "never below the present request");
    cr_expect_eq(request("norm_test", &s, unknown, 7), 7, "no statistic, no opinion");
    cr_expect_eq(request("constant", &s, stat, 7), 7);
    s.batch.may_shrink = true;
    cr_expect_eq(request("norm_test", &s, stat, 64), 20);
    s.batch.cap = 12;
    cr_expect_eq(request("norm_test", &s, stat, 1), 12);
    s.batch.eta = 100;
    cr_expect_eq(request("norm_test", &s, stat, 1), 1, "rounded up");
    stat.S_ip = -0.1; /* sampling noise can do this */
    s.batch.theta = 0.5;
    cr_expect_eq(request("inner_product", &s, stat, 8), 1, "at least one sample");
}

Test(policy, schedules_ignore_the_statistic)
{
    int64_t recorded[] = {4, 9, 6};
    struct adl_settings s = {.batch = {.growth = 1.5}};
    struct adl_policy_obs obs = {
        .round = 3, .initial = 8, .request = 100, .recorded = recorded, .n_recorded = 3};
    cr_expect_eq(adl_policy_request(adl_batch_policy_find("geometric"), &s, &obs), 41); /* 40.5 */
    cr_expect_eq(adl_policy_request(adl_batch_policy_find("recorded"), &s, &obs), 6);
    obs.round = 0;
    cr_expect_eq(adl_policy_request(adl_batch_policy_find("recorded"), &s, &obs), 9);
    cr_expect_null(adl_batch_policy_find("no such policy"));
}

/* An estimate at or below zero must not ask for an endless batch. */
Test(policy, negative_norms_are_floored)
{
    struct adl_stat stat = {.S = 8, .U = -1, .G2 = 2, .B = 4};
    near(adl_stat_norm2(&stat, true), 0.2, "debiased");
    near(adl_stat_norm2(&stat, false), 2, "plug-in");
    struct adl_stat still = {.S = 8, .U = 0, .G2 = 0, .B = 4};
    struct adl_settings s = {.batch = {.eta = 0.5, .debias = true, .cap = 4096}};
    cr_expect_eq(request("norm_test", &s, still, 1), 4096, "no gradient at all: the cap");
}

/* Theory 1: the plug-in test settles at (1 - eta^2) of the batch that the tolerance means, the
 * debiased one at that batch. Expectations stand for the statistic: S = 100, |grad f|^2 = 1. */
static int64_t settled(bool debias)
{
    struct adl_settings s = {.batch = {.eta = 0.5, .debias = debias, .may_shrink = true}};
    int64_t batch = 10;
    for (int round = 0; round < 100; round++) {
        struct adl_stat stat = {
            .S = 100, .U = 1, .G2 = 1 + 100 / (double)batch, .B = (double)batch};
        batch = request("norm_test", &s, stat, batch);
    }
    return batch;
}

Test(policy, fixed_points)
{
    cr_expect_eq(settled(true), 400);
    cr_expect(settled(false) >= 300 && settled(false) <= 302, "%ld", (long)settled(false));
}
