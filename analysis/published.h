/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of published figures: comma-separated text, lines of comment (#) first, then column
 * names, then rows of as many cells. Nothing is quoted in them. */
#ifndef ADL_ANALYSIS_PUBLISHED_H
#define ADL_ANALYSIS_PUBLISHED_H

#include <stddef.h>

#include "core/status.h"

struct adl_published {
    char *path;
    char *text;
    const char **columns; /* [n_columns] */
    size_t n_columns;
    const char **cells; /* [n_rows x n_columns] */
    int *lines;         /* [n_rows] of the file */
    size_t n_rows;
};

/* ADL_ERR_INPUT "path:line: cause": missing, a row of another length, no rows. */
enum adl_status adl_published_load(const char *path, struct adl_published *out,
                                   struct adl_err *err);
void adl_published_free(struct adl_published *table);

/* A cell by column name; ADL_ERR_INPUT with file, line and value where the column is missing or
 * the cell is no number. */
enum adl_status adl_published_text(const struct adl_published *table, size_t row,
                                   const char *column, const char **out, struct adl_err *err);
enum adl_status adl_published_number(const struct adl_published *table, size_t row,
                                     const char *column, double *out, struct adl_err *err);

#endif
