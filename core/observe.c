/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>

int adl_charged_scalars(const struct adl_round_plan *plan)
{
    if (plan->need == ADL_NEED_NOTHING)
        return 0;
    if (plan->kind != ADL_STAT_MICRO_BATCH)
        return 1; /* Q */
    return plan->need == ADL_NEED_INNER_PRODUCT ? 4 : 2;
}

/* P2 = sum b_m (v_m . gb)^2: only possible once gb is known, hence an exchange of its own. */
static enum adl_status exchange_inner_products(struct adl_round_plan *plan, double *P2)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    ADL_TRY(c->transport_ops->for_each(c->transport, &t->task, adl_worker_inner_product, plan, NULL,
                                       NULL));
    struct adl_reduction reduction = {.scalars_in = t->scalars,
                                      .scalars_out = t->sums,
                                      .n_scalars = t->n_scalars,
                                      .dtype = c->dtype,
                                      .charged_bytes = sizeof(double),
                                      .cause = ADL_CAUSE_STATISTICS};
    ADL_TRY(adl_exchange(c, t, &reduction));
    *P2 = t->sums[0];
    return ADL_OK;
}

static enum adl_status across_workers(struct adl_round_plan *plan, const double *sums,
                                      struct adl_stat *stat)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    bool last_gradients = t->stat_sum && plan->kind == ADL_STAT_GRADIENT;
    plan->mean = last_gradients ? t->stat_sum : t->sum;
    struct adl_stat_sums in = {.M = plan->n_kept,
                               .B = last_gradients ? (double)plan->kept_B
                                                   : plan->kept_ran / (double)plan->H,
                               .G2 = c->space->dot(plan->mean, plan->mean, c->P, c->dtype),
                               .Q = sums[ADL_SCALAR_Q]};
    if (plan->need == ADL_NEED_INNER_PRODUCT)
        ADL_TRY(exchange_inner_products(plan, &in.P2));
    *stat = adl_stat_workers(&in);
    return ADL_OK;
}

/* The mean over those workers that had two micro-batches at least; *n is their number. */
static void across_micro_batches(const struct adl_round_plan *plan, const double *sums,
                                 struct adl_stat *stat, int *n)
{
    const struct adl_trainer *t = plan->t;
    double b = 0;
    *n = 0;
    for (int i = 0; i < t->n_workers; i++) {
        const struct adl_worker *w = &plan->c->workers[t->workers[i]];
        int64_t samples = w->step.samples;
        if (w->lost || samples < 2)
            continue;
        ++*n;
        b += (double)samples;
    }
    *stat = (struct adl_stat){
        .S = NAN, .U = NAN, .G2 = NAN, .S_ip = NAN, .S_orth = NAN, .B = (double)plan->kept_B};
    if (*n == 0)
        return;
    stat->S = sums[ADL_SCALAR_S] / *n;
    stat->U = sums[ADL_SCALAR_U] / *n;
    stat->S_ip = sums[ADL_SCALAR_S_IP] / *n;
    stat->S_orth = sums[ADL_SCALAR_S_ORTH] / *n;
    stat->G2 = stat->U + stat->S / (b / *n);
}

/* Only variances are smoothed: U falls by decades along a run, and a running mean of it would
 * switch the test off (theory 1). */
static void smooth(const struct adl_settings *settings, double past[3], struct adl_stat *stat)
{
    double *now[3] = {&stat->S, &stat->S_ip, &stat->S_orth};
    double weight = settings->batch.smoothing;
    for (int i = 0; weight > 0 && i < 3; i++) {
        if (!isnan(past[i]))
            *now[i] = weight * past[i] + (1 - weight) * *now[i];
        past[i] = *now[i];
    }
}

enum adl_status adl_observe(struct adl_round_plan *plan, const double *sums,
                            struct adl_stat *stat_out)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    struct adl_stat stat = {.S = NAN, .U = NAN, .G2 = NAN, .S_ip = NAN, .S_orth = NAN};
    int64_t at_least = 0;
    if (plan->need != ADL_NEED_NOTHING && plan->kind == ADL_STAT_MICRO_BATCH) {
        int n;
        across_micro_batches(plan, sums, &stat, &n);
        /* a share of one sample tells nothing: ask for two */
        if (n == 0 && c->policy->need != ADL_NEED_NOTHING)
            at_least = 2 * (int64_t)t->n_workers;
    } else if (plan->need != ADL_NEED_NOTHING) {
        ADL_TRY(across_workers(plan, sums, &stat));
    }
    *stat_out = stat;
    smooth(c->settings, t->smooth, &stat);
    struct adl_policy_obs obs = {.round = t->round,
                                 .trainer = t->index,
                                 .initial = t->initial,
                                 .request = at_least > t->request ? at_least : t->request,
                                 .stat = stat,
                                 .recorded = t->recorded,
                                 .n_recorded = t->n_recorded};
    t->request = adl_policy_request(c->policy, c->settings, &obs);
    return ADL_OK;
}
