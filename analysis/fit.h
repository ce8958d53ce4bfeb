/* SPDX-License-Identifier: Apache-2.0 */
/* Which law a count of synchronisations C follows as a function of the samples N: logarithmic,
 * a power, or linear, fitted to the same points and compared by Akaike's criterion
 * AIC = n ln(RSS/n) + 2 p. Fits need GSL: ADL_ERR_UNSUPPORTED in a build without it. */
#ifndef ADL_ANALYSIS_FIT_H
#define ADL_ANALYSIS_FIT_H

#include <stddef.h>

#include "core/status.h"

enum adl_law {
    ADL_LAW_LOG,    /* C = a + b ln N */
    ADL_LAW_POWER,  /* C = a N^b */
    ADL_LAW_LINEAR, /* C = a + b N */
    ADL_N_LAWS
};
extern const char *const adl_law_names[ADL_N_LAWS];

struct adl_law_fit {
    double a, b;
    double r2;  /* 1 - RSS / total variance, in C for all three laws */
    double aic; /* smaller is better; a difference of 10 leaves the worse one no support */
};

struct adl_laws {
    size_t n;
    struct adl_law_fit fits[ADL_N_LAWS];
    enum adl_law best;            /* of the smallest AIC */
    double exponent, exponent_r2; /* slope of ln C over ln N and its fit: a power law's usual
                                     reading, which weighs small counts as much as large ones */
    double exponent_a;            /* C = exponent_a N^exponent */
};

/* N, C [n >= 4], all > 0. ADL_ERR_INPUT names a bad point. */
enum adl_status adl_fit_laws(const double *N, const double *C, size_t n, struct adl_laws *out,
                             struct adl_err *err);

/* The points of a window: *first and *n such that from <= x[i] <= to, x [total] ascending. */
void adl_fit_window(const double *x, size_t total, double from, double to, size_t *first,
                    size_t *n);

struct adl_line_fit { /* y = a + b x by least squares */
    double a, b, r2, rss;
};
struct adl_line_fit adl_fit_line(const double *x, const double *y, size_t n);

#endif
