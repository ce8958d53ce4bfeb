/* SPDX-License-Identifier: Apache-2.0 */
#include "core/batch.h"

#include <math.h>
#include <stdbool.h>

/* The share whose exact part exceeds its whole part most, among those not yet topped up in this
 * pass; whole parts only grow, so a topped-up share has a negative remainder. */
static int largest_remainder(const double *weights, double sum, int64_t total,
                             const int64_t *shares, int n)
{
    int best = 0;
    double best_rest = -INFINITY;
    for (int i = 0; i < n; i++) {
        double exact = (double)total * (weights ? weights[i] : 1.0) / sum;
        double rest = exact - (double)shares[i];
        if (rest > best_rest + 1e-9) {
            best = i;
            best_rest = rest;
        }
    }
    return best;
}

/* The share above 1 that exceeds its exact part most: it pays for those raised to 1. */
static int most_above(const double *weights, double sum, int64_t total, const int64_t *shares,
                      int n)
{
    int best = -1;
    double best_above = -INFINITY;
    for (int i = 0; i < n; i++) {
        double above = (double)shares[i] - (double)total * (weights ? weights[i] : 1.0) / sum;
        if (shares[i] > 1 && above > best_above + 1e-9) {
            best = i;
            best_above = above;
        }
    }
    return best;
}

void adl_share(int64_t total, const double *weights, int n, int64_t *shares)
{
    if (!weights) { /* the common case, in closed form: the first total % n get one more */
        for (int i = 0; i < n; i++)
            shares[i] = total < n ? 1 : total / n + (i < total % n);
        return;
    }
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += weights[i];
    int64_t given = 0;
    for (int i = 0; i < n; i++) {
        /* 1e-9: an exact whole part must not fall short by rounding */
        shares[i] = (int64_t)floor((double)total * weights[i] / sum + 1e-9);
        if (shares[i] < 1)
            shares[i] = 1;
        given += shares[i];
    }
    for (; given < total; given++)
        shares[largest_remainder(weights, sum, total, shares, n)]++;
    for (; given > total; given--) {
        int payer = most_above(weights, sum, total, shares, n);
        if (payer < 0)
            return; /* total < n: everyone has 1 */
        shares[payer]--;
    }
}

struct adl_step_plan adl_switch_plan(int64_t share, int64_t max, enum adl_switch_mode mode,
                                     int64_t factor)
{
    if (max <= 0 || share <= max)
        return (struct adl_step_plan){share, 1};
    bool accumulate =
        mode == ADL_SWITCH_ALWAYS || (mode == ADL_SWITCH_THRESHOLD && share > factor * max);
    if (!accumulate)
        return (struct adl_step_plan){max, 1};
    return (struct adl_step_plan){share, (share + max - 1) / max};
}

void adl_micro_batch(int64_t samples, int64_t n, int64_t a, int64_t *offset, int64_t *size)
{
    int64_t whole = samples / n, rest = samples % n;
    *size = whole + (a < rest);
    *offset = a * whole + (a < rest ? a : rest);
}

int64_t adl_statistic_micro_batches(int64_t samples, int64_t accumulation)
{
    int64_t n = samples < 8 ? samples : 8;
    return accumulation > n ? accumulation : n;
}

int64_t adl_balanced_steps(int64_t H, double speed, double fastest)
{
    int64_t steps = (int64_t)floor((double)H * speed / fastest + 0.5);
    return steps < 1 ? 1 : steps;
}
