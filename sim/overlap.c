/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/overlap.h"

#include <math.h>
#include <stdlib.h>

/* Gradients are made evenly from start_s on, for span_s. */
struct adl_made {
    double start_s, span_s;
};

struct adl_made *adl_sim_made(const struct adl_sim_task *s)
{
    const struct adl_task *task = s->task;
    struct adl_made *made = malloc(((size_t)task->n_workers + 1) * sizeof *made);
    for (int i = 0; made && i < task->n_workers; i++) {
        double span_s = s->t->backward_s[task->workers[i]];
        double end_s = adl_book_cursor(s->t->env.book, task->workers[i]);
        made[i] = (struct adl_made){end_s - span_s, span_s};
    }
    return made;
}

/* When every worker has made this share of its gradients. */
static double ready_s(const struct adl_made *made, int n, double share)
{
    double ready = 0;
    for (int i = 0; i < n; i++)
        ready = fmax(ready, made[i].start_s + share * made[i].span_s);
    return ready;
}

static bool needs_engine(const struct adl_course *course)
{
    if (course->script)
        return true;
    for (int i = 0; i < course->n_phases; i++)
        if (course->phases[i].n_streams > 0)
            return true;
    return false;
}

enum adl_status adl_sim_follow_buckets(struct adl_sim_task *s, struct adl_pending *p, double *end_s,
                                       struct adl_err *err)
{
    struct adl_transport *t = s->t;
    int n = (int)t->options->ddp_buckets;
    struct adl_course *course;
    ADL_TRY(adl_sim_course(t, s->number, p->bytes / n, &course, err));
    bool engine = needs_engine(course);
    double at_s = 0;
    for (int k = 1; k <= n; k++) {
        at_s = fmax(at_s, ready_s(p->made, s->task->n_workers, (double)k / n));
        if (engine) {
            adl_sim_sleep_until(t, at_s);
            at_s = fmax(at_s, t->engine->clock_s());
        }
        struct adl_pending bucket = {.bytes = p->bytes / n, .start_s = at_s};
        ADL_TRY(adl_sim_start(t, course, &bucket, err));
        ADL_TRY(adl_sim_follow(t, &bucket, &at_s, err));
    }
    *end_s = at_s;
    return ADL_OK;
}
