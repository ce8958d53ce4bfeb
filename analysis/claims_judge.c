/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/claims.h"
#include "analysis/groups.h"

/* Where an interval of ADL_CLAIM_PER_CENT ends. */
static const double one_sided = 0.025;
static const uint64_t bootstrap_seed = 1;

/* The runs of one question, a pair a seed. */
struct pairs {
    double *of, *over; /* [n] */
    size_t n;
};

struct judging {
    const struct adl_claim *claim;
    const struct adl_results *results;
    const char *dir;
    const double *seeds; /* [n_seeds] that count */
    size_t n_seeds;
    bool primary_only;
    struct adl_err *err;
};

/* Distinct seeds in the order of the plan, at most `limit`, 0: all. */
static size_t find_seeds(const struct adl_results *results, size_t limit, double *out)
{
    size_t n = 0;
    for (size_t i = 0; i < results->n_rows && (limit == 0 || n < limit); i++) {
        const double seed = adl_result_number(results, i, "seed");
        size_t k = 0;
        while (k < n && out[k] != seed)
            k++;
        if (k == n)
            out[n++] = seed;
    }
    return n;
}

enum { NO_ROW = -1 };

/* The run of a variant and seed; NO_ROW where it is not there. */
static enum adl_status find_row(const struct judging *j, const struct adl_claim_ask *ask,
                                const char *variant, double seed, long *out)
{
    *out = NO_ROW;
    for (size_t i = 0; i < j->results->n_rows; i++) {
        if (!j->results->rows[i].present ||
            strcmp(adl_result_text(j->results, i, "variant"), variant) ||
            adl_result_number(j->results, i, "seed") != seed ||
            !adl_claim_at(ask->at, adl_result_text(j->results, i, "point")) ||
            !strcmp(adl_result_text(j->results, i, "status"), "failed"))
            continue;
        if (*out != NO_ROW)
            return adl_fail(j->err, ADL_ERR_INPUT,
                            "%s: claim: asks: '%.80s': variant '%.80s' has more than one run of "
                            "seed %.0f; 'at' must say at which point",
                            j->claim->path, ask->regime, variant, seed);
        *out = (long)i;
    }
    return ADL_OK;
}

/* A run's value, and whether it fell short of what the measure needs. */
static enum adl_status value(const struct judging *j, const struct adl_claim_ask *ask, long row,
                             double *out, bool *fell_short)
{
    enum adl_status status = ADL_OK;
    const struct adl_claim_run run = {.results = j->results,
                                      .row = (size_t)row,
                                      .dir = j->dir,
                                      .from = ask->from,
                                      .to = ask->to,
                                      .least = ask->least,
                                      .status = &status,
                                      .err = j->err};
    const char *ended = adl_result_text(j->results, run.row, "status");
    *out = ask->measure->of(&run);
    *fell_short = !strcmp(ended, "diverged") || !isfinite(*out) ||
                  (ask->measure->kind == ADL_CLAIM_TO_TARGET && strcmp(ended, "target_reached"));
    return status;
}

static enum adl_status add_pair(const struct judging *j, struct adl_claim_answer *answer,
                                double seed, struct pairs *pairs)
{
    const struct adl_claim_ask *ask = answer->ask;
    long of, over = NO_ROW;
    double over_value = 1;
    bool short_of, short_over = false;
    ADL_TRY(find_row(j, ask, ask->of, seed, &of));
    if (*ask->over)
        ADL_TRY(find_row(j, ask, ask->over, seed, &over));
    if (of == NO_ROW || (*ask->over && over == NO_ROW))
        return ADL_OK;
    ADL_TRY(value(j, ask, of, &pairs->of[pairs->n], &short_of));
    if (*ask->over)
        ADL_TRY(value(j, ask, over, &over_value, &short_over));
    answer->unmeasured += !isfinite(over_value) || (!ask->measure->difference && !(over_value > 0));
    pairs->over[pairs->n++] = over_value;
    answer->short_of += short_of;
    answer->short_over += short_over;
    return ADL_OK;
}

static double median_of(const double *v, size_t n)
{
    double *copy = malloc((n ? n : 1) * sizeof *copy);
    if (!copy)
        return NAN;
    memcpy(copy, v, n * sizeof *copy);
    const double median = adl_median(copy, n);
    free(copy);
    return median;
}

static enum adl_status estimate_against(const struct judging *j, const struct pairs *pairs,
                                        const struct adl_claim_ask *ask, double threshold,
                                        struct adl_estimate *out)
{
    const struct adl_question question = {
        .contrast = ask->measure->difference ? ADL_CONTRAST_DIFFERENCE : ADL_CONTRAST_RATIO,
        .location = ADL_LOCATION_MEDIAN,
        .level = ADL_CLAIM_PER_CENT / 100.0,
        .threshold = threshold,
        .seed = bootstrap_seed,
    };
    return *ask->over ? adl_stats_paired(&question, pairs->of, pairs->over, pairs->n, out, j->err)
                      : adl_stats_sample(&question, pairs->of, pairs->n, out, j->err);
}

static enum adl_status estimate(const struct judging *j, const struct pairs *pairs,
                                struct adl_claim_answer *answer)
{
    const struct adl_claim_ask *ask = answer->ask;
    ADL_TRY(estimate_against(j, pairs, ask, ask->threshold, &answer->estimate));
    answer->p = ask->below ? 1 - answer->estimate.p_above : answer->estimate.p_above;
    if (isfinite(ask->upper)) { /* it lies between where neither end can be ruled out */
        struct adl_estimate above;
        ADL_TRY(estimate_against(j, pairs, ask, ask->upper, &above));
        answer->p = fmax(answer->p, 1 - above.p_above);
    }
    return ADL_OK;
}

static enum adl_status answer_one(const struct judging *j, struct pairs *pairs,
                                  struct adl_claim_answer *answer)
{
    pairs->n = 0;
    const bool asked = !j->primary_only || answer->ask == j->claim->asks;
    for (size_t k = 0; asked && k < j->n_seeds; k++)
        ADL_TRY(add_pair(j, answer, j->seeds[k], pairs));
    answer->n = pairs->n;
    answer->p = answer->adjusted = 1;
    answer->of = answer->over = answer->estimate.value = NAN;
    answer->estimate.low = answer->estimate.high = NAN;
    if (answer->n == 0)
        return ADL_OK;
    if (*answer->ask->over && answer->unmeasured == 0)
        answer->over = median_of(pairs->over, pairs->n);
    if (answer->short_of > 0 || answer->unmeasured > 0)
        return ADL_OK;
    answer->of = median_of(pairs->of, pairs->n);
    if (answer->n < 2)
        return adl_fail(j->err, ADL_ERR_INPUT,
                        "%s: claim: asks: '%.80s': one seed has no interval; run 2 or more",
                        j->claim->path, answer->ask->regime);
    return estimate(j, pairs, answer);
}

/* Holm's correction over the secondary questions that were run. */
static enum adl_status correct(const struct judging *j, struct adl_claim_answer *answers)
{
    const size_t n = j->claim->n;
    double *p = calloc(2 * n, sizeof *p), *adjusted = p + n;
    size_t asked = 0;
    if (!p)
        return adl_fail(j->err, ADL_ERR_NOMEM, "no memory to judge a claim");
    for (size_t i = 1; i < n; i++)
        if (answers[i].n > 0)
            p[asked++] = answers[i].p;
    adl_stats_holm(p, asked, adjusted);
    asked = 0;
    answers[0].adjusted = answers[0].p;
    for (size_t i = 1; i < n; i++)
        if (answers[i].n > 0)
            answers[i].adjusted = adjusted[asked++];
    for (size_t i = 0; i < n; i++)
        answers[i].holds = answers[i].n > 0 && answers[i].adjusted < one_sided;
    free(p);
    return ADL_OK;
}

static enum adl_status judge(const struct judging *j, struct adl_claim_answer *answers)
{
    const size_t n = j->n_seeds ? j->n_seeds : 1;
    struct pairs pairs = {.of = calloc(n, sizeof(double)), .over = calloc(n, sizeof(double))};
    enum adl_status status = ADL_OK;
    if (!pairs.of || !pairs.over)
        status = adl_fail(j->err, ADL_ERR_NOMEM, "no memory to judge a claim");
    for (size_t i = 0; i < j->claim->n && status == ADL_OK; i++) {
        answers[i] = (struct adl_claim_answer){.ask = &j->claim->asks[i]};
        status = answer_one(j, &pairs, &answers[i]);
    }
    if (status == ADL_OK)
        status = correct(j, answers);
    free(pairs.of);
    free(pairs.over);
    return status;
}

enum adl_status adl_claim_judge(const struct adl_claim *claim, const char *dir, bool quick,
                                size_t quick_seeds, struct adl_claim_answer *answers,
                                struct adl_err *err)
{
    struct adl_results *results;
    ADL_TRY(adl_results_load(dir, &results, err));
    double *numbers = calloc(results->n_rows, sizeof *numbers);
    enum adl_status status = ADL_OK;
    if (numbers) {
        const struct judging judging = {.claim = claim,
                                        .results = results,
                                        .dir = dir,
                                        .seeds = numbers,
                                        .n_seeds =
                                            find_seeds(results, quick ? quick_seeds : 0, numbers),
                                        .primary_only = quick,
                                        .err = err};
        status = judge(&judging, answers);
    } else {
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to judge a claim");
    }
    free(numbers);
    adl_results_free(results);
    return status;
}
