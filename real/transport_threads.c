/* SPDX-License-Identifier: Apache-2.0 */
#include "real/transport_threads.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/clock.h"
#include "real/pool.h"

struct threads_config {
    int64_t count;
};

static const struct adl_field threads_options[] = {
    {.key = "threads.count",
     .type = ADL_TYPE_INT,
     .dflt = "0",
     .min = 0,
     .max = 4096,
     .doc = "Threads that compute for the workers; 0 takes one for each processor.",
     .offset = offsetof(struct threads_config, count)},
    {.key = NULL},
};

struct adl_transport {
    struct adl_transport_env env;
    struct adl_pool *pool;
    struct adl_clock clock;
    bool running; /* tasks are */
    double met_s; /* when all workers last met */
    int *world;   /* [n_world] 0, 1, 2, ... */
    int n_world;
    pthread_mutex_t mutex;  /* guards failure; cancelled is asked by one thread at a time */
    struct adl_err failure; /* the first of this run; ADL_OK: none */
};

/* Whether the run still goes on: every call begins here. */
static enum adl_status check(struct adl_transport *t, struct adl_err *err)
{
    pthread_mutex_lock(&t->mutex);
    const struct adl_transport_env *env = &t->env;
    if (t->failure.status == ADL_OK && env->cancelled && env->cancelled(env->cancelled_arg))
        adl_fail(&t->failure, ADL_ERR_CANCELLED, "cancelled");
    enum adl_status status = t->failure.status;
    if (status == ADL_ERR_CANCELLED)
        adl_fail(err, status, "%s", t->failure.message);
    else if (status != ADL_OK)
        status = adl_fail(err, ADL_ERR_PEER, "another task failed: %s", t->failure.message);
    pthread_mutex_unlock(&t->mutex);
    return status;
}

static int default_workers_threads(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    (void)n_devices;
    return workers_per_device;
}

static void close_threads(struct adl_transport *t)
{
    if (!t)
        return;
    adl_pool_free(t->pool);
    pthread_mutex_destroy(&t->mutex);
    free(t->world);
    free(t);
}

/* More threads than workers would only cost their scratch memory. */
static int pool_size(const struct threads_config *config, int n_world)
{
    long count = config->count > 0 ? (long)config->count : sysconf(_SC_NPROCESSORS_ONLN);
    if (count > n_world)
        count = n_world;
    return count < 1 ? 1 : (int)count;
}

static enum adl_status open_threads(const void *config, const struct adl_transport_env *env,
                                    struct adl_transport **out, struct adl_err *err)
{
    int n_world = (int)env->settings->cluster.workers;
    struct adl_transport *t = calloc(1, sizeof *t);
    int *world = malloc((size_t)n_world * sizeof *world);
    if (!t || !world) {
        free(t);
        free(world);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a world of %d workers", n_world);
    }
    for (int w = 0; w < n_world; w++)
        world[w] = w;
    t->env = *env;
    t->world = world;
    t->n_world = n_world;
    pthread_mutex_init(&t->mutex, NULL);
    enum adl_status status = adl_pool_create(pool_size(config, n_world), &t->pool, err);
    if (status != ADL_OK) {
        close_threads(t);
        return status;
    }
    *out = t;
    return ADL_OK;
}

static int n_lanes_threads(const struct adl_transport *t)
{
    return adl_pool_n_lanes(t->pool);
}

static void local_workers_threads(const struct adl_transport *t, int *first, int *n)
{
    *first = 0;
    *n = t->n_world;
}

static double now_s_threads(const struct adl_transport *t)
{
    return t->running ? adl_clock_s(&t->clock) : t->met_s;
}

static void sent_threads(const struct adl_transport *t, double *messages, double *bytes)
{
    (void)t;
    *messages = *bytes = 0;
}

static void attribute(struct adl_transport *t, const struct adl_task *task, enum adl_time what)
{
    adl_book_advance_all(t->env.book, task->workers, task->n_workers, what, now_s_threads(t));
}

/* A task's thread. */
struct runner {
    struct adl_transport *t;
    struct adl_task *task;
    enum adl_status (*body)(struct adl_task *task, void *arg);
    void *arg;
    pthread_t thread;
};

static void fail_run(struct adl_transport *t, struct adl_task *task, enum adl_status status)
{
    adl_fail(&task->err, status, "the task of trainer %d failed", task->trainer);
    pthread_mutex_lock(&t->mutex);
    adl_fail(&t->failure, status, "%s", task->err.message);
    pthread_mutex_unlock(&t->mutex);
}

static void *runner_main(void *arg)
{
    struct runner *runner = arg;
    enum adl_status status = runner->body(runner->task, runner->arg);
    if (status != ADL_OK)
        fail_run(runner->t, runner->task, status);
    return NULL;
}

/* Starts all runners and waits for their ends. */
static void run_all(struct runner *runners, int n)
{
    int started = 0;
    for (; started < n; started++) {
        struct runner *r = &runners[started];
        int cause = pthread_create(&r->thread, NULL, runner_main, r);
        if (cause) {
            fail_run(r->t, r->task,
                     adl_fail(&r->task->err, ADL_ERR_RUNTIME,
                              "cannot start a thread for trainer %d: %s", r->task->trainer,
                              strerror(cause)));
            break;
        }
    }
    for (int i = 0; i < started; i++)
        pthread_join(runners[i].thread, NULL);
}

static enum adl_status run_threads(struct adl_transport *t, struct adl_task *const *tasks, int n,
                                   enum adl_status (*body)(struct adl_task *task, void *arg),
                                   void *arg, struct adl_err *err)
{
    struct runner *runners = calloc((size_t)n, sizeof *runners);
    if (!runners)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d tasks", n);
    for (int i = 0; i < n; i++)
        runners[i] = (struct runner){.t = t, .task = tasks[i], .body = body, .arg = arg};
    t->failure.status = ADL_OK;
    adl_clock_start(&t->clock);
    t->running = true;
    run_all(runners, n);
    free(runners);
    t->running = false;
    t->met_s = adl_clock_s(&t->clock);
    for (int i = 0; i < n; i++)
        adl_book_advance_all(t->env.book, tasks[i]->workers, tasks[i]->n_workers, ADL_TIME_WAIT,
                             t->met_s);
    adl_book_advance_all(t->env.book, t->world, t->n_world, ADL_TIME_IDLE, t->met_s); /* others */
    if (t->failure.status == ADL_OK)
        return ADL_OK;
    return adl_fail(err, t->failure.status, "%s", t->failure.message);
}

struct each { /* one call of for_each */
    struct adl_transport *t;
    struct adl_task *task;
    adl_worker_fn *fn;
    void *arg;
    bool charged;
    double *compute_s;
};

static enum adl_status each_item(void *arg, int i, int lane, struct adl_err *err)
{
    const struct each *each = arg;
    int worker = each->task->workers[each->task->first_local + i];
    ADL_TRY(check(each->t, err));
    double start_s = now_s_threads(each->t);
    enum adl_status status = each->fn(each->task, i, lane, each->arg, err);
    if (status != ADL_OK)
        return adl_fail(err, status, "worker %d failed", worker); /* unless it says why */
    double end_s = now_s_threads(each->t);
    if (each->compute_s)
        each->compute_s[i] = end_s - start_s;
    if (each->charged) {
        adl_book_advance(each->t->env.book, worker, ADL_TIME_WAIT, start_s);
        adl_book_advance(each->t->env.book, worker, ADL_TIME_COMPUTE, end_s);
    }
    return ADL_OK;
}

static enum adl_status for_each_threads(struct adl_transport *t, struct adl_task *task,
                                        adl_worker_fn *fn, void *arg, const struct adl_work *work,
                                        double *compute_s)
{
    ADL_TRY(check(t, &task->err));
    struct each each = {.t = t,
                        .task = task,
                        .fn = fn,
                        .arg = arg,
                        .charged = work != NULL,
                        .compute_s = compute_s};
    return adl_pool_run(t->pool, task->n_local, each_item, &each, &task->err);
}

/* Canonical order: worker by worker, one addition at a time. */
static void sum(const struct adl_space *space, const struct adl_reduction *r, int n)
{
    if (r->count > 0) {
        space->copy(r->out, r->in[0], r->count, r->dtype);
        for (int i = 1; i < n; i++)
            space->axpy(r->out, 1.0, r->in[i], r->count, r->dtype);
    }
    for (size_t k = 0; k < r->n_scalars; k++) {
        double total = r->scalars_in[k];
        for (int i = 1; i < n; i++)
            total += r->scalars_in[(size_t)i * r->n_scalars + k];
        r->scalars_out[k] = total;
    }
}

/* All of the trainer's workers are here, and adding is work of this thread: the sum is done at
 * once, and nothing is left to wait for. The task stands for what is pending. */
static enum adl_status allreduce_start_threads(struct adl_transport *t, struct adl_task *task,
                                               const struct adl_reduction *reduction,
                                               struct adl_pending **out)
{
    ADL_TRY(check(t, &task->err));
    attribute(t, task, ADL_TIME_WAIT);
    sum(t->env.space, reduction, task->n_local);
    attribute(t, task, ADL_TIME_TRANSFER);
    *out = (struct adl_pending *)task;
    return ADL_OK;
}

static enum adl_status allreduce_wait_threads(struct adl_transport *t, struct adl_task *task,
                                              struct adl_pending *pending)
{
    (void)pending;
    return check(t, &task->err);
}

static enum adl_status outer_step_threads(struct adl_transport *t, struct adl_task *task)
{
    ADL_TRY(check(t, &task->err));
    attribute(t, task, ADL_TIME_OUTER);
    return ADL_OK;
}

/* Between epochs: all workers are here; what led here is such time. */
static void meet(struct adl_transport *t, enum adl_time what)
{
    t->met_s = adl_clock_s(&t->clock);
    adl_book_advance_all(t->env.book, t->world, t->n_world, what, t->met_s);
}

/* Every leader is hosted here, so the rows are complete already. */
static enum adl_status gather_threads(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                      const int *leaders, double charged_bytes, struct adl_err *err)
{
    (void)rows;
    (void)n_rows;
    (void)n_cols;
    (void)leaders;
    (void)charged_bytes;
    ADL_TRY(check(t, err));
    meet(t, ADL_TIME_WAIT);
    return ADL_OK;
}

static enum adl_status move_threads(struct adl_transport *t, const struct adl_move *moves, int n,
                                    struct adl_err *err)
{
    ADL_TRY(check(t, err));
    meet(t, ADL_TIME_WAIT);
    for (int i = 0; i < n; i++) {
        const struct adl_move *m = &moves[i];
        if (m->into && m->into != m->data) /* whole numbers of either type are whole F32s */
            t->env.space->copy(m->into, m->data, m->bytes / 4, ADL_F32);
    }
    meet(t, ADL_TIME_TRANSFER);
    return ADL_OK;
}

const struct adl_transport_ops adl_transport_threads = {
    .plugin = {.name = "threads",
               .doc = "Threads of one process: runs anywhere; the reference for the others.",
               .options = threads_options,
               .config_size = sizeof(struct threads_config)},
    .simulated = false,
    .default_workers = default_workers_threads,
    .open = open_threads,
    .close = close_threads,
    .n_lanes = n_lanes_threads,
    .local_workers = local_workers_threads,
    .run = run_threads,
    .for_each = for_each_threads,
    .allreduce_start = allreduce_start_threads,
    .allreduce_wait = allreduce_wait_threads,
    .outer_step = outer_step_threads,
    .gather = gather_threads,
    .move = move_threads,
    .now_s = now_s_threads,
    .sent = sent_threads,
};
