/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/groups.h"
#include "analysis/human.h"
#include "analysis/report.h"

static const struct column {
    const char *title;
    const char *(*format)(double, char *, size_t);
    bool less_is_better;
} columns[ADL_N_MEASURES] = {
    [ADL_MEASURE_EXCHANGES] = {"exchanges", adl_human_count, true},
    [ADL_MEASURE_ROUNDS] = {"rounds", adl_human_count, true},
    [ADL_MEASURE_WIRE] = {"wire", adl_human_bytes, true},
    [ADL_MEASURE_TIME] = {"time", adl_human_seconds, true},
    [ADL_MEASURE_SYNC] = {"sync delay", adl_human_seconds, true},
    [ADL_MEASURE_SHARE] = {"share", adl_human_share, true},
    [ADL_MEASURE_SAMPLES] = {"samples", adl_human_count, true},
    [ADL_MEASURE_BATCH] = {"batch", adl_human_count, false},
};

enum { CELL_BYTES = 32 };
struct cells {
    char v[ADL_N_MEASURES][CELL_BYTES];
};

/* Lines [n] of one platform. */
struct block {
    const struct adl_group *v;
    size_t n;
    bool has_target;
};

/* Only lines that got there with every seed are compared: few exchanges are no merit of a run
 * that diverged. */
static bool may_be_best(const struct block *block, const struct adl_group *g)
{
    return block->has_target ? adl_group_complete(g) : g->n_diverged + g->n_failed == 0;
}

/* The value to mark in a column; NAN where there is nothing to compare. */
static double best(const struct block *block, int measure)
{
    double least = NAN;
    if (block->n < 2 || !columns[measure].less_is_better)
        return NAN;
    for (size_t i = 0; i < block->n; i++) {
        double value = block->v[i].median[measure];
        if (may_be_best(block, &block->v[i]) && (isnan(least) || value < least))
            least = value;
    }
    return least;
}

/* Every cell ends in a mark or a blank, so that the numbers stay aligned. Marked is what reads
 * like the best; where all that are compared read alike, there is no best. */
static void fill_cells(const struct block *block, struct cells *out)
{
    for (int m = 0; m < ADL_N_MEASURES; m++) {
        char least[CELL_BYTES];
        columns[m].format(best(block, m), least, sizeof least);
        size_t n_alike = 0, n_compared = 0;
        for (size_t i = 0; i < block->n; i++) {
            columns[m].format(block->v[i].median[m], out[i].v[m], CELL_BYTES - 1);
            n_compared += may_be_best(block, &block->v[i]);
            n_alike += may_be_best(block, &block->v[i]) && strcmp(out[i].v[m], least) == 0;
        }
        for (size_t i = 0; i < block->n; i++) {
            bool marked = may_be_best(block, &block->v[i]) && columns[m].less_is_better &&
                          n_alike < n_compared && strcmp(out[i].v[m], least) == 0;
            strcat(out[i].v[m], marked ? "*" : " ");
        }
    }
}

static int name_width(const struct block *block)
{
    size_t width = strlen("variant");
    for (size_t i = 0; i < block->n; i++)
        if (strlen(block->v[i].variant) > width)
            width = strlen(block->v[i].variant);
    return (int)width;
}

static int cell_width(const struct block *block, const struct cells *text, int measure)
{
    size_t width = strlen(columns[measure].title) + 1;
    for (size_t i = 0; i < block->n; i++)
        if (strlen(text[i].v[measure]) > width)
            width = strlen(text[i].v[measure]);
    return (int)width;
}

/* What does not fit a column: the swept keys, and runs that went wrong. */
static void print_notes(const struct adl_group *g, FILE *out)
{
    if (*g->point)
        fprintf(out, "  %s", g->point);
    if (g->n_points > 1)
        fprintf(out, " (best of %zu)", g->n_points);
    if (g->n_diverged)
        fprintf(out, "  %zu diverged", g->n_diverged);
    if (g->n_failed)
        fprintf(out, "  %zu failed", g->n_failed);
    if (g->n_done < g->n_seeds)
        fprintf(out, "  %zu not run", g->n_seeds - g->n_done);
    fputc('\n', out);
}

static void print_line(const struct adl_group *g, bool has_target, int width,
                       const struct cells *text, const int *widths, FILE *out)
{
    char seeds[48];
    if (has_target)
        snprintf(seeds, sizeof seeds, "%zu/%zu", g->n_reached, g->n_seeds);
    else
        snprintf(seeds, sizeof seeds, "%zu", g->n_seeds);
    fprintf(out, "%-*s  %7s ", width, *g->variant ? g->variant : "-", seeds);
    for (int m = 0; m < ADL_N_MEASURES; m++)
        fprintf(out, "  %*s", widths[m], text->v[m]);
    print_notes(g, out);
}

static enum adl_status print_block(const struct block *block, FILE *out, struct adl_err *err)
{
    struct cells *text = calloc(block->n, sizeof *text);
    if (!text)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the table");
    fill_cells(block, text);
    int width = name_width(block), widths[ADL_N_MEASURES];
    if (*block->v->platform)
        fprintf(out, "\nOn %s", block->v->platform);
    else
        fprintf(out, "\nWithout a platform");
    if (!isnan(block->v->target_loss))
        fprintf(out, ", to the loss %g", block->v->target_loss);
    fprintf(out, ":\n%-*s  %7s ", width, "variant", block->has_target ? "reached" : "seeds");
    for (int m = 0; m < ADL_N_MEASURES; m++) {
        widths[m] = cell_width(block, text, m);
        fprintf(out, "  %*s ", widths[m] - 1, columns[m].title);
    }
    fputc('\n', out);
    for (size_t i = 0; i < block->n; i++)
        print_line(&block->v[i], block->has_target, width, &text[i], widths, out);
    free(text);
    return ADL_OK;
}

static enum adl_status print_blocks(const struct adl_groups *groups, FILE *out, struct adl_err *err)
{
    for (size_t i = 0, end; i < groups->n; i = end) {
        for (end = i + 1;
             end < groups->n && strcmp(groups->v[end].platform, groups->v[i].platform) == 0;)
            end++;
        struct block block = {&groups->v[i], end - i, groups->has_target};
        ADL_TRY(print_block(&block, out, err));
    }
    return ADL_OK;
}

static void print_legend(const struct adl_results *results, bool has_target, FILE *out)
{
    fprintf(out, "\nMedians over seeds; * marks the best of a column%s.\n",
            has_target ? " among variants that reached the loss with every seed" : "");
    if (has_target)
        fputs("exchanges, time, samples: until the loss was reached; the rest: of the whole run.\n",
              out);
    fputs(
        "exchanges: of all trainers; rounds: the longest chain of them over trainers; wire: bytes\n"
        "sent by all; sync delay: per worker, waiting for others, exposed transfer and outer\n"
        "steps; share: of it in the time; batch: samples per inner step at the end, of all.\n",
        out);
    if (results->homogeneous_quadratic)
        fprintf(out, "\nWhat this model cannot tell: on a homogeneous quadratic the average of "
                     "local SGD is\n"
                     "minibatch SGD, so H (inner.steps) is free. Do not choose H here: the table "
                     "tells what\n"
                     "exchanges cost, who waits for whom, and what batch policies do, no more.\n");
}

static enum adl_status print_table(const struct adl_results *results, FILE *out,
                                   struct adl_err *err)
{
    struct adl_groups groups;
    ADL_TRY(adl_groups_make(results, &groups, err));
    adl_groups_choose(&groups);
    fprintf(out, "%s\n", results->name);
    if (results->comment && *results->comment)
        fprintf(out, "%s\n", results->comment);
    enum adl_status status = print_blocks(&groups, out, err);
    if (status == ADL_OK)
        print_legend(results, groups.has_target, out);
    adl_groups_free(&groups);
    return status;
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = print_table(results, out, err);
    adl_results_free(results);
    return status;
}

const struct adl_report_ops adl_report_table = {
    .name = "table",
    .doc = "a comparison of variants: exchanges, bytes, time to the loss, sync delay",
    .make = make,
};
