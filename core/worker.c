/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>
#include <string.h>

static struct adl_worker *worker_of(const struct adl_round_plan *plan, const struct adl_task *task,
                                    int i, int *index)
{
    *index = task->workers[task->first_local + i];
    return &plan->c->workers[*index];
}

static double *fresh_scalars(const struct adl_round_plan *plan, int i)
{
    double *scalars = &plan->t->scalars[(size_t)i * plan->t->n_scalars];
    memset(scalars, 0, plan->t->n_scalars * sizeof *scalars);
    return scalars;
}

/* Where the worker's slice of inner step k starts in its trainer's stream. */
static uint64_t slice_start(const struct adl_round_plan *plan, const struct adl_worker *w,
                            int64_t k)
{
    return plan->t->cursor + (uint64_t)(k * plan->B + w->offset);
}

/* y *= a; its squared norm, where that is wanted. */
static void scale(const struct adl_controller *c, void *y, double a, double *norm2)
{
    if (norm2)
        *norm2 = c->space->scale_norm2(y, a, c->P, c->dtype);
    else
        c->space->scale(y, a, c->P, c->dtype);
}

/* grad = mean gradient of the slice [first, +samples) at x, computed as n micro-batches, and its
 * squared norm where norm2 is not NULL. Accumulation divides the slice; the noise of a slice does
 * not depend on n. */
static enum adl_status mean_gradient(struct adl_controller *c, int lane, int index,
                                     const struct adl_trainer *t, const void *x, uint64_t first,
                                     const struct adl_step_plan *step, void *grad, double *norm2,
                                     double *loss_sum, struct adl_err *err)
{
    c->space->zero(grad, c->P, c->dtype);
    for (int64_t a = 0; a < step->micro_batches; a++) {
        int64_t offset, size;
        adl_micro_batch(step->samples, step->micro_batches, a, &offset, &size);
        struct adl_samples samples = {.stream = (uint64_t)t->index,
                                      .first = first + (uint64_t)offset,
                                      .count = (uint64_t)size,
                                      .slice_first = first,
                                      .slice_count = (uint64_t)step->samples};
        ADL_TRY(c->model_ops->add_grad(c->model, lane, index, x, &samples, grad, loss_sum, err));
    }
    scale(c, grad, 1.0 / (double)step->samples, norm2);
    return ADL_OK;
}

/* micro = mean gradient of micro-batch a of n, with a noise of its own, and its squared norm where
 * norm2 is not NULL. */
static enum adl_status micro_gradient(struct adl_controller *c, int lane, int index,
                                      const struct adl_trainer *t, const void *x, uint64_t first,
                                      int64_t total, int64_t n, int64_t a, int64_t *size,
                                      double *norm2, double *loss_sum, struct adl_err *err)
{
    void *micro = c->lanes[lane].micro;
    int64_t offset;
    adl_micro_batch(total, n, a, &offset, size);
    struct adl_samples samples = {.stream = (uint64_t)t->index,
                                  .first = first + (uint64_t)offset,
                                  .count = (uint64_t)*size,
                                  .slice_first = first + (uint64_t)offset,
                                  .slice_count = (uint64_t)*size};
    c->space->zero(micro, c->P, c->dtype);
    ADL_TRY(c->model_ops->add_grad(c->model, lane, index, x, &samples, micro, loss_sum, err));
    scale(c, micro, 1.0 / (double)*size, norm2);
    return ADL_OK;
}

/* The step in which the micro_batch statistic is taken: grad = the slice's mean gradient from
 * independent micro-batches, and its squared norm where norm2 is not NULL; scalars = S, U and, if
 * needed, S_ip, S_orth (theory 1). */
static enum adl_status micro_statistic(const struct adl_round_plan *plan, int lane, int index,
                                       const struct adl_worker *w, const void *x, uint64_t first,
                                       void *grad, double *norm2, double *scalars,
                                       struct adl_err *err)
{
    struct adl_controller *c = plan->c;
    const struct adl_space *space = c->space;
    int64_t b = w->step.samples, size;
    int64_t n = adl_statistic_micro_batches(b, w->step.micro_batches);
    double Q = 0, P2 = 0, micro2, unused = 0;
    space->zero(grad, c->P, c->dtype);
    for (int64_t a = 0; a < n; a++) {
        ADL_TRY(micro_gradient(c, lane, index, plan->t, x, first, b, n, a, &size, &micro2,
                               &scalars[ADL_SCALAR_LOSS], err));
        Q += (double)size * micro2;
        space->axpy(grad, (double)size / (double)b, c->lanes[lane].micro, c->P, c->dtype);
    }
    scalars[ADL_SCALAR_LOSS_N] = (double)b;
    double G2 = n > 1 || norm2 ? space->dot(grad, grad, c->P, c->dtype) : 0;
    if (norm2)
        *norm2 = G2;
    if (n < 2)
        return ADL_OK;
    if (plan->need == ADL_NEED_INNER_PRODUCT)
        for (int64_t a = 0; a < n; a++) {
            ADL_TRY(micro_gradient(c, lane, index, plan->t, x, first, b, n, a, &size, NULL, &unused,
                                   err));
            double p = space->dot(c->lanes[lane].micro, grad, c->P, c->dtype);
            P2 += (double)size * p * p;
        }
    struct adl_stat_sums sums = {.M = (int)n, .B = (double)b, .G2 = G2, .Q = Q, .P2 = P2};
    struct adl_stat stat = adl_stat_workers(&sums);
    scalars[ADL_SCALAR_S] = stat.S;
    scalars[ADL_SCALAR_U] = stat.U;
    scalars[ADL_SCALAR_S_IP] = stat.S_ip;
    scalars[ADL_SCALAR_S_ORTH] = stat.S_orth;
    return ADL_OK;
}

/* The gradient of step k at x into grad, and its squared norm where norm2 is not NULL; takes the
 * micro-batch statistic where it is due. */
static enum adl_status step_gradient(const struct adl_round_plan *plan, int lane, int index,
                                     const struct adl_worker *w, const void *x, int64_t k,
                                     bool last, void *grad, double *norm2, double *scalars,
                                     struct adl_err *err)
{
    struct adl_controller *c = plan->c;
    uint64_t first = slice_start(plan, w, k);
    if (last && plan->need != ADL_NEED_NOTHING && plan->kind == ADL_STAT_MICRO_BATCH)
        return micro_statistic(plan, lane, index, w, x, first, grad, norm2, scalars, err);
    double loss_sum = 0;
    ADL_TRY(
        mean_gradient(c, lane, index, plan->t, x, first, &w->step, grad, norm2, &loss_sum, err));
    if (last) {
        scalars[ADL_SCALAR_LOSS] = loss_sum;
        scalars[ADL_SCALAR_LOSS_N] = (double)w->step.samples;
    }
    return ADL_OK;
}

/* As many steps as the model's shortcut may take; *done says how many that were. */
static enum adl_status hop(const struct adl_round_plan *plan, int index, struct adl_worker *w,
                           int64_t *done, struct adl_err *err)
{
    struct adl_controller *c = plan->c;
    const struct adl_model_ops *ops = c->model_ops;
    *done = 0;
    if (!plan->hop)
        return ADL_OK;
    int64_t steps = w->steps - (plan->explicit_last ? 1 : 0);
    struct adl_hop *own = NULL;
    if (steps != plan->hop_steps || (ops->heterogeneous && ops->heterogeneous(c->model))) {
        if (steps == 0)
            return ADL_OK;
        ADL_TRY(ops->hop_prepare(c->model, index, plan->lr, (int)steps, &own, err));
    }
    ops->hop(c->model, own ? own : plan->hop, index, w->x, (uint64_t)plan->t->index,
             slice_start(plan, w, 0), (uint64_t)w->step.samples);
    if (own)
        ops->hop_free(own);
    *done = steps;
    return ADL_OK;
}

/* Turns the worker's parameters into its part of the sum; Q from the unweighted vector. */
static void finish_round(const struct adl_round_plan *plan, int lane, struct adl_worker *w,
                         double *scalars)
{
    struct adl_controller *c = plan->c;
    const struct adl_space *space = c->space;
    bool parameters = c->settings->outer.exchange == ADL_EXCHANGE_PARAMETERS;
    bool test_delta = plan->need != ADL_NEED_NOTHING && plan->kind == ADL_STAT_PSEUDO_GRADIENT;
    void *delta = parameters ? c->lanes[lane].micro : w->x;
    double weight = parameters ? 1 : w->weight;
    if (test_delta)
        scalars[ADL_SCALAR_Q] = w->share * space->combine_norm2(delta, 1, plan->t->theta, -1, w->x,
                                                                weight, c->P, c->dtype);
    else if (!parameters)
        space->combine(delta, 1, plan->t->theta, -1, w->x, c->P, c->dtype);
    if (parameters || !test_delta)
        space->scale(w->x, w->weight, c->P, c->dtype);
}

/* A fault takes what the worker has computed: there is no need to compute it. */
static enum adl_status give_nothing(struct adl_controller *c, struct adl_worker *w)
{
    c->space->zero(w->x, c->P, c->dtype);
    if (w->g)
        c->space->zero(w->g, c->P, c->dtype);
    return ADL_OK;
}

enum adl_status adl_worker_local_round(struct adl_task *task, int i, int lane, void *arg,
                                       struct adl_err *err)
{
    const struct adl_round_plan *plan = arg;
    struct adl_controller *c = plan->c;
    int index;
    struct adl_worker *w = worker_of(plan, task, i, &index);
    double *scalars = fresh_scalars(plan, i);
    if (w->lost)
        return give_nothing(c, w);
    c->space->copy(w->x, plan->t->theta, c->P, c->dtype);
    if (!c->settings->inner.keep_state)
        adl_inner_reset(&w->inner, c->space, c->P, c->dtype);
    int64_t k;
    ADL_TRY(hop(plan, index, w, &k, err));
    void *grad = c->lanes[lane].g;
    for (; k < w->steps; k++) {
        bool last = k == w->steps - 1, tested = last && w->g;
        double norm2, *wanted = tested || c->settings->inner.clip > 0 ? &norm2 : NULL;
        ADL_TRY(step_gradient(plan, lane, index, w, w->x, k, last, grad, wanted, scalars, err));
        if (tested) {
            c->space->copy(w->g, grad, c->P, c->dtype);
            scalars[ADL_SCALAR_Q] = (double)w->step.samples * norm2;
        }
        adl_inner_step(c->settings, c->space, plan->lr[k], w->x, grad, wanted, &w->inner, c->P,
                       c->dtype);
    }
    finish_round(plan, lane, w, scalars);
    if (w->g)
        c->space->scale(w->g, (double)w->step.samples / (double)plan->kept_B, c->P, c->dtype);
    return ADL_OK;
}

enum adl_status adl_worker_gradient(struct adl_task *task, int i, int lane, void *arg,
                                    struct adl_err *err)
{
    const struct adl_round_plan *plan = arg;
    struct adl_controller *c = plan->c;
    int index;
    struct adl_worker *w = worker_of(plan, task, i, &index);
    double *scalars = fresh_scalars(plan, i);
    if (w->lost)
        return give_nothing(c, w);
    bool last = plan->step == plan->H - 1;
    bool tested = last && plan->need != ADL_NEED_NOTHING && plan->kind != ADL_STAT_MICRO_BATCH;
    double norm2;
    ADL_TRY(step_gradient(plan, lane, index, w, plan->t->theta, plan->step, last, w->x,
                          tested ? &norm2 : NULL, scalars, err));
    if (tested)
        scalars[ADL_SCALAR_Q] = (double)w->step.samples * norm2;
    c->space->scale(w->x, w->weight, c->P, c->dtype);
    return ADL_OK;
}

/* p_m = v_m . gb of what is tested, from the weighted vector that went into the sum. */
static double along_mean(const struct adl_round_plan *plan, const struct adl_worker *w)
{
    struct adl_controller *c = plan->c;
    const struct adl_space *space = c->space;
    if (w->g)
        return space->dot(w->g, plan->mean, c->P, c->dtype) * (double)plan->kept_B /
               (double)w->step.samples;
    double p = space->dot(w->x, plan->mean, c->P, c->dtype) / w->weight;
    if (c->settings->outer.exchange == ADL_EXCHANGE_PARAMETERS)
        p = space->dot(plan->t->theta, plan->mean, c->P, c->dtype) - p;
    return p;
}

enum adl_status adl_worker_inner_product(struct adl_task *task, int i, int lane, void *arg,
                                         struct adl_err *err)
{
    (void)lane;
    (void)err;
    const struct adl_round_plan *plan = arg;
    int index;
    struct adl_worker *w = worker_of(plan, task, i, &index);
    double p = w->lost ? 0 : along_mean(plan, w);
    double b = w->g ? (double)w->step.samples : w->share;
    plan->t->scalars[(size_t)i * plan->t->n_scalars] = b * p * p;
    return ADL_OK;
}
