/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of the simulated transport: tasks run as actors until all are done; between epochs
 * vectors move while everyone waits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/simulation.h"

/* Distinct devices of workers [n], in order of appearance where those of a device are neighbours,
 * leaving out `except`. Returns how many. */
static int distinct_devices(const struct adl_transport *t, const int *workers, int n, int except,
                            int *devices)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        int device = adl_sim_device_of(t, workers[i]);
        if (device != except && (count == 0 || devices[count - 1] != device))
            devices[count++] = device;
    }
    return count;
}

/* Every task's devices, each list behind its length: what courses depend on. */
static enum adl_status list_groups(const struct adl_transport *t, struct adl_task *const *tasks,
                                   int n, int **out, size_t *size, struct adl_err *err)
{
    size_t cap = (size_t)n + 1;
    for (int k = 0; k < n; k++)
        cap += (size_t)tasks[k]->n_workers;
    int *groups = malloc(cap * sizeof *groups);
    if (!groups)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the devices of %d trainers", n);
    *size = 0;
    for (int k = 0; k < n; k++) {
        int *count = groups + *size;
        *count = distinct_devices(t, tasks[k]->workers, tasks[k]->n_workers, -1, count + 1);
        *size += (size_t)*count + 1;
    }
    *out = groups;
    return ADL_OK;
}

static enum adl_status solve_courses(struct adl_transport *t, int n, struct adl_err *err)
{
    struct adl_pattern *patterns = calloc((size_t)n + 1, sizeof *patterns);
    enum adl_status status =
        patterns ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for %d collectives", n);
    const int *group = t->groups;
    for (int k = 0; k < n && status == ADL_OK; k++) {
        enum adl_collective collective = adl_collective_resolve(
            t->env.settings->collective, &t->layout, group + 1, *group, INFINITY);
        status =
            adl_pattern_allreduce(collective, &t->layout, group + 1, *group, &patterns[k], err);
        group += *group + 1;
    }
    if (status == ADL_OK)
        status = adl_network_solve(t->engine, &t->platform, patterns, n, &t->courses, err);
    t->n_courses = status == ADL_OK ? n : 0;
    for (int k = 0; patterns && k < n; k++)
        adl_pattern_free(&patterns[k]);
    free(patterns);
    return status;
}

/* Works out the tasks' collectives, unless they are those of the last epoch. */
static enum adl_status prepare_courses(struct adl_transport *t, struct adl_task *const *tasks,
                                       int n, struct adl_err *err)
{
    int *groups = NULL;
    size_t size = 0;
    ADL_TRY(list_groups(t, tasks, n, &groups, &size, err));
    if (t->courses && t->n_courses == n && t->n_groups == size &&
        memcmp(t->groups, groups, size * sizeof *groups) == 0) {
        free(groups);
        return ADL_OK;
    }
    adl_courses_free(t->courses, t->n_courses);
    free(t->groups);
    t->courses = NULL;
    t->n_courses = 0;
    t->groups = groups;
    t->n_groups = size;
    return solve_courses(t, n, err);
}

static void count_streams(struct adl_transport *t, struct adl_task *const *tasks, int n)
{
    memset(t->streams, 0, (size_t)t->platform.n_devices * sizeof *t->streams);
    memset(t->has_trainer, 0, (size_t)t->n_workers * sizeof *t->has_trainer);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < tasks[k]->n_workers; i++) {
            int worker = tasks[k]->workers[i];
            t->streams[adl_sim_device_of(t, worker)]++;
            t->has_trainer[worker] = true;
        }
}

/* What a failed body has started goes to its end: its flows would go on in later epochs. */
static void drain(struct adl_sim_task *s)
{
    while (s->pending) {
        struct adl_pending *p = s->pending;
        double ignored;
        adl_sim_follow(s->t, s->course, p, &ignored, NULL);
        s->pending = p->next;
        free(p);
    }
}

static void task_main(void *arg)
{
    struct adl_sim_task *s = arg;
    s->status = s->body(s->task, s->arg);
    if (s->status != ADL_OK) {
        s->failed_first = !s->t->failed;
        s->t->failed = true;
    }
    drain(s);
    adl_sim_settle(s);
    s->done = true;
}

static enum adl_status spawn_task(struct adl_transport *t, struct adl_sim_task *s,
                                  const struct adl_task *task, struct adl_err *err)
{
    size_t n = (size_t)task->n_local + 1;
    s->order = calloc(n, sizeof *s->order);
    s->jobs = calloc(n, sizeof(struct adl_activity *));
    s->started_s = calloc(n, sizeof *s->started_s);
    if (!s->order || !s->jobs || !s->started_s)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a trainer of %d workers",
                        task->n_workers);
    s->actor = (struct adl_engine_actor){task_main, s};
    int device = task->n_workers > 0 ? adl_sim_device_of(t, task->workers[0]) : 0;
    t->engine->spawn(t->platform.devices[device].host, &s->actor);
    return ADL_OK;
}

/* Everyone waits for the slowest; who has no trainer is idle. */
static void close_epoch(struct adl_transport *t, double end_s)
{
    for (int w = 0; w < t->n_workers; w++)
        if (adl_book_cursor(t->env.book, w) < end_s)
            adl_book_advance(t->env.book, w, t->has_trainer[w] ? ADL_TIME_WAIT : ADL_TIME_IDLE,
                             end_s);
    t->now_s = fmax(t->now_s, end_s);
}

static enum adl_status judge(const struct adl_sim_task *all, int n, struct adl_err *err)
{
    for (int k = 0; k < n; k++) {
        const struct adl_err *said = &all[k].task->err;
        if (all[k].failed_first)
            return said->status == ADL_OK
                       ? adl_fail(err, all[k].status, "trainer %d failed", all[k].task->trainer)
                       : adl_fail(err, all[k].status, "%s", said->message);
    }
    for (int k = 0; k < n; k++)
        if (!all[k].done)
            return adl_fail(err, ADL_ERR_BUG, "trainer %d waits for something that never comes",
                            all[k].task->trainer);
    return ADL_OK;
}

enum adl_status adl_sim_run(struct adl_transport *t, struct adl_task *const *tasks, int n,
                            enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                            struct adl_err *err)
{
    ADL_TRY(prepare_courses(t, tasks, n, err));
    count_streams(t, tasks, n);
    struct adl_sim_task *all = calloc((size_t)n + 1, sizeof *all);
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d trainers", n);
    t->failed = false;
    enum adl_status status = ADL_OK;
    for (int k = 0; k < n && status == ADL_OK; k++) {
        all[k] = (struct adl_sim_task){
            .t = t, .task = tasks[k], .body = body, .arg = arg, .course = &t->courses[k]};
        tasks[k]->impl = &all[k];
        status = spawn_task(t, &all[k], tasks[k], err);
    }
    enum adl_status ran = t->engine->run(err);
    status = status == ADL_OK ? ran : status;
    if (status == ADL_OK)
        status = judge(all, n, err);
    double end_s = t->now_s;
    for (int k = 0; k < n; k++) {
        end_s = fmax(end_s, adl_sim_slowest(&all[k]));
        free(all[k].order);
        free(all[k].jobs);
        free(all[k].started_s);
        tasks[k]->impl = NULL;
    }
    free(all);
    close_epoch(t, end_s);
    return status;
}

/* A transfer while nothing else runs. */
struct errand {
    struct adl_transport *t;
    const struct adl_course *course;
    struct adl_pending p;
    double end_s;
    enum adl_status status;
    struct adl_err *err;
};

static void errand_main(void *arg)
{
    struct errand *e = arg;
    e->status = adl_sim_start(e->t, e->course, &e->p, e->err);
    if (e->status == ADL_OK)
        e->status = adl_sim_follow(e->t, e->course, &e->p, &e->end_s, e->err);
    if (e->status == ADL_OK)
        adl_sim_sleep_until(e->t, e->end_s);
}

static enum adl_status run_errand(struct adl_transport *t, const struct adl_pattern *pattern,
                                  double bytes, struct adl_err *err)
{
    if (pattern->n == 0)
        return ADL_OK;
    struct adl_course *course;
    ADL_TRY(adl_network_solve(t->engine, &t->platform, pattern, 1, &course, err));
    struct errand e = {.t = t,
                       .course = course,
                       .p = {.bytes = bytes, .start_s = t->now_s},
                       .end_s = t->now_s,
                       .status = ADL_ERR_BUG,
                       .err = err};
    struct adl_engine_actor actor = {errand_main, &e};
    t->engine->spawn(t->platform.devices[pattern->edges[0].from].host, &actor);
    enum adl_status status = t->engine->run(err);
    adl_courses_free(course, 1);
    ADL_TRY(status);
    if (e.status != ADL_OK)
        return adl_fail(err, e.status, "a transfer between epochs never ended");
    for (int w = 0; w < t->n_workers; w++)
        if (adl_book_cursor(t->env.book, w) < e.end_s)
            adl_book_advance(t->env.book, w, t->has_trainer[w] ? ADL_TIME_TRANSFER : ADL_TIME_IDLE,
                             e.end_s);
    t->now_s = fmax(t->now_s, e.end_s);
    return ADL_OK;
}

static int by_number(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

enum adl_status adl_sim_gather(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                               const int *leaders, double charged_bytes, struct adl_err *err)
{
    (void)rows; /* this process hosts the world: they are everywhere already */
    (void)n_cols;
    int *sorted = malloc(2 * ((size_t)n_rows + 1) * sizeof *sorted), *devices = sorted + n_rows;
    if (!sorted)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to gather from %d trainers", n_rows);
    memcpy(sorted, leaders, (size_t)n_rows * sizeof *sorted);
    qsort(sorted, (size_t)n_rows, sizeof *sorted, by_number);
    int n = distinct_devices(t, sorted, n_rows, -1, devices);
    struct adl_pattern pattern;
    enum adl_status status =
        adl_pattern_allreduce(ADL_COLL_RING, &t->layout, devices, n, &pattern, err);
    free(sorted);
    ADL_TRY(status);
    status = run_errand(t, &pattern, charged_bytes, err);
    adl_pattern_free(&pattern);
    return status;
}

static enum adl_status move_one(struct adl_transport *t, const struct adl_move *move,
                                struct adl_err *err)
{
    if (move->into && move->into != move->data)
        memcpy(move->into, move->data, move->bytes);
    int *devices = malloc(((size_t)move->n_dst + 1) * sizeof *devices);
    if (!devices)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to move to %d workers", move->n_dst);
    devices[0] = adl_sim_device_of(t, move->src);
    int n = 1 + distinct_devices(t, move->dst, move->n_dst, devices[0], devices + 1);
    struct adl_pattern pattern;
    enum adl_status status = adl_pattern_chain(devices, n, &pattern, err);
    free(devices);
    ADL_TRY(status);
    status = run_errand(t, &pattern, move->charged_bytes, err);
    adl_pattern_free(&pattern);
    return status;
}

enum adl_status adl_sim_move(struct adl_transport *t, const struct adl_move *moves, int n,
                             struct adl_err *err)
{
    for (int i = 0; i < n; i++)
        ADL_TRY(move_one(t, &moves[i], err));
    return ADL_OK;
}
