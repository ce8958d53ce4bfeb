/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/records.h"
#include "core/shard.h"

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
    return c->need != ADL_NEED_NOTHING && s->batch.statistic == ADL_STAT_GRADIENT &&
           s->outer.exchange != ADL_EXCHANGE_GRADIENTS && !(s->inner.steps == 1 && c->plain_sgd);
}

static enum adl_status open_workers(struct adl_controller *c, struct adl_err *err)
{
    bool ddp = c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS;
    c->workers = calloc((size_t)c->n_workers, sizeof *c->workers);
    c->owner = calloc((size_t)c->n_workers, sizeof *c->owner);
    c->speeds = calloc((size_t)c->n_workers, sizeof *c->speeds);
    c->absent = calloc((size_t)c->n_workers, sizeof *c->absent);
    c->at_home = calloc((size_t)c->n_trainers + 1, sizeof *c->at_home);
    if (!c->workers || !c->owner || !c->speeds || !c->absent || !c->at_home)
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

/* theta, and the outer momentum behind it at an aligned place. */
static enum adl_status open_state(struct adl_controller *c, struct adl_trainer *t,
                                  struct adl_err *err)
{
    size_t size = adl_dtype_bytes(c->dtype), stride = (c->P + 63) / 64 * 64;
    bool momentum = adl_outer_needs_v(c->settings);
    c->state_bytes = (momentum ? stride + c->P : c->P) * size;
    t->theta = c->space->alloc(c->state_bytes / size, c->dtype);
    if (!t->theta)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a vector of %zu parameters", c->P);
    if (momentum)
        t->v = (char *)t->theta + stride * size;
    return ADL_OK;
}

static enum adl_status open_trainer(struct adl_controller *c, struct adl_trainer *t,
                                    struct adl_err *err)
{
    ADL_TRY(open_state(c, t, err));
    NEW_VECTOR(t->sum);
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

/* What a model cannot do under these settings. */
static enum adl_status check_model(const struct adl_controller *c, struct adl_err *err)
{
    const struct adl_settings *s = c->settings;
    if (c->n_trainers > 1 && c->model_ops->drifts && c->model_ops->drifts(c->model))
        return adl_fail(err, ADL_ERR_INPUT,
                        "trainers: %d, but data that change as they are seen need 1: several would "
                        "not agree on where the optimum is",
                        c->n_trainers);
    if (c->model_ops->advance && c->need != ADL_NEED_NOTHING && !c->plain_sgd &&
        s->batch.statistic == ADL_STAT_PSEUDO_GRADIENT &&
        s->outer.exchange != ADL_EXCHANGE_GRADIENTS)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.kind: pseudo-gradients of '%s' tell its noise scale under plain SGD "
                        "only: set inner.optimizer: sgd without momentum, decay and clipping, or "
                        "batch.statistic: gradient or micro_batch",
                        s->model.kind);
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
    c->need = c->policy->need;
    if (s->batch.observe && c->need == ADL_NEED_NOTHING)
        c->need = ADL_NEED_NORM;
    c->layout = adl_layout_of(s);
    c->gpus = adl_gpus_per_device(s);
    c->plain_sgd = s->inner.optimizer == ADL_INNER_SGD && s->inner.momentum == 0 &&
                   s->inner.weight_decay == 0 && s->inner.clip == 0;
    c->n_workers = (int)s->cluster.workers;
    c->n_trainers = (int)s->trainers;
    c->loss = NAN;
    c->processes = adl_processes_of(c->transport_ops, c->transport);
    ADL_TRY(check_model(c, err));
    ADL_TRY(open_workers(c, err));
    int n_devices = c->n_workers / (int)s->cluster.workers_per_device;
    ADL_TRY(adl_faults_open(s, n_devices, c->layout.devices_per_node, &c->faults, err));
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
    void *vectors[] = {t->theta, t->sum, t->stat_sum, t->inner.m, t->inner.v};
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
    free(c->absent);
    free(c->at_home);
    adl_faults_close(c->faults);
    free(c->speeds);
    free(c->trainers);
    free(c->lanes);
}
