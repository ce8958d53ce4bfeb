/* SPDX-License-Identifier: Apache-2.0 */
/* From a run's records to the table that the model `recorded` takes: what a run of one trainer
 * measured of its gradients, beside its loss.
 *
 * A row stands for the rounds from one evaluation to the next (or to a later one, until there are
 * `window` of them): tokens so far; the loss there; the noise scale sum S / sum U over these rounds
 * (theory: numerators and denominators are averaged, never ratios); samples of a step; the gradient
 * norm, the root of the mean U. All in tokens, so that a run with other samples can take it. Rounds
 * whose U is not above 0 together wait for the next row. The first row, at the start, has the noise
 * of the second. */
#ifndef ADL_ANALYSIS_RECORD_TABLE_H
#define ADL_ANALYSIS_RECORD_TABLE_H

#include <stdint.h>
#include <stdio.h>

#include "core/status.h"

/* path: records.jsonl. ADL_ERR_INPUT where it is no such file, holds several trainers, or has
 * measured nothing, or pseudo-gradients of several steps, which do not tell the noise scale. */
enum adl_status adl_record_table(const char *path, double tokens_per_sample, int64_t window,
                                 FILE *out, struct adl_err *err);

#endif
