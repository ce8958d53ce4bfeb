/* SPDX-License-Identifier: Apache-2.0 */
/* Charging a task's work to its devices. A device with one worker needs no simulation; one that
 * several workers use is shared through the engine (all at once) or taken in turns. */
#include "sim/simulation.h"

static void finish_worker(struct adl_sim_task *s, int i, double start_s, double finish_s,
                          double *compute_s)
{
    int worker = s->task->workers[s->task->first_local + i];
    adl_book_advance(s->t->env.book, worker, ADL_TIME_COMPUTE, finish_s);
    if (compute_s)
        compute_s[i] = finish_s - start_s;
}

/* One at a time, in the order of asking. */
static void take_turn(struct adl_sim_task *s, int i, int device, double solo_s, double *compute_s)
{
    struct adl_transport *t = s->t;
    int worker = s->task->workers[s->task->first_local + i];
    double start_s = adl_book_cursor(t->env.book, worker);
    if (t->free_at_s[device] > start_s) {
        start_s = t->free_at_s[device];
        adl_book_advance(t->env.book, worker, ADL_TIME_WAIT, start_s);
    }
    t->free_at_s[device] = start_s + solo_s;
    finish_worker(s, i, start_s, start_s + solo_s, compute_s);
}

/* An execution of the block's busy part that is no faster than the block alone: small streams
 * overlap until the device is full, then share it. */
static void start_shared(struct adl_sim_task *s, int i, const struct adl_sim_device *device,
                         const struct adl_block *block)
{
    double flops = block->busy_s * s->t->engine->host_speed(device->host);
    s->started_s[i] = s->t->engine->clock_s();
    s->jobs[i] = s->t->engine->execute(device->host, flops, flops / block->solo_s);
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

static enum adl_status finish_shared(struct adl_sim_task *s, double *compute_s)
{
    enum adl_status status = ADL_OK;
    for (int i = 0; i < s->task->n_local; i++) {
        if (!s->jobs[i])
            continue;
        double finish_s = s->started_s[i];
        enum adl_status ended = s->t->engine->wait(s->jobs[i], &finish_s, &s->task->err);
        s->jobs[i] = NULL;
        status = status == ADL_OK ? ended : status;
        int worker = s->task->workers[s->task->first_local + i];
        double start_s = adl_book_cursor(s->t->env.book, worker);
        finish_worker(s, i, start_s, start_s + (finish_s - s->started_s[i]), compute_s);
    }
    return status;
}

static bool any_shared(const struct adl_sim_task *s)
{
    const int *workers = s->task->workers + s->task->first_local;
    for (int i = 0; i < s->task->n_local; i++)
        if (s->t->streams[adl_sim_device_of(s->t, workers[i])] > 1)
            return true;
    return false;
}

static void charge(struct adl_sim_task *s, int i, const struct adl_work *work, double *compute_s)
{
    struct adl_transport *t = s->t;
    int worker = s->task->workers[s->task->first_local + i], d = adl_sim_device_of(t, worker);
    const struct adl_sim_device *device = &t->platform.devices[d];
    struct adl_block block = adl_device_block(device, t->env.cost, work, t->options->jitter,
                                              (uint64_t)t->env.settings->seed, worker);
    double start_s = adl_book_cursor(t->env.book, worker);
    if (t->streams[d] == 1 || block.busy_s <= 0) {
        finish_worker(s, i, start_s, start_s + block.solo_s, compute_s);
        return;
    }
    adl_sim_sleep_until(t, start_s);
    if (t->options->sharing == ADL_SHARE_TURNS)
        take_turn(s, i, d, block.solo_s, compute_s);
    else
        start_shared(s, i, device, &block);
}

enum adl_status adl_sim_compute(struct adl_sim_task *s, const struct adl_work *work,
                                double *compute_s)
{
    bool shared = any_shared(s);
    if (shared)
        sort_by_cursor(s);
    for (int k = 0; k < s->task->n_local; k++) {
        int i = shared ? s->order[k] : k;
        charge(s, i, &work[i], compute_s);
    }
    return finish_shared(s, compute_s);
}
