/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/transport_sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/shard.h"
#include "sim/overlap.h"
#include "sim/simulation.h"

static int default_workers(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    return n_devices * workers_per_device;
}

static void close_sim(struct adl_transport *t)
{
    if (!t)
        return;
    for (int d = 0; t->shares && d < t->devices.n; d++)
        adl_share_free(&t->shares[d]);
    adl_devices_close(&t->devices);
    adl_sim_platform_free(&t->platform);
    adl_sim_courses_free(t);
    adl_link_book_free(&t->links);
    adl_capacity_free(t->capacity);
    free(t->has_trainer);
    free(t->streams);
    free(t->free_at_s);
    free(t->shares);
    free(t->backward_s);
    free(t);
}

static enum adl_status check_fidelity(const struct adl_transport *t, int n_devices,
                                      struct adl_err *err)
{
    const struct adl_sim_options *o = t->options;
    int n = n_devices * t->devices.gpus;
    if (o->fidelity == ADL_FIDELITY_MESSAGE && n > o->message_devices)
        return adl_fail(err, ADL_ERR_INPUT,
                        "sim.fidelity: message, which simulates every message, for %d devices: "
                        "sim.message_devices allows %d; take flow, or allow more",
                        n, (int)o->message_devices);
    if (o->fidelity == ADL_FIDELITY_ANALYTIC &&
        ((o->background && *o->background) || (o->link_profile && *o->link_profile)))
        return adl_fail(err, ADL_ERR_INPUT,
                        "sim.fidelity: analytic knows no links that change (sim.background, "
                        "sim.profile); take flow");
    return ADL_OK;
}

static enum adl_status set_up(struct adl_transport *t, struct adl_err *err)
{
    const struct adl_settings *settings = t->env.settings;
    t->n_workers = (int)settings->cluster.workers;
    t->per_device = (int)settings->cluster.workers_per_device;
    t->layout = adl_layout_of(settings);
    int needed = (t->n_workers + t->per_device - 1) / t->per_device;
    if (t->per_device > 1 && adl_gpus_per_device(settings) < t->platform.devices_per_host)
        return adl_fail(err, ADL_ERR_INPUT,
                        "cluster.workers_per_device: %d, but hosts of %s stand for nodes, whose "
                        "inside is not shared: 1, or a worker that takes all of a node "
                        "(cluster.gpus_per_worker: %d), or a platform made with detail=gpu",
                        t->per_device, t->env.platform_path, t->platform.devices_per_host);
    ADL_TRY(adl_devices_open(t->engine, &t->platform, t->options, adl_gpus_per_device(settings),
                             (uint64_t)settings->seed, t->env.base_dir, &t->devices, err));
    if (needed > t->devices.n)
        return adl_fail(err, ADL_ERR_INPUT,
                        "cluster.workers: %d workers at %d a device need %d devices, %s has %d",
                        t->n_workers, t->per_device, needed, t->env.platform_path, t->devices.n);
    ADL_TRY(check_fidelity(t, needed, err));
    ADL_TRY(adl_capacity_open(t->engine, t->options, t->env.base_dir, &t->capacity, err));
    ADL_TRY(adl_link_book_open(&t->links, t->engine, err));
    t->has_trainer = calloc((size_t)t->n_workers, sizeof *t->has_trainer);
    t->streams = calloc((size_t)t->devices.n, sizeof *t->streams);
    t->free_at_s = calloc((size_t)t->devices.n, sizeof *t->free_at_s);
    t->shares = calloc((size_t)t->devices.n, sizeof *t->shares);
    t->backward_s = calloc((size_t)t->n_workers, sizeof *t->backward_s);
    if (!t->has_trainer || !t->streams || !t->free_at_s || !t->shares || !t->backward_s)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d simulated workers", t->n_workers);
    for (int w = 0; w < t->n_workers; w++)
        t->has_trainer[w] = true; /* before the first epoch, which may be a resumed run's */
    return ADL_OK;
}

/* The file is checked in a child first: this process's engine would abort on some faults. */
static enum adl_status open_sim(const void *config, const struct adl_transport_env *env,
                                struct adl_transport **out, struct adl_err *err)
{
    if (!env->platform_path)
        return adl_fail(err, ADL_ERR_INPUT,
                        "cluster.platform: '' is not a platform; transport sim needs one");
    struct adl_platform_facts facts;
    ADL_TRY(adl_sim_platform_reader.read(env->platform_path, &facts, err));
    free(facts.speeds);
    struct adl_transport *t = calloc(1, sizeof *t);
    if (!t)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the simulation");
    t->options = config;
    t->env = *env;
    t->engine = adl_engine();
    enum adl_status status =
        adl_sim_platform_reopen(t->engine, env->platform_path, &t->platform, err);
    if (status == ADL_OK)
        status = set_up(t, err);
    if (status != ADL_OK) {
        close_sim(t);
        t = NULL;
    }
    *out = t;
    return status;
}

static int n_lanes(const struct adl_transport *t)
{
    (void)t;
    return 1;
}

static void local_workers(const struct adl_transport *t, int *first, int *n)
{
    *first = 0;
    *n = t->n_workers;
}

static void sleeper_main(void *arg)
{
    const struct adl_transport *t = arg;
    adl_sim_sleep_until(t, t->now_s);
}

/* The engine goes there as well, and links change on the way: courses are made for links as they
 * are. */
static enum adl_status start_at(struct adl_transport *t, double s, struct adl_err *err)
{
    struct adl_engine_actor sleeper = {sleeper_main, t};
    t->now_s = s;
    t->engine->spawn(0, &sleeper);
    adl_capacity_follow(t->capacity);
    return t->engine->run(err);
}

static double now_s(const struct adl_transport *t)
{
    return t->now_s;
}

/* What every call of a task asks first. */
static enum adl_status may_go_on(struct adl_transport *t, struct adl_task *task)
{
    if (t->failed)
        return adl_fail(&task->err, ADL_ERR_PEER, "trainer %d: another trainer failed",
                        task->trainer);
    if (t->env.cancelled && t->env.cancelled(t->env.cancelled_arg))
        return adl_fail(&task->err, ADL_ERR_CANCELLED, "cancelled");
    return ADL_OK;
}

static enum adl_status for_each(struct adl_transport *t, struct adl_task *task, adl_worker_fn *fn,
                                void *arg, const struct adl_work *work, double *compute_s)
{
    struct adl_sim_task *s = task->impl;
    ADL_TRY(may_go_on(t, task));
    for (int i = 0; i < task->n_local; i++)
        ADL_TRY(fn(task, i, 0, arg, &task->err));
    if (work) {
        ADL_TRY(adl_sim_compute(s, work, compute_s));
        s->overlaps = task->n_local > 0 && work[0].exchanged && t->options->ddp_buckets > 1;
        if (!s->overlaps)
            adl_sim_settle(s);
    } else if (compute_s) {
        memset(compute_s, 0, (size_t)task->n_local * sizeof *compute_s);
    }
    return may_go_on(t, task);
}

/* In world order, starting from the first: the same bits on every transport. */
static void sum(const struct adl_space *space, const struct adl_reduction *r, int n)
{
    if (r->count > 0)
        space->copy(r->out, r->in[0], r->count, r->dtype);
    for (int i = 1; i < n && r->count > 0; i++)
        space->axpy(r->out, 1, r->in[i], r->count, r->dtype);
    for (size_t k = 0; k < r->n_scalars; k++) {
        double total = r->scalars_in[k];
        for (int i = 1; i < n; i++)
            total += r->scalars_in[(size_t)i * r->n_scalars + k];
        r->scalars_out[k] = total;
    }
}

static enum adl_status allreduce_start(struct adl_transport *t, struct adl_task *task,
                                       const struct adl_reduction *reduction,
                                       struct adl_pending **out)
{
    struct adl_sim_task *s = task->impl;
    *out = NULL;
    ADL_TRY(may_go_on(t, task));
    sum(t->env.space, reduction, task->n_local);
    bool overlaps = s->overlaps && reduction->cause == ADL_CAUSE_INNER && !(reduction->delay_s > 0);
    struct adl_made *made = overlaps ? adl_sim_made(s) : NULL;
    double ready_s = (overlaps ? adl_sim_slowest(s) : adl_sim_settle(s)) + reduction->delay_s;
    if (reduction->delay_s > 0)
        adl_sim_sleep_until(t, ready_s);
    for (int i = 0; i < task->n_workers; i++)
        if (adl_book_cursor(t->env.book, task->workers[i]) < ready_s)
            adl_book_advance(t->env.book, task->workers[i], ADL_TIME_WAIT, ready_s);
    struct adl_pending *p = calloc(1, sizeof *p);
    if (!p || (overlaps && !made)) {
        free(p);
        free(made);
        return adl_fail(&task->err, ADL_ERR_NOMEM, "no memory for a collective");
    }
    *p = (struct adl_pending){
        .next = s->pending, .bytes = reduction->charged_bytes, .made = made, .start_s = ready_s};
    s->pending = p;
    s->overlaps = false;
    if (!made) {
        struct adl_course *course;
        ADL_TRY(adl_sim_course(t, s->number, p->bytes, &course, &task->err));
        ADL_TRY(adl_sim_start(t, course, p, &task->err));
    }
    *out = p;
    return ADL_OK;
}

static void drop_pending(struct adl_sim_task *s, struct adl_pending *p)
{
    struct adl_pending **link = &s->pending;
    while (*link && *link != p)
        link = &(*link)->next;
    if (*link)
        *link = p->next;
    free(p->made);
    free(p);
}

static enum adl_status allreduce_wait(struct adl_transport *t, struct adl_task *task,
                                      struct adl_pending *pending)
{
    struct adl_sim_task *s = task->impl;
    double end_s = pending->start_s;
    enum adl_status status = pending->made ? adl_sim_follow_buckets(s, pending, &end_s, &task->err)
                                           : adl_sim_follow(t, pending, &end_s, &task->err);
    drop_pending(s, pending);
    ADL_TRY(status);
    for (int i = 0; i < task->n_workers; i++)
        if (adl_book_cursor(t->env.book, task->workers[i]) < end_s)
            adl_book_advance(t->env.book, task->workers[i], ADL_TIME_TRANSFER, end_s);
    adl_sim_settle(s);
    return may_go_on(t, task);
}

static enum adl_status outer_step(struct adl_transport *t, struct adl_task *task)
{
    ADL_TRY(may_go_on(t, task));
    for (int i = 0; i < task->n_workers; i++) {
        int worker = task->workers[i];
        const struct adl_device *device = &t->devices.v[adl_sim_device_of(t, worker)];
        double duration_s = adl_device_memory_s(device, t->devices.gpus, t->env.cost->outer_bytes);
        adl_book_advance(t->env.book, worker, ADL_TIME_OUTER,
                         adl_book_cursor(t->env.book, worker) + duration_s);
    }
    adl_sim_settle(task->impl);
    return may_go_on(t, task);
}

/* Of the devices that the world uses. */
static double peak_flops(const struct adl_transport *t)
{
    double sum = 0;
    for (int d = 0; d < (t->n_workers + t->per_device - 1) / t->per_device; d++)
        sum += t->devices.v[d].peak_flops;
    return sum;
}

/* Known where every message is simulated. */
static void sent(const struct adl_transport *t, double *messages, double *bytes)
{
    bool known = t->options->fidelity == ADL_FIDELITY_MESSAGE;
    *messages = known ? t->sent_messages : NAN;
    *bytes = known ? t->sent_bytes : NAN;
}

static enum adl_status links(struct adl_transport *t, double time_s, struct adl_links *out,
                             struct adl_err *err)
{
    adl_sim_courses_take(t);
    return adl_link_book_report(&t->links, &t->platform, time_s, out, err);
}

const struct adl_transport_ops adl_transport_sim = {
    .plugin = {.name = "sim",
               .doc = "A simulated cluster: the platform's devices and network, in one process.",
               .options = adl_sim_options,
               .config_size = sizeof(struct adl_sim_options)},
    .simulated = true,
    .default_workers = default_workers,
    .open = open_sim,
    .close = close_sim,
    .n_lanes = n_lanes,
    .local_workers = local_workers,
    .run = adl_sim_run,
    .for_each = for_each,
    .allreduce_start = allreduce_start,
    .allreduce_wait = allreduce_wait,
    .outer_step = outer_step,
    .gather = adl_sim_gather,
    .move = adl_sim_move,
    .start_at = start_at,
    .now_s = now_s,
    .peak_flops = peak_flops,
    .sent = sent,
    .links = links,
};
