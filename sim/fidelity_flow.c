/* SPDX-License-Identifier: Apache-2.0 */
/* Carrying out a collective: phases of formulas and flows, or a script message by message. */
#include <math.h>
#include <stdlib.h>

#include "sim/simulation.h"

static enum adl_status start_phase(struct adl_transport *t, const struct adl_phase *phase,
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
    if (t->capacity)
        t->engine->unbind();
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
        moving_s = fmax(moving_s, finish_s - p->start_clock_s);
    }
    free(p->activity);
    p->activity = NULL;
    *duration_s = moving_s + phase->latency_s;
    return status;
}

/* From the first phase, which has been started, to the end of the last. */
static enum adl_status finish_phases(struct adl_transport *t, struct adl_pending *p,
                                     struct adl_err *err)
{
    const struct adl_course *course = p->course;
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
    p->end_s = at_s;
    return ADL_OK;
}

static void follow(void *arg)
{
    struct adl_pending *p = arg;
    p->follower->status = finish_phases(p->follower->t, p, &p->follower->err);
    p->follower->t->engine->open_gate(p->follower->done);
}

/* Later phases that need the engine start when the earlier ones end, while the task computes. */
static enum adl_status start_follower(struct adl_transport *t, struct adl_pending *p,
                                      struct adl_err *err)
{
    p->follower = calloc(1, sizeof *p->follower);
    if (p->follower)
        *p->follower =
            (struct adl_follower){.t = t, .done = t->engine->gate(), .actor = {follow, p}};
    if (!p->follower || !p->follower->done) {
        free(p->follower);
        p->follower = NULL;
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a collective");
    }
    t->engine->spawn(p->course->phases[0].n_streams > 0 ? p->course->phases[0].streams[0].from : 0,
                     &p->follower->actor);
    return ADL_OK;
}

static enum adl_status finish_follower(struct adl_transport *t, struct adl_pending *p,
                                       struct adl_err *err)
{
    struct adl_follower *f = p->follower;
    t->engine->pass_gate(f->done);
    t->engine->free_gate(f->done);
    enum adl_status status =
        f->status == ADL_OK ? ADL_OK : adl_fail(err, f->status, "%s", f->err.message);
    free(f);
    p->follower = NULL;
    return status;
}

static bool needs_follower(const struct adl_course *course)
{
    for (int i = 1; i < course->n_phases; i++)
        if (course->phases[i].n_streams > 0)
            return true;
    return false;
}

enum adl_status adl_sim_start(struct adl_transport *t, struct adl_course *course,
                              struct adl_pending *p, struct adl_err *err)
{
    p->course = course;
    p->end_s = p->start_s;
    if (course->script) {
        double messages, bytes;
        adl_script_sent(course->script, p->bytes, &messages, &bytes);
        t->sent_messages += messages;
        t->sent_bytes += bytes;
        return adl_script_start(t->engine, course->script, p->bytes, t->capacity != NULL,
                                &p->performance, err);
    }
    if (course->n_phases == 0)
        return ADL_OK;
    ADL_TRY(start_phase(t, &course->phases[0], p, err));
    return needs_follower(course) ? start_follower(t, p, err) : ADL_OK;
}

enum adl_status adl_sim_follow(struct adl_transport *t, struct adl_pending *p, double *end_s,
                               struct adl_err *err)
{
    if (p->performance) {
        p->end_s = p->start_s + adl_script_finish(p->performance);
        p->performance = NULL;
    } else if (p->follower) {
        ADL_TRY(finish_follower(t, p, err));
    } else {
        ADL_TRY(finish_phases(t, p, err));
    }
    adl_link_book_note(&t->links, p->course, p->bytes, p->end_s - p->start_s);
    *end_s = p->end_s;
    return ADL_OK;
}
