/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/claims.h"
#include "analysis/curves.h"
#include "analysis/fit.h"

static double number(const struct adl_claim_run *run, const char *column)
{
    return adl_result_number(run->results, run->row, column);
}

/* ---- of the summary; a run stops at its target, so that its totals are those to the target */

static double exchanges(const struct adl_claim_run *run)
{
    return number(run, "exchanges");
}

static double wire(const struct adl_claim_run *run)
{
    return number(run, "wire_bytes");
}

static double time_s(const struct adl_claim_run *run)
{
    return number(run, "time_s");
}

static double samples(const struct adl_claim_run *run)
{
    return number(run, "samples");
}

static double sync_s(const struct adl_claim_run *run)
{
    return number(run, "sync_delay_s_sum") / number(run, "world");
}

static double sync_share(const struct adl_claim_run *run)
{
    return sync_s(run) / time_s(run);
}

static double sync_event(const struct adl_claim_run *run)
{
    return number(run, "sync_delay_s_mean");
}

static double sync_sample(const struct adl_claim_run *run)
{
    return number(run, "sync_delay_s_sum") / samples(run);
}

static double throughput(const struct adl_claim_run *run)
{
    return number(run, "samples_useful") / time_s(run);
}

static double utilization(const struct adl_claim_run *run)
{
    return number(run, "compute_utilization");
}

static double loss(const struct adl_claim_run *run)
{
    return number(run, "loss_final");
}

/* ---- of the curve */

bool adl_claim_load_curve(const struct adl_claim_run *run, struct adl_curve *curve)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/runs/%s/records.jsonl", run->dir,
             adl_result_text(run->results, run->row, "run_id"));
    if (*run->status != ADL_OK)
        return false;
    *run->status = adl_curve_load(path, curve, run->err);
    return *run->status == ADL_OK;
}

/* The loss after N samples, between the points that were evaluated. */
static double loss_at(const struct adl_curve *curve, double N)
{
    for (size_t i = 1; i < curve->n; i++) {
        const struct adl_point *a = &curve->v[i - 1], *b = &curve->v[i];
        const double from = a->x[ADL_AXIS_SAMPLES], to = b->x[ADL_AXIS_SAMPLES];
        if (N <= to)
            return to > from ? a->loss + (b->loss - a->loss) * (N - from) / (to - from) : b->loss;
    }
    return NAN;
}

/* Windows of equal samples in the second half of a run. */
enum { WINDOWS = 5 };

/* Where one evaluation is further from the next than a window, the loss inside is not known:
 * drawing a line through would pass for smoothness. */
static bool resolves(const struct adl_curve *curve, double half, double window)
{
    for (size_t i = 1; i < curve->n; i++) {
        const double from = curve->v[i - 1].x[ADL_AXIS_SAMPLES];
        const double to = curve->v[i].x[ADL_AXIS_SAMPLES];
        if (to > half && to - fmax(from, half) > 1.001 * window)
            return false;
    }
    return curve->n > 1;
}

/* Variance of the loss's increments over windows of equal samples, over the squared mean of what
 * the loss is above the least. */
static double roughness_of(const struct adl_curve *curve, double least)
{
    const double N = curve->v[curve->n - 1].x[ADL_AXIS_SAMPLES], window = N / 2 / WINDOWS;
    double at[WINDOWS + 1], mean_step, mean_loss = 0, squares = 0;
    if (!resolves(curve, N / 2, window))
        return NAN;
    for (int k = 0; k <= WINDOWS; k++) {
        at[k] = loss_at(curve, k == WINDOWS ? N : N / 2 + k * window);
        mean_loss += (at[k] - least) / (WINDOWS + 1);
    }
    mean_step = (at[WINDOWS] - at[0]) / WINDOWS;
    for (int k = 0; k < WINDOWS; k++)
        squares += pow(at[k + 1] - at[k] - mean_step, 2);
    return squares / (WINDOWS - 1) / (mean_loss * mean_loss);
}

static double roughness(const struct adl_claim_run *run)
{
    struct adl_curve curve = {0};
    if (!adl_claim_load_curve(run, &curve))
        return NAN;
    const double value = curve.n > 1 ? roughness_of(&curve, run->least) : NAN;
    adl_curve_free(&curve);
    return value;
}

/* Mean loss over the samples of a run's second half, by trapezoids. */
static double tracking(const struct adl_claim_run *run)
{
    enum { STEPS = 1000 };
    struct adl_curve curve = {0};
    double sum = 0;
    if (!adl_claim_load_curve(run, &curve))
        return NAN;
    const double N = curve.n > 1 ? curve.v[curve.n - 1].x[ADL_AXIS_SAMPLES] : NAN;
    for (int k = 0; k < STEPS; k++)
        sum += loss_at(&curve, N / 2 + (k + 0.5) * N / 2 / STEPS);
    adl_curve_free(&curve);
    return sum / STEPS;
}

bool adl_claim_fit(const struct adl_claim_run *run, const struct adl_curve *curve,
                   struct adl_laws *laws)
{
    size_t n = 0;
    double *N = calloc(curve->n ? curve->n : 1, sizeof *N);
    double *C = calloc(curve->n ? curve->n : 1, sizeof *C);
    for (size_t i = 0; N && C && i < curve->n; i++) {
        const double rounds = curve->v[i].x[ADL_AXIS_EXCHANGES];
        if (rounds > 0 && rounds >= run->from && rounds <= run->to) {
            N[n] = curve->v[i].x[ADL_AXIS_SAMPLES];
            C[n++] = rounds;
        }
    }
    if (!N || !C)
        *run->status = adl_fail(run->err, ADL_ERR_NOMEM, "no memory to fit a law");
    else if (n >= 5)
        *run->status = adl_fit_laws(N, C, n, laws, run->err);
    free(N);
    free(C);
    return n >= 5 && *run->status == ADL_OK;
}

static bool fit(const struct adl_claim_run *run, struct adl_laws *laws)
{
    struct adl_curve curve = {0};
    if (!adl_claim_load_curve(run, &curve))
        return false;
    const bool fitted = adl_claim_fit(run, &curve, laws);
    adl_curve_free(&curve);
    return fitted;
}

static double log_law(const struct adl_claim_run *run)
{
    struct adl_laws laws;
    if (!fit(run, &laws))
        return NAN;
    const double log_aic = laws.fits[ADL_LAW_LOG].aic;
    return fmin(laws.fits[ADL_LAW_POWER].aic, laws.fits[ADL_LAW_LINEAR].aic) - log_aic;
}

static double log_r2(const struct adl_claim_run *run)
{
    struct adl_laws laws;
    return fit(run, &laws) ? laws.fits[ADL_LAW_LOG].r2 : NAN;
}

static double linear_r2(const struct adl_claim_run *run)
{
    struct adl_laws laws;
    return fit(run, &laws) ? laws.fits[ADL_LAW_LINEAR].r2 : NAN;
}

static double exponent(const struct adl_claim_run *run)
{
    struct adl_laws laws;
    return fit(run, &laws) ? laws.exponent : NAN;
}

const struct adl_claim_measure adl_claim_measures[] = {
    {"exchanges", "exchanges to the target", ADL_CLAIM_TO_TARGET, false, exchanges},
    {"wire", "bytes on the wire to the target", ADL_CLAIM_TO_TARGET, false, wire},
    {"time", "seconds to the target", ADL_CLAIM_TO_TARGET, false, time_s},
    {"samples", "samples to the target", ADL_CLAIM_TO_TARGET, false, samples},
    {"sync", "seconds that a worker is held up on the way to the target", ADL_CLAIM_TO_TARGET,
     false, sync_s},
    {"sync_share", "share of the wall time that a worker is held up", ADL_CLAIM_AT_END, false,
     sync_share},
    {"sync_event", "seconds that a synchronization holds a worker up", ADL_CLAIM_AT_END, false,
     sync_event},
    {"sync_sample", "seconds of being held up a sample", ADL_CLAIM_AT_END, false, sync_sample},
    {"exchanges_spent", "exchanges of the run", ADL_CLAIM_AT_END, false, exchanges},
    {"throughput", "useful samples a second", ADL_CLAIM_AT_END, false, throughput},
    {"utilization", "busy share of the devices", ADL_CLAIM_AT_END, false, utilization},
    {"loss", "loss after the same samples", ADL_CLAIM_AT_END, false, loss},
    {"roughness",
     "variance of the loss's increments over equal samples, over the squared mean excess loss",
     ADL_CLAIM_AT_END, false, roughness},
    {"tracking", "mean loss over the second half of the samples", ADL_CLAIM_AT_END, false,
     tracking},
    {"log_law", "lead in AIC of the law C = a + b ln N over the better one of power and linear",
     ADL_CLAIM_AT_END, true, log_law},
    {"log_r2", "R^2 of the law C = a + b ln N", ADL_CLAIM_AT_END, true, log_r2},
    {"linear_r2", "R^2 of the law C = a + b N", ADL_CLAIM_AT_END, true, linear_r2},
    {"exponent", "exponent of C as a power of N", ADL_CLAIM_AT_END, true, exponent},
    {.name = NULL}};

bool adl_claim_law(const struct adl_claim_measure *measure, enum adl_law *law)
{
    if (measure->of == log_r2)
        *law = ADL_LAW_LOG;
    else if (measure->of == linear_r2)
        *law = ADL_LAW_LINEAR;
    else if (measure->of == exponent)
        *law = ADL_LAW_POWER;
    else
        return false;
    return true;
}
