/* SPDX-License-Identifier: Apache-2.0 */
#include "core/records.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"

static struct adl_json open_row(FILE *out, const char *row)
{
    struct adl_json j = {.out = out};
    adl_json_open(&j, NULL, '{');
    adl_json_text(&j, "row", row);
    return j;
}

static void close_row(struct adl_json *j)
{
    adl_json_close(j, '}');
    fputc('\n', j->out);
}

void adl_record_run(FILE *out, const struct adl_summary *summary)
{
    struct adl_json j = open_row(out, "run");
    adl_json_text(&j, "run_id", summary->run_id);
    adl_json_text(&j, "name", summary->name);
    adl_json_text(&j, "variant", summary->variant);
    adl_json_text(&j, "method", summary->method);
    adl_json_text(&j, "transport", summary->transport);
    adl_json_int(&j, "seed", summary->seed);
    adl_json_int(&j, "world", summary->world);
    adl_json_int(&j, "trainers", summary->trainers_initial);
    close_row(&j);
}

/* tr C / |grad f|^2, McCandlish et al. 2018; NAN where nothing was measured. */
static double noise_scale(const struct adl_stat *stat)
{
    return stat->S / adl_stat_norm2(stat, true);
}

void adl_record_round(struct adl_controller *c, struct adl_trainer *t,
                      const struct adl_round_plan *plan, const struct adl_record_round *row)
{
    int64_t micro_batches = 0;
    for (int i = 0; i < t->n_workers; i++) {
        int64_t a = c->workers[t->workers[i]].step.micro_batches;
        micro_batches = a > micro_batches ? a : micro_batches;
    }
    bool measured = plan->need != ADL_NEED_NOTHING;
    struct adl_json j = open_row(t->rows, "round");
    adl_json_int(&j, "trainer", t->index);
    adl_json_int(&j, "round", t->round);
    adl_json_int(&j, "workers", t->n_workers);
    adl_json_int(&j, "request", row->before);
    adl_json_int(&j, "batch", plan->B);
    adl_json_int(&j, "micro_batches", micro_batches);
    adl_json_int(&j, "inner_steps", plan->H);
    adl_json_real(&j, "samples", plan->ran);
    adl_json_real(&j, "lr", plan->lr[plan->H - 1]);
    adl_json_real(&j, "S", measured ? row->stat.S : NAN);
    adl_json_real(&j, "U", measured ? row->stat.U : NAN);
    adl_json_real(&j, "G2", measured ? row->stat.G2 : NAN);
    adl_json_text(&j, "statistic", measured ? adl_statistic_names[plan->kind] : NULL);
    adl_json_real(&j, "noise_scale", measured ? noise_scale(&row->stat) : NAN);
    adl_json_real(&j, "gradient_norm", measured ? sqrt(adl_stat_norm2(&row->stat, true)) : NAN);
    adl_json_int(&j, "next_request", t->request);
    adl_json_real(&j, "train_loss", t->train_loss);
    adl_json_real(&j, "loss", t->loss);
    adl_json_real(&j, "time_s", adl_now_s(c));
    close_row(&j);
}

void adl_record_sync(struct adl_trainer *t, enum adl_cause cause, double exchanges,
                     double payload_bytes, double start_s, double end_s)
{
    struct adl_json j = open_row(t->rows, "sync");
    adl_json_int(&j, "trainer", t->index);
    adl_json_int(&j, "round", t->round);
    adl_json_text(&j, "cause", adl_cause_names[cause]);
    adl_json_real(&j, "exchanges", exchanges);
    adl_json_real(&j, "payload_bytes", payload_bytes);
    adl_json_real(&j, "start_s", start_s);
    adl_json_real(&j, "end_s", end_s);
    close_row(&j);
}

void adl_record_merge(struct adl_controller *c, int survivor, int victim, double weight_survivor,
                      double weight_victim, double loss_before, double loss_after)
{
    if (!c->records)
        return;
    struct adl_json j = open_row(c->records, "merge");
    adl_json_int(&j, "survivor", survivor);
    adl_json_int(&j, "victim", victim);
    adl_json_real(&j, "weight_survivor", weight_survivor);
    adl_json_real(&j, "weight_victim", weight_victim);
    adl_json_real(&j, "loss_before", loss_before);
    adl_json_real(&j, "loss_after", loss_after);
    close_row(&j);
}

void adl_record_eval(struct adl_controller *c, int64_t round, double samples, double exchanges)
{
    if (!c->records)
        return;
    int trainers = 0;
    for (int k = 0; k < c->n_trainers; k++)
        trainers += c->trainers[k].alive;
    struct adl_json j = open_row(c->records, "eval");
    adl_json_int(&j, "round", round);
    adl_json_int(&j, "trainers", trainers);
    adl_json_int(&j, "request", adl_living_request(c));
    adl_json_real(&j, "loss", c->loss);
    if (!c->model_ops->eval_exact) /* held-out, in nats a token */
        adl_json_real(&j, "perplexity", exp(c->loss));
    adl_json_real(&j, "samples", samples);
    adl_json_real(&j, "exchanges", exchanges);
    adl_json_real(&j, "time_s", c->time_s);
    close_row(&j);
}

/* The text after "key": in a flat line, or NULL. */
static const char *value_of(const char *line, const char *key)
{
    size_t n = strlen(key);
    for (const char *at = line; (at = strstr(at, key)); at += n)
        if (at > line && at[-1] == '"' && at[n] == '"' && at[n + 1] == ':')
            return at + n + 2;
    return NULL;
}

bool adl_record_number(const char *line, const char *key, double *out)
{
    const char *value = value_of(line, key);
    if (!value)
        return false;
    char *end;
    double number = strtod(value, &end);
    if (end == value)
        return false;
    *out = number;
    return true;
}

bool adl_record_says(const char *line, const char *key, const char *word)
{
    const char *value = value_of(line, key);
    size_t n = strlen(word);
    return value && value[0] == '"' && strncmp(value + 1, word, n) == 0 && value[n + 1] == '"';
}

bool adl_record_is(const char *line, const char *row)
{
    return adl_record_says(line, "row", row);
}

static enum adl_status put_request(int64_t **requests, int64_t *n, int64_t round, int64_t request,
                                   struct adl_err *err)
{
    if (round >= *n) {
        int64_t *grown = realloc(*requests, (size_t)(round + 1) * sizeof *grown);
        if (!grown)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for recorded requests");
        for (int64_t r = *n; r <= round; r++)
            grown[r] = request;
        *requests = grown;
        *n = round + 1;
    }
    (*requests)[round] = request;
    return ADL_OK;
}

enum adl_status adl_records_requests(const char *path, int trainer, int64_t **requests, int64_t *n,
                                     struct adl_err *err)
{
    *requests = NULL;
    *n = 0;
    FILE *in = fopen(path, "r");
    if (!in)
        return adl_fail(err, ADL_ERR_INPUT, "batch.recorded: cannot read '%s': %s", path,
                        strerror(errno));
    char *line = NULL;
    size_t size = 0;
    enum adl_status status = ADL_OK;
    while (status == ADL_OK && getline(&line, &size, in) > 0) {
        double who, round, request;
        if (!adl_record_is(line, "round") || !adl_record_number(line, "trainer", &who) ||
            !adl_record_number(line, "round", &round) ||
            !adl_record_number(line, "request", &request) || who != trainer)
            continue;
        if (!(round >= 0 && round < 1e9 && request >= 1 && request < 1e18))
            status = adl_fail(err, ADL_ERR_INPUT,
                              "batch.recorded: '%s': round %g requests %g; not a run's records",
                              path, round, request);
        else
            status = put_request(requests, n, (int64_t)round, (int64_t)request, err);
    }
    free(line);
    fclose(in);
    if (status == ADL_OK && *n == 0)
        status = adl_fail(err, ADL_ERR_INPUT, "batch.recorded: '%s' has no round of trainer %d",
                          path, trainer);
    if (status != ADL_OK) {
        free(*requests);
        *requests = NULL;
    }
    return status;
}
