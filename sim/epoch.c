/* SPDX-License-Identifier: Apache-2.0 */
/* Epochs of the simulated transport: tasks run as actors until all are done. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/simulation.h"

static void count_streams(struct adl_transport *t, struct adl_task *const *tasks, int n)
{
    memset(t->streams, 0, (size_t)t->devices.n * sizeof *t->streams);
    for (int d = 0; d < t->devices.n; d++)
        adl_share_clear(&t->shares[d]);
    memset(t->has_trainer, 0, (size_t)t->n_workers * sizeof *t->has_trainer);
    for (int k = 0; k < n; k++)
        for (int i = 0; i < tasks[k]->n_workers; i++) {
            int worker = tasks[k]->workers[i];
            t->streams[adl_sim_device_of(t, worker)]++;
            t->has_trainer[worker] = true;
        }
}

/* What a failed body has started goes to its end, which the engine waits for in any case; here its
 * memory is taken back. */
static void drain(struct adl_sim_task *s)
{
    while (s->pending) {
        struct adl_pending *p = s->pending;
        double ignored;
        if (p->course)
            adl_sim_follow(s->t, p, &ignored, NULL);
        s->pending = p->next;
        free(p->made);
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

static enum adl_status prepare_task(struct adl_transport *t, struct adl_sim_task *s,
                                    struct adl_err *err)
{
    s->task->impl = s;
    ADL_TRY(adl_sim_open_scratch(s, err));
    adl_sim_stagger(t, s->task);
    s->actor = (struct adl_engine_actor){task_main, s};
    return ADL_OK;
}

/* In the engine all at once; where nothing can meet, one after the other from the same start. */
static enum adl_status execute(struct adl_transport *t, struct adl_sim_task *all, int n,
                               struct adl_err *err)
{
    double start_s = t->now_s;
    for (int k = 0; k < n; k++) {
        const struct adl_task *task = all[k].task;
        int device = task->n_workers > 0 ? adl_sim_device_of(t, task->workers[0]) : 0;
        t->now_s = start_s;
        if (t->direct)
            task_main(&all[k]);
        else
            t->engine->spawn(t->devices.v[device].host, &all[k].actor);
    }
    if (t->direct)
        return ADL_OK;
    adl_capacity_follow(t->capacity);
    return t->engine->run(err);
}

static bool needs_no_engine(const struct adl_transport *t)
{
    if (t->options->fidelity != ADL_FIDELITY_ANALYTIC)
        return false;
    for (int d = 0; d < t->devices.n; d++)
        if (t->streams[d] > 1)
            return false;
    return true;
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
    ADL_TRY(adl_sim_prepare_courses(t, tasks, n, err));
    count_streams(t, tasks, n);
    t->direct = needs_no_engine(t);
    struct adl_sim_task *all = calloc((size_t)n + 1, sizeof *all);
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d trainers", n);
    t->failed = false;
    enum adl_status status = ADL_OK;
    for (int k = 0; k < n && status == ADL_OK; k++) {
        all[k] =
            (struct adl_sim_task){.t = t, .task = tasks[k], .body = body, .arg = arg, .number = k};
        status = prepare_task(t, &all[k], err);
    }
    if (status == ADL_OK)
        status = execute(t, all, n, err);
    if (status == ADL_OK)
        status = judge(all, n, err);
    double end_s = t->now_s;
    for (int k = 0; k < n && all[k].t; k++) {
        end_s = fmax(end_s, adl_sim_slowest(&all[k]));
        adl_sim_free_scratch(&all[k]);
        tasks[k]->impl = NULL;
    }
    free(all);
    close_epoch(t, end_s);
    return status;
}
