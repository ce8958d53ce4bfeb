/* SPDX-License-Identifier: Apache-2.0 */
/* All runs of a sweep as one table of texts: a row a planned run, a column a key of the
 * summaries, flattened (sync_delay_s.mean -> sync_delay_s_mean). */
#ifndef ADL_ANALYSIS_RESULTS_H
#define ADL_ANALYSIS_RESULTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

struct adl_result_row {
    char **cells; /* [n_cells] by column; NULL where null or absent */
    size_t n_cells;
    bool present; /* complete or failed; a run that was never reached has only its plan */
};

struct adl_results {
    char *name;                 /* of the experiment */
    char *comment;              /* the first comment lines of its file; "" without */
    bool homogeneous_quadratic; /* H is free in this model: theory.md, section 2 */
    char **swept;               /* [n_swept] keys */
    size_t n_swept;
    char **columns; /* [n_columns] */
    size_t n_columns;
    struct adl_result_row *rows; /* [n_rows] in the plan's order */
    size_t n_rows;
};

/* Reads DIR/plan.json and what is there of its runs. Broken or missing: ADL_ERR_INPUT. */
enum adl_status adl_results_load(const char *dir, struct adl_results **out, struct adl_err *err);
void adl_results_free(struct adl_results *results); /* NULL is fine */

/* A cell by column name: "" and NAN where there is none. */
const char *adl_result_text(const struct adl_results *results, size_t row, const char *column);
double adl_result_number(const struct adl_results *results, size_t row, const char *column);

/* A run's point ("KEY=VALUE KEY=VALUE"; values may hold blanks) without one of the swept keys.
 * *had: whether that was in it. malloc'ed; NULL: no memory. */
char *adl_result_point_without(const struct adl_results *results, size_t row, const char *key,
                               bool *had);

/* Comma-separated (RFC 4180): a line of column names, a line a run that is there. */
void adl_results_write_csv(const struct adl_results *results, FILE *out);

#endif
