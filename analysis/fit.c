/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/fit.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/stats_gsl.h"

const char *const adl_law_names[ADL_N_LAWS] = {"log", "power", "linear"};

static double total_variance(const double *y, size_t n)
{
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += y[i];
    for (size_t i = 0; i < n; i++)
        squares += (y[i] - sum / (double)n) * (y[i] - sum / (double)n);
    return squares;
}

struct adl_line_fit adl_fit_line(const double *x, const double *y, size_t n)
{
    double mx = 0.0, my = 0.0, xx = 0.0, xy = 0.0;
    for (size_t i = 0; i < n; i++) {
        mx += x[i] / (double)n;
        my += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
    }
    struct adl_line_fit line = {.b = xy / xx, .rss = 0.0};
    line.a = my - line.b * mx;
    for (size_t i = 0; i < n; i++) {
        const double left = y[i] - line.a - line.b * x[i];
        line.rss += left * left;
    }
    line.r2 = 1.0 - line.rss / total_variance(y, n);
    return line;
}

void adl_fit_window(const double *x, size_t total, double from, double to, size_t *first, size_t *n)
{
    *first = 0;
    while (*first < total && x[*first] < from)
        ++*first;
    *n = 0;
    while (*first + *n < total && x[*first + *n] <= to)
        ++*n;
}

static double power_law(double x, const double *parameters)
{
    return parameters[0] * pow(x, parameters[1]);
}

static double aic(double rss, size_t n)
{
    return (double)n * log(rss / (double)n + 1e-300) + 4.0;
}

static struct adl_law_fit of_line(const struct adl_line_fit *line, size_t n)
{
    return (struct adl_law_fit){line->a, line->b, line->r2, aic(line->rss, n)};
}

/* Least squares in C, from the line through the logarithms. N is scaled by its first value: the
 * two parameters are then of similar size. */
static enum adl_status fit_power(const double *N, const double *C, size_t n,
                                 const struct adl_line_fit *logs, double *scaled,
                                 struct adl_law_fit *out, struct adl_err *err)
{
    for (size_t i = 0; i < n; i++)
        scaled[i] = N[i] / N[0];
    double parameters[2] = {exp(logs->a + logs->b * log(N[0])), logs->b}, rss = 0.0;
    ADL_TRY(adl_gsl_fit(power_law, scaled, C, n, parameters, 2, NULL, err));
    for (size_t i = 0; i < n; i++) {
        const double left = C[i] - power_law(scaled[i], parameters);
        rss += left * left;
    }
    *out = (struct adl_law_fit){.a = parameters[0] * pow(N[0], -parameters[1]),
                                .b = parameters[1],
                                .r2 = 1.0 - rss / total_variance(C, n),
                                .aic = aic(rss, n)};
    return ADL_OK;
}

static enum adl_status fit_all(const double *N, const double *C, size_t n, double *scratch,
                               struct adl_laws *out, struct adl_err *err)
{
    double *log_N = scratch, *log_C = scratch + n;
    for (size_t i = 0; i < n; i++) {
        log_N[i] = log(N[i]);
        log_C[i] = log(C[i]);
    }
    const struct adl_line_fit in_log = adl_fit_line(log_N, C, n), linear = adl_fit_line(N, C, n);
    const struct adl_line_fit logs = adl_fit_line(log_N, log_C, n);
    *out = (struct adl_laws){
        .n = n, .exponent = logs.b, .exponent_r2 = logs.r2, .exponent_a = exp(logs.a)};
    out->fits[ADL_LAW_LOG] = of_line(&in_log, n);
    out->fits[ADL_LAW_LINEAR] = of_line(&linear, n);
    ADL_TRY(fit_power(N, C, n, &logs, scratch + 2 * n, &out->fits[ADL_LAW_POWER], err));
    for (int law = 0; law < ADL_N_LAWS; law++)
        if (out->fits[law].aic < out->fits[out->best].aic)
            out->best = (enum adl_law)law;
    return ADL_OK;
}

enum adl_status adl_fit_laws(const double *N, const double *C, size_t n, struct adl_laws *out,
                             struct adl_err *err)
{
    ADL_TRY(adl_gsl_check(err));
    if (n < 4)
        return adl_fail(err, ADL_ERR_INPUT, "a law needs 4 points or more, not %zu", n);
    for (size_t i = 0; i < n; i++)
        if (!(N[i] > 0.0 && C[i] > 0.0 && isfinite(N[i]) && isfinite(C[i])))
            return adl_fail(err, ADL_ERR_INPUT, "point %zu, (%g, %g), is not positive", i + 1, N[i],
                            C[i]);
    double *scratch = calloc(3 * n, sizeof *scratch);
    if (!scratch)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a fit of %zu points", n);
    enum adl_status status = fit_all(N, C, n, scratch, out, err);
    free(scratch);
    return status;
}
