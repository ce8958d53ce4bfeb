/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/bounds_input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/bounds_options.h"
#include "core/assign.h"
#include "core/cost.h"
#include "core/optimizer.h"
#include "core/plan_platform.h"
#include "core/shard.h"

/* So many moments of a coordinate over a round, or over a step where the rate changes, take about
 * a second. */
static const double path_budget = 1e8;
static const double most_coordinates = 1e5;
static const double most_samples = 1e15; /* of a step: a request beyond it is none */

struct subject {
    const struct adl_registry *registry;
    const struct adl_plan *plan;
    const struct adl_planned *run;
    const struct adl_settings *s;
    struct adl_bounds_options options;
    struct adl_problem *problem;
    struct adl_bounds_input *in;
    struct adl_size size; /* of the model; zero where none is asked */
    struct adl_err *err;
};

static double either(double set, double otherwise)
{
    return isnan(set) ? otherwise : set;
}

/* ---- the model */

static const struct adl_model_ops *find_model(const struct subject *u)
{
    for (size_t i = 0; u->registry->models[i]; i++)
        if (!strcmp(u->registry->models[i]->plugin.name, u->s->model.kind))
            return u->registry->models[i];
    return NULL;
}

static enum adl_status ask_model(struct subject *u, const struct adl_model_ops *ops,
                                 const void *config, const char *base_dir)
{
    const struct adl_model_env env = {.seed = (uint64_t)u->s->seed,
                                      .n_workers = (int)u->s->cluster.workers,
                                      .n_lanes = 1,
                                      .base_dir = base_dir};
    struct adl_model *model = NULL;
    ADL_TRY(ops->open(config, &env, &model, u->err));
    u->size = adl_size_of(u->s, ops, model);
    enum adl_status status = ops->problem(model, u->problem, u->err);
    ops->close(model);
    return status;
}

static enum adl_status open_model(struct subject *u)
{
    const struct adl_model_ops *ops = find_model(u);
    if (!ops)
        return adl_fail(u->err, ADL_ERR_INPUT, "model.kind: no model '%s'", u->s->model.kind);
    if (!ops->problem)
        return adl_fail(u->err, ADL_ERR_INPUT,
                        "%s: model '%s' does not know its constants; give bounds.L, bounds.mu, "
                        "bounds.s2, bounds.d0 and bounds.D2",
                        u->plan->path, u->s->model.kind);
    const char *slash = strrchr(u->plan->path, '/');
    char *base_dir =
        slash ? strndup(u->plan->path, (size_t)(slash - u->plan->path) + 1) : strdup("./");
    void *config = calloc(1, ops->plugin.config_size ? ops->plugin.config_size : 1);
    enum adl_status status = ADL_OK;
    if (!base_dir || !config)
        status = adl_fail(u->err, ADL_ERR_NOMEM, "no memory for a model's options");
    if (status == ADL_OK && ops->plugin.options)
        status = adl_config_fill(u->run->config, ops->plugin.options, config, u->err);
    if (status == ADL_OK)
        status = ask_model(u, ops, config, base_dir);
    free(config);
    free(base_dir);
    return status;
}

static enum adl_status make_problem(struct subject *u)
{
    struct adl_problem *p = u->problem;
    const struct adl_bounds_options *o = &u->options;
    p->L = p->mu = p->s2 = p->s2_optimum = p->d0 = p->D2 = NAN;
    if (isnan(o->L))
        ADL_TRY(open_model(u));
    p->L = either(o->L, p->L);
    p->mu = either(o->mu, p->mu);
    p->s2_optimum = either(o->s2, either(p->s2_optimum, p->s2));
    p->s2 = either(o->s2, p->s2);
    p->d0 = either(o->d0, p->d0);
    p->D2 = either(o->D2, p->D2);
    if (p->mu > p->L)
        return adl_fail(u->err, ADL_ERR_INPUT, "%s: bounds.mu: %g is above bounds.L = %g",
                        u->plan->path, p->mu, p->L);
    return ADL_OK;
}

/* ---- the method */

static double scheduled_rate(const void *arg, double step)
{
    const struct adl_settings *s = arg;
    return adl_schedule_lr(s, (int64_t)step, s->outer.steps * s->inner.steps);
}

static enum adl_path_test path_test(const struct adl_settings *s)
{
    if (!strcmp(s->batch.policy, "constant"))
        return ADL_PATH_CONSTANT;
    if (s->batch.statistic == ADL_STAT_MICRO_BATCH)
        return ADL_PATH_MICRO_BATCH;
    const bool gradient =
        s->batch.statistic == ADL_STAT_GRADIENT || s->outer.exchange == ADL_EXCHANGE_GRADIENTS;
    return gradient ? ADL_PATH_GRADIENT : ADL_PATH_DELTA;
}

static void make_path(struct subject *u)
{
    const struct adl_settings *s = u->s;
    struct adl_bounds_input *in = u->in;
    const bool shared = s->outer.exchange == ADL_EXCHANGE_GRADIENTS;
    const bool average = shared || s->outer.optimizer == ADL_OUTER_AVERAGE;
    in->path = (struct adl_path_plan){
        .problem = u->problem,
        .M = in->c.M,
        .H = in->c.H,
        .alpha = in->alpha,
        .rate = in->constant_rate ? NULL : scheduled_rate,
        .rate_arg = s,
        .outer_lr = average ? 1.0 : s->outer.lr,
        .outer_momentum = s->outer.optimizer == ADL_OUTER_NESTEROV ? s->outer.momentum : 0.0,
        .test = path_test(s),
        .initial = in->c.M * in->c.b,
        .eta = in->eta_asked,
        .plug_in = in->plug_in,
        .may_shrink = s->batch.may_shrink,
        .shared = shared,
        .cap = s->batch.cap > 0 ? (double)s->batch.cap : INFINITY,
        .max = s->batch.max > 0 ? (double)s->batch.max : INFINITY,
        .switch_mode = s->switch_.mode,
        .switch_factor = (double)s->switch_.factor,
        .epsilon = in->epsilon,
        .max_rounds = path_budget / fmax(1.0, (double)u->problem->dim),
    };
    in->too_large = (double)u->problem->dim > most_coordinates || in->path.initial > most_samples ||
                    in->c.H > 1e9;
    if (!in->constant_rate) {
        const double rounds = (double)s->outer.steps * (shared ? (double)s->inner.steps : 1.0);
        in->path.max_rounds = fmin(rounds, floor(in->path.max_rounds / in->c.H));
    }
}

static const char *why_no_path(const struct subject *u)
{
    const struct adl_settings *s = u->s;
    const struct adl_bounds_input *in = u->in;
    if (u->problem->dim == 0)
        return "the problem is given by constants alone";
    if (in->too_large || in->path.max_rounds < 1.0)
        return "too many coordinates, steps or samples to follow";
    if (!in->plain_sgd)
        return "the inner optimizer is not plain SGD";
    if (s->outer.optimizer == ADL_OUTER_SGD && s->outer.momentum > 0)
        return "outer SGD has momentum";
    if (!in->constant_batch && strcmp(s->batch.policy, "norm_test"))
        return "the batch follows another policy than the norm test";
    if (s->batch.balance == ADL_BALANCE_STEPS)
        return "workers take unequal numbers of steps";
    if (in->c.M != floor(in->c.M) || in->c.H != floor(in->c.H) || in->c.b != floor(in->c.b))
        return "workers, steps or samples are no whole numbers";
    return adl_path_covers(&in->path) ? NULL : "workers differ, or noise is multiplicative";
}

static void make_method(struct subject *u)
{
    const struct adl_settings *s = u->s;
    const struct adl_bounds_options *o = &u->options;
    struct adl_bounds_input *in = u->in;
    const bool shared = s->outer.exchange == ADL_EXCHANGE_GRADIENTS;
    in->trainers = (double)s->trainers;
    in->c.M = either(o->M, ceil((double)s->cluster.workers / (double)s->trainers));
    in->c.b = either(o->b, (double)s->batch.initial);
    in->c.H = either(o->H, shared ? 1.0 : (double)s->inner.steps);
    in->alpha = either(o->alpha, s->inner.lr);
    in->eta_asked = either(o->eta, s->batch.eta);
    in->theta = s->batch.theta;
    in->nu = s->batch.nu;
    in->plug_in = !s->batch.debias;
    in->c.eta = in->plug_in ? adl_bound_plug_in_eta(in->eta_asked) : in->eta_asked;
    in->epsilon = either(o->epsilon, s->stop.loss - u->problem->shift);
    in->samples = o->samples;
    in->constant_rate = s->inner.schedule == ADL_SCHEDULE_CONSTANT && s->inner.warmup == 0;
    in->plain_sgd = s->inner.optimizer == ADL_INNER_SGD && s->inner.momentum == 0 &&
                    s->inner.weight_decay == 0 && s->inner.clip == 0;
    in->averages = shared || s->outer.optimizer == ADL_OUTER_AVERAGE;
    in->constant_batch = !strcmp(s->batch.policy, "constant");
    in->norm_test = !strcmp(s->batch.policy, "norm_test");
    make_path(u);
    in->no_path = why_no_path(u);
}

/* ---- network and devices */

/* The first trainer's devices: devices [n]. */
static enum adl_status find_devices(const struct subject *u, int **devices, int *n)
{
    const struct adl_settings *s = u->s;
    const int workers = (int)s->cluster.workers, per_device = (int)s->cluster.workers_per_device;
    int *owner = calloc((size_t)workers, sizeof *owner);
    *devices = calloc((size_t)workers, sizeof **devices);
    *n = 0;
    enum adl_status status = ADL_ERR_NOMEM;
    if (owner && *devices)
        status = adl_assign((enum adl_placement)s->cluster.placement, workers, per_device,
                            (int)s->trainers, owner, u->err);
    else
        adl_fail(u->err, status, "no memory for %d workers", workers);
    for (int w = 0; status == ADL_OK && w < workers; w++)
        if (owner[w] == 0)
            (*devices)[(*n)++] = w / per_device;
    if (status == ADL_OK)
        *n = adl_sort_distinct(*devices, *n);
    free(owner);
    return status;
}

static void count_statistics(struct subject *u)
{
    struct adl_bounds_network *n = &u->in->network;
    const struct adl_settings *s = u->s;
    const bool needed = !u->in->constant_batch && strcmp(s->batch.policy, "geometric") != 0 &&
                        strcmp(s->batch.policy, "recorded") != 0;
    if (!needed && !s->batch.observe)
        return;
    const bool micro = s->batch.statistic == ADL_STAT_MICRO_BATCH;
    n->statistic_bytes = (micro ? 2 : 1) * sizeof(double);
    n->statistic_vectors =
        s->batch.statistic == ADL_STAT_GRADIENT && u->in->c.H > 1 && !u->in->path.shared;
}

/* Times of a step and a sample on a device: sim/device.h's formula. The GPUs of a sharded worker
 * share its work evenly; their own exchanges inside the node are left out. */
static void time_steps(struct subject *u, const struct adl_platform_facts *facts)
{
    const struct adl_cost *cost = &u->size.cost;
    const double gpus = adl_gpus_per_device(u->s);
    const double memory =
        facts->memory_bandwidth > 0 ? 1.0 / (gpus * facts->memory_bandwidth) : 0.0;
    const double sample_s = cost->flops_per_sample / (gpus * facts->speed_flops);
    u->in->sample_s = sample_s;
    u->in->step_s = facts->overhead_s + facts->half_samples * sample_s + cost->step_bytes * memory;
    u->in->outer_s = u->in->averages ? 0.0 : cost->outer_bytes * memory;
}

static enum adl_status ask_platform(struct subject *u, const struct adl_layout *layout,
                                    const int *devices, int n)
{
    struct adl_bounds_network *net = &u->in->network;
    struct adl_platform_cache *cache = adl_platform_cache_create();
    const struct adl_platform_facts *facts = NULL;
    if (!cache)
        return adl_fail(u->err, ADL_ERR_NOMEM, "no memory for platforms");
    struct adl_err why = {0};
    enum adl_status status = adl_platform_cache_get(cache, u->registry, u->s->cluster.platform,
                                                    u->plan->path, &facts, &why);
    if (status == ADL_OK) {
        const enum adl_link_class widest = adl_layout_link(layout, devices[0], devices[n - 1]);
        const struct adl_path_facts *paths = facts->paths;
        net->latency_s = paths[widest].latency_s;
        net->bandwidth = paths[widest].bandwidth > 0 ? paths[widest].bandwidth : NAN;
        net->inner_latency_s = paths[ADL_LINK_INTRA_NODE].latency_s;
        net->inner_bandwidth = paths[ADL_LINK_INTRA_NODE].bandwidth;
        if (u->size.cost.flops_per_sample > 0)
            time_steps(u, facts);
    } else if (status != ADL_ERR_UNSUPPORTED) {
        adl_fail(u->err, status, "%s", why.message);
    }
    adl_platform_cache_free(cache);
    return status == ADL_ERR_UNSUPPORTED ? ADL_OK : status;
}

static enum adl_status make_network(struct subject *u)
{
    const struct adl_settings *s = u->s;
    const struct adl_bounds_options *o = &u->options;
    struct adl_bounds_network *net = &u->in->network;
    const struct adl_layout layout = adl_layout_of(s);
    const int gpus = adl_gpus_per_device(s);
    int *devices = NULL, n = 0;
    enum adl_status status = find_devices(u, &devices, &n);
    net->latency_s = net->bandwidth = net->inner_latency_s = net->inner_bandwidth = NAN;
    u->in->step_s = u->in->sample_s = NAN;
    if (status == ADL_OK && s->cluster.platform[0])
        status = ask_platform(u, &layout, devices, n);
    if (status == ADL_OK) {
        net->devices = either(o->M, n);
        net->nodes = 1.0;
        for (int i = 1; i < n; i++)
            net->nodes +=
                adl_layout_link(&layout, devices[i - 1], devices[i]) != ADL_LINK_INTRA_NODE;
        net->bytes = either(o->bytes, u->size.wire_bytes > 0 ? u->size.wire_bytes : NAN);
        net->shards = gpus;
        const double bytes = either(net->bytes, 0.0) / gpus;
        net->collective =
            adl_collective_resolve((enum adl_collective)s->collective, &layout, devices, n, bytes);
        adl_collective_traffic((enum adl_collective)s->collective, &layout, devices, n, bytes,
                               &net->traffic);
        adl_traffic_shard(&net->traffic, gpus);
        net->latency_s = either(o->latency_s, net->latency_s);
        net->bandwidth = either(o->bandwidth, net->bandwidth);
        net->inner_latency_s = either(o->inner_latency_s, net->inner_latency_s);
        net->inner_bandwidth = either(o->inner_bandwidth, net->inner_bandwidth);
        u->in->step_s = either(o->step_s, u->in->step_s);
        u->in->sample_s = either(o->sample_s, u->in->sample_s);
        count_statistics(u);
    }
    free(devices);
    return status;
}

enum adl_status adl_bounds_subject_open(const struct adl_registry *registry,
                                        const struct adl_plan *plan, const struct adl_planned *run,
                                        struct adl_bounds_subject *out, struct adl_err *err)
{
    *out = (struct adl_bounds_subject){0};
    struct subject u = {.registry = registry,
                        .plan = plan,
                        .run = run,
                        .s = &run->settings,
                        .problem = &out->problem,
                        .in = &out->input,
                        .err = err};
    out->input.variant = run->variant;
    out->input.point = run->point;
    out->input.problem = &out->problem;
    enum adl_status status = adl_config_fill(run->config, adl_bounds_options, &u.options, err);
    if (status == ADL_OK)
        status = make_problem(&u);
    if (status == ADL_OK) {
        make_method(&u);
        status = make_network(&u);
    }
    if (status == ADL_OK && isnan(out->input.epsilon))
        status = adl_fail(err, ADL_ERR_INPUT,
                          "%s: no loss to reach: give stop.loss or bounds.epsilon", plan->path);
    if (status == ADL_OK && out->input.epsilon <= 0.0)
        status = adl_fail(err, ADL_ERR_INPUT,
                          "%s: stop.loss: %g is not above the least loss there is, %g", plan->path,
                          run->settings.stop.loss, out->problem.shift);
    if (status != ADL_OK)
        adl_bounds_subject_close(out);
    return status;
}

void adl_bounds_subject_close(struct adl_bounds_subject *subject)
{
    adl_problem_free(&subject->problem);
}
