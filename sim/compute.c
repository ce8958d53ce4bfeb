/* SPDX-License-Identifier: Apache-2.0 */
/* Charging a task's work to its devices. A device with one worker needs no simulation; one that
 * several workers use is shared (all at once) or taken in turns. */
#include <stdlib.h>

#include "sim/simulation.h"

static int worker_of(const struct adl_sim_task *s, int i)
{
    return s->task->workers[s->task->first_local + i];
}

static const struct adl_device *device_of(const struct adl_sim_task *s, int i)
{
    return &s->t->devices.v[adl_sim_device_of(s->t, worker_of(s, i))];
}

/* The seconds of computing, then the transfer within the device that they did not hide. */
static void finish_worker(struct adl_sim_task *s, int i, double finish_s, double *compute_s)
{
    struct adl_book *book = s->t->env.book;
    int worker = worker_of(s, i);
    double start_s = adl_book_cursor(book, worker), exposed_s = s->blocks[i].exposed_s;
    adl_book_advance(book, worker, ADL_TIME_COMPUTE, finish_s);
    if (exposed_s > 0)
        adl_book_advance(book, worker, ADL_TIME_TRANSFER, finish_s + exposed_s);
    s->t->backward_s[worker] = s->blocks[i].backward_s;
    if (compute_s)
        compute_s[i] = finish_s + exposed_s - start_s;
}

/* One at a time, in the order of asking. */
static void take_turn(struct adl_sim_task *s, int i, double *compute_s)
{
    struct adl_transport *t = s->t;
    int worker = worker_of(s, i), d = adl_sim_device_of(t, worker);
    double start_s = adl_book_cursor(t->env.book, worker);
    if (t->free_at_s[d] > start_s) {
        start_s = t->free_at_s[d];
        adl_book_advance(t->env.book, worker, ADL_TIME_WAIT, start_s);
    }
    t->free_at_s[d] = adl_profile_finish(t->devices.v[d].profile, start_s, s->blocks[i].solo_s);
    finish_worker(s, i, t->free_at_s[d], compute_s);
}

static enum adl_status start_shared(struct adl_sim_task *s, int i)
{
    struct adl_transport *t = s->t;
    const struct adl_block *block = &s->blocks[i];
    struct adl_share *share = &t->shares[adl_sim_device_of(t, worker_of(s, i))];
    s->started_s[i] = t->engine->clock_s();
    s->is_shared[i] = true;
    return adl_share_add(share, device_of(s, i)->profile, s->started_s[i], block->busy_s,
                         block->solo_s, &s->jobs[i])
               ? ADL_OK
               : adl_fail(&s->task->err, ADL_ERR_NOMEM, "no memory for a shared device");
}

/* Sleeps to the end that is foreseen, as often as others join and put it off. */
static void finish_shared(struct adl_sim_task *s, int i, double *compute_s)
{
    struct adl_transport *t = s->t;
    struct adl_job *job = &s->jobs[i];
    struct adl_share *share = &t->shares[adl_sim_device_of(t, worker_of(s, i))];
    const struct adl_profile *profile = device_of(s, i)->profile;
    while (!job->done) {
        double end_s = adl_share_predict(share, profile, job);
        adl_sim_sleep_until(t, end_s);
        adl_share_advance(share, profile, end_s);
    }
    s->is_shared[i] = false;
    double start_s = adl_book_cursor(t->env.book, worker_of(s, i));
    finish_worker(s, i, start_s + (job->finish_s - s->started_s[i]), compute_s);
}

/* Local workers by the time they are at; equal after a collective, and then nothing moves. */
static void sort_by_cursor(struct adl_sim_task *s)
{
    const struct adl_task *task = s->task;
    const int *workers = task->workers + task->first_local;
    for (int i = 0; i < task->n_local; i++) {
        double cursor_s = adl_book_cursor(s->t->env.book, workers[i]);
        int k = i;
        for (; k > 0 && adl_book_cursor(s->t->env.book, workers[s->order[k - 1]]) > cursor_s; k--)
            s->order[k] = s->order[k - 1];
        s->order[k] = i;
    }
}

static bool any_shared(const struct adl_sim_task *s)
{
    for (int i = 0; i < s->task->n_local; i++)
        if (s->t->streams[adl_sim_device_of(s->t, worker_of(s, i))] > 1)
            return true;
    return false;
}

static enum adl_status charge(struct adl_sim_task *s, int i, const struct adl_work *work,
                              double *compute_s)
{
    struct adl_transport *t = s->t;
    int worker = worker_of(s, i), d = adl_sim_device_of(t, worker);
    const struct adl_device *device = &t->devices.v[d];
    struct adl_draws draws = {.options = t->options,
                              .seed = (uint64_t)t->env.settings->seed,
                              .round_steps = t->env.settings->inner.steps,
                              .device = d,
                              .worker = worker};
    s->blocks[i] = adl_device_block(device, t->devices.gpus, t->env.cost, work, &draws);
    double start_s = adl_book_cursor(t->env.book, worker), solo_s = s->blocks[i].solo_s;
    if (t->streams[d] == 1 || s->blocks[i].busy_s <= 0) {
        finish_worker(s, i, adl_profile_finish(device->profile, start_s, solo_s), compute_s);
        return ADL_OK;
    }
    adl_sim_sleep_until(t, start_s);
    if (t->options->sharing == ADL_SHARE_PROCESSOR)
        return start_shared(s, i);
    take_turn(s, i, compute_s);
    return ADL_OK;
}

enum adl_status adl_sim_compute(struct adl_sim_task *s, const struct adl_work *work,
                                double *compute_s)
{
    bool shared = any_shared(s);
    if (shared)
        sort_by_cursor(s);
    for (int k = 0; k < s->task->n_local; k++) {
        int i = shared ? s->order[k] : k;
        ADL_TRY(charge(s, i, &work[i], compute_s));
    }
    for (int i = 0; i < s->task->n_local; i++)
        if (s->is_shared[i])
            finish_shared(s, i, compute_s);
    return ADL_OK;
}

enum adl_status adl_sim_open_scratch(struct adl_sim_task *s, struct adl_err *err)
{
    size_t n = (size_t)s->task->n_local + 1;
    s->order = calloc(n, sizeof *s->order);
    s->blocks = calloc(n, sizeof *s->blocks);
    s->jobs = calloc(n, sizeof *s->jobs);
    s->is_shared = calloc(n, sizeof *s->is_shared);
    s->started_s = calloc(n, sizeof *s->started_s);
    if (s->order && s->blocks && s->jobs && s->is_shared && s->started_s)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_NOMEM, "no memory for a trainer of %d workers",
                    s->task->n_workers);
}

void adl_sim_free_scratch(struct adl_sim_task *s)
{
    free(s->order);
    free(s->blocks);
    free(s->jobs);
    free(s->is_shared);
    free(s->started_s);
}

void adl_sim_stagger(struct adl_transport *t, const struct adl_task *task)
{
    double stagger_s = t->options->stagger_s;
    for (int i = 0; i < task->n_workers && stagger_s > 0; i++) {
        int worker = task->workers[i], slot = worker % t->per_device;
        double start_s = adl_book_cursor(t->env.book, worker) + slot * stagger_s;
        adl_book_advance(t->env.book, worker, ADL_TIME_IDLE, start_s);
    }
}
