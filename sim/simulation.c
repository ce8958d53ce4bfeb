/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/simulation.h"

#include <math.h>
#include <stdlib.h>

int adl_sim_device_of(const struct adl_transport *t, int worker)
{
    return worker / t->per_device;
}

/* The engine's clock follows the simulation's own times only to its precision of 1 ns, so sleeps
 * lead to absolute times and errors do not add up. */
void adl_sim_sleep_until(const struct adl_transport *t, double until_s)
{
    double left_s = until_s - t->engine->clock_s();
    if (left_s > 0)
        t->engine->sleep(left_s);
}

double adl_sim_slowest(const struct adl_sim_task *s)
{
    const struct adl_task *task = s->task;
    double slowest = 0;
    for (int i = 0; i < task->n_workers; i++)
        slowest = fmax(slowest, adl_book_cursor(s->t->env.book, task->workers[i]));
    return slowest;
}

double adl_sim_settle(struct adl_sim_task *s)
{
    double slowest = adl_sim_slowest(s);
    adl_sim_sleep_until(s->t, slowest);
    s->t->now_s = fmax(s->t->now_s, slowest);
    return slowest;
}

static enum adl_status start_phase(const struct adl_transport *t, const struct adl_phase *phase,
                                   struct adl_pending *p, struct adl_err *err)
{
    p->activity = NULL;
    p->start_clock_s = t->engine->clock_s();
    if (phase->n_streams == 0)
        return ADL_OK;
    p->activity = calloc((size_t)phase->n_streams, sizeof(struct adl_activity *));
    if (!p->activity)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d flows", phase->n_streams);
    for (int i = 0; i < phase->n_streams; i++) {
        const struct adl_stream *stream = &phase->streams[i];
        double volume = stream->volume * p->bytes;
        if (volume >= 1) /* less than a byte takes its latency only */
            p->activity[i] = t->engine->flow(stream->from, stream->to, volume);
    }
    return ADL_OK;
}

/* Waits for all flows, whatever fails, so that none outlives the collective. */
static enum adl_status finish_phase(const struct adl_transport *t, const struct adl_phase *phase,
                                    struct adl_pending *p, double *duration_s, struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    double moving_s = phase->s_per_byte * p->bytes;
    for (int i = 0; p->activity && i < phase->n_streams; i++) {
        double finish_s = p->start_clock_s;
        if (!p->activity[i])
            continue;
        enum adl_status ended = t->engine->wait(p->activity[i], &finish_s, err);
        status = status == ADL_OK ? ended : status;
        moving_s = fmax(moving_s, finish_s - p->start_clock_s - phase->streams[i].latency_s);
    }
    free(p->activity);
    p->activity = NULL;
    *duration_s = moving_s + phase->latency_s;
    return status;
}

enum adl_status adl_sim_start(const struct adl_transport *t, const struct adl_course *course,
                              struct adl_pending *p, struct adl_err *err)
{
    return course->n_phases > 0 ? start_phase(t, &course->phases[0], p, err) : ADL_OK;
}

enum adl_status adl_sim_follow(const struct adl_transport *t, const struct adl_course *course,
                               struct adl_pending *p, double *end_s, struct adl_err *err)
{
    double at_s = p->start_s;
    for (int i = 0; i < course->n_phases; i++) {
        const struct adl_phase *phase = &course->phases[i];
        if (i > 0 && phase->n_streams > 0) {
            adl_sim_sleep_until(t, at_s);
            at_s = fmax(at_s, t->engine->clock_s());
        }
        if (i > 0)
            ADL_TRY(start_phase(t, phase, p, err));
        double duration_s;
        ADL_TRY(finish_phase(t, phase, p, &duration_s, err));
        at_s += duration_s;
    }
    *end_s = at_s;
    return ADL_OK;
}
