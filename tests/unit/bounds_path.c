/* SPDX-License-Identifier: Apache-2.0 */
/* The path of the whole algorithm on the quadratic model: against the single recursions, against
 * laws that theory states for it, and against the guarantees. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bounds.h"
#include "analysis/bounds_path.h"
#include "analysis/fit.h"
#include "analysis/recursion.h"
#include "analysis/stats_gsl.h"
#include "core/rng.h"
#include "kernels/nqm.h"

enum { D = 4 };
static double h[D] = {1.0, 0.5, 0.1, 0.02};
static double c[D] = {0.4, 0.3, 0.2, 0.1};
static double x0[D] = {1.0, -1.0, 2.0, 3.0};
static const struct adl_problem small = {
    .L = 1, .mu = 0.02, .s2 = 1, .d0 = 1.04, .D2 = 15, .dim = D, .h = h, .c = c, .x0 = x0};

static struct adl_path_plan plan_of(const struct adl_problem *problem)
{
    return (struct adl_path_plan){.problem = problem,
                                  .M = 8,
                                  .H = 4,
                                  .alpha = 0.8,
                                  .outer_lr = 1,
                                  .initial = 16,
                                  .eta = 0.5,
                                  .cap = INFINITY,
                                  .max = INFINITY,
                                  .switch_factor = 2,
                                  .epsilon = NAN,
                                  .max_rounds = 3};
}

static struct adl_path_result follow(const struct adl_path_plan *plan, adl_path_fn *visit,
                                     void *arg)
{
    struct adl_path_result result;
    struct adl_err err = {0};
    cr_assert(adl_path_covers(plan));
    cr_assert_eq(adl_path_follow(plan, visit, arg, &result, &err), ADL_OK, "%s", err.message);
    return result;
}

static void near(double got, double want, double tolerance, const char *what)
{
    cr_expect_float_eq(got, want, tolerance * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

/* ---- against the single recursions; golden numbers of an independent implementation */

Test(bounds_path, constant_batch)
{
    struct adl_path_plan plan = plan_of(&small);
    const struct adl_path_result r = follow(&plan, NULL, NULL);
    near(r.last.loss, 0.10382608176631336, 1e-12, "Local SGD, three rounds");
    near(r.last.samples, 3 * 4 * 16, 1e-15, "samples");
    cr_expect_eq(r.end, ADL_PATH_MAX_ROUNDS);
}

Test(bounds_path, outer_nesterov)
{
    struct adl_path_plan plan = plan_of(&small);
    plan.outer_lr = 0.7;
    plan.outer_momentum = 0.9;
    near(follow(&plan, NULL, NULL).last.loss, 0.11182249314804511, 1e-12, "Nesterov");
}

Test(bounds_path, multiplicative_noise)
{
    static const double x2[D] = {0.01851301643277675, 0.019399878008543592, 0.5867602077607698,
                                 6.151989887046633};
    double beta[D], want = 0;
    for (int i = 0; i < D; i++) {
        beta[i] = 0.3 * h[i] * h[i];
        want += 0.5 * h[i] * x2[i];
    }
    struct adl_problem noisy = small;
    noisy.beta = beta;
    struct adl_path_plan plan = plan_of(&noisy);
    near(follow(&plan, NULL, NULL).last.loss, want, 1e-12, "E f");
    plan.test = ADL_PATH_DELTA;
    cr_expect_not(adl_path_covers(&plan), "no test with multiplicative noise");
}

struct trace {
    double loss[64];
    int n;
};

static void keep_loss(void *arg, const struct adl_path_point *at)
{
    struct trace *trace = arg;
    trace->loss[trace->n++] = at->loss;
}

Test(bounds_path, exact_norm_test)
{
    static const double want[6] = {1.04,
                                   0.260265163024041,
                                   0.13474288005974785,
                                   0.09249518459534306,
                                   0.06996630393956307,
                                   0.055846942623828395};
    struct adl_path_plan plan = plan_of(&small);
    struct trace trace = {.n = 0};
    plan.test = ADL_PATH_EXACT;
    plan.max_rounds = 5;
    follow(&plan, keep_loss, &trace);
    cr_assert_eq(trace.n, 6);
    for (int k = 0; k < 6; k++)
        near(trace.loss[k], want[k], 1e-12, "E f under the exact test");
}

static double falling(const void *arg, double step)
{
    return *(const double *)arg / (1 + 0.1 * step);
}

Test(bounds_path, any_schedule)
{
    struct adl_path_plan plan = plan_of(&small);
    double mean[D], var[D] = {0}, top = 0.8;
    plan.rate = falling;
    plan.rate_arg = &top;
    for (int i = 0; i < D; i++)
        mean[i] = x0[i];
    for (int round = 0; round < 3; round++)
        for (int step = 0; step < 4; step++)
            adl_nqm_round_sgd(D, h, c, top / (1 + 0.1 * (4 * round + step)), 1, 16, mean, var);
    near(follow(&plan, NULL, NULL).last.loss, adl_nqm_loss_moments(D, h, mean, var).mean, 1e-12,
         "E f");
}

Test(bounds_path, ends)
{
    struct adl_path_plan plan = plan_of(&small);
    plan.max_rounds = 1e6;
    plan.epsilon = 0.05;
    struct adl_path_result r = follow(&plan, NULL, NULL);
    cr_expect(r.end == ADL_PATH_REACHED && r.last.loss <= 0.05);
    plan.epsilon = 1e-9;
    r = follow(&plan, NULL, NULL);
    cr_expect_eq(r.end, ADL_PATH_STALLED);
    near(r.last.loss, adl_path_floor(&small, 0.8, 16), 1e-9, "the floor");
    plan.alpha = 2.5;
    cr_expect_eq(follow(&plan, NULL, NULL).end, ADL_PATH_DIVERGED);
}

/* ---- the algorithm's decisions */

Test(bounds_path, switch_decides_what_runs)
{
    struct adl_path_plan plan = plan_of(&small);
    const struct {
        int mode;
        double initial, max, ran;
        bool capped;
    } cases[] = {
        {ADL_SWITCH_THRESHOLD, 80, 10, 80, false},   {ADL_SWITCH_THRESHOLD, 120, 10, 80, true},
        {ADL_SWITCH_THRESHOLD, 168, 10, 168, false}, {ADL_SWITCH_NEVER, 168, 10, 80, true},
        {ADL_SWITCH_ALWAYS, 120, 10, 120, false},    {ADL_SWITCH_NEVER, 3, 10, 8, false}};
    plan.max_rounds = 1;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plan.switch_mode = cases[i].mode;
        plan.initial = cases[i].initial;
        plan.max = cases[i].max;
        const struct adl_path_result r = follow(&plan, NULL, NULL);
        cr_expect_eq(r.last.ran, cases[i].ran, "case %zu: %g", i, r.last.ran);
        cr_expect_eq(r.last.capped, cases[i].capped, "case %zu", i);
    }
}

/* The plug-in test's eta means eta / sqrt(1 - eta^2). */
Test(bounds_path, plug_in_means_another_eta)
{
    struct adl_path_plan plan = plan_of(&small), other;
    plan.H = 1;
    plan.test = ADL_PATH_GRADIENT;
    plan.initial = 8;
    plan.max_rounds = 200;
    plan.may_shrink = true;
    other = plan;
    plan.plug_in = true;
    plan.eta = 0.6;
    other.eta = adl_bound_plug_in_eta(0.6);
    const double a = follow(&plan, NULL, NULL).last.request;
    const double b = follow(&other, NULL, NULL).last.request;
    near(a, b, 0.05, "requests"); /* apart by the growth from one round to the next */
    cr_expect_gt(b, 100, "both have grown");
}

/* Once capped, C = C_cap + (N - N_cap) / (H B_max), to the last sample, and the loss ends at its
 * floor. */
Test(bounds_path, a_cap_makes_it_linear)
{
    struct adl_path_plan plan = plan_of(&small);
    plan.test = ADL_PATH_GRADIENT;
    plan.initial = 8;
    plan.max = 4096;
    plan.switch_mode = ADL_SWITCH_NEVER;
    plan.max_rounds = 400;
    const struct adl_path_result r = follow(&plan, NULL, NULL);
    cr_assert_not(isnan(r.cap_rounds), "it is capped");
    cr_expect_gt(r.cap_rounds, 3);
    near(r.last.rounds, r.cap_rounds + (r.last.samples - r.cap_samples) / (4 * 8 * 4096.0), 1e-15,
         "C(N)");
    near(r.last.loss, adl_path_floor(&small, 0.8, 8 * 4096), 1e-6, "its floor");
}

/* ---- random problems */

struct random_problem {
    struct adl_problem problem;
    double M, b, H, eta, eps;
};

static double uniform(uint64_t trial, uint64_t what)
{
    const struct adl_rng rng = adl_rng_make(17, ADL_RNG_TEST, trial, 0);
    return adl_rng_uniform(&rng, what);
}

/* d 32..512, kappa 1..1e4, M and H 1..64, eta 0.1..0.9, eps/d0 1e-6..0.3, all spectra and noises.
 */
static struct random_problem draw(uint64_t trial)
{
    struct random_problem r = {.M = floor(exp2(6 * uniform(trial, 1))),
                               .H = floor(exp2(6 * uniform(trial, 2))),
                               .b = floor(exp2(5 * uniform(trial, 3))),
                               .eta = 0.1 + 0.8 * uniform(trial, 4)};
    struct adl_problem *p = &r.problem;
    const size_t d = (size_t)(32 * exp2(4 * uniform(trial, 5)));
    const double kappa = pow(10, 4 * uniform(trial, 6));
    cr_assert(adl_problem_allocate(p, d, false));
    adl_nqm_spectrum((enum adl_spectrum)(trial % 5), d, kappa, 1 + uniform(trial, 7), 1.5, p->h);
    adl_nqm_noise((enum adl_noise)(trial / 5 % 3), d, p->h, exp(4 * uniform(trial, 8) - 2), p->c);
    p->mu = INFINITY;
    for (size_t i = 0; i < d; i++) {
        p->x0[i] = uniform(trial, 100 + i) - 0.3;
        p->L = fmax(p->L, p->h[i]);
        p->mu = fmin(p->mu, p->h[i]);
        p->s2 += p->c[i];
        p->d0 += 0.5 * p->h[i] * p->x0[i] * p->x0[i];
        p->D2 += p->x0[i] * p->x0[i];
    }
    r.eps = p->d0 * 0.3 * pow(10, -5.5 * uniform(trial, 9));
    return r;
}

/* E f after `steps` steps of a constant batch B, at once. */
static double loss_after(const struct adl_problem *p, double alpha, double steps, double B)
{
    double sum = 0;
    for (size_t i = 0; i < p->dim; i++) {
        const struct adl_local_map map = adl_nqm_local_map(p->h[i], alpha, steps);
        sum += 0.5 * p->h[i] *
               (map.A * map.A * p->x0[i] * p->x0[i] + alpha * alpha * p->c[i] * map.V / B);
    }
    return sum;
}

/* Guarantees of a constant batch at their own rate and at any rate they allow: after so many
 * rounds the expected loss is there. (That of an averaged iterate is promised; on quadratics with
 * these rates the last one is nearer.) */
Test(bounds_path, guarantees_of_a_constant_batch_hold)
{
    size_t at_rates = 0;
    for (uint64_t trial = 0; trial < 1500; trial++) {
        struct random_problem r = draw(trial);
        const struct adl_problem *p = &r.problem;
        const double B = r.M * r.b;
        for (int t = ADL_T1_PL; t <= ADL_T2_QUAD; t++) {
            const enum adl_theorem theorem = (enum adl_theorem)t;
            const double H = t >= ADL_T2_AVG ? r.H : 1;
            const struct adl_bound_case at = {r.M, r.b, H, r.eta};
            const struct adl_bound own = adl_bound_of(theorem, p, &at, r.eps);
            cr_expect_leq(loss_after(p, own.alpha, own.rounds * H, B), r.eps * (1 + 1e-9),
                          "trial %d, theorem %d, its own rate", (int)trial, t);
            cr_expect(adl_bound_at_rate(theorem, p, &at, own.alpha, r.eps).met,
                      "its own rate meets its condition");
            const double limit = adl_bound_at_rate(theorem, p, &at, 1, r.eps).limit;
            const double alpha = fmin(limit, own.alpha) * (0.1 + 0.9 * uniform(trial, 20));
            const struct adl_bound_at any = adl_bound_at_rate(theorem, p, &at, alpha, r.eps);
            if (!isfinite(any.rounds))
                continue;
            at_rates++;
            cr_expect_leq(loss_after(p, alpha, any.rounds * H, B), r.eps * (1 + 1e-9),
                          "trial %d, theorem %d, rate %g", (int)trial, t, alpha);
        }
        adl_problem_free(&r.problem);
    }
    cr_expect_gt(at_rates, 5000, "%zu", at_rates);
}

/* T3 and T5 under the exact norm test, H = 1; and no path beats the lower bounds. */
Test(bounds_path, guarantees_of_the_norm_test_hold)
{
    size_t reached = 0;
    double loosest = 0;
    for (uint64_t trial = 0; trial < 400; trial++) {
        struct random_problem r = draw(trial);
        const struct adl_problem *p = &r.problem;
        const struct adl_bound t3 = adl_bound_t3_pl(p, r.eta, r.eps);
        struct adl_path_plan plan = plan_of(p);
        plan.test = ADL_PATH_EXACT;
        plan.H = 1;
        plan.M = r.M;
        plan.eta = r.eta;
        plan.alpha = t3.alpha;
        plan.epsilon = r.eps;
        plan.max_rounds = 3e6 / (double)p->dim;
        const struct adl_path_result end = follow(&plan, NULL, NULL);
        if (end.end == ADL_PATH_REACHED) {
            reached++;
            const double C = end.last.rounds, N = end.last.samples;
            cr_expect_leq(C, t3.rounds, "trial %d: T3", (int)trial);
            cr_expect_leq(C, 1 + adl_bound_t5_rounds(p, r.eta, N), "trial %d: T5", (int)trial);
            cr_expect_geq(
                N, adl_bound_samples_lower(adl_nqm_trace_over_h(p->dim, p->h, p->c), r.eps) - r.M,
                "trial %d: samples", (int)trial);
            loosest = fmax(loosest, t3.rounds / C);
        } else {
            cr_expect_lt(plan.max_rounds, t3.rounds, "trial %d never arrives", (int)trial);
        }
        adl_problem_free(&r.problem);
    }
    cr_expect_gt(reached, 250, "%zu", reached);
    cr_expect_lt(loosest, 1e5);
}

/* With H steps between synchronisations and the exact test the rate of the end is T3-Q's r. */
Test(bounds_path, the_end_shrinks_by_the_rate)
{
    struct adl_path_plan plan = plan_of(&small);
    struct trace *trace = calloc(1, sizeof *trace);
    plan.test = ADL_PATH_EXACT;
    plan.max_rounds = 60;
    follow(&plan, keep_loss, trace);
    near(trace->loss[60] / trace->loss[59], adl_nqm_norm_test_rate(D, h, c, 0.8, 4, 0.5), 1e-6,
         "r");
    free(trace);
}

/* ---- laws of C as a function of N */

struct series {
    double N[4096], C[4096];
    size_t n;
    double next;
};

/* Points evenly in ln C, so that late rounds do not outweigh early ones. */
static void keep_point(void *arg, const struct adl_path_point *at)
{
    struct series *s = arg;
    if (at->rounds < s->next || s->n == 4096)
        return;
    s->N[s->n] = at->samples;
    s->C[s->n++] = at->rounds;
    s->next = fmax(at->rounds + 1, 1.03 * at->rounds);
}

static void need_gsl(void)
{
    struct adl_err err = {0};
    if (adl_gsl_check(&err) != ADL_OK) {
        fprintf(stderr, "skipped: %s\n", err.message);
        cr_skip_test("%s", err.message);
    }
}

static struct adl_laws laws_of(const struct series *s, double from, double to)
{
    struct adl_laws laws;
    struct adl_err err = {0};
    size_t first, n;
    adl_fit_window(s->C, s->n, from, to, &first, &n);
    cr_assert_eq(adl_fit_laws(s->N + first, s->C + first, n, &laws, &err), ADL_OK, "%s",
                 err.message);
    return laws;
}

static struct adl_problem problem_of(enum adl_spectrum spectrum, size_t d, double kappa, double p)
{
    struct adl_problem problem = {0};
    cr_assert(adl_problem_allocate(&problem, d, false));
    adl_nqm_spectrum(spectrum, d, kappa, p, 1, problem.h);
    adl_nqm_noise(ADL_NOISE_CURVATURE, d, problem.h, 1, problem.c);
    for (size_t i = 0; i < d; i++)
        problem.x0[i] = 1;
    return problem;
}

Test(bounds_path, linear_law_of_a_constant_batch)
{
    need_gsl();
    struct adl_problem problem = problem_of(ADL_SPECTRUM_LOG, 64, 100, 0);
    struct adl_path_plan plan = plan_of(&problem);
    struct series *s = calloc(1, sizeof *s);
    plan.max_rounds = 3000;
    follow(&plan, keep_point, s);
    const struct adl_laws laws = laws_of(s, 1, 3000);
    cr_expect_eq(laws.best, ADL_LAW_LINEAR);
    cr_expect_gt(laws.fits[ADL_LAW_LINEAR].r2, 0.9999);
    near(laws.fits[ADL_LAW_LINEAR].b, 1.0 / (16 * 4), 1e-9, "1 / (B H)");
    adl_problem_free(&problem);
    free(s);
}

/* After 2 / (alpha mu H) rounds the norm test's count is logarithmic, with slope 1 / ln(1/r). */
Test(bounds_path, log_law_in_its_window)
{
    need_gsl();
    static const struct {
        double kappa, H, eta;
    } cases[] = {{10, 1, 0.5}, {10, 4, 0.3}, {100, 1, 0.5}, {100, 4, 0.8}, {300, 8, 0.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adl_problem problem = problem_of(ADL_SPECTRUM_LOG, 64, cases[i].kappa, 0);
        struct adl_path_plan plan = plan_of(&problem);
        struct series *s = calloc(1, sizeof *s);
        const double from = 2 * cases[i].kappa / (0.5 * cases[i].H);
        plan.test = ADL_PATH_EXACT;
        plan.alpha = 0.5;
        plan.H = cases[i].H;
        plan.eta = cases[i].eta;
        plan.max_rounds = 3.5 * from;
        follow(&plan, keep_point, s);
        const struct adl_laws after = laws_of(s, from, 3.5 * from);
        const double r =
            adl_nqm_norm_test_rate(64, problem.h, problem.c, 0.5, cases[i].H, cases[i].eta);
        cr_expect_eq(after.best, ADL_LAW_LOG, "case %zu: %s", i, adl_law_names[after.best]);
        cr_expect_gt(after.fits[ADL_LAW_LOG].r2, 0.999, "case %zu: %g", i,
                     after.fits[ADL_LAW_LOG].r2);
        /* below its limit: N still holds the samples of earlier rounds */
        const double slope = after.fits[ADL_LAW_LOG].b * -log(r);
        cr_expect(slope > 0.85 && slope < 1.0, "case %zu: slope %g of its limit", i, slope);
        if (from > 100)
            cr_expect_eq(laws_of(s, 3, from / 4).best, ADL_LAW_POWER, "case %zu", i);
        adl_problem_free(&problem);
        free(s);
    }
}

/* T6: h_i = i^-p, h_i x_i^2 = i^-q, s = (q-1)/p: C ~ N^(1/(2+s)) until the smallest curvature is
 * resolved. */
Test(bounds_path, power_law_of_power_spectra)
{
    need_gsl();
    static const struct {
        double p, q;
    } cases[] = {{1, 1.5}, {1, 2}, {2, 2}, {2, 3}, {1.5, 2.5}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double p = cases[i].p, q = cases[i].q, exponent = 1 / (2 + (q - 1) / p);
        const size_t d = p < 1.5 ? 20000 : 2000;
        struct adl_problem problem = problem_of(ADL_SPECTRUM_POWER, d, 1, p);
        for (size_t k = 0; k < d; k++)
            problem.x0[k] = sqrt(pow((double)(k + 1), -q) / problem.h[k]);
        struct adl_path_plan plan = plan_of(&problem);
        struct series *s = calloc(1, sizeof *s);
        plan.test = ADL_PATH_EXACT;
        plan.alpha = 0.5;
        plan.H = 1;
        plan.M = 8;
        plan.eta = 0.5;
        plan.max_rounds = 1500;
        follow(&plan, keep_point, s);
        const struct adl_laws laws = laws_of(s, 50, 1500);
        cr_expect_float_eq(laws.exponent, exponent, 0.05, "p %g, q %g: C ~ N^%.3f, not N^%.3f", p,
                           q, laws.exponent, exponent);
        cr_expect_gt(laws.exponent_r2, 0.998);
        cr_expect_neq(laws.best, ADL_LAW_LOG);
        adl_problem_free(&problem);
        free(s);
    }
}
