/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stats.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "analysis/groups.h"
#include "analysis/stats_gsl.h"
#include "core/rng.h"

static int ascending(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

void adl_stats_holm(const double *p, size_t n, double *adjusted)
{
    /* the k-th smallest is multiplied by n - k, and no p gets below a smaller one's */
    for (size_t i = 0; i < n; i++) {
        double largest = 0.0;
        for (size_t j = 0; j < n; j++) {
            if (p[j] > p[i] || (p[j] == p[i] && j > i))
                continue;
            size_t smaller = 0;
            for (size_t k = 0; k < n; k++)
                smaller += p[k] < p[j] || (p[k] == p[j] && k < j);
            largest = fmax(largest, (double)(n - smaller) * p[j]);
        }
        adjusted[i] = fmin(1.0, largest);
    }
}

struct adl_critical_batch adl_stats_critical_batch(double B1, double steps1, double B2,
                                                   double steps2)
{
    const double slope = (steps1 - steps2) / (1.0 / B1 - 1.0 / B2);
    const double least = steps1 - slope / B1;
    return (struct adl_critical_batch){.critical = slope / least, .least_steps = least};
}

double adl_stats_noise_scale(double B1, double norm2_1, double B2, double norm2_2)
{
    const double signal = (B2 * norm2_2 - B1 * norm2_1) / (B2 - B1);
    return (norm2_1 - norm2_2) / (1.0 / B1 - 1.0 / B2) / signal;
}

static double mean(const double *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* Sorts x [n] for the median. */
static double location_of(enum adl_location location, double *x, size_t n)
{
    return location == ADL_LOCATION_MEAN ? mean(x, n) : adl_median(x, n);
}

/* ---- bootstrap */

struct bootstrap {
    enum adl_location location;
    const double *x; /* [n] */
    size_t n;
    double *scratch;    /* [n] */
    double *replicates; /* [ADL_STATS_REPLICATES] ascending */
    double value;
    double bias, acceleration; /* BCa's z0 and a */
};

static void replicate(struct bootstrap *b, uint64_t seed)
{
    const struct adl_rng rng = adl_rng_make(seed, ADL_RNG_BOOTSTRAP, b->n, 0);
    uint64_t drawn = 0;
    for (size_t r = 0; r < ADL_STATS_REPLICATES; r++) {
        for (size_t i = 0; i < b->n; i++)
            b->scratch[i] = b->x[(size_t)(adl_rng_uniform(&rng, drawn++) * (double)b->n)];
        b->replicates[r] = location_of(b->location, b->scratch, b->n);
    }
    qsort(b->replicates, ADL_STATS_REPLICATES, sizeof *b->replicates, ascending);
}

/* Share of the replicates below v, equal ones by half: medians have many. Kept inside (0, 1). */
static double share_below(const struct bootstrap *b, double v)
{
    size_t below = 0, equal = 0;
    for (size_t r = 0; r < ADL_STATS_REPLICATES && b->replicates[r] <= v; r++)
        b->replicates[r] < v ? below++ : equal++;
    const double share = ((double)below + 0.5 * (double)equal) / ADL_STATS_REPLICATES;
    const double least = 0.5 / ADL_STATS_REPLICATES;
    return fmin(fmax(share, least), 1.0 - least);
}

/* The acceleration from the jackknife: sum d^3 / (6 (sum d^2)^(3/2)). */
static double jackknife_acceleration(struct bootstrap *b)
{
    double sum = 0.0, cubes = 0.0, squares = 0.0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t left = 0; left < b->n; left++) {
            size_t m = 0;
            for (size_t i = 0; i < b->n; i++)
                if (i != left)
                    b->scratch[m++] = b->x[i];
            const double v = location_of(b->location, b->scratch, m);
            const double d = sum / (double)b->n - v;
            if (pass == 0) {
                sum += v;
            } else {
                squares += d * d;
                cubes += d * d * d;
            }
        }
    return squares > 0.0 ? cubes / (6.0 * pow(squares, 1.5)) : 0.0;
}

/* The replicates' quantile at which BCa puts normal quantile z. */
static double bca_quantile(const struct bootstrap *b, double z)
{
    const double shifted = b->bias + z;
    const double q = adl_gsl_normal(b->bias + shifted / (1.0 - b->acceleration * shifted));
    const double at = q * (ADL_STATS_REPLICATES - 1);
    const size_t low = (size_t)at;
    const double next = b->replicates[low + 1 < ADL_STATS_REPLICATES ? low + 1 : low];
    return b->replicates[low] + (at - (double)low) * (next - b->replicates[low]);
}

/* The one-sided level at which the interval's lower end meets the threshold. */
static double bca_p_above(const struct bootstrap *b, double threshold)
{
    const double w = adl_gsl_normal_quantile(share_below(b, threshold)) - b->bias;
    return adl_gsl_normal(w / (1.0 + b->acceleration * w) - b->bias);
}

static enum adl_status check(const struct adl_question *q, const double *x, size_t n,
                             struct adl_err *err)
{
    ADL_TRY(adl_gsl_check(err));
    if (n < 2)
        return adl_fail(err, ADL_ERR_INPUT, "an interval needs 2 values or more, not %zu", n);
    if (!(q->level > 0.0 && q->level < 1.0))
        return adl_fail(err, ADL_ERR_INPUT, "confidence level %g is not between 0 and 1", q->level);
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i]))
            return adl_fail(err, ADL_ERR_INPUT, "value %zu of %zu is not a number", i + 1, n);
    return ADL_OK;
}

enum adl_status adl_stats_bca(const struct adl_question *q, const double *x, size_t n,
                              struct adl_estimate *out, struct adl_err *err)
{
    ADL_TRY(check(q, x, n, err));
    struct bootstrap b = {.location = q->location, .x = x, .n = n};
    b.scratch = calloc(n, sizeof *b.scratch);
    b.replicates = calloc(ADL_STATS_REPLICATES, sizeof *b.replicates);
    enum adl_status status = ADL_OK;
    if (b.scratch && b.replicates) {
        for (size_t i = 0; i < n; i++)
            b.scratch[i] = x[i];
        b.value = location_of(q->location, b.scratch, n);
        replicate(&b, q->seed);
        b.bias = adl_gsl_normal_quantile(share_below(&b, b.value));
        b.acceleration = jackknife_acceleration(&b);
        const double z = adl_gsl_normal_quantile(0.5 + 0.5 * q->level);
        *out = (struct adl_estimate){.n = n,
                                     .value = b.value,
                                     .low = bca_quantile(&b, -z),
                                     .high = bca_quantile(&b, z),
                                     .p_above = bca_p_above(&b, q->threshold),
                                     .method = "BCa bootstrap"};
    } else {
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for a bootstrap");
    }
    free(b.scratch);
    free(b.replicates);
    return status;
}

/* ---- Student's t */

static enum adl_status check_positive(const double *x, size_t n, struct adl_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (!(x[i] > 0.0))
            return adl_fail(err, ADL_ERR_INPUT, "value %zu, %g, has no logarithm", i + 1, x[i]);
    return ADL_OK;
}

enum adl_status adl_stats_t(const struct adl_question *q, const double *x, size_t n,
                            struct adl_estimate *out, struct adl_err *err)
{
    const bool logs = q->contrast == ADL_CONTRAST_RATIO;
    ADL_TRY(check(q, x, n, err));
    if (logs)
        ADL_TRY(check_positive(x, n, err));
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += logs ? log(x[i]) : x[i];
    const double centre = sum / (double)n, freedom = (double)n - 1.0;
    for (size_t i = 0; i < n; i++) {
        const double d = (logs ? log(x[i]) : x[i]) - centre;
        squares += d * d;
    }
    const double error = sqrt(squares / freedom / (double)n);
    const double half = error * adl_gsl_t_quantile(0.5 + 0.5 * q->level, freedom);
    const double above = centre - (logs ? log(q->threshold) : q->threshold);
    const double p = error > 0.0   ? adl_gsl_t_above(above / error, freedom)
                     : above > 0.0 ? 0.0
                     : above < 0.0 ? 1.0
                                   : 0.5; /* it is the threshold: on neither side of it */
    *out = (struct adl_estimate){.n = n,
                                 .value = logs ? exp(centre) : centre,
                                 .low = logs ? exp(centre - half) : centre - half,
                                 .high = logs ? exp(centre + half) : centre + half,
                                 .p_above = p,
                                 .method = logs ? "t on logs" : "t"};
    return ADL_OK;
}

enum adl_status adl_stats_sample(const struct adl_question *q, const double *x, size_t n,
                                 struct adl_estimate *out, struct adl_err *err)
{
    return n < ADL_STATS_BOOTSTRAP_FROM ? adl_stats_t(q, x, n, out, err)
                                        : adl_stats_bca(q, x, n, out, err);
}

enum adl_status adl_stats_paired(const struct adl_question *q, const double *a, const double *b,
                                 size_t n, struct adl_estimate *out, struct adl_err *err)
{
    const bool ratio = q->contrast == ADL_CONTRAST_RATIO;
    double *x = calloc(n ? n : 1, sizeof *x);
    if (!x)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu pairs", n);
    enum adl_status status = ADL_OK;
    for (size_t i = 0; i < n && status == ADL_OK; i++) {
        x[i] = ratio ? a[i] / b[i] : a[i] - b[i];
        if (!isfinite(x[i]) || (ratio && !(a[i] > 0.0 && b[i] > 0.0)))
            status = adl_fail(err, ADL_ERR_INPUT, "pair %zu of %zu, %g and %g, has no %s", i + 1, n,
                              a[i], b[i], ratio ? "ratio" : "difference");
    }
    if (status == ADL_OK)
        status = adl_stats_sample(q, x, n, out, err);
    free(x);
    return status;
}
