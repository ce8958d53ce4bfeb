/* SPDX-License-Identifier: Apache-2.0 */
#include "core/optimizer.h"

#include <math.h>

double adl_schedule_lr(const struct adl_settings *settings, int64_t step, int64_t total)
{
    double lr = settings->inner.lr;
    int64_t warmup = settings->inner.warmup;
    if (step < warmup)
        return lr * (double)(step + 1) / (double)warmup;
    if (settings->inner.schedule == ADL_SCHEDULE_CONSTANT)
        return lr;
    double progress = (double)(step - warmup) / (double)(total > warmup ? total - warmup : 1);
    return lr * 0.5 * (1 + cos(3.14159265358979323846 * fmin(progress, 1)));
}

void adl_inner_needs(const struct adl_settings *settings, int *needs_m, int *needs_v)
{
    int adamw = settings->inner.optimizer == ADL_INNER_ADAMW;
    *needs_m = adamw;
    *needs_v = adamw || settings->inner.momentum > 0;
}

void adl_inner_reset(struct adl_inner_state *state, const struct adl_space *space, size_t n,
                     enum adl_dtype dtype)
{
    state->steps = 0;
    if (state->m)
        space->zero(state->m, n, dtype);
    if (state->v)
        space->zero(state->v, n, dtype);
}

static void clip(const struct adl_space *space, double limit, void *g, const double *norm2,
                 size_t n, enum adl_dtype dtype)
{
    double norm = sqrt(norm2 ? *norm2 : space->dot(g, g, n, dtype));
    if (norm > limit)
        space->scale(g, limit / norm, n, dtype);
}

void adl_inner_step(const struct adl_settings *settings, const struct adl_space *space, double lr,
                    void *x, void *g, const double *norm2, struct adl_inner_state *state, size_t n,
                    enum adl_dtype dtype)
{
    if (settings->inner.clip > 0)
        clip(space, settings->inner.clip, g, norm2, n, dtype);
    state->steps++;
    if (settings->inner.optimizer == ADL_INNER_SGD) {
        space->sgd(x, g, state->v, lr, settings->inner.momentum, settings->inner.weight_decay, n,
                   dtype);
        return;
    }
    double t = (double)state->steps;
    struct adl_adamw_step step = {.lr = lr,
                                  .beta1 = settings->inner.beta1,
                                  .beta2 = settings->inner.beta2,
                                  .eps = settings->inner.eps,
                                  .weight_decay = settings->inner.weight_decay,
                                  .correction1 = 1 - pow(settings->inner.beta1, t),
                                  .correction2 = 1 - pow(settings->inner.beta2, t)};
    space->adamw(x, g, state->m, state->v, &step, n, dtype);
}

void adl_outer_step(const struct adl_settings *settings, const struct adl_space *space, void *theta,
                    const void *p, void *v, size_t n, enum adl_dtype dtype)
{
    double lr = settings->outer.lr, momentum = settings->outer.momentum;
    switch ((enum adl_outer_kind)settings->outer.optimizer) {
    case ADL_OUTER_AVERAGE:
        space->axpy(theta, -1, p, n, dtype);
        break;
    case ADL_OUTER_SGD:
        space->sgd(theta, p, v, lr, momentum, 0, n, dtype);
        break;
    case ADL_OUTER_NESTEROV:
        space->nesterov(theta, p, v, lr, momentum, n, dtype);
        break;
    }
}

int adl_outer_needs_v(const struct adl_settings *settings)
{
    return settings->outer.optimizer == ADL_OUTER_NESTEROV ||
           (settings->outer.optimizer == ADL_OUTER_SGD && settings->outer.momentum > 0);
}

double adl_inner_traffic_bytes(const struct adl_settings *settings)
{
    int m, v;
    adl_inner_needs(settings, &m, &v);
    return 4 + 8 + 2 + 8 * (m + v);
}

double adl_outer_traffic_bytes(const struct adl_settings *settings)
{
    return 4 + 8 + 8 * adl_outer_needs_v(settings);
}
