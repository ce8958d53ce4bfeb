/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/records.h"
#include "core/shard.h"

/* A loss this many times the first is not coming back. */
static const double diverged_factor = 1e6;
/* Checks in a row below stop.loss where the loss is an estimate. */
static const int checks_in_a_row = 3;

int64_t adl_living_request(const struct adl_controller *c)
{
    int64_t sum = 0;
    for (int k = 0; k < c->n_trainers; k++)
        if (c->trainers[k].alive)
            sum += c->trainers[k].request;
    return sum;
}

static int n_living(const struct adl_controller *c)
{
    int n = 0;
    for (int k = 0; k < c->n_trainers; k++)
        n += c->trainers[k].alive;
    return n;
}

enum adl_status adl_controller_loss(struct adl_controller *c, double *loss, struct adl_err *err)
{
    double total = (double)adl_living_request(c);
    double *weights = malloc((size_t)c->n_trainers * sizeof *weights);
    if (!weights)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d weights", c->n_trainers);
    for (int k = 0; k < c->n_trainers; k++)
        weights[k] = (double)c->trainers[k].request / total;
    int process = 0;
    enum adl_status status = adl_share_average(c, weights, &process, err);
    free(weights);
    ADL_TRY(status);
    if (process == c->processes.rank)
        status = c->model_ops->eval(c->model, c->average, loss, err);
    ADL_TRY(adl_processes_agree(&c->processes, status, err));
    return adl_processes_pass(&c->processes, process, ADL_EVERY_PROCESS, loss, sizeof *loss, err);
}

/* The loss of the run, and what averaging its trainers would have moved: under its own cause,
 * outside the headline counts and the clock. */
static enum adl_status evaluate(struct adl_controller *c, struct adl_err *err)
{
    int first = -1;
    for (int k = 0; k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        if (!t->alive)
            continue;
        if (first < 0) {
            first = t->devices[0];
            continue;
        }
        struct adl_traffic traffic;
        adl_chain_traffic(&c->layout, t->devices[0], &first, 1, c->S_bytes / c->gpus, &traffic);
        adl_traffic_shard(&traffic, c->gpus);
        adl_counts_exchange(&c->counts, ADL_CAUSE_EVALUATION, c->S_bytes, &traffic);
    }
    return adl_controller_loss(c, &c->loss, err);
}

/* Scalars of every trainer to every process: one exchange among the trainers' first workers. */
static enum adl_status gather(struct adl_controller *c, struct adl_err *err)
{
    enum { COLUMNS = 3 };
    size_t n = (size_t)n_living(c);
    if (n < 2)
        return ADL_OK;
    double *rows = calloc(n, COLUMNS * sizeof *rows);
    int *leaders = malloc(n * sizeof *leaders), *devices = malloc(n * sizeof *devices);
    enum adl_status status = ADL_OK;
    if (!rows || !leaders || !devices)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to gather from %zu trainers", n);
    for (int k = 0, i = 0; status == ADL_OK && k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        if (!t->alive)
            continue;
        rows[COLUMNS * i] = (double)t->request;
        rows[COLUMNS * i + 1] = t->samples;
        rows[COLUMNS * i + 2] = t->depth;
        leaders[i] = t->workers[0];
        devices[i++] = t->devices[0];
    }
    if (status == ADL_OK) {
        int distinct = adl_sort_distinct(devices, (int)n);
        double bytes = (double)(n * COLUMNS * sizeof *rows);
        if (distinct > 1) {
            struct adl_traffic traffic;
            adl_collective_traffic(ADL_COLL_RING, &c->layout, devices, distinct, bytes, &traffic);
            adl_counts_exchange(&c->counts, ADL_CAUSE_MERGE, bytes, &traffic);
            c->exchange_rounds += 1;
        }
        status = c->transport_ops->gather(c->transport, rows, (int)n, COLUMNS, leaders, bytes, err);
    }
    free(rows);
    free(leaders);
    free(devices);
    return status;
}

/* Rounds until all trainers meet again: to merge, or because a device leaves or comes back. */
static int64_t epoch_rounds(const struct adl_controller *c, int64_t done)
{
    bool merging = c->settings->merge.policy != ADL_MERGE_NONE && n_living(c) > 1;
    int64_t every = c->settings->merge.every;
    int64_t until = done + (merging ? every - done % every : 1);
    if (until > c->settings->outer.steps)
        until = c->settings->outer.steps;
    if (c->settings->faults.action == ADL_FAULT_DROP)
        until = adl_faults_next(c->faults, done, until);
    return until - done;
}

static enum adl_status run_epoch(struct adl_controller *c, int64_t rounds, struct adl_err *err)
{
    struct adl_task **tasks = malloc((size_t)c->n_trainers * sizeof *tasks);
    double *depth = malloc((size_t)c->n_trainers * sizeof *depth), longest = 0;
    if (!tasks || !depth) {
        free(tasks);
        free(depth);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for an epoch of %d trainers", c->n_trainers);
    }
    int n = 0;
    for (int k = 0; k < c->n_trainers; k++) {
        depth[k] = c->trainers[k].depth;
        if (c->trainers[k].alive && c->trainers[k].task.n_local > 0)
            tasks[n++] = &c->trainers[k].task;
    }
    struct adl_epoch epoch = {.c = c, .rounds = rounds};
    enum adl_status status =
        c->transport_ops->run(c->transport, tasks, n, adl_epoch_body, &epoch, err);
    if (status == ADL_OK)
        status = adl_share_trainers(c, err);
    for (int k = 0; k < c->n_trainers; k++)
        longest = fmax(longest, c->trainers[k].depth - depth[k]);
    c->exchange_rounds += longest;
    free(tasks);
    free(depth);
    if (status == ADL_OK)
        status = adl_share_records(c, err);
    if (status == ADL_OK)
        status = gather(c, err);
    c->time_s = adl_now_s(c);
    return status;
}

static struct adl_counts all_counts(const struct adl_controller *c)
{
    struct adl_counts sum = c->counts;
    for (int k = 0; k < c->n_trainers; k++)
        adl_counts_add(&sum, &c->trainers[k].counts);
    return sum;
}

static double all_samples(const struct adl_controller *c, bool living)
{
    double sum = 0;
    for (int k = 0; k < c->n_trainers; k++)
        if (!living || c->trainers[k].alive)
            sum += c->trainers[k].samples;
    return sum;
}

static void tell_progress(const struct adl_controller *c, int64_t round)
{
    if (!c->observer || !c->observer->progress || c->processes.rank != 0)
        return;
    struct adl_counts counts = all_counts(c);
    double compute_s, sync_s;
    adl_book_peek(c->book, &compute_s, &sync_s);
    double total = (double)adl_living_request(c), train_loss = 0;
    int64_t accumulation = 1;
    for (int k = 0; k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        if (!t->alive)
            continue;
        train_loss += (double)t->request / total * t->train_loss;
        accumulation = t->accumulation_max > accumulation ? t->accumulation_max : accumulation;
    }
    int first, n;
    c->transport_ops->local_workers(c->transport, &first, &n);
    struct adl_progress progress = {.round = round,
                                    .rounds = c->settings->outer.steps,
                                    .trainers = n_living(c),
                                    .loss = c->loss,
                                    .exact = c->model_ops->eval_exact,
                                    .train_loss = train_loss,
                                    .request = total,
                                    .accumulation_max = accumulation,
                                    .tokens = all_samples(c, false) * c->tokens_per_sample,
                                    .sync_s = sync_s / fmax(n, 1),
                                    .time_s = c->time_s,
                                    .sync_share = sync_s / fmax(compute_s + sync_s, 1e-300),
                                    .exchanges = adl_counts_exchanges(&counts),
                                    .wire_bytes = adl_counts_wire_bytes(&counts)};
    c->observer->progress(c->observer->arg, &progress);
}

/* Whether the loss is looked at after this epoch. */
static bool evaluation_due(const struct adl_controller *c, int64_t before, int64_t round)
{
    int64_t every = c->settings->eval_every;
    return c->model_ops->eval_exact || round >= c->settings->outer.steps ||
           before / every != round / every;
}

/* Evaluates and records; returns in *reached whether the target holds now. */
static enum adl_status check_loss(struct adl_controller *c, struct adl_summary *summary,
                                  bool *reached, struct adl_err *err)
{
    struct adl_counts counts = all_counts(c);
    double exchanges = adl_counts_exchanges(&counts), samples = all_samples(c, false);
    ADL_TRY(evaluate(c, err));
    adl_record_eval(c, c->round, samples, exchanges);
    c->below = c->loss <= c->settings->stop.loss ? c->below + 1 : 0;
    *reached = c->below >= (c->model_ops->eval_exact ? 1 : checks_in_a_row);
    if (*reached) {
        summary->time_to_target_s = c->time_s;
        summary->samples_to_target = samples;
        summary->exchanges_to_target = exchanges;
    }
    return ADL_OK;
}

static bool has_diverged(const struct adl_controller *c, double initial)
{
    for (int k = 0; k < c->n_trainers; k++)
        if (c->trainers[k].alive && isinf(c->trainers[k].train_loss))
            return true;
    return !isfinite(c->loss) || c->loss > diverged_factor * fmax(fabs(initial), 1e-300);
}

static void summarize(const struct adl_controller *c, int64_t round, struct adl_summary *summary)
{
    summary->trainers_final = n_living(c);
    summary->outer_steps = round;
    summary->samples = all_samples(c, false);
    summary->samples_useful = all_samples(c, true);
    for (int k = 0; k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        summary->samples_useful -= t->alive ? t->lost : 0;
        summary->samples_lost += t->lost;
        summary->faults += t->faults;
    }
    summary->tokens = summary->samples * c->tokens_per_sample;
    summary->loss_final = c->loss;
    summary->time_s = c->time_s;
    summary->exchange_rounds = c->exchange_rounds;
    summary->counts = all_counts(c);
    summary->batch_final = (double)adl_living_request(c);
    summary->merges = c->merges;
    for (int k = 0; k < c->n_trainers; k++)
        if (c->trainers[k].accumulation_max > summary->accumulation_max)
            summary->accumulation_max = c->trainers[k].accumulation_max;
}

/* A checkpoint where one is due, or where any process was told to stop: then the run ends. */
static enum adl_status save(struct adl_controller *c, int64_t before, struct adl_summary *summary,
                            struct adl_err *err)
{
    const struct adl_run_observer *o = c->observer;
    int64_t every = c->settings->checkpoint.every;
    double stop = o && o->stop && o->stop(o->arg);
    if (!c->dir)
        return ADL_OK;
    ADL_TRY(adl_processes_largest(&c->processes, &stop, err));
    if (stop > 0 || (every > 0 && before / every != c->round / every))
        ADL_TRY(adl_controller_save(c, summary, err));
    if (stop == 0)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_CANCELLED,
                    "stopped after round %" PRId64 " of %" PRId64
                    ", as told; '%s' holds a checkpoint: the same command with --resume goes on",
                    c->round, c->settings->outer.steps, c->dir);
}

static enum adl_status begin(struct adl_controller *c, struct adl_summary *summary,
                             struct adl_err *err)
{
    ADL_TRY(adl_controller_loss(c, &c->loss, err));
    summary->loss_initial = c->loss;
    summary->batch_initial = (double)adl_living_request(c);
    adl_record_eval(c, 0, 0, 0);
    return ADL_OK;
}

/* One epoch; *status is set where the run has come to its end. */
static enum adl_status next_epoch(struct adl_controller *c, struct adl_summary *summary,
                                  const char **status, struct adl_err *err)
{
    const struct adl_settings *s = c->settings;
    int64_t before = c->round, rounds = epoch_rounds(c, before);
    bool reached = false;
    ADL_TRY(adl_faults_begin(c, err));
    ADL_TRY(run_epoch(c, rounds, err));
    c->round += rounds;
    if (evaluation_due(c, before, c->round))
        ADL_TRY(check_loss(c, summary, &reached, err));
    if (has_diverged(c, summary->loss_initial))
        *status = "diverged";
    else if (reached)
        *status = "target_reached";
    else if (c->round >= s->outer.steps || all_samples(c, false) >= s->stop.samples ||
             c->time_s >= s->stop.time_s)
        *status = "completed";
    else if (s->merge.policy != ADL_MERGE_NONE && n_living(c) > 1 && c->round % s->merge.every == 0)
        ADL_TRY(adl_merge(c, err));
    tell_progress(c, c->round);
    return *status ? ADL_OK : save(c, before, summary, err);
}

enum adl_status adl_controller_run(struct adl_controller *c, struct adl_summary *summary,
                                   struct adl_err *err)
{
    const char *status = NULL;
    if (c->round == 0)
        ADL_TRY(begin(c, summary, err));
    while (!status)
        ADL_TRY(next_epoch(c, summary, &status, err));
    summary->status = status;
    summarize(c, c->round, summary);
    return ADL_OK;
}
