/* SPDX-License-Identifier: Apache-2.0 */
/* At a point that does not move, where the true gradient and its noise are known, the request
 * must settle where theory 1 says: at tr C / (eta^2 |grad f|^2) when debiased, at (1 - eta^2) of
 * that with the plug-in norm, and somewhat above where it may not shrink. */
#include <criterion/criterion.h>

#include <math.h>
#include <stdlib.h>

#include "core/policy.h"
#include "core/rng.h"

enum { DIM = 64, TESTS = 200, REPLICATES = 101 };

struct setting {
    int M;
    double eta;
    bool debias, may_shrink;
};

/* Sums of one test: M workers of share b at a gradient of norm 1, noise of trace 1000. */
static struct adl_stat_sums measure(int M, double b, uint64_t replicate, uint64_t test)
{
    static const double trace = 1000;
    double mean[DIM] = {0}, Q = 0, G2 = 0, z[DIM];
    struct adl_rng rng = adl_rng_make(5, ADL_RNG_TEST, replicate, test);
    for (int m = 0; m < M; m++) {
        double norm2 = 0;
        adl_rng_normals(&rng, (uint64_t)m * DIM, DIM, z);
        for (int i = 0; i < DIM; i++) {
            double g = sqrt(1.0 / DIM) + sqrt(trace / DIM / b) * z[i];
            mean[i] += g / M;
            norm2 += g * g;
        }
        Q += b * norm2;
    }
    for (int i = 0; i < DIM; i++)
        G2 += mean[i] * mean[i];
    return (struct adl_stat_sums){.M = M, .B = M * b, .G2 = G2, .Q = Q};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median over replicates of the request after the tests, over what exact knowledge asks for. */
static double settled(struct setting s)
{
    struct adl_settings settings = {0};
    settings.batch.eta = s.eta;
    settings.batch.debias = s.debias;
    settings.batch.may_shrink = s.may_shrink;
    const struct adl_batch_policy *policy = adl_batch_policy_find("norm_test");
    double exact = 1000 / (s.eta * s.eta), ratio[REPLICATES];
    for (int r = 0; r < REPLICATES; r++) {
        int64_t request = s.M;
        double log_sum = 0;
        int counted = 0;
        for (int test = 0; test < TESTS; test++) {
            struct adl_stat_sums sums =
                measure(s.M, (double)request / s.M, (uint64_t)r, (uint64_t)test);
            struct adl_policy_obs obs = {.request = request, .stat = adl_stat_workers(&sums)};
            request = adl_policy_request(policy, &settings, &obs);
            if (request < s.M)
                request = s.M;
            if (test >= TESTS / 2) {
                log_sum += log((double)request / exact);
                counted++;
            }
        }
        ratio[r] = s.may_shrink ? exp(log_sum / counted) : (double)request / exact;
    }
    qsort(ratio, REPLICATES, sizeof *ratio, ascending);
    return ratio[REPLICATES / 2];
}

Test(fixed_point, debiased_requests_settle_at_the_exact_batch)
{
    for (int M = 8; M <= 32; M *= 2) {
        double ratio = settled((struct setting){M, 0.3, true, true});
        cr_assert(ratio > 0.93 && ratio < 1.07, "M %d: %g", M, ratio);
    }
}

Test(fixed_point, plug_in_requests_settle_at_one_minus_eta_squared_of_it)
{
    static const double etas[] = {0.3, 0.6, 0.8};
    for (int i = 0; i < 3; i++) {
        double ratio = settled((struct setting){16, etas[i], false, true});
        double expected = 1 - etas[i] * etas[i];
        cr_assert(fabs(ratio / expected - 1) < 0.08, "eta %g: %g, not %g", etas[i], ratio,
                  expected);
    }
}

/* A plug-in test with eta >= 1 never asks for growth. */
Test(fixed_point, plug_in_with_a_loose_tolerance_never_grows)
{
    double ratio = settled((struct setting){16, 1.2, false, true});
    cr_assert_lt(ratio, 0.05, "%g", ratio);
}

Test(fixed_point, the_ratchet_adds_an_upward_bias)
{
    static const int workers[] = {2, 8, 32};
    double last = INFINITY;
    for (int i = 0; i < 3; i++) {
        double ratio = settled((struct setting){workers[i], 0.3, true, false});
        cr_assert(ratio > 1.05 && ratio < 1.8, "M %d: %g", workers[i], ratio);
        cr_assert_lt(ratio, last, "more workers, less noise in the test, less bias");
        last = ratio;
    }
}
