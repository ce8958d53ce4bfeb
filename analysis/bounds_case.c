/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_case.h"

#include <math.h>

#include "analysis/recursion.h"

const char *const adl_regime_names[] = {"log", "power", "linear"};
const char *const adl_path_end_names[] = {"reached", "stalled", "diverged", "max_rounds"};
const char *const adl_theorem_keys[ADL_N_THEOREMS] = {"T1_pl",  "T1_avg",  "T1_quad",
                                                      "T2_avg", "T2_quad", "T3_pl"};

/* ---- closed forms */

/* Whether the variant is what the theorem speaks of, but for its rate. */
static bool applies(const struct adl_bounds_input *in, enum adl_theorem theorem)
{
    const bool method = in->constant_rate && in->plain_sgd && in->averages && in->trainers == 1.0;
    switch (theorem) {
    case ADL_T1_PL:
    case ADL_T1_AVG:
        return method && in->constant_batch && in->c.H == 1.0;
    case ADL_T1_QUAD:
        return method && in->constant_batch && in->c.H == 1.0 && in->problem->dim > 0;
    case ADL_T2_AVG:
        return method && in->constant_batch && !in->problem->unequal;
    case ADL_T2_QUAD:
        return method && in->constant_batch && !in->problem->unequal && in->problem->dim > 0;
    default:
        return method && in->norm_test && in->c.H == 1.0;
    }
}

static void make_rows(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    for (int t = 0; t < ADL_N_THEOREMS; t++) {
        const enum adl_theorem theorem = (enum adl_theorem)t;
        const struct adl_problem *p = in->problem;
        b->rows[t] = (struct adl_bounds_row){
            .own = adl_bound_of(theorem, p, &in->c, in->epsilon),
            .at = adl_bound_at_rate(theorem, p, &in->c, in->alpha, in->epsilon),
            .guarantee = theorem != ADL_T1_QUAD && theorem != ADL_T2_QUAD,
            .applies = applies(in, theorem),
        };
    }
}

static void make_closed_forms(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    const struct adl_problem *p = in->problem;
    make_rows(in, b);
    b->augmented = adl_bound_t3_pl(p, hypot(in->theta, in->nu), in->epsilon);
    b->t3_samples = adl_bound_t3_samples(p, in->c.eta, in->epsilon);
    b->t5_alpha = b->rows[ADL_T3_PL].own.alpha;
    /* sum c_i / h_i is at least tr C / L */
    const double trace_over_h =
        p->dim ? adl_nqm_trace_over_h(p->dim, p->h, p->c) : p->s2_optimum / p->L;
    b->samples_lower = adl_bound_samples_lower(trace_over_h, in->epsilon);
    b->depth_lower = adl_bound_depth_lower(p, in->epsilon);
}

/* ---- exact recursions */

struct tracing {
    const struct adl_path_plan *plan;
    struct adl_bounds *b;
    double next; /* samples at which a point is kept */
};

static enum adl_regime regime_at(const struct tracing *t, const struct adl_path_point *at)
{
    if (t->plan->test == ADL_PATH_CONSTANT || at->capped || at->request >= t->plan->cap)
        return ADL_REGIME_LINEAR;
    return at->rounds > t->b->log_from_rounds ? ADL_REGIME_LOG : ADL_REGIME_POWER;
}

static void keep_point(void *arg, const struct adl_path_point *at)
{
    struct tracing *t = arg;
    if (at->rounds == 0.0 || at->samples < t->next || t->b->n_points == ADL_BOUNDS_POINTS)
        return;
    t->next = 1.5 * at->samples;
    t->b->points[t->b->n_points++] = (struct adl_bounds_point){*at, regime_at(t, at)};
}

static enum adl_status make_t3q(const struct adl_bounds_input *in, struct adl_bounds *b,
                                struct adl_err *err)
{
    const struct adl_problem *p = in->problem;
    struct adl_path_plan plan = in->path;
    plan.test = ADL_PATH_EXACT;
    plan.eta = in->c.eta;
    plan.rate = NULL;
    plan.outer_lr = 1.0;
    plan.outer_momentum = 0.0;
    b->has_t3q = p->dim > 0 && !in->too_large && !p->beta && !p->unequal && p->s2 > 0.0 &&
                 in->c.eta > 0.0 && isfinite(in->c.eta);
    b->t3q_applies = b->has_t3q && in->norm_test && in->constant_rate && in->plain_sgd &&
                     in->averages && in->path.test != ADL_PATH_DELTA;
    if (!b->has_t3q)
        return ADL_OK;
    b->rate = adl_nqm_norm_test_rate(p->dim, p->h, p->c, plan.alpha, plan.H, in->c.eta);
    return adl_path_follow(&plan, NULL, NULL, &b->t3q, err);
}

static enum adl_status make_exact(const struct adl_bounds_input *in, struct adl_bounds *b,
                                  struct adl_err *err)
{
    struct tracing tracing = {&in->path, b, 0.0};
    b->has_path = in->no_path == NULL;
    if (!b->has_path)
        return ADL_OK;
    ADL_TRY(adl_path_follow(&in->path, keep_point, &tracing, &b->exact, err));
    if (b->n_points == ADL_BOUNDS_POINTS)
        b->n_points--;
    const struct adl_path_point *last = &b->exact.last;
    if (last->rounds > 0.0 &&
        (b->n_points == 0 || b->points[b->n_points - 1].at.rounds < last->rounds))
        b->points[b->n_points++] = (struct adl_bounds_point){*last, regime_at(&tracing, last)};
    return ADL_OK;
}

static void make_regime(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    const double M = in->c.M, largest = in->path.max;
    b->cap_batch = in->path.cap;
    if (in->path.switch_mode == ADL_SWITCH_NEVER)
        b->cap_batch = fmin(b->cap_batch, M * largest);
    b->cap_floor = b->cap_rounds = NAN;
    if (isfinite(b->cap_batch) && in->problem->dim)
        b->cap_floor = adl_path_floor(in->problem, in->alpha, b->cap_batch);
    if (isfinite(b->cap_batch) && b->has_t3q && b->rate < 1.0)
        b->cap_rounds = log(b->cap_batch / (M * in->c.b)) / -log(b->rate);
    if (b->n_points > 0)
        b->regime = b->points[b->n_points - 1].regime;
    else if (in->constant_batch)
        b->regime = ADL_REGIME_LINEAR;
    else
        b->regime =
            b->rows[ADL_T3_PL].own.rounds > b->log_from_rounds ? ADL_REGIME_LOG : ADL_REGIME_POWER;
}

/* ---- time */

static bool power_of_two(double P)
{
    return P >= 1.0 && exp2(round(log2(P))) == P;
}

/* The row of a resolved collective in the table below. */
static int row_of(enum adl_collective collective)
{
    switch (collective) {
    case ADL_COLL_RECURSIVE_DOUBLING:
        return 1;
    case ADL_COLL_HALVING_DOUBLING:
        return 2;
    case ADL_COLL_TREE:
        return 3;
    case ADL_COLL_STAR:
        return 4;
    case ADL_COLL_HIERARCHICAL:
        return 5;
    case ADL_COLL_MULTI_RING:
        return 6;
    default:
        return 0;
    }
}

static void make_costs(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    const struct adl_bounds_network *n = &in->network;
    const double P = n->devices, S = n->bytes / n->shards, a = n->latency_s,
                 beta = 1.0 / n->bandwidth;
    const double a1 = n->inner_latency_s, b1 = 1.0 / n->inner_bandwidth;
    const double inside = P / n->nodes;
    const struct adl_coll_cost none = {NAN, NAN, NAN};
    const bool two_levels = n->nodes > 1.0 && inside > 1.0 && inside == floor(inside);
    const struct adl_bounds_cost costs[ADL_BOUNDS_COLLECTIVES] = {
        {"ring", adl_cost_ring(P, S, a, beta)},
        {"recdoub", power_of_two(P) ? adl_cost_recursive_doubling(P, S, a, beta) : none},
        {"raben", power_of_two(P) ? adl_cost_rabenseifner(P, S, a, beta) : none},
        {"tree", adl_cost_tree(P, S, a, beta)},
        {"star", adl_cost_star(P, S, a, beta)},
        {"hier", two_levels ? adl_cost_hierarchical(n->nodes, inside, S, a1, b1, a, beta) : none},
        {"multi_ring",
         two_levels ? adl_cost_multi_ring(n->nodes, inside, S, a1, b1, a, beta) : none}};
    for (int i = 0; i < ADL_BOUNDS_COLLECTIVES; i++)
        b->costs[i] = costs[i];
    b->bandwidth_lower_s = 2.0 * (P - 1.0) / P * S * beta;
    b->exchange_s = b->costs[row_of(n->collective)].cost.time_s;
    if (P == 1.0)
        b->exchange_s = 0.0;
}

/* The best count there is: of a recursion that gets there, else of a bound that speaks of this
 * variant. At a constant batch the recursion is exact: if it does not get there, nothing does. */
static void choose_count(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    const struct adl_path_result *best = &b->exact;
    b->rounds = b->samples = NAN;
    if (in->norm_test && b->has_t3q && !(b->has_path && best->end == ADL_PATH_REACHED))
        best = &b->t3q;
    if ((b->has_path || best == &b->t3q) && best->end == ADL_PATH_REACHED) {
        b->rounds = best->last.rounds;
        b->samples = best->last.samples;
    } else if (!b->has_path && in->norm_test) {
        b->rounds = b->rows[ADL_T3_PL].own.rounds;
        b->samples = b->t3_samples;
    } else if (!b->has_path) {
        b->rounds = b->rows[ADL_T2_AVG].own.rounds;
        b->samples = b->rows[ADL_T2_AVG].own.steps * in->c.M * in->c.b;
    }
}

static void make_times(const struct adl_bounds_input *in, struct adl_bounds *b)
{
    const double H = in->c.H, t0 = in->step_s, t1 = in->sample_s;
    const double exchange_s = b->exchange_s * (1.0 + in->network.statistic_vectors);
    const double compute_s = H * (t0 + in->c.b * t1);
    b->round_s = compute_s + exchange_s + in->outer_s;
    b->utilization = compute_s / (compute_s + exchange_s + in->outer_s);
    b->break_even = 1.0 + (t0 + exchange_s / H) / (in->c.b * t1);
    b->total_s = b->rounds * (H * t0 + exchange_s + in->outer_s) + b->samples / in->c.M * t1;
}

enum adl_status adl_bounds_make(const struct adl_bounds_input *in, struct adl_bounds *b,
                                struct adl_err *err)
{
    *b = (struct adl_bounds){.rate = NAN};
    make_closed_forms(in, b);
    b->log_from_rounds = 2.0 / (in->alpha * in->problem->mu * in->c.H);
    ADL_TRY(make_t3q(in, b, err));
    ADL_TRY(make_exact(in, b, err));
    make_regime(in, b);
    make_costs(in, b);
    choose_count(in, b);
    b->t5_samples = !isnan(in->samples)                   ? in->samples
                    : in->norm_test && !isnan(b->samples) ? b->samples
                                                          : b->t3_samples;
    struct adl_problem quiet = *in->problem; /* where noise is least, N samples go furthest */
    quiet.s2 = fmin(quiet.s2, quiet.s2_optimum);
    b->t5_rounds = adl_bound_t5_rounds(&quiet, in->c.eta, b->t5_samples);
    b->t5_guarantee = in->problem->dim > 0 || in->problem->s2 == in->problem->s2_optimum;
    make_times(in, b);
    return ADL_OK;
}
