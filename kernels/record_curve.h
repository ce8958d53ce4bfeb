/* SPDX-License-Identifier: Apache-2.0 */
/* A training run that somebody recorded: loss and gradient noise scale over the samples seen, and
 * how far other batches would have come along it.
 *
 * Progress (McCandlish et al. 2018). At noise scale N a step of B samples gains 1/(1 + N/B) of what
 * a step without noise gains. The recorded run took steps of b samples and gained b samples of its
 * curve with each; a step of B samples therefore gains
 *
 *     (b + N) / (1 + N/B) = B (b + N)/(B + N)
 *
 * samples of the curve: b at B = b, b + N at most, and B (b + N)/N where noise dominates. All in
 * samples; N and b at the place where the step starts. Momentum, rates and optimizers are as good
 * at every batch as the recorded run's were at its own. */
#ifndef ADL_KERNELS_RECORD_CURVE_H
#define ADL_KERNELS_RECORD_CURVE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct adl_record_curve {
    size_t n;              /* rows, at least 2 */
    double *at;            /* [n] samples seen, ascending */
    double *loss;          /* [n] */
    double *noise, *batch; /* [n] N and b, in samples */
};

struct adl_record_source {
    const char *data, *base_dir; /* a CSV's path, relative to base_dir; "synthetic": made up */
    double tokens_per_sample;    /* of a table that counts tokens */
    double batch;                /* b where the table has no column of it */
};

/* The table (core/csv.h) has the columns `tokens` (or `samples`), `loss`, `noise_scale` (in
 * samples) or `noise_scale_tokens`, and may have `batch` (in samples) or `batch_tokens`; others are
 * skipped. Losses are taken as they are: linear between rows. ADL_ERR_INPUT "path:line:column:
 * cause" for a column that is missing, numbers out of range, tokens that do not grow, fewer than 2
 * rows. */
enum adl_status adl_record_open(const struct adl_record_source *source,
                                struct adl_record_curve *curve, struct adl_err *err);
void adl_record_close(struct adl_record_curve *curve);

struct adl_record_point {
    double loss, slope; /* of it, a sample */
    double noise, batch;
};
/* At x samples; before the first row its segment goes on, behind the last one the loss stays. */
struct adl_record_point adl_record_at(const struct adl_record_curve *curve, double x);

/* Where so many steps of B > 0 samples lead from x, the noise scale times `factor`. */
double adl_record_advance(const struct adl_record_curve *curve, double x, int64_t steps, double B,
                          double factor);

#endif
