/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of runs over seeds. Two methods are compared seed by seed: the same seed gives both
 * the same data and noise, and pairs differ less than runs do.
 *
 * Intervals are bootstrapped (BCa; Efron 1987) from n = 10 on; below, where a bootstrap covers
 * only three quarters of what it says, Student's t: on logarithms for ratios, on the values
 * themselves for differences. Each result names the method it came from. Bootstraps draw from the
 * counter-based generator: the same input gives the same interval.
 *
 * Functions that return a status need GSL: ADL_ERR_UNSUPPORTED in a build without it. */
#ifndef ADL_ANALYSIS_STATS_H
#define ADL_ANALYSIS_STATS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { ADL_STATS_BOOTSTRAP_FROM = 10, ADL_STATS_REPLICATES = 2000 };

enum adl_location { ADL_LOCATION_MEAN, ADL_LOCATION_MEDIAN };
enum adl_contrast {
    ADL_CONTRAST_DIFFERENCE, /* a - b */
    ADL_CONTRAST_RATIO       /* a / b, both > 0 */
};

struct adl_estimate {
    size_t n;
    double value;       /* of the location; of a ratio by t: the geometric mean */
    double low, high;   /* two-sided confidence interval */
    double p_above;     /* one-sided p-value against "the truth is at most the threshold": small
                           where it lies above; 1 - p_above for the other side */
    const char *method; /* "BCa bootstrap", "t", "t on logs"; static */
};

struct adl_question {
    enum adl_contrast contrast;
    enum adl_location location;
    double level;     /* of the interval, 0.95 */
    double threshold; /* what p_above is asked against: 0 for differences, 1 for ratios */
    uint64_t seed;    /* of the bootstrap */
};

/* a, b [n]: one pair a seed, n >= 2, all finite (decide before what a run counts that never
 * arrived: leaving pairs out favours whoever failed). ADL_ERR_INPUT names the first bad pair. */
enum adl_status adl_stats_paired(const struct adl_question *question, const double *a,
                                 const double *b, size_t n, struct adl_estimate *out,
                                 struct adl_err *err);

/* The same of one sample x [n]: contrast RATIO takes logarithms below n = 10. */
enum adl_status adl_stats_sample(const struct adl_question *question, const double *x, size_t n,
                                 struct adl_estimate *out, struct adl_err *err);

/* The parts, for those who want one method whatever n is. */
enum adl_status adl_stats_bca(const struct adl_question *question, const double *x, size_t n,
                              struct adl_estimate *out, struct adl_err *err);
enum adl_status adl_stats_t(const struct adl_question *question, const double *x, size_t n,
                            struct adl_estimate *out, struct adl_err *err);

/* Holm's correction for asking n questions at once: adjusted [n], in the order of p [n]. */
void adl_stats_holm(const double *p, size_t n, double *adjusted);

/* Critical batch (McCandlish et al. 2018) from the steps that two batch sizes took to the same
 * loss: steps = least (1 + critical / B). Negative or infinite: the two do not fit the model. */
struct adl_critical_batch {
    double critical, least_steps;
};
struct adl_critical_batch adl_stats_critical_batch(double B1, double steps1, double B2,
                                                   double steps2);
/* The noise scale tr C / |grad f|^2 from the mean squared norms of gradients of two batch sizes:
 * |grad f|^2 = (B2 g2 - B1 g1)/(B2 - B1), tr C = (g1 - g2)/(1/B1 - 1/B2). */
double adl_stats_noise_scale(double B1, double norm2_1, double B2, double norm2_2);

#endif
