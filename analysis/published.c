/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/published.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/units.h"

static size_t count(const char *text, char c)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == c;
    return n;
}

/* The next line that is neither empty nor a comment, terminated; NULL at the end. */
static char *next_line(char **rest, int *number)
{
    while (*rest && **rest) {
        char *line = *rest, *end = strchr(line, '\n');
        *rest = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        ++*number;
        line[strcspn(line, "\r")] = '\0';
        if (*line && *line != '#')
            return line;
    }
    return NULL;
}

/* Cuts a line into at most `room` cells; returns how many there are. */
static size_t split(char *line, const char **cells, size_t room)
{
    size_t n = 0;
    for (char *cell = line; cell; n++) {
        char *comma = strchr(cell, ',');
        if (comma)
            *comma = '\0';
        if (n < room)
            cells[n] = cell;
        cell = comma ? comma + 1 : NULL;
    }
    return n;
}

static enum adl_status read_rows(struct adl_published *t, char *rest, int number,
                                 struct adl_err *err)
{
    char *line;
    while ((line = next_line(&rest, &number))) {
        const size_t n = split(line, t->cells + t->n_rows * t->n_columns, t->n_columns);
        if (n != t->n_columns)
            return adl_fail(err, ADL_ERR_INPUT, "%s:%d: has %zu cells, %zu columns are named",
                            t->path, number, n, t->n_columns);
        t->lines[t->n_rows++] = number;
    }
    return t->n_rows > 0 ? ADL_OK
                         : adl_fail(err, ADL_ERR_INPUT, "%s: holds no row of figures", t->path);
}

static enum adl_status read_table(struct adl_published *t, struct adl_err *err)
{
    const size_t most_rows = count(t->text, '\n') + 1;
    char *rest = t->text;
    int number = 0;
    char *header = next_line(&rest, &number);
    if (!header)
        return adl_fail(err, ADL_ERR_INPUT, "%s: holds no table", t->path);
    t->n_columns = count(header, ',') + 1;
    t->columns = calloc(t->n_columns, sizeof *t->columns);
    t->cells = calloc(most_rows * t->n_columns, sizeof *t->cells);
    t->lines = calloc(most_rows, sizeof *t->lines);
    if (!t->columns || !t->cells || !t->lines)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for its rows", t->path);
    split(header, t->columns, t->n_columns);
    return read_rows(t, rest, number, err);
}

enum adl_status adl_published_load(const char *path, struct adl_published *out, struct adl_err *err)
{
    size_t n;
    *out = (struct adl_published){.path = strdup(path)};
    enum adl_status status = ADL_OK;
    if (!out->path)
        status = adl_fail(err, ADL_ERR_NOMEM, "%s: no memory", path);
    if (status == ADL_OK)
        status = adl_text_read(path, &out->text, &n, err);
    if (status == ADL_OK)
        status = read_table(out, err);
    if (status != ADL_OK)
        adl_published_free(out);
    return status;
}

void adl_published_free(struct adl_published *table)
{
    free(table->path);
    free(table->text);
    free(table->columns);
    free(table->cells);
    free(table->lines);
    *table = (struct adl_published){0};
}

enum adl_status adl_published_text(const struct adl_published *t, size_t row, const char *column,
                                   const char **out, struct adl_err *err)
{
    for (size_t i = 0; i < t->n_columns; i++)
        if (!strcmp(t->columns[i], column)) {
            *out = t->cells[row * t->n_columns + i];
            return ADL_OK;
        }
    return adl_fail(err, ADL_ERR_INPUT, "%s: has no column '%s'", t->path, column);
}

enum adl_status adl_published_number(const struct adl_published *t, size_t row, const char *column,
                                     double *out, struct adl_err *err)
{
    const char *text;
    ADL_TRY(adl_published_text(t, row, column, &text, err));
    if (!adl_units_real(text, strlen(text), NULL, out))
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d: %s: '%s' is not a number", t->path,
                        t->lines[row], column, text);
    return ADL_OK;
}
