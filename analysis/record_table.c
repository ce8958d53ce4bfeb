/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/record_table.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/records.h"

struct window { /* the rounds since the last row */
    double S, U, samples, steps;
    int64_t rounds, measured;
};

struct table {
    const char *path;
    int line;
    double tokens_per_sample;
    int64_t least; /* rounds of a row */
    struct window window;
    double start_loss; /* held back until there is noise for it; NAN: none */
    int64_t rows;
    FILE *out;
    struct adl_err *err;
};

static enum adl_status take_run(const struct table *t, const char *line)
{
    double trainers;
    if (adl_record_number(line, "trainers", &trainers) && trainers > 1)
        return adl_fail(t->err, ADL_ERR_INPUT,
                        "%s:%d: a run of %g trainers; only one of trainers: 1 is a record of one "
                        "training",
                        t->path, t->line, trainers);
    return ADL_OK;
}

static enum adl_status take_round(struct table *t, const char *line)
{
    double samples, steps, S, U;
    if (!adl_record_number(line, "samples", &samples) ||
        !adl_record_number(line, "inner_steps", &steps))
        return adl_fail(t->err, ADL_ERR_INPUT, "%s:%d: a round without samples and inner_steps",
                        t->path, t->line);
    t->window.samples += samples;
    t->window.steps += steps;
    t->window.rounds++;
    if (!adl_record_number(line, "S", &S) || !adl_record_number(line, "U", &U))
        return ADL_OK;
    if (steps > 1 && adl_record_says(line, "statistic", "pseudo_gradient"))
        return adl_fail(t->err, ADL_ERR_INPUT,
                        "%s:%d: pseudo-gradients of %g steps, which do not tell the noise scale of "
                        "a gradient: record with batch.statistic: gradient or micro_batch",
                        t->path, t->line, steps);
    t->window.S += S;
    t->window.U += U;
    t->window.measured++;
    return ADL_OK;
}

static void put_row(const struct table *t, double tokens, double loss)
{
    const struct window *w = &t->window;
    const double batch = w->samples / w->steps, T = t->tokens_per_sample;
    fprintf(t->out, "%.10g,%.7g,%.5g,%.6g,%.5g\n", tokens, loss, fmax(w->S, 0) / w->U * T,
            batch * T, sqrt(w->U / (double)w->measured));
}

static void take_eval(struct table *t, const char *line)
{
    double loss, samples;
    if (!adl_record_number(line, "loss", &loss) || !adl_record_number(line, "samples", &samples))
        return; /* a run that has diverged has none */
    if (samples == 0) {
        t->start_loss = loss;
        return;
    }
    if (t->window.rounds < t->least || !(t->window.U > 0))
        return;
    if (!isnan(t->start_loss))
        put_row(t, 0, t->start_loss);
    t->start_loss = NAN;
    put_row(t, samples * t->tokens_per_sample, loss);
    t->rows++;
    t->window = (struct window){0};
}

static enum adl_status take_lines(struct table *t, FILE *in)
{
    char *line = NULL;
    size_t size = 0;
    enum adl_status status = ADL_OK;
    while (status == ADL_OK && getline(&line, &size, in) > 0) {
        t->line++;
        if (adl_record_is(line, "run"))
            status = take_run(t, line);
        else if (adl_record_is(line, "round"))
            status = take_round(t, line);
        else if (adl_record_is(line, "eval"))
            take_eval(t, line);
    }
    free(line);
    return status;
}

enum adl_status adl_record_table(const char *path, double tokens_per_sample, int64_t window,
                                 FILE *out, struct adl_err *err)
{
    struct table table = {.path = path,
                          .tokens_per_sample = tokens_per_sample,
                          .least = window,
                          .start_loss = NAN,
                          .out = out,
                          .err = err};
    FILE *in = fopen(path, "r");
    if (!in)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path, strerror(errno));
    fprintf(out, "tokens,loss,noise_scale_tokens,batch_tokens,gradient_norm\n");
    const enum adl_status status = take_lines(&table, in);
    fclose(in);
    if (status == ADL_OK && table.rows == 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s: no gradient noise was measured in it: record with a batch policy that "
                        "measures, or with batch.observe: true",
                        path);
    return status;
}
