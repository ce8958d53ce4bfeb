/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/record_curve.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"

static enum adl_status allocate(struct adl_record_curve *curve, size_t n, struct adl_err *err)
{
    double **columns[] = {&curve->at, &curve->loss, &curve->noise, &curve->batch};
    bool all = true;
    curve->n = n;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        *columns[i] = calloc(n, sizeof **columns[i]);
        all = all && *columns[i];
    }
    return all ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for a record of %zu rows", n);
}

void adl_record_close(struct adl_record_curve *curve)
{
    free(curve->at);
    free(curve->loss);
    free(curve->noise);
    free(curve->batch);
    *curve = (struct adl_record_curve){0};
}

/* A run as they go: the loss falls by a power of the samples, the noise scale grows with their
 * square root. */
static enum adl_status make_up(struct adl_record_curve *curve, struct adl_err *err)
{
    enum { ROWS = 101 };
    ADL_TRY(allocate(curve, ROWS, err));
    for (int i = 0; i < ROWS; i++) {
        const double x = 1e4 * i;
        curve->at[i] = x;
        curve->loss[i] = 2.0 + 6.0 * pow(1.0 + x / 2000.0, -0.4);
        curve->noise[i] = 16.0 * sqrt(1.0 + x / 2000.0);
        curve->batch[i] = 64.0;
    }
    return ADL_OK;
}

/* ---- reading */

struct column {
    size_t index; /* n_columns: there is none */
    double unit;  /* of its numbers, in samples */
};

/* The column of that name, which counts samples, or else the one that counts tokens. */
static struct column find_column(const struct adl_csv *csv, const char *samples, const char *tokens,
                                 double tokens_per_sample)
{
    const size_t index = adl_csv_find(csv, samples);
    if (index < csv->n_columns)
        return (struct column){index, 1.0};
    return (struct column){adl_csv_find(csv, tokens), 1.0 / tokens_per_sample};
}

struct columns {
    struct column at, loss, noise, batch;
};

static enum adl_status find_columns(const struct adl_csv *csv, double T, struct columns *out,
                                    struct adl_err *err)
{
    *out = (struct columns){.at = find_column(csv, "samples", "tokens", T),
                            .loss = find_column(csv, "loss", "loss", 1.0),
                            .noise = find_column(csv, "noise_scale", "noise_scale_tokens", T),
                            .batch = find_column(csv, "batch", "batch_tokens", T)};
    const char *missing = out->at.index == csv->n_columns      ? "tokens"
                          : out->loss.index == csv->n_columns  ? "loss"
                          : out->noise.index == csv->n_columns ? "noise_scale"
                                                               : NULL;
    if (missing)
        return adl_fail(
            err, ADL_ERR_INPUT,
            "%s:%d:1: no column '%s'; a record has tokens or samples, loss, noise_scale "
            "or noise_scale_tokens, and perhaps batch or batch_tokens",
            csv->path, csv->names[0].line, missing);
    return ADL_OK;
}

static enum adl_status take_number(const struct adl_csv *csv, size_t row, struct column column,
                                   double least, double *out, struct adl_err *err)
{
    ADL_TRY(adl_csv_number(csv, row, column.index, least, 1e24, out, err));
    *out *= column.unit;
    return ADL_OK;
}

static enum adl_status take_row(const struct adl_csv *csv, const struct columns *columns,
                                size_t row, double batch, struct adl_record_curve *curve,
                                struct adl_err *err)
{
    ADL_TRY(take_number(csv, row, columns->at, 0.0, &curve->at[row], err));
    ADL_TRY(take_number(csv, row, columns->loss, -1e24, &curve->loss[row], err));
    ADL_TRY(take_number(csv, row, columns->noise, 0.0, &curve->noise[row], err));
    curve->batch[row] = batch;
    if (columns->batch.index < csv->n_columns)
        ADL_TRY(take_number(csv, row, columns->batch, 1.0, &curve->batch[row], err));
    if (row == 0 || curve->at[row] > curve->at[row - 1])
        return ADL_OK;
    const size_t at = columns->at.index;
    const struct adl_csv_cell *cell = adl_csv_cell(csv, row, at);
    return adl_fail(err, ADL_ERR_INPUT,
                    "%s:%d:%d: %.40s: '%.40s' is not above the row before, '%.40s'", csv->path,
                    cell->line, cell->column, csv->names[at].text, cell->text,
                    adl_csv_cell(csv, row - 1, at)->text);
}

static enum adl_status take_table(const struct adl_csv *csv, const struct adl_record_source *source,
                                  struct adl_record_curve *curve, struct adl_err *err)
{
    struct columns columns;
    ADL_TRY(find_columns(csv, source->tokens_per_sample, &columns, err));
    if (csv->n_rows < 2)
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d:1: one row; a record needs 2 at least",
                        csv->path, csv->cells[0].line);
    ADL_TRY(allocate(curve, csv->n_rows, err));
    for (size_t row = 0; row < csv->n_rows; row++)
        ADL_TRY(take_row(csv, &columns, row, source->batch, curve, err));
    return ADL_OK;
}

enum adl_status adl_record_open(const struct adl_record_source *source,
                                struct adl_record_curve *curve, struct adl_err *err)
{
    struct adl_csv *csv = NULL;
    if (strcmp(source->data, "synthetic") == 0)
        return make_up(curve, err);
    ADL_TRY(adl_csv_read(source->data, source->base_dir, &csv, err));
    const enum adl_status status = take_table(csv, source, curve, err);
    adl_csv_free(csv);
    return status;
}

/* ---- following */

/* The segment that holds x: its first row; the first or the last one for what lies outside. */
static size_t segment_of(const struct adl_record_curve *curve, double x)
{
    size_t low = 0, high = curve->n - 1;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        *(x >= curve->at[middle] ? &low : &high) = middle;
    }
    return low;
}

static double between(const double *column, size_t i, double part)
{
    const double inside = fmin(fmax(part, 0.0), 1.0);
    return column[i] + inside * (column[i + 1] - column[i]);
}

struct adl_record_point adl_record_at(const struct adl_record_curve *curve, double x)
{
    if (isnan(x))
        return (struct adl_record_point){NAN, NAN, NAN, NAN};
    const size_t i = segment_of(curve, x), last = curve->n - 1;
    const double length = curve->at[i + 1] - curve->at[i], part = (x - curve->at[i]) / length;
    struct adl_record_point point = {.slope = (curve->loss[i + 1] - curve->loss[i]) / length,
                                     .noise = between(curve->noise, i, part),
                                     .batch = between(curve->batch, i, part)};
    point.loss = curve->loss[i] + point.slope * (x - curve->at[i]);
    if (x >= curve->at[last]) {
        point.loss = curve->loss[last];
        point.slope = 0.0;
    }
    return point;
}

double adl_record_advance(const struct adl_record_curve *curve, double x, int64_t steps, double B,
                          double factor)
{
    for (int64_t k = 0; k < steps; k++) {
        const struct adl_record_point here = adl_record_at(curve, x);
        const double N = factor * here.noise, gain = B * (here.batch + N) / (B + N);
        if (!(x < curve->at[curve->n - 1])) /* nothing changes any more */
            return x + (double)(steps - k) * gain;
        x += gain;
    }
    return x;
}
