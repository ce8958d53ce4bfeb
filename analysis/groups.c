/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_nan_last(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

double adl_median(double *v, size_t n)
{
    if (n == 0)
        return NAN;
    qsort(v, n, sizeof *v, compare_nan_last);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

/* A run's value. */
static double measure(const struct adl_results *results, size_t row, enum adl_measure what,
                      bool has_target)
{
    double sync_s;
    switch (what) {
    case ADL_MEASURE_EXCHANGES:
        return adl_result_number(results, row, has_target ? "exchanges_to_target" : "exchanges");
    case ADL_MEASURE_ROUNDS:
        return adl_result_number(results, row, "exchange_rounds");
    case ADL_MEASURE_WIRE:
        return adl_result_number(results, row, "wire_bytes");
    case ADL_MEASURE_TIME:
        return adl_result_number(results, row, has_target ? "time_to_target_s" : "time_s");
    case ADL_MEASURE_SYNC:
    case ADL_MEASURE_SHARE:
        sync_s = adl_result_number(results, row, "sync_delay_s_sum") /
                 adl_result_number(results, row, "world");
        if (what == ADL_MEASURE_SYNC)
            return sync_s;
        return sync_s / adl_result_number(results, row, "time_s");
    case ADL_MEASURE_SAMPLES:
        return adl_result_number(results, row, has_target ? "samples_to_target" : "samples");
    case ADL_MEASURE_BATCH:
        return adl_result_number(results, row, "batch_final");
    default:
        return NAN;
    }
}

static struct adl_group *find_group(const struct adl_groups *groups, const char *platform,
                                    const char *variant, const char *point)
{
    for (size_t i = 0; i < groups->n; i++) {
        struct adl_group *g = &groups->v[i];
        if (strcmp(g->point, point) == 0 && strcmp(g->variant, variant) == 0 &&
            strcmp(g->platform, platform) == 0)
            return g;
    }
    return NULL;
}

static void count(struct adl_group *g, const char *status)
{
    g->n_done += strcmp(status, "") != 0;
    g->n_diverged += strcmp(status, "diverged") == 0;
    g->n_failed += strcmp(status, "failed") == 0;
}

/* Puts a row into its group; rows and groups have room for every row. */
static enum adl_status put_row(const struct adl_results *results, size_t row,
                               struct adl_groups *groups, struct adl_err *err)
{
    const char *platform = adl_result_text(results, row, "platform");
    const char *variant = adl_result_text(results, row, "variant");
    bool swept; /* the platform has a block of its own */
    char *point = adl_result_point_without(results, row, "cluster.platform", &swept);
    if (!point)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the comparison");
    struct adl_group *g = find_group(groups, platform, variant, point);
    if (g) {
        free(point);
    } else {
        g = &groups->v[groups->n++];
        *g = (struct adl_group){
            .platform = platform, .variant = variant, .point = point, .n_points = 1};
        g->target_loss = adl_result_number(results, row, "target_loss");
    }
    size_t *rows = realloc(g->rows, (g->n_seeds + 1) * sizeof *rows);
    if (!rows)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the comparison");
    g->rows = rows;
    rows[g->n_seeds++] = row;
    count(g, adl_result_text(results, row, "status"));
    g->n_reached += !isnan(adl_result_number(results, row, "time_to_target_s"));
    return ADL_OK;
}

static enum adl_status take_medians(const struct adl_results *results, struct adl_group *g,
                                    bool has_target, struct adl_err *err)
{
    double *values = malloc(g->n_seeds * sizeof *values);
    if (!values)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the comparison");
    for (int m = 0; m < ADL_N_MEASURES; m++) {
        for (size_t k = 0; k < g->n_seeds; k++)
            values[k] = measure(results, g->rows[k], m, has_target);
        g->median[m] = adl_median(values, g->n_seeds);
    }
    free(values);
    return ADL_OK;
}

/* Brings together what belongs together, keeping the order of first appearance: blocks by
 * platform, in them lines by variant. Insertion, because groups nearly are in order. */
static void order(struct adl_groups *groups)
{
    for (int by_variant = 0; by_variant < 2; by_variant++)
        for (size_t i = 1; i < groups->n; i++) {
            struct adl_group g = groups->v[i];
            size_t to = i;
            for (size_t k = 0; k < i; k++)
                if (strcmp(groups->v[k].platform, g.platform) == 0 &&
                    (!by_variant || strcmp(groups->v[k].variant, g.variant) == 0))
                    to = k + 1;
            memmove(&groups->v[to + 1], &groups->v[to], (i - to) * sizeof g);
            groups->v[to] = g;
        }
}

enum adl_status adl_groups_make(const struct adl_results *results, struct adl_groups *out,
                                struct adl_err *err)
{
    *out = (struct adl_groups){.v = calloc(results->n_rows, sizeof *out->v)};
    enum adl_status status =
        out->v ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for the comparison");
    for (size_t i = 0; i < results->n_rows && status == ADL_OK; i++) {
        out->has_target |= !isnan(adl_result_number(results, i, "target_loss"));
        status = put_row(results, i, out, err);
    }
    for (size_t i = 0; i < out->n && status == ADL_OK; i++)
        status = take_medians(results, &out->v[i], out->has_target, err);
    if (status == ADL_OK)
        order(out);
    else
        adl_groups_free(out);
    return status;
}

void adl_groups_free(struct adl_groups *groups)
{
    for (size_t i = 0; i < groups->n; i++) {
        free(groups->v[i].point);
        free(groups->v[i].rows);
    }
    free(groups->v);
    *groups = (struct adl_groups){0};
}

bool adl_group_complete(const struct adl_group *group)
{
    return group->n_reached == group->n_seeds;
}

static bool better(const struct adl_group *a, const struct adl_group *b)
{
    if (a->n_reached != b->n_reached)
        return a->n_reached > b->n_reached;
    double x = a->median[ADL_MEASURE_TIME], y = b->median[ADL_MEASURE_TIME];
    return x < y || (isnan(y) && !isnan(x));
}

void adl_groups_choose(struct adl_groups *groups)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < groups->n; i = end) {
        const struct adl_group *first = &groups->v[i];
        size_t best = i;
        for (end = i + 1; end < groups->n && strcmp(groups->v[end].variant, first->variant) == 0 &&
                          strcmp(groups->v[end].platform, first->platform) == 0;
             end++)
            if (better(&groups->v[end], &groups->v[best]))
                best = end;
        bool grid = end - i > ADL_GRID_POINTS;
        for (size_t k = i; k < end; k++) {
            if (grid && k != best) {
                free(groups->v[k].point);
                free(groups->v[k].rows);
                continue;
            }
            struct adl_group g = groups->v[k];
            g.n_points = grid ? end - i : 1;
            groups->v[kept++] = g;
        }
    }
    groups->n = kept;
}

size_t adl_group_median_row(const struct adl_results *results, const struct adl_group *group)
{
    size_t rank = group->n_reached ? (group->n_reached - 1) / 2 : 0;
    for (size_t k = 0; k < group->n_seeds && group->n_reached; k++) {
        double time_s = adl_result_number(results, group->rows[k], "time_to_target_s");
        size_t before = 0;
        for (size_t j = 0; j < group->n_seeds; j++) {
            double other_s = adl_result_number(results, group->rows[j], "time_to_target_s");
            before += other_s < time_s || (other_s == time_s && j < k);
        }
        if (!isnan(time_s) && before == rank)
            return group->rows[k];
    }
    return group->rows[0];
}
