/* SPDX-License-Identifier: Apache-2.0 */
/* A run's loss over its course, from the "eval" rows of its records. */
#ifndef ADL_ANALYSIS_CURVES_H
#define ADL_ANALYSIS_CURVES_H

#include <stddef.h>

#include "core/status.h"

enum adl_axis { ADL_AXIS_TIME, ADL_AXIS_SAMPLES, ADL_AXIS_EXCHANGES, ADL_N_AXES };

struct adl_point {
    double x[ADL_N_AXES]; /* NAN where the row lacks it */
    double loss;
};
struct adl_curve {
    struct adl_point *v; /* [n] in the order of the rows */
    size_t n;
};

/* Reads DIR/runs/RUN_ID/records.jsonl. A last line that was cut off (a killed run) is left out;
 * any other broken line: ADL_ERR_INPUT with file and line. */
enum adl_status adl_curve_load(const char *path, struct adl_curve *out, struct adl_err *err);
void adl_curve_free(struct adl_curve *curve);

#endif
