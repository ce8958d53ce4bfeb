/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/logistic_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/csv.h"

enum { MAX_CLASSES = 1000 };

static enum adl_status allocate(struct adl_logistic_data *data, struct adl_err *err)
{
    data->x = calloc(data->n * data->D, sizeof *data->x);
    data->y = calloc(data->n, sizeof *data->y);
    data->of_class = calloc(data->n, sizeof *data->of_class);
    if (!data->x || !data->y || !data->of_class)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu samples of %zu features", data->n,
                        data->D);
    return ADL_OK;
}

/* Lists the samples of each class; needs y and K. */
static enum adl_status list_classes(struct adl_logistic_data *data, struct adl_err *err)
{
    size_t at = 0;
    data->class_end = calloc(data->K, sizeof *data->class_end);
    if (!data->class_end)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu classes", data->K);
    for (size_t k = 0; k < data->K; k++) {
        for (size_t i = 0; i < data->n; i++)
            if (data->y[i] == (int)k)
                data->of_class[at++] = i;
        data->class_end[k] = at;
    }
    return ADL_OK;
}

void adl_logistic_data_free(struct adl_logistic_data *data)
{
    free(data->x);
    free(data->y);
    free(data->of_class);
    free(data->class_end);
    *data = (struct adl_logistic_data){0};
}

/* ---- drawn */

/* means [K x features]: directions of length `separation` */
static void draw_means(const struct adl_logistic_mixture *m, double *means)
{
    for (size_t k = 0; k < m->K; k++) {
        const struct adl_rng rng = adl_rng_make(m->seed, ADL_RNG_MODEL_SHAPE, k, 1);
        double *mean = means + k * m->features, norm2 = 0.0;
        adl_rng_normals(&rng, 0, m->features, mean);
        for (size_t j = 0; j < m->features; j++)
            norm2 += mean[j] * mean[j];
        for (size_t j = 0; j < m->features; j++)
            mean[j] *= m->separation / sqrt(norm2);
    }
}

enum adl_status adl_logistic_draw(const struct adl_logistic_mixture *m,
                                  struct adl_logistic_data *data, struct adl_err *err)
{
    data->n = m->n;
    data->D = m->features + 1;
    data->K = m->K;
    ADL_TRY(allocate(data, err));
    double *means = calloc(m->K * m->features, sizeof *means);
    if (!means)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu classes", m->K);
    draw_means(m, means);
    for (size_t i = 0; i < m->n; i++) {
        const struct adl_rng rng = adl_rng_make(m->seed, ADL_RNG_MODEL_SHAPE, i, 2);
        const size_t class = i % m->K;
        double *x = data->x + i * data->D;
        data->y[i] = (int)class;
        adl_rng_normals(&rng, 0, m->features, x);
        for (size_t j = 0; j < m->features; j++)
            x[j] += means[class * m->features + j];
        x[m->features] = 1.0;
    }
    free(means);
    return list_classes(data, err);
}

/* ---- read */

struct names { /* of the classes, as they come */
    const char *text[MAX_CLASSES];
    size_t n;
};

static enum adl_status number_of(struct names *names, const struct adl_csv *csv, size_t row,
                                 size_t column, int *out, struct adl_err *err)
{
    const struct adl_csv_cell *cell = adl_csv_cell(csv, row, column);
    size_t k = 0;
    while (k < names->n && strcmp(names->text[k], cell->text) != 0)
        k++;
    *out = (int)k;
    if (k < names->n)
        return ADL_OK;
    if (!*cell->text)
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d:%d: %.40s: a class is missing", csv->path,
                        cell->line, cell->column, csv->names[column].text);
    if (k == MAX_CLASSES)
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s:%d:%d: %.40s: '%.40s' is one class too many, %d are allowed", csv->path,
                        cell->line, cell->column, csv->names[column].text, cell->text, MAX_CLASSES);
    names->text[names->n++] = cell->text;
    return ADL_OK;
}

static enum adl_status take_row(const struct adl_csv *csv, size_t row, size_t label,
                                struct names *names, struct adl_logistic_data *data,
                                struct adl_err *err)
{
    double *x = data->x + row * data->D;
    for (size_t column = 0; column < csv->n_columns; column++) {
        if (column == label)
            ADL_TRY(number_of(names, csv, row, column, &data->y[row], err));
        else
            ADL_TRY(adl_csv_number(csv, row, column, -1e100, 1e100, x++, err));
    }
    *x = 1.0;
    return ADL_OK;
}

static enum adl_status take_table(const struct adl_csv *csv, const char *label,
                                  struct adl_logistic_data *data, struct adl_err *err)
{
    const size_t column = *label ? adl_csv_find(csv, label) : csv->n_columns - 1;
    struct names names = {.n = 0};
    if (column == csv->n_columns)
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d:1: no column '%.40s', which model.label names",
                        csv->path, csv->names[0].line, label);
    data->n = csv->n_rows;
    data->D = csv->n_columns;
    ADL_TRY(allocate(data, err));
    for (size_t row = 0; row < csv->n_rows; row++)
        ADL_TRY(take_row(csv, row, column, &names, data, err));
    data->K = names.n;
    if (names.n < 2)
        return adl_fail(
            err, ADL_ERR_INPUT, "%s:%d:%d: %.40s: '%.40s' is the only class, 2 at least are needed",
            csv->path, adl_csv_cell(csv, 0, column)->line, adl_csv_cell(csv, 0, column)->column,
            csv->names[column].text, names.text[0]);
    return list_classes(data, err);
}

enum adl_status adl_logistic_load(const char *path, const char *base_dir, const char *label,
                                  struct adl_logistic_data *data, struct adl_err *err)
{
    struct adl_csv *csv = NULL;
    ADL_TRY(adl_csv_read(path, base_dir, &csv, err));
    const enum adl_status status = take_table(csv, label, data, err);
    adl_csv_free(csv);
    return status;
}

/* ---- scaled */

void adl_logistic_standardise(struct adl_logistic_data *data)
{
    const double n = (double)data->n;
    for (size_t j = 0; j + 1 < data->D; j++) {
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < data->n; i++)
            mean += data->x[i * data->D + j] / n;
        for (size_t i = 0; i < data->n; i++)
            variance += pow(data->x[i * data->D + j] - mean, 2.0) / n;
        /* what is left of equal numbers is rounding */
        const bool varies = sqrt(variance) > 1e-12 * fabs(mean);
        for (size_t i = 0; i < data->n; i++) {
            double *x = &data->x[i * data->D + j];
            *x = varies ? (*x - mean) / sqrt(variance) : 0.0;
        }
    }
}
