/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_path.h"

#include <math.h>
#include <stdlib.h>

#include "analysis/recursion.h"
#include "core/batch.h"

static const double largest_batch = 1e15; /* a request beyond it is no batch any more */

struct walk {
    const struct adl_path_plan *plan;
    size_t d;
    struct adl_nqm_outer *z;   /* [d] additive noise: moments of x and of the outer momentum */
    double *x2;                /* [d] multiplicative noise: E x^2 */
    struct adl_nqm_map *all;   /* [d] of the round's H steps, rates taken in */
    struct adl_nqm_map *but_1; /* [d] of its first H - 1 */
    double *rates;             /* [H]; NULL where the rate is constant */
    struct adl_path_result *result;
};

bool adl_path_covers(const struct adl_path_plan *plan)
{
    const struct adl_problem *p = plan->problem;
    const bool plain = plan->test == ADL_PATH_CONSTANT && !plan->rate && plan->outer_lr == 1.0 &&
                       plan->outer_momentum == 0.0;
    return p->dim > 0 && (!p->unequal || (plan->H == 1.0 && !p->beta)) && (!p->beta || plain);
}

double adl_path_floor(const struct adl_problem *problem, double alpha, double B)
{
    double sum = 0.0;
    for (size_t i = 0; i < problem->dim; i++)
        sum += alpha * problem->c[i] / (2.0 * (2.0 - alpha * problem->h[i]) * B);
    return sum;
}

/* ---- one round */

static struct adl_nqm_map constant_map(double h, double alpha, double H)
{
    const struct adl_local_map map = adl_nqm_local_map(h, alpha, H);
    return (struct adl_nqm_map){.A = map.A, .V = alpha * alpha * map.V};
}

/* The maps of round `round`; of a constant rate they are those of the first. */
static void set_maps(struct walk *w, double round)
{
    const struct adl_path_plan *plan = w->plan;
    const size_t H = (size_t)plan->H;
    if (!w->rates && round > 0.0)
        return;
    for (size_t k = 0; w->rates && k < H; k++)
        w->rates[k] = plan->rate(plan->rate_arg, round * plan->H + (double)k);
    for (size_t i = 0; i < w->d; i++) {
        const double h = plan->problem->h[i];
        w->all[i] =
            w->rates ? adl_nqm_hop_map(h, w->rates, H) : constant_map(h, plan->alpha, plan->H);
        w->but_1[i] = w->rates ? adl_nqm_hop_map(h, w->rates, H - 1)
                               : constant_map(h, plan->alpha, plan->H - 1.0);
    }
}

/* What the test sees in expectation, of a round that ran with batch B: *S, the variance of a
 * sample's part, and *U, the squared norm of the mean. x2 [d] at the round's start. */
static void expect_statistic(const struct walk *w, double B, double *S, double *U)
{
    const struct adl_path_plan *plan = w->plan;
    const struct adl_problem *p = plan->problem;
    *S = *U = 0.0;
    for (size_t i = 0; i < w->d; i++) {
        const double h2 = p->h[i] * p->h[i], x2 = w->x2[i];
        if (plan->test == ADL_PATH_DELTA) {
            *S += p->c[i] * w->all[i].V;
            *U += (1.0 - w->all[i].A) * (1.0 - w->all[i].A) * x2;
            continue;
        }
        /* gradients of the last step, H - 1 steps away: the mean of the workers, or one of them */
        const double workers = plan->test == ADL_PATH_MICRO_BATCH && !plan->shared ? plan->M : 1.0;
        const double spread = p->c[i] * w->but_1[i].V;
        const bool drift = plan->test == ADL_PATH_GRADIENT && !plan->shared;
        *U += h2 * (w->but_1[i].A * w->but_1[i].A * x2 + spread * workers / B);
        *S += p->c[i] + (drift ? h2 * spread : 0.0);
    }
}

static double wanted_exactly(const struct walk *w)
{
    const struct adl_problem *p = w->plan->problem;
    double trace = 0.0, norm2 = 0.0;
    for (size_t i = 0; i < w->d; i++) {
        trace += p->c[i];
        norm2 += p->h[i] * p->h[i] * w->x2[i];
    }
    return trace / (w->plan->eta * w->plan->eta * norm2);
}

static double next_request(const struct walk *w, double request, double ran)
{
    const struct adl_path_plan *plan = w->plan;
    if (plan->test == ADL_PATH_CONSTANT)
        return request;
    double S, U;
    expect_statistic(w, ran, &S, &U);
    const double norm2 = plan->plug_in ? U + S / ran : U;
    double next = ceil(fmin(S / (plan->eta * plan->eta * norm2), largest_batch) * (1 - 1e-12));
    if (!plan->may_shrink)
        next = fmax(next, request);
    return fmax(1.0, fmin(next, plan->cap));
}

/* Samples of an inner step after the switch, all workers; *capped: less than was wanted. */
static double samples_of_step(const struct adl_path_plan *plan, double request, bool *capped)
{
    const int64_t M = (int64_t)plan->M, total = (int64_t)request;
    const int64_t max = plan->max < largest_batch ? (int64_t)plan->max : 0;
    const int64_t share = total < M ? 1 : total / M, more = total < M ? 0 : total % M;
    const struct adl_step_plan step = adl_switch_plan(
        share, max, (enum adl_switch_mode)plan->switch_mode, (int64_t)plan->switch_factor);
    const struct adl_step_plan step1 = adl_switch_plan(
        share + 1, max, (enum adl_switch_mode)plan->switch_mode, (int64_t)plan->switch_factor);
    const double ran = (double)((M - more) * step.samples + more * step1.samples);
    *capped = ran < request;
    return ran;
}

static void advance(struct walk *w, double B)
{
    const struct adl_path_plan *plan = w->plan;
    const struct adl_problem *p = plan->problem;
    if (p->beta) {
        adl_nqm_round_multiplicative(w->d, p->h, p->c, p->beta, plan->alpha, plan->H, plan->M,
                                     B / plan->M, w->x2);
        return;
    }
    for (size_t i = 0; i < w->d; i++) {
        adl_nqm_step_nesterov(w->all[i].A, p->c[i] * w->all[i].V / B, plan->outer_lr,
                              plan->outer_momentum, &w->z[i]);
        w->x2[i] = w->z[i].mean[0] * w->z[i].mean[0] + w->z[i].cov[0][0];
    }
}

/* ---- the path */

static double loss_of(const struct walk *w)
{
    double sum = 0.0;
    for (size_t i = 0; i < w->d; i++)
        sum += 0.5 * w->plan->problem->h[i] * w->x2[i];
    return sum;
}

/* Remembers where the first capped round started. */
static void note_cap(struct walk *w, const struct adl_path_point *at)
{
    if ((!at->capped && at->request < w->plan->cap) || !isnan(w->result->cap_rounds))
        return;
    w->result->cap_rounds = at->rounds;
    w->result->cap_samples = at->samples;
}

/* Whether the path ends here, and how. *checked: the loss at round *checked_at, or NAN. */
static bool ended(const struct walk *w, const struct adl_path_point *at, double start,
                  double *checked, double *checked_at)
{
    w->result->end = ADL_PATH_REACHED;
    if (at->loss <= w->plan->epsilon)
        return true;
    w->result->end = ADL_PATH_DIVERGED;
    if (!(at->loss <= 1e6 * start))
        return true;
    w->result->end = ADL_PATH_STALLED;
    if (at->rounds == *checked_at) { /* over as many rounds again nothing has changed */
        if (fabs(at->loss - *checked) <= 1e-12 * at->loss)
            return true;
        *checked = at->loss;
        *checked_at *= 2.0;
    }
    w->result->end = ADL_PATH_MAX_ROUNDS;
    return at->rounds >= w->plan->max_rounds;
}

/* One round from *at, under *request, which becomes the next round's. */
static void walk_round(struct walk *w, struct adl_path_point *at, double *request)
{
    const struct adl_path_plan *plan = w->plan;
    double B;
    set_maps(w, at->rounds);
    at->capped = false;
    if (plan->test == ADL_PATH_EXACT) {
        B = at->request = wanted_exactly(w);
        at->ran = fmax(at->ran, plan->M * ceil(B / plan->M));
    } else {
        at->request = *request;
        B = at->ran = samples_of_step(plan, *request, &at->capped);
        note_cap(w, at);
        *request = next_request(w, *request, B);
    }
    advance(w, B);
    at->rounds++;
    at->samples += plan->H * at->ran;
    at->loss = loss_of(w);
}

static void follow(struct walk *w, adl_path_fn *visit, void *arg)
{
    struct adl_path_point at = {.loss = loss_of(w)};
    const double start = at.loss;
    double request = w->plan->initial, checked_at = 1024.0, checked = NAN;
    if (visit)
        visit(arg, &at);
    while (!ended(w, &at, start, &checked, &checked_at)) {
        walk_round(w, &at, &request);
        if (visit)
            visit(arg, &at);
    }
    w->result->last = at;
}

static bool allocate(struct walk *w)
{
    const struct adl_path_plan *plan = w->plan;
    w->z = calloc(w->d, sizeof *w->z);
    w->x2 = calloc(w->d, sizeof *w->x2);
    w->all = calloc(w->d, sizeof *w->all);
    w->but_1 = calloc(w->d, sizeof *w->but_1);
    w->rates = plan->rate ? calloc((size_t)plan->H, sizeof *w->rates) : NULL;
    return w->z && w->x2 && w->all && w->but_1 && (w->rates || !plan->rate);
}

enum adl_status adl_path_follow(const struct adl_path_plan *plan, adl_path_fn *visit, void *arg,
                                struct adl_path_result *out, struct adl_err *err)
{
    struct walk w = {.plan = plan, .d = plan->problem->dim, .result = out};
    *out = (struct adl_path_result){.cap_rounds = NAN, .cap_samples = NAN};
    enum adl_status status = ADL_OK;
    if (allocate(&w)) {
        for (size_t i = 0; i < w.d; i++) {
            w.z[i].mean[0] = plan->problem->x0[i];
            w.x2[i] = plan->problem->x0[i] * plan->problem->x0[i];
        }
        follow(&w, visit, arg);
    } else {
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for moments of %zu parameters", w.d);
    }
    free(w.z);
    free(w.x2);
    free(w.all);
    free(w.but_1);
    free(w.rates);
    return status;
}
