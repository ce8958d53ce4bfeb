/* SPDX-License-Identifier: Apache-2.0 */
/* Swept keys that changed no result: said together with what held the runs up instead, so that
 * nobody takes a faster network for granted where computing is the bottleneck. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/report.h"
#include "analysis/results.h"

/* What must be equal for nothing to have changed: what a run decided, counted and took. */
static const char *const outcomes[] = {"status",     "outer_steps", "samples",    "loss_final",
                                       "time_s",     "exchanges",   "messages",   "wire_bytes",
                                       "transfer_s", "wait_s",      "bottleneck", "batch_final"};

/* A run, by all that a swept key does not say. */
struct entry {
    char *rest;     /* variant, seed, the point without the key */
    bool has_value; /* of the key */
    size_t row;
};

struct entries {
    const struct adl_results *results;
    struct entry *v; /* [n] */
    size_t n;
};

/* Takes the key out of a run's point. False: no memory. */
static bool split(const struct adl_results *results, size_t row, const char *key,
                  struct entry *entry)
{
    *entry = (struct entry){.row = row};
    char *point = adl_result_point_without(results, row, key, &entry->has_value);
    if (!point || asprintf(&entry->rest, "%s\n%s\n%s", adl_result_text(results, row, "variant"),
                           adl_result_text(results, row, "seed"), point) < 0)
        entry->rest = NULL;
    free(point);
    return entry->rest != NULL;
}

static void free_entries(struct entries *e)
{
    for (size_t i = 0; i < e->n; i++)
        free(e->v[i].rest);
    free(e->v);
}

static int by_rest(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->rest, y->rest);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

/* The runs that got to an end and have a value of the key. */
static enum adl_status collect(struct entries *e, const char *key, struct adl_err *err)
{
    const struct adl_results *results = e->results;
    e->v = calloc(results->n_rows + 1, sizeof *e->v);
    if (!e->v)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu runs", results->n_rows);
    for (size_t i = 0; i < results->n_rows; i++) {
        if (!results->rows[i].present ||
            strcmp(adl_result_text(results, i, "status"), "failed") == 0)
            continue;
        struct entry *entry = &e->v[e->n++];
        if (!split(results, i, key, entry))
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for a sweep's points");
        if (!entry->has_value) {
            free(entry->rest);
            e->n--;
        }
    }
    qsort(e->v, e->n, sizeof *e->v, by_rest);
    return ADL_OK;
}

/* Numbers may differ in their last digits: the same sum in another order. */
static bool alike(const struct adl_results *results, size_t a, size_t b)
{
    for (size_t k = 0; k < sizeof outcomes / sizeof *outcomes; k++) {
        double x = adl_result_number(results, a, outcomes[k]);
        double y = adl_result_number(results, b, outcomes[k]);
        bool equal = isnan(x) || isnan(y) ? strcmp(adl_result_text(results, a, outcomes[k]),
                                                   adl_result_text(results, b, outcomes[k])) == 0
                                          : fabs(x - y) <= 1e-9 * fabs(x);
        if (!equal)
            return false;
    }
    return true;
}

/* Whether runs that differ in the key alone all came out alike; no such runs: false. */
static bool changed_nothing(const struct entries *e)
{
    bool compared = false;
    for (size_t first = 0, i = 1; i < e->n; i++) {
        if (strcmp(e->v[i].rest, e->v[first].rest) != 0) {
            first = i;
            continue;
        }
        compared = true;
        if (!alike(e->results, e->v[i].row, e->v[first].row))
            return false;
    }
    return compared;
}

static void tell(const struct entries *e, const char *key, FILE *out)
{
    const char *held_up = adl_result_text(e->results, e->v[0].row, "bottleneck");
    for (size_t i = 1; i < e->n; i++)
        if (strcmp(held_up, adl_result_text(e->results, e->v[i].row, "bottleneck")) != 0)
            held_up = "";
    fprintf(out, "warning: swept key '%s' changed nothing in any run's result%s%s%s\n", key,
            *held_up ? ": what held all of them up was " : "", held_up,
            *held_up ? "" : "; see column bottleneck of results.csv");
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = ADL_OK;
    for (size_t k = 0; k < results->n_swept && status == ADL_OK; k++) {
        struct entries e = {.results = results};
        status = collect(&e, results->swept[k], err);
        if (status == ADL_OK && changed_nothing(&e))
            tell(&e, results->swept[k], out);
        free_entries(&e);
    }
    adl_results_free(results);
    return status;
}

const struct adl_report_ops adl_report_effects = {
    .name = "effects",
    .doc = "a warning for each swept key that changed nothing, with the reason",
    .make = make,
};
