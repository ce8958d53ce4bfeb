/* SPDX-License-Identifier: Apache-2.0 */
/* A small world on any transport, for the conformance suite: opened for n workers, of which this
 * process hosts some; split into groups; and checks that are counted (they are made on many
 * threads at once). */
#ifndef ADL_TESTS_CONFORMANCE_WORLD_H
#define ADL_TESTS_CONFORMANCE_WORLD_H

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/config.h"
#include "core/registry.h"
#include "core/transport.h"

enum { MAX_WORKERS = 8 };

static atomic_int n_failed_checks;

#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            atomic_fetch_add(&n_failed_checks, 1);                                                 \
            fprintf(stderr, "%s:%d: not %s: ", __FILE__, __LINE__, #condition);                    \
            fprintf(stderr, __VA_ARGS__);                                                          \
            fputc('\n', stderr);                                                                   \
        }                                                                                          \
    } while (0)

struct world {
    const struct adl_transport_ops *ops;
    int n;              /* workers */
    int first, n_local; /* of them hosted here */
    int n_tasks;        /* of the last run, in this process */
    struct adl_config *config;
    void *options; /* the transport's own */
    struct adl_settings settings;
    struct adl_cost cost;
    struct adl_transport_env env;
    struct adl_book *book;
    struct adl_transport *t; /* NULL: not opened */
    char platform[4096];
    atomic_int asked; /* how often the transport asked whether it is cancelled */
    int cancel_at;    /* the answer becomes yes at this question; 0: never */
    double rounding;  /* of sums, in parts of the largest element; 0: canonical to the bit */
};

/* KEY, VALUE, ... of the transport's options, NULL-ended; NULL: all at their defaults. */
static const char *const *world_sets;
/* NULL: the CPU's. */
static const struct adl_space *world_space;

static bool world_cancelled(void *arg)
{
    struct world *w = arg;
    int asked = atomic_fetch_add(&w->asked, 1) + 1;
    return w->cancel_at > 0 && asked >= w->cancel_at;
}

/* All on one node of eight devices: what platforms/nvswitch-8.xml describes. */
static void world_settings(struct world *w)
{
    w->settings = (struct adl_settings){.name = "conformance",
                                        .transport = w->ops->plugin.name,
                                        .method = "local_sgd",
                                        .seed = 1,
                                        .trainers = 1,
                                        .collective = ADL_COLL_AUTO};
    w->settings.cluster.platform = w->platform;
    w->settings.cluster.workers = w->n;
    w->settings.cluster.workers_per_device = 1;
    w->settings.cluster.devices_per_node = MAX_WORKERS;
    w->settings.cluster.nodes_per_site = 1;
    w->settings.cluster.nics_per_node = 1;
    w->settings.model.wire_dtype = ADL_WIRE_F64;
}

static enum adl_status world_platform(struct world *w, struct adl_err *err)
{
    const char *source = getenv("ADL_SOURCE_DIR");
    if (!w->ops->simulated)
        return ADL_OK;
    snprintf(w->platform, sizeof w->platform, "%s/platforms/nvswitch-8.xml", source ? source : ".");
    if (access(w->platform, R_OK) != 0)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "cannot read %s", w->platform);
    w->env.platform_path = w->platform;
    return ADL_OK;
}

static enum adl_status world_open(struct world *w, const struct adl_transport_ops *ops, int n,
                                  struct adl_err *err)
{
    *w = (struct world){.ops = ops, .n = n};
    ADL_TRY(world_platform(w, err));
    world_settings(w);
    ADL_TRY(adl_config_create(adl_registry(), &w->config, err));
    for (int i = 0; world_sets && world_sets[i]; i += 2)
        ADL_TRY(adl_config_set(w->config, world_sets[i], world_sets[i + 1], "", "test", err));
    w->options = calloc(1, ops->plugin.config_size + 1);
    w->book = adl_book_create(n, 1);
    if (!w->options || !w->book)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory");
    if (ops->plugin.options)
        ADL_TRY(adl_config_fill(w->config, ops->plugin.options, w->options, err));
    w->env.settings = &w->settings;
    w->env.space = world_space ? world_space : &adl_space_cpu;
    w->cost = (struct adl_cost){.flops_per_sample = 1e12, .step_bytes = 1e9, .outer_bytes = 1e9};
    w->env.cost = &w->cost;
    w->env.book = w->book;
    w->env.cancelled = world_cancelled;
    w->env.cancelled_arg = w;
    ADL_TRY(ops->open(w->options, &w->env, &w->t, err));
    ops->local_workers(w->t, &w->first, &w->n_local);
    adl_book_restrict(w->book, w->first, w->n_local);
    return ADL_OK;
}

static void world_close(struct world *w)
{
    if (w->ops->close) /* one that is not in this build has none */
        w->ops->close(w->t);
    adl_book_free(w->book);
    free(w->options);
    adl_config_free(w->config);
}

typedef enum adl_status body_fn(struct adl_task *task, void *arg);

/* Runs body for k groups: worker w belongs to trainer w % k, and to none if that is not below
 * `used`. */
static enum adl_status world_run_some(struct world *w, int k, int used, body_fn *body, void *arg,
                                      struct adl_err *err)
{
    struct adl_task tasks[MAX_WORKERS] = {{0}}, *list[MAX_WORKERS];
    int workers[MAX_WORKERS][MAX_WORKERS], n_tasks = 0;
    for (int g = 0; g < used; g++) {
        struct adl_task *task = &tasks[g];
        task->trainer = g;
        task->workers = workers[g];
        for (int i = g; i < w->n; i += k) {
            workers[g][task->n_workers++] = i;
            task->first_local += i < w->first;
            task->n_local += i >= w->first && i < w->first + w->n_local;
        }
        if (task->n_local > 0)
            list[n_tasks++] = task;
    }
    w->n_tasks = n_tasks;
    return w->ops->run(w->t, list, n_tasks, body, arg, err);
}

static enum adl_status world_run(struct world *w, int k, body_fn *body, void *arg,
                                 struct adl_err *err)
{
    return world_run_some(w, k, k, body, arg, err);
}

/* The same where it must succeed. */
static void world_run_ok(struct world *w, int k, body_fn *body, void *arg)
{
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = world_run(w, k, body, arg, &err);
    CHECK(status == ADL_OK, "status %d: %s", (int)status, err.message);
}

static bool hosted(const struct world *w, int worker)
{
    return worker >= w->first && worker < w->first + w->n_local;
}

static int local_worker(const struct adl_task *task, int i)
{
    return task->workers[task->first_local + i];
}

static enum adl_status reduce(struct world *w, struct adl_task *task,
                              const struct adl_reduction *reduction)
{
    struct adl_pending *pending = NULL;
    ADL_TRY(w->ops->allreduce_start(w->t, task, reduction, &pending));
    return w->ops->allreduce_wait(w->t, task, pending);
}

/* Work that takes a real worker a moment, so that calls of several tasks overlap. */
static enum adl_status short_work(struct adl_task *task, int i, int lane, void *arg,
                                  struct adl_err *err)
{
    (void)lane;
    (void)arg;
    (void)err;
    usleep(50u * (unsigned)(1 + local_worker(task, i)));
    return ADL_OK;
}

/* for_each of short_work, charged for a simulated clock too; uneven on purpose. */
static enum adl_status work_round(struct world *w, struct adl_task *task, double *compute_s)
{
    struct adl_work work[MAX_WORKERS];
    for (int i = 0; i < task->n_local; i++)
        work[i] =
            (struct adl_work){.steps = 2, .micro_batches = 1, .samples = 1 + local_worker(task, i)};
    return w->ops->for_each(w->t, task, short_work, NULL, work, compute_s);
}

struct conformance_case {
    const char *name;
    void (*run)(struct world *w);
};

#endif
