/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/curves.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/leaves.h"

struct row {
    struct adl_point point;
    bool is_eval;
};

static enum adl_status row_leaf(void *arg, const char *path, const char *text, struct adl_err *err)
{
    (void)err;
    struct row *row = arg;
    double value = text ? strtod(text, NULL) : NAN;
    if (strcmp(path, "row") == 0)
        row->is_eval = text && strcmp(text, "eval") == 0;
    else if (strcmp(path, "loss") == 0)
        row->point.loss = value;
    else if (strcmp(path, "time_s") == 0)
        row->point.x[ADL_AXIS_TIME] = value;
    else if (strcmp(path, "samples") == 0)
        row->point.x[ADL_AXIS_SAMPLES] = value;
    else if (strcmp(path, "exchanges") == 0)
        row->point.x[ADL_AXIS_EXCHANGES] = value;
    return ADL_OK;
}

static enum adl_status add_point(struct adl_curve *curve, size_t *room, const struct adl_point *p,
                                 struct adl_err *err)
{
    if (curve->n == *room) {
        *room = *room ? 2 * *room : 64;
        struct adl_point *v = realloc(curve->v, *room * sizeof *v);
        if (!v)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for a curve");
        curve->v = v;
    }
    curve->v[curve->n++] = *p;
    return ADL_OK;
}

static enum adl_status read_lines(FILE *in, const char *path, struct adl_curve *out,
                                  struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    char *line = NULL;
    size_t size = 0, room = 0;
    ssize_t n;
    for (int number = 1; status == ADL_OK && (n = getline(&line, &size, in)) > 0; number++) {
        if (line[n - 1] != '\n')
            break;
        char name[512];
        snprintf(name, sizeof name, "%s:%d", path, number);
        struct row row = {{{NAN, NAN, NAN}, NAN}, false};
        status = adl_leaves_parse(name, line, row_leaf, &row, err);
        if (status == ADL_OK && row.is_eval)
            status = add_point(out, &room, &row.point, err);
    }
    free(line);
    return status;
}

enum adl_status adl_curve_load(const char *path, struct adl_curve *out, struct adl_err *err)
{
    *out = (struct adl_curve){0};
    FILE *in = fopen(path, "r");
    if (!in)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path, strerror(errno));
    enum adl_status status = read_lines(in, path, out, err);
    fclose(in);
    if (status != ADL_OK)
        adl_curve_free(out);
    return status;
}

void adl_curve_free(struct adl_curve *curve)
{
    free(curve->v);
    *curve = (struct adl_curve){0};
}
