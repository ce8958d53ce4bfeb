/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/results.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/leaves.h"

/* First in every table, whether or not a summary has them: a failed run has little more. */
static const char *const first_columns[] = {"run_id", "name",      "variant", "point", "platform",
                                            "method", "transport", "seed",    "status"};
enum { N_FIRST = sizeof first_columns / sizeof *first_columns };

/* What is being filled by the leaves of one file. */
struct filling {
    struct adl_results *results;
    struct adl_result_row *row; /* NULL while reading the plan: its leaves say which */
    size_t next_column;         /* where the next key probably is: summaries are alike */
};

static enum adl_status no_memory(struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_NOMEM, "no memory for the results");
}

static enum adl_status find_column(struct adl_results *results, const char *name, size_t hint,
                                   size_t *out, struct adl_err *err)
{
    if (hint < results->n_columns && strcmp(results->columns[hint], name) == 0) {
        *out = hint;
        return ADL_OK;
    }
    for (size_t i = 0; i < results->n_columns; i++)
        if (strcmp(results->columns[i], name) == 0) {
            *out = i;
            return ADL_OK;
        }
    char **columns = realloc(results->columns, (results->n_columns + 1) * sizeof *columns);
    if (!columns)
        return no_memory(err);
    results->columns = columns;
    columns[results->n_columns] = strdup(name);
    if (!columns[results->n_columns])
        return no_memory(err);
    *out = results->n_columns++;
    return ADL_OK;
}

static enum adl_status set_text(char **cell, const char *text, struct adl_err *err)
{
    free(*cell);
    *cell = text ? strdup(text) : NULL;
    return text && !*cell ? no_memory(err) : ADL_OK;
}

static enum adl_status set_cell(struct filling *f, const char *path, const char *text,
                                struct adl_err *err)
{
    char name[512];
    snprintf(name, sizeof name, "%s", path);
    for (char *c = name; *c; c++)
        if (*c == '.')
            *c = '_';
    size_t column;
    ADL_TRY(find_column(f->results, name, f->next_column, &column, err));
    f->next_column = column + 1;
    struct adl_result_row *row = f->row;
    if (column >= row->n_cells) {
        size_t n = f->results->n_columns;
        char **cells = realloc(row->cells, n * sizeof *cells);
        if (!cells)
            return no_memory(err);
        memset(cells + row->n_cells, 0, (n - row->n_cells) * sizeof *cells);
        row->cells = cells;
        row->n_cells = n;
    }
    return set_text(&row->cells[column], text, err);
}

static enum adl_status add_row(struct adl_results *results, struct adl_err *err)
{
    struct adl_result_row *rows = realloc(results->rows, (results->n_rows + 1) * sizeof *rows);
    if (!rows)
        return no_memory(err);
    results->rows = rows;
    rows[results->n_rows++] = (struct adl_result_row){0};
    return ADL_OK;
}

static enum adl_status add_swept(struct adl_results *results, const char *key, struct adl_err *err)
{
    char **swept = realloc(results->swept, (results->n_swept + 1) * sizeof *swept);
    if (!swept)
        return no_memory(err);
    results->swept = swept;
    swept[results->n_swept] = strdup(key);
    if (!swept[results->n_swept])
        return no_memory(err);
    results->n_swept++;
    return ADL_OK;
}

static enum adl_status plan_leaf(void *arg, const char *path, const char *text, struct adl_err *err)
{
    struct filling *f = arg;
    struct adl_results *results = f->results;
    if (strcmp(path, "name") == 0)
        return set_text(&results->name, text, err);
    if (strcmp(path, "comment") == 0)
        return set_text(&results->comment, text, err);
    if (strncmp(path, "swept.", 6) == 0)
        return add_swept(results, text, err);
    size_t run;
    int key_at = 0;
    if (sscanf(path, "runs.%zu.%n", &run, &key_at) != 1 || key_at == 0)
        return ADL_OK;
    if (run == results->n_rows)
        ADL_TRY(add_row(results, err));
    f->row = &results->rows[run];
    return set_cell(f, path + key_at, text, err);
}

static enum adl_status run_leaf(void *arg, const char *path, const char *text, struct adl_err *err)
{
    return set_cell(arg, path, text, err);
}

/* A run's summary or, without one, its failure. */
static enum adl_status load_run(const char *dir, struct adl_results *results, size_t i,
                                struct adl_err *err)
{
    static const char *const files[] = {"summary.json", "failed.json"};
    struct adl_result_row *row = &results->rows[i];
    const char *id = adl_result_text(results, i, "run_id");
    if (!*id)
        return adl_fail(err, ADL_ERR_INPUT, "%s/plan.json: run %zu has no run_id", dir, i);
    for (int k = 0; k < 2 && !row->present; k++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/runs/%s/%s", dir, id, files[k]);
        if (access(path, F_OK) != 0)
            continue;
        struct filling f = {.results = results, .row = row};
        ADL_TRY(adl_leaves_load(path, run_leaf, &f, err));
        row->present = true;
    }
    return ADL_OK;
}

/* The value of a key in a resolved experiment ("key: value  # origin" lines); "" if absent. */
static void resolved_value(FILE *in, const char *key, char *out, size_t size)
{
    char line[4096];
    size_t n = strlen(key);
    *out = '\0';
    rewind(in);
    while (fgets(line, sizeof line, in))
        if (strncmp(line, key, n) == 0 && line[n] == ':') {
            char *value = line + n + 1 + strspn(line + n + 1, " ");
            value[strcspn(value, " #\n")] = '\0';
            snprintf(out, size, "%s", value);
            return;
        }
}

static bool is_zero_or_absent(FILE *in, const char *key)
{
    char value[64];
    resolved_value(in, key, value, sizeof value);
    return !*value || strtod(value, NULL) == 0;
}

/* Judged by the first run that left its resolved experiment. */
static bool find_homogeneous_quadratic(const char *dir, const struct adl_results *results)
{
    for (size_t i = 0; i < results->n_rows; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/runs/%s/experiment.yaml", dir,
                 adl_result_text(results, i, "run_id"));
        FILE *in = fopen(path, "r");
        if (!in)
            continue;
        char kind[64];
        resolved_value(in, "model.kind", kind, sizeof kind);
        bool yes = strcmp(kind, "quadratic") == 0 &&
                   is_zero_or_absent(in, "model.hetero.curvature") &&
                   is_zero_or_absent(in, "model.hetero.shift");
        fclose(in);
        return yes;
    }
    return false;
}

static enum adl_status load(const char *dir, struct adl_results *results, struct adl_err *err)
{
    size_t column;
    for (size_t i = 0; i < N_FIRST; i++)
        ADL_TRY(find_column(results, first_columns[i], i, &column, err));
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/plan.json", dir);
    struct filling f = {.results = results};
    ADL_TRY(adl_leaves_load(path, plan_leaf, &f, err));
    if (!results->name || results->n_rows == 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: not a sweep's plan: no name or no runs", path);
    for (size_t i = 0; i < results->n_rows; i++)
        ADL_TRY(load_run(dir, results, i, err));
    results->homogeneous_quadratic = find_homogeneous_quadratic(dir, results);
    return ADL_OK;
}

enum adl_status adl_results_load(const char *dir, struct adl_results **out, struct adl_err *err)
{
    struct adl_results *results = calloc(1, sizeof *results);
    if (!results)
        return no_memory(err);
    enum adl_status status = load(dir, results, err);
    if (status == ADL_OK)
        *out = results;
    else
        adl_results_free(results);
    return status;
}

void adl_results_free(struct adl_results *results)
{
    if (!results)
        return;
    for (size_t i = 0; i < results->n_rows; i++) {
        for (size_t k = 0; k < results->rows[i].n_cells; k++)
            free(results->rows[i].cells[k]);
        free(results->rows[i].cells);
    }
    for (size_t k = 0; k < results->n_columns; k++)
        free(results->columns[k]);
    for (size_t k = 0; k < results->n_swept; k++)
        free(results->swept[k]);
    free(results->swept);
    free(results->rows);
    free(results->columns);
    free(results->name);
    free(results->comment);
    free(results);
}

const char *adl_result_text(const struct adl_results *results, size_t row, const char *column)
{
    const struct adl_result_row *r = &results->rows[row];
    for (size_t k = 0; k < r->n_cells; k++)
        if (strcmp(results->columns[k], column) == 0)
            return r->cells[k] ? r->cells[k] : "";
    return "";
}

double adl_result_number(const struct adl_results *results, size_t row, const char *column)
{
    const char *text = adl_result_text(results, row, column);
    char *end;
    double value = strtod(text, &end);
    return end == text || *end ? NAN : value;
}

static bool begins_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    return strncmp(text, key, n) == 0 && text[n] == '=';
}

/* Where the next "KEY=VALUE" of a point begins; values may hold blanks. */
static const char *next_pair(const struct adl_results *results, const char *text)
{
    while ((text = strchr(text, ' ')) != NULL) {
        text++;
        for (size_t k = 0; k < results->n_swept; k++)
            if (begins_key(text, results->swept[k]))
                return text;
    }
    return NULL;
}

char *adl_result_point_without(const struct adl_results *results, size_t row, const char *key,
                               bool *had)
{
    const char *pair = adl_result_text(results, row, "point");
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    *had = false;
    if (!out)
        return NULL;
    const char *between = "";
    for (const char *next; pair && *pair; pair = next) {
        next = next_pair(results, pair);
        const size_t n = next ? (size_t)(next - 1 - pair) : strlen(pair);
        if (begins_key(pair, key)) {
            *had = true;
            continue;
        }
        fprintf(out, "%s%.*s", between, (int)n, pair);
        between = " ";
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

static void write_cell(const char *text, FILE *out)
{
    if (!text[strcspn(text, ",\"\r\n")]) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

void adl_results_write_csv(const struct adl_results *results, FILE *out)
{
    for (size_t k = 0; k < results->n_columns; k++)
        fprintf(out, "%s%s", k ? "," : "", results->columns[k]);
    fputc('\n', out);
    for (size_t i = 0; i < results->n_rows; i++) {
        const struct adl_result_row *row = &results->rows[i];
        if (!row->present)
            continue;
        for (size_t k = 0; k < results->n_columns; k++) {
            if (k > 0)
                fputc(',', out);
            if (k < row->n_cells && row->cells[k])
                write_cell(row->cells[k], out);
        }
        fputc('\n', out);
    }
}
