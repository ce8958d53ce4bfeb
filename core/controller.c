/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/records.h"

/* A loss this many times the first is not coming back. */
static const double diverged_factor = 1e6;
/* Checks in a row below stop.loss where the loss is an estimate. */
static const int checks_in_a_row = 3;

static void *vector(struct adl_controller *c, struct adl_err *err)
{
    void *x = c->space->alloc(c->P, c->dtype);
    if (!x)
        adl_fail(err, ADL_ERR_NOMEM, "no memory for a vector of %zu parameters", c->P);
    return x;
}

#define NEW_VECTOR(where)                                                                          \
    do {                                                                                           \
        if (!((where) = vector(c, err)))                                                           \
            return err->status;                                                                    \
    } while (0)

static enum adl_status open_inner(struct adl_controller *c, struct adl_inner_state *inner,
                                  struct adl_err *err)
{
    int needs_m, needs_v;
    adl_inner_needs(c->settings, &needs_m, &needs_v);
    if (needs_m)
        NEW_VECTOR(inner->m);
    if (needs_v)
        NEW_VECTOR(inner->v);
    return ADL_OK;
}

/* Whether workers hand over their last inner gradient beside the pseudo-gradient. */
static bool needs_last_gradients(const struct adl_controller *c)
{
    const struct adl_settings *s = c->settings;
    return c->policy->need != ADL_NEED_NOTHING && s->batch.statistic == ADL_STAT_GRADIENT &&
           s->outer.exchange != ADL_EXCHANGE_GRADIENTS && !(s->inner.steps == 1 && c->plain_sgd);
}

static enum adl_status open_workers(struct adl_controller *c, struct adl_err *err)
{
    bool ddp = c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS;
    c->workers = calloc((size_t)c->n_workers, sizeof *c->workers);
    c->owner = calloc((size_t)c->n_workers, sizeof *c->owner);
    c->speeds = calloc((size_t)c->n_workers, sizeof *c->speeds);
    if (!c->workers || !c->owner || !c->speeds)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d workers", c->n_workers);
    struct adl_reals speeds = c->settings->cluster.speeds;
    int first, n;
    c->transport_ops->local_workers(c->transport, &first, &n);
    for (int w = 0; w < c->n_workers; w++) {
        c->speeds[w] = speeds.n ? speeds.v[(size_t)adl_device_of(c, w) % speeds.n] : 1;
        if (w < first || w >= first + n)
            continue;
        NEW_VECTOR(c->workers[w].x);
        if (needs_last_gradients(c))
            NEW_VECTOR(c->workers[w].g);
        if (!ddp)
            ADL_TRY(open_inner(c, &c->workers[w].inner, err));
    }
    return ADL_OK;
}

static enum adl_status open_recorded(struct adl_controller *c, struct adl_trainer *t,
                                     struct adl_err *err)
{
    if (strcmp(c->policy->name, "recorded") != 0)
        return ADL_OK;
    int64_t *requests;
    ADL_TRY(adl_records_requests(c->recorded_path, t->index, &requests, &t->n_recorded, err));
    t->recorded = requests;
    t->initial = requests[0];
    return ADL_OK;
}

static enum adl_status open_trainer(struct adl_controller *c, struct adl_trainer *t,
                                    struct adl_err *err)
{
    NEW_VECTOR(t->theta);
    NEW_VECTOR(t->sum);
    if (adl_outer_needs_v(c->settings))
        NEW_VECTOR(t->v);
    if (needs_last_gradients(c))
        NEW_VECTOR(t->stat_sum);
    if (c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS)
        ADL_TRY(open_inner(c, &t->inner, err));
    ADL_TRY(c->model_ops->init(c->model, t->theta, err));
    t->alive = true;
    t->initial = c->settings->batch.initial * t->n_workers;
    ADL_TRY(open_recorded(c, t, err));
    int64_t cap = c->settings->batch.cap;
    t->request = cap > 0 && t->initial > cap ? cap : t->initial;
    t->smooth[0] = t->smooth[1] = t->smooth[2] = NAN;
    t->loss = t->train_loss = NAN;
    t->rows = open_memstream(&t->rows_text, &t->rows_size);
    if (!t->rows)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the records of trainer %d", t->index);
    return ADL_OK;
}

enum adl_status adl_controller_open(struct adl_controller *c, struct adl_err *err)
{
    const struct adl_settings *s = c->settings;
    c->space = c->model_ops->space;
    c->dtype = c->model_ops->dtype;
    c->P = c->model_ops->n_params(c->model);
    c->policy = adl_batch_policy_find(s->batch.policy);
    if (!c->policy)
        return adl_fail(err, ADL_ERR_INPUT, "batch.policy: no policy '%s'", s->batch.policy);
    c->layout = (struct adl_layout){.devices_per_node = (int)s->cluster.devices_per_node,
                                    .nodes_per_site = (int)s->cluster.nodes_per_site,
                                    .nics_per_node = (int)s->cluster.nics_per_node};
    c->plain_sgd = s->inner.optimizer == ADL_INNER_SGD && s->inner.momentum == 0 &&
                   s->inner.weight_decay == 0 && s->inner.clip == 0;
    c->n_workers = (int)s->cluster.workers;
    c->n_trainers = (int)s->trainers;
    c->loss = NAN;
    ADL_TRY(open_workers(c, err));
    ADL_TRY(adl_assign(s->cluster.placement, c->n_workers, (int)s->cluster.workers_per_device,
                       c->n_trainers, c->owner, err));
    c->trainers = calloc((size_t)c->n_trainers, sizeof *c->trainers);
    c->n_lanes = c->transport_ops->n_lanes(c->transport);
    c->lanes = calloc((size_t)c->n_lanes, sizeof *c->lanes);
    if (!c->trainers || !c->lanes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d trainers", c->n_trainers);
    NEW_VECTOR(c->average);
    for (int i = 0; i < c->n_lanes; i++) {
        NEW_VECTOR(c->lanes[i].g);
        NEW_VECTOR(c->lanes[i].micro);
    }
    for (int k = 0; k < c->n_trainers; k++)
        c->trainers[k].index = k;
    ADL_TRY(adl_apply_owner(c, NULL, err));
    for (int k = 0; k < c->n_trainers; k++)
        ADL_TRY(open_trainer(c, &c->trainers[k], err));
    return ADL_OK;
}

static void close_trainer(struct adl_controller *c, struct adl_trainer *t)
{
    void *vectors[] = {t->theta, t->v, t->sum, t->stat_sum, t->inner.m, t->inner.v};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        c->space->free(vectors[i]);
    if (t->rows)
        fclose(t->rows);
    free(t->rows_text);
    free((void *)t->recorded);
    free(t->workers);
    free(t->devices);
    free(t->scalars);
    free(t->sums);
    free(t->in);
}

void adl_controller_close(struct adl_controller *c)
{
    for (int w = 0; c->workers && w < c->n_workers; w++) {
        struct adl_worker *worker = &c->workers[w];
        void *vectors[] = {worker->x, worker->g, worker->inner.m, worker->inner.v};
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
            c->space->free(vectors[i]);
    }
    for (int k = 0; c->trainers && k < c->n_trainers; k++)
        close_trainer(c, &c->trainers[k]);
    for (int i = 0; c->lanes && i < c->n_lanes; i++) {
        c->space->free(c->lanes[i].g);
        c->space->free(c->lanes[i].micro);
    }
    if (c->space)
        c->space->free(c->average);
    free(c->workers);
    free(c->owner);
    free(c->speeds);
    free(c->trainers);
    free(c->lanes);
}

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
    c->space->zero(c->average, c->P, c->dtype);
    for (int k = 0; k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        if (t->alive)
            c->space->axpy(c->average, (double)t->request / total, t->theta, c->P, c->dtype);
    }
    return c->model_ops->eval(c->model, c->average, loss, err);
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
        adl_chain_traffic(&c->layout, t->devices[0], &first, 1, c->S_bytes, &traffic);
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

/* Rounds until all trainers meet again. */
static int64_t epoch_rounds(const struct adl_controller *c, int64_t done)
{
    bool merging = c->settings->merge.policy != ADL_MERGE_NONE && n_living(c) > 1;
    int64_t rounds = merging ? c->settings->merge.every : 1;
    int64_t left = c->settings->outer.steps - done;
    return rounds < left ? rounds : left;
}

static enum adl_status flush_rows(struct adl_controller *c, struct adl_err *err)
{
    for (int k = 0; k < c->n_trainers; k++) {
        struct adl_trainer *t = &c->trainers[k];
        if (fflush(t->rows) != 0)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for the records of trainer %d", k);
        if (c->records && t->rows_size > 0)
            fwrite(t->rows_text, 1, t->rows_size, c->records);
        rewind(t->rows);
    }
    return ADL_OK;
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
    for (int k = 0; k < c->n_trainers; k++)
        longest = fmax(longest, c->trainers[k].depth - depth[k]);
    c->exchange_rounds += longest;
    free(tasks);
    free(depth);
    if (status == ADL_OK)
        status = flush_rows(c, err);
    if (status == ADL_OK)
        status = gather(c, err);
    c->time_s = c->transport_ops->now_s(c->transport);
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
    if (!c->observer || !c->observer->progress)
        return;
    struct adl_counts counts = all_counts(c);
    double compute_s, sync_s;
    adl_book_peek(c->book, &compute_s, &sync_s);
    struct adl_progress progress = {.round = round,
                                    .rounds = c->settings->outer.steps,
                                    .trainers = n_living(c),
                                    .loss = c->loss,
                                    .request = (double)adl_living_request(c),
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

/* Evaluates and records; *below counts checks in a row below the target; returns in *reached
 * whether the target holds now. */
static enum adl_status check_loss(struct adl_controller *c, int64_t round, int *below,
                                  struct adl_summary *summary, bool *reached, struct adl_err *err)
{
    struct adl_counts counts = all_counts(c);
    double exchanges = adl_counts_exchanges(&counts), samples = all_samples(c, false);
    ADL_TRY(evaluate(c, err));
    adl_record_eval(c, round, samples, exchanges);
    *below = c->loss <= c->settings->stop.loss ? *below + 1 : 0;
    *reached = *below >= (c->model_ops->eval_exact ? 1 : checks_in_a_row);
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

enum adl_status adl_controller_run(struct adl_controller *c, struct adl_summary *summary,
                                   struct adl_err *err)
{
    const struct adl_settings *s = c->settings;
    ADL_TRY(adl_controller_loss(c, &c->loss, err));
    summary->loss_initial = c->loss;
    summary->batch_initial = (double)adl_living_request(c);
    adl_record_eval(c, 0, 0, 0);
    int64_t round = 0;
    int below = 0;
    const char *status = NULL;
    while (!status) {
        int64_t before = round, rounds = epoch_rounds(c, round);
        ADL_TRY(run_epoch(c, rounds, err));
        round += rounds;
        bool reached = false;
        if (evaluation_due(c, before, round))
            ADL_TRY(check_loss(c, round, &below, summary, &reached, err));
        if (has_diverged(c, summary->loss_initial))
            status = "diverged";
        else if (reached)
            status = "target_reached";
        else if (round >= s->outer.steps || all_samples(c, false) >= s->stop.samples ||
                 c->time_s >= s->stop.time_s)
            status = "completed";
        else if (s->merge.policy != ADL_MERGE_NONE && n_living(c) > 1)
            ADL_TRY(adl_merge(c, err));
        tell_progress(c, round);
    }
    summary->status = status;
    summarize(c, round, summary);
    return ADL_OK;
}
