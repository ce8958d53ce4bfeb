/* SPDX-License-Identifier: Apache-2.0 */
/* From a request to what runs: shares by largest remainder, switch modes, micro-batches. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/batch.h"
#include "core/rng.h"

enum { MOST = 12 };

static int64_t sum_of(const int64_t *v, int n)
{
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += v[i];
    return sum;
}

static void expect_shares(int64_t total, const double *weights, int n, const int64_t *want)
{
    int64_t got[MOST];
    adl_share(total, weights, n, got);
    for (int i = 0; i < n; i++)
        cr_expect_eq(got[i], want[i], "total %ld: share %d is %ld, not %ld", (long)total, i,
                     (long)got[i], (long)want[i]);
}

Test(share, worked_by_hand)
{
    expect_shares(7, NULL, 3, (int64_t[]){3, 2, 2});
    expect_shares(7, (double[]){5, 5, 5}, 3, (int64_t[]){3, 2, 2}); /* ties to the lower index */
    expect_shares(10, (double[]){1, 2, 3}, 3, (int64_t[]){2, 3, 5});
    expect_shares(60, (double[]){0.1, 0.2, 0.3}, 3, (int64_t[]){10, 20, 30});
    expect_shares(5, (double[]){98, 1, 1}, 3, (int64_t[]){3, 1, 1}); /* the largest pays */
    expect_shares(3, (double[]){1, 1, 1000}, 3, (int64_t[]){1, 1, 1});
    expect_shares(2, (double[]){1, 2, 3}, 3, (int64_t[]){1, 1, 1}); /* fewer than workers */
    expect_shares(1, NULL, 2, (int64_t[]){1, 1});
    expect_shares(1000000000000001, (double[]){1, 1}, 2,
                  (int64_t[]){500000000000001, 500000000000000});
}

/* Weights over three decades: some exact shares lie below one. */
static int draw_case(uint64_t trial, double *weights, int64_t *total)
{
    struct adl_rng rng = adl_rng_make(1, ADL_RNG_TEST, 0, trial);
    int n = 1 + (int)(adl_rng_uniform(&rng, 0) * (MOST - 1));
    for (int i = 0; i < n; i++)
        weights[i] = pow(10, 3 * adl_rng_uniform(&rng, 1 + (uint64_t)i));
    *total = (int64_t)(adl_rng_uniform(&rng, 20) * 300);
    return n;
}

static double exact_share(int64_t total, const double *weights, int n, int i)
{
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += weights[k];
    return (double)total * weights[i] / sum;
}

Test(share, sums_exactly_with_one_each)
{
    for (uint64_t trial = 0; trial < 3000; trial++) {
        double weights[MOST];
        int64_t total, shares[MOST];
        int n = draw_case(trial, weights, &total);
        for (int weighted = 0; weighted < 2; weighted++) {
            adl_share(total, weighted ? weights : NULL, n, shares);
            cr_expect_eq(sum_of(shares, n), total < n ? n : total, "trial %lu",
                         (unsigned long)trial);
            for (int i = 0; i < n; i++)
                cr_expect_geq(shares[i], 1, "trial %lu: share %d", (unsigned long)trial, i);
        }
    }
}

/* Where every exact share is at least one: within one of it, and rounded up only where no
 * larger remainder was rounded down. */
Test(share, largest_remainder)
{
    int n_checked = 0;
    for (uint64_t trial = 0; trial < 3000; trial++) {
        double weights[MOST], rest[MOST], smallest = INFINITY;
        int64_t total, shares[MOST];
        int n = draw_case(trial, weights, &total);
        for (int i = 0; i < n; i++)
            smallest = fmin(smallest, exact_share(total, weights, n, i));
        if (smallest < 1)
            continue;
        n_checked++;
        adl_share(total, weights, n, shares);
        for (int i = 0; i < n; i++) {
            rest[i] = exact_share(total, weights, n, i) - (double)shares[i];
            cr_expect_lt(fabs(rest[i]), 1, "trial %lu: share %d", (unsigned long)trial, i);
        }
        for (int i = 0; i < n; i++)
            for (int j = 0; j < n; j++)
                if (rest[i] > 0 && rest[j] < 0) /* i was rounded down, j up */
                    cr_expect_leq(rest[i], rest[j] + 1 + 1e-9, "trial %lu: %d against %d",
                                  (unsigned long)trial, i, j);
    }
    cr_assert_gt(n_checked, 200);
}

static struct adl_step_plan switch_by_words(int64_t share, int64_t max, enum adl_switch_mode mode,
                                            int64_t factor)
{
    bool fits = max == 0 || share <= max;
    bool in_between = mode == ADL_SWITCH_THRESHOLD && share <= factor * max;
    if (fits)
        return (struct adl_step_plan){share, 1};
    if (mode == ADL_SWITCH_NEVER || in_between)
        return (struct adl_step_plan){max, 1};
    return (struct adl_step_plan){share, (int64_t)ceil((double)share / (double)max)};
}

static void check_micro_batches(struct adl_step_plan plan, int64_t max)
{
    int64_t next = 0, largest = 0, smallest = INT64_MAX, before = INT64_MAX;
    for (int64_t a = 0; a < plan.micro_batches; a++) {
        int64_t offset, size;
        adl_micro_batch(plan.samples, plan.micro_batches, a, &offset, &size);
        cr_expect_eq(offset, next, "micro-batch %ld starts at %ld, not %ld", (long)a, (long)offset,
                     (long)next);
        cr_expect_leq(size, before, "the larger ones come first");
        next += size;
        before = size;
        largest = size > largest ? size : largest;
        smallest = size < smallest ? size : smallest;
    }
    cr_expect_eq(next, plan.samples, "%ld samples ran of %ld", (long)next, (long)plan.samples);
    cr_expect_leq(largest - smallest, 1, "as even as possible");
    cr_expect_geq(smallest, 1);
    cr_expect(max == 0 || largest <= max, "a micro-batch of %ld exceeds %ld", (long)largest,
              (long)max);
}

Test(switch_mode, every_small_case)
{
    for (int64_t max = 0; max <= 24; max++)
        for (int64_t factor = 1; factor <= 4; factor++)
            for (int mode = ADL_SWITCH_THRESHOLD; mode <= ADL_SWITCH_NEVER; mode++)
                for (int64_t share = 1; share <= 130; share++) {
                    enum adl_switch_mode m = (enum adl_switch_mode)mode;
                    struct adl_step_plan got = adl_switch_plan(share, max, m, factor),
                                         want = switch_by_words(share, max, m, factor);
                    cr_expect_eq(got.samples, want.samples, "share %ld, max %ld, mode %d",
                                 (long)share, (long)max, mode);
                    cr_expect_eq(got.micro_batches, want.micro_batches,
                                 "share %ld, max %ld, mode %d", (long)share, (long)max, mode);
                    check_micro_batches(got, max);
                }
}

/* Accumulation splits the share: 17 samples in micro-batches of at most 8 stay 17. */
Test(switch_mode, accumulation_divides)
{
    struct adl_step_plan plan = adl_switch_plan(17, 8, ADL_SWITCH_THRESHOLD, 2);
    cr_expect_eq(plan.samples, 17);
    cr_expect_eq(plan.micro_batches, 3);
    int64_t offset, size;
    adl_micro_batch(17, 3, 2, &offset, &size);
    cr_expect_eq(offset, 12);
    cr_expect_eq(size, 5);
}

Test(statistic_micro_batches, two_at_least_where_samples_allow)
{
    cr_expect_eq(adl_statistic_micro_batches(1, 1), 1);
    cr_expect_eq(adl_statistic_micro_batches(2, 1), 2);
    cr_expect_eq(adl_statistic_micro_batches(5, 2), 5);
    cr_expect_eq(adl_statistic_micro_batches(100, 3), 8);
    cr_expect_eq(adl_statistic_micro_batches(100, 13), 13);
}

Test(balanced_steps, in_proportion_to_speed)
{
    cr_expect_eq(adl_balanced_steps(50, 1.0, 1.0), 50);
    cr_expect_eq(adl_balanced_steps(50, 0.5, 1.0), 25);
    cr_expect_eq(adl_balanced_steps(50, 1.5, 2.0), 38); /* 37.5 */
    cr_expect_eq(adl_balanced_steps(50, 0.001, 1.0), 1);
}
