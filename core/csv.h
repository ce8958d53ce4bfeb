/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of comma-separated values, as people and other programs write them: the first line names
 * the columns; cells may stand in double quotes ("" is a quote), spaces around them do not count;
 * empty lines and lines that begin with # are skipped. Every complaint names its place. */
#ifndef ADL_CORE_CSV_H
#define ADL_CORE_CSV_H

#include <stddef.h>

#include "core/status.h"

struct adl_csv_cell {
    const char *text;
    int line, column; /* from 1; column in bytes */
};

struct adl_csv {
    char *path;                 /* as it was opened */
    char *text;                 /* that the cells point into */
    struct adl_csv_cell *names; /* [n_columns] */
    struct adl_csv_cell *cells; /* [n_rows x n_columns] */
    size_t n_columns, n_rows;   /* at least 1 each */
};

/* path: as of adl_path_from. ADL_ERR_INPUT "path:line:column: cause": no file, no row, a line
 * with too few or too many cells, a name that is missing or comes twice, a quote that does not
 * end. */
enum adl_status adl_csv_read(const char *path, const char *base_dir, struct adl_csv **out,
                             struct adl_err *err);
void adl_csv_free(struct adl_csv *csv); /* NULL is fine */

/* Column of that name, or n_columns. */
size_t adl_csv_find(const struct adl_csv *csv, const char *name);
const struct adl_csv_cell *adl_csv_cell(const struct adl_csv *csv, size_t row, size_t column);
/* The cell as a finite number from least to most; else ADL_ERR_INPUT with place, column's name,
 * what was found and what is allowed. */
enum adl_status adl_csv_number(const struct adl_csv *csv, size_t row, size_t column, double least,
                               double most, double *out, struct adl_err *err);

/* A cell, and one as a finite number, by the name of its column, which ADL_ERR_INPUT says is
 * missing where it is. */
enum adl_status adl_csv_named(const struct adl_csv *csv, size_t row, const char *column,
                              const char **out, struct adl_err *err);
enum adl_status adl_csv_named_number(const struct adl_csv *csv, size_t row, const char *column,
                                     double *out, struct adl_err *err);

#endif
