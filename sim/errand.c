/* SPDX-License-Identifier: Apache-2.0 */
/* Between epochs: vectors and scalars move while everyone waits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/simulation.h"

/* A transfer while nothing else runs. */
struct errand {
    struct adl_transport *t;
    struct adl_course *course;
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
        e->status = adl_sim_follow(e->t, &e->p, &e->end_s, e->err);
    if (e->status == ADL_OK)
        adl_sim_sleep_until(e->t, e->end_s);
}

static enum adl_status execute(struct errand *e, int host, struct adl_err *err)
{
    struct adl_transport *t = e->t;
    struct adl_engine_actor actor = {errand_main, e};
    t->direct = t->options->fidelity == ADL_FIDELITY_ANALYTIC;
    if (t->direct) {
        errand_main(e);
        return ADL_OK;
    }
    t->engine->spawn(host, &actor);
    adl_capacity_follow(t->capacity);
    return t->engine->run(err);
}

/* What a chain moves in fidelity `message`, where it is counted like all others. */
static void count_sent(struct adl_transport *t, const struct adl_pattern *pattern, double bytes)
{
    for (int i = 0; i < pattern->n && t->options->fidelity == ADL_FIDELITY_MESSAGE; i++) {
        t->sent_messages += pattern->edges[i].rounds;
        t->sent_bytes += pattern->edges[i].volume * bytes;
    }
}

static enum adl_status run_errand(struct adl_transport *t, const struct adl_pattern *pattern,
                                  bool chain, double bytes, struct adl_err *err)
{
    if (pattern->n == 0)
        return ADL_OK;
    struct adl_course *course;
    ADL_TRY(adl_sim_single_course(t, pattern, chain, &course, err));
    if (chain)
        count_sent(t, pattern, bytes);
    struct errand e = {.t = t,
                       .course = course,
                       .p = {.bytes = bytes, .start_s = t->now_s},
                       .end_s = t->now_s,
                       .status = ADL_ERR_BUG,
                       .err = err};
    enum adl_status status =
        execute(&e, t->platform.devices[pattern->edges[0].from].host, err);
    adl_link_book_take(&t->links, course, 1);
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
    int n = adl_sim_distinct_devices(t, sorted, n_rows, -1, devices);
    for (int i = 0; i < n; i++)
        devices[i] *= t->devices.gpus; /* a leader's first GPU speaks for it */
    struct adl_pattern pattern;
    enum adl_status status =
        adl_pattern_allreduce(ADL_COLL_RING, &t->layout, devices, n, &pattern, err);
    free(sorted);
    ADL_TRY(status);
    status = run_errand(t, &pattern, false, charged_bytes, err);
    adl_pattern_free(&pattern);
    return status;
}

static enum adl_status move_one(struct adl_transport *t, const struct adl_move *move,
                                struct adl_err *err)
{
    if (move->into && move->into != move->data)
        t->env.space->copy(move->into, move->data, move->bytes / 4, ADL_F32); /* of either type */
    int *devices = malloc(((size_t)move->n_dst + 1) * sizeof *devices);
    if (!devices)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to move to %d workers", move->n_dst);
    devices[0] = adl_sim_device_of(t, move->src);
    int n = 1 + adl_sim_distinct_devices(t, move->dst, move->n_dst, devices[0], devices + 1);
    struct adl_pattern pattern;
    enum adl_status status = adl_pattern_chain(devices, n, &pattern, err);
    free(devices);
    if (status == ADL_OK)
        status = adl_pattern_shard(&pattern, t->devices.gpus, err);
    ADL_TRY(status);
    status = run_errand(t, &pattern, true, move->charged_bytes, err);
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
