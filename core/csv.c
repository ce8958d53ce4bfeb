/* SPDX-License-Identifier: Apache-2.0 */
#include "core/csv.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

struct scan {
    struct adl_csv *csv;
    char *at;                   /* the next line */
    int line;                   /* number of the line before it */
    struct adl_csv_cell *cells; /* [n], [capacity] of all lines */
    size_t n, capacity;
    struct adl_err *err;
};

static enum adl_status push(struct scan *s, const char *text, int column)
{
    if (s->n == s->capacity) {
        const size_t capacity = s->capacity ? 2 * s->capacity : 64;
        struct adl_csv_cell *grown = realloc(s->cells, capacity * sizeof *grown);
        if (!grown)
            return adl_fail(s->err, ADL_ERR_NOMEM, "%s: no memory for its cells", s->csv->path);
        s->cells = grown;
        s->capacity = capacity;
    }
    s->cells[s->n++] = (struct adl_csv_cell){text, s->line, column};
    return ADL_OK;
}

static char *skip_spaces(char *at)
{
    return at + strspn(at, " \t");
}

/* Unquotes from the opening quote at `at`; *end: behind the closing one. False: there is none. */
static bool unquote(char *at, char **end)
{
    char *to = at, *from = at + 1;
    for (; *from; from++) {
        if (from[0] == '"' && from[1] != '"') {
            *end = from + 1;
            *to = '\0';
            return true;
        }
        if (*from == '"')
            from++;
        *to++ = *from;
    }
    return false;
}

/* One cell from `at`; *next: behind its comma, or NULL at the line's end. */
static enum adl_status cut_cell(struct scan *s, const char *start, char *at, char **next)
{
    at = skip_spaces(at);
    const int column = (int)(at - start) + 1;
    char *end;
    if (*at == '"') {
        if (!unquote(at, &end))
            return adl_fail(s->err, ADL_ERR_INPUT, "%s:%d:%d: a quote that does not end",
                            s->csv->path, s->line, column);
        end = skip_spaces(end);
        if (*end && *end != ',')
            return adl_fail(s->err, ADL_ERR_INPUT,
                            "%s:%d:%d: '%c' behind a closing quote; a comma is allowed",
                            s->csv->path, s->line, (int)(end - start) + 1, *end);
        *next = *end ? end + 1 : NULL;
        return push(s, at, column);
    }
    end = at + strcspn(at, ",");
    *next = *end ? end + 1 : NULL;
    while (end > at && (end[-1] == ' ' || end[-1] == '\t'))
        end--;
    *end = '\0';
    return push(s, at, column);
}

/* The next line that holds cells, terminated, or NULL. */
static char *next_line(struct scan *s)
{
    while (*s->at) {
        char *start = s->at, *end = start + strcspn(start, "\n");
        s->at = *end ? end + 1 : end;
        s->line++;
        *end = '\0';
        if (end > start && end[-1] == '\r')
            end[-1] = '\0';
        const char first = *skip_spaces(start);
        if (first && first != '#')
            return start;
    }
    return NULL;
}

static enum adl_status read_line(struct scan *s, char *start, size_t *n)
{
    const size_t before = s->n;
    for (char *at = start; at;)
        ADL_TRY(cut_cell(s, start, at, &at));
    *n = s->n - before;
    return ADL_OK;
}

static enum adl_status check_names(struct scan *s)
{
    const struct adl_csv *csv = s->csv;
    for (size_t i = 0; i < csv->n_columns; i++) {
        const struct adl_csv_cell *name = &s->cells[i];
        char *end;
        strtod(name->text, &end);
        if (!*name->text || !*end)
            return adl_fail(s->err, ADL_ERR_INPUT,
                            "%s:%d:%d: '%.40s' where a column's name is needed: the first line "
                            "names the columns",
                            csv->path, name->line, name->column, name->text);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(s->cells[k].text, name->text))
                return adl_fail(s->err, ADL_ERR_INPUT, "%s:%d:%d: a second column '%.40s'",
                                csv->path, name->line, name->column, name->text);
    }
    return ADL_OK;
}

static enum adl_status read_lines(struct scan *s)
{
    struct adl_csv *csv = s->csv;
    char *line = next_line(s);
    if (!line)
        return adl_fail(s->err, ADL_ERR_INPUT,
                        "%s: is empty; a line of names and one of numbers "
                        "at least are needed",
                        csv->path);
    ADL_TRY(read_line(s, line, &csv->n_columns));
    ADL_TRY(check_names(s));
    while ((line = next_line(s))) {
        size_t n;
        ADL_TRY(read_line(s, line, &n));
        if (n != csv->n_columns)
            return adl_fail(s->err, ADL_ERR_INPUT,
                            "%s:%d:1: %zu cells in a line; the first line names %zu columns",
                            csv->path, s->line, n, csv->n_columns);
        csv->n_rows++;
    }
    if (csv->n_rows == 0)
        return adl_fail(s->err, ADL_ERR_INPUT, "%s:%d:1: no line behind the columns' names",
                        csv->path, s->line + 1);
    return ADL_OK;
}

static enum adl_status read_csv(struct adl_csv *csv, const char *path, const char *base_dir,
                                struct adl_err *err)
{
    csv->path = adl_path_from(base_dir, path, strlen(path));
    if (!csv->path)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    size_t size;
    ADL_TRY(adl_text_read(csv->path, &csv->text, &size, err));
    static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8, which some programs write */
    const bool marked = strncmp(csv->text, mark, sizeof mark - 1) == 0;
    struct scan scan = {.csv = csv, .at = csv->text + (marked ? sizeof mark - 1 : 0), .err = err};
    const enum adl_status status = read_lines(&scan);
    csv->names = scan.cells;
    csv->cells = scan.cells ? scan.cells + csv->n_columns : NULL;
    return status;
}

enum adl_status adl_csv_read(const char *path, const char *base_dir, struct adl_csv **out,
                             struct adl_err *err)
{
    struct adl_csv *csv = calloc(1, sizeof *csv);
    if (!csv)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a table");
    const enum adl_status status = read_csv(csv, path, base_dir, err);
    if (status != ADL_OK)
        adl_csv_free(csv);
    else
        *out = csv;
    return status;
}

void adl_csv_free(struct adl_csv *csv)
{
    if (!csv)
        return;
    free(csv->path);
    free(csv->text);
    free(csv->names);
    free(csv);
}

size_t adl_csv_find(const struct adl_csv *csv, const char *name)
{
    size_t i = 0;
    while (i < csv->n_columns && strcmp(csv->names[i].text, name) != 0)
        i++;
    return i;
}

const struct adl_csv_cell *adl_csv_cell(const struct adl_csv *csv, size_t row, size_t column)
{
    return &csv->cells[row * csv->n_columns + column];
}

enum adl_status adl_csv_number(const struct adl_csv *csv, size_t row, size_t column, double least,
                               double most, double *out, struct adl_err *err)
{
    const struct adl_csv_cell *cell = adl_csv_cell(csv, row, column);
    char *end;
    *out = strtod(cell->text, &end);
    if (*cell->text && !*end && isfinite(*out) && *out >= least && *out <= most)
        return ADL_OK;
    char allowed[64] = "";
    if (least > -INFINITY || most < INFINITY)
        snprintf(allowed, sizeof allowed, " from %g to %g", least, most);
    return adl_fail(err, ADL_ERR_INPUT, "%s:%d:%d: %.40s: '%.40s' is not a finite number%s",
                    csv->path, cell->line, cell->column, csv->names[column].text, cell->text,
                    allowed);
}

static enum adl_status find_named(const struct adl_csv *csv, const char *column, size_t *out,
                                  struct adl_err *err)
{
    *out = adl_csv_find(csv, column);
    return *out < csv->n_columns
               ? ADL_OK
               : adl_fail(err, ADL_ERR_INPUT, "%s: has no column '%s'", csv->path, column);
}

enum adl_status adl_csv_named(const struct adl_csv *csv, size_t row, const char *column,
                              const char **out, struct adl_err *err)
{
    size_t i;
    ADL_TRY(find_named(csv, column, &i, err));
    *out = adl_csv_cell(csv, row, i)->text;
    return ADL_OK;
}

enum adl_status adl_csv_named_number(const struct adl_csv *csv, size_t row, const char *column,
                                     double *out, struct adl_err *err)
{
    size_t i;
    ADL_TRY(find_named(csv, column, &i, err));
    return adl_csv_number(csv, row, i, -INFINITY, INFINITY, out, err);
}
