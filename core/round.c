/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/records.h"
#include "core/shard.h"

/* The statistic in force. One worker has nobody to compare with but its own micro-batches;
 * gradients that are exchanged are their own pseudo-gradients; and after one plain SGD step the
 * pseudo-gradient is the gradient times the rate, which every test divides out again: no
 * exchange of its own. */
static enum adl_statistic statistic_in_force(const struct adl_controller *c,
                                             const struct adl_trainer *t)
{
    enum adl_statistic kind = c->settings->batch.statistic;
    if (t->n_workers < 2 || kind == ADL_STAT_MICRO_BATCH)
        return ADL_STAT_MICRO_BATCH;
    if (c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS)
        return ADL_STAT_GRADIENT;
    if (c->settings->inner.steps == 1 && c->plain_sgd)
        return ADL_STAT_PSEUDO_GRADIENT;
    return kind;
}

static double speed_of(const struct adl_controller *c, int worker)
{
    const struct adl_worker *w = &c->workers[worker];
    if (c->settings->cluster.measured)
        return w->compute_s > 0 ? w->ran / w->compute_s : 1;
    return c->speeds[worker];
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* What a share of so many samples runs. A device of several GPUs takes multiples of them. */
static struct adl_step_plan plan_step(const struct adl_controller *c, int64_t share)
{
    const struct adl_settings *s = c->settings;
    struct adl_step_plan step =
        adl_switch_plan(share, s->batch.max / c->gpus, s->switch_.mode, s->switch_.factor);
    step.samples *= c->gpus;
    return step;
}

/* Shares, micro-batches, steps and weights of the round's workers (design 5, 1 and 2). */
static enum adl_status plan_workers(struct adl_round_plan *plan)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    const struct adl_settings *s = c->settings;
    size_t n = (size_t)t->n_workers;
    double *speeds = malloc(n * sizeof *speeds), fastest = 0;
    int64_t *shares = malloc(n * sizeof *shares);
    if (!speeds || !shares) {
        free(speeds);
        free(shares);
        return adl_fail(&t->task.err, ADL_ERR_NOMEM, "no memory for the shares of trainer %d",
                        t->index);
    }
    bool equal = true;
    adl_faults_strike(plan);
    for (size_t i = 0; i < n; i++) {
        speeds[i] = speed_of(c, t->workers[i]);
        fastest = fmax(fastest, speeds[i]);
        equal = equal && speeds[i] == speeds[0];
    }
    bool by_speed = s->batch.balance == ADL_BALANCE_SPEED && !equal;
    adl_share(divide_up(t->request, c->gpus), by_speed ? speeds : NULL, t->n_workers, shares);
    plan->B = 0;
    plan->ran = 0;
    for (size_t i = 0; i < n; i++) {
        struct adl_worker *w = &c->workers[t->workers[i]];
        w->step = plan_step(c, shares[i]);
        w->steps = s->batch.balance == ADL_BALANCE_STEPS && !equal
                       ? adl_balanced_steps(plan->H, speeds[i], fastest)
                       : plan->H;
        if (w->lost && s->outer.exchange == ADL_EXCHANGE_GRADIENTS)
            w->steps = 1; /* it fails in the first exchange */
        w->offset = plan->B;
        w->share = (double)w->step.samples * (double)w->steps / (double)plan->H;
        plan->B += w->step.samples;
        plan->ran += (double)w->step.samples * (double)w->steps;
        if (!w->lost) {
            plan->n_kept++;
            plan->kept_B += w->step.samples;
            plan->kept_ran += (double)w->step.samples * (double)w->steps;
        }
        if (w->step.micro_batches > t->accumulation_max)
            t->accumulation_max = w->step.micro_batches;
    }
    for (size_t i = 0; i < n; i++) {
        struct adl_worker *w = &c->workers[t->workers[i]];
        w->weight = (double)w->step.samples * (double)w->steps / plan->kept_ran;
    }
    free(speeds);
    free(shares);
    return ADL_OK;
}

static enum adl_status plan_rates_and_hop(struct adl_round_plan *plan)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    plan->lr = malloc((size_t)plan->H * sizeof *plan->lr);
    if (!plan->lr)
        return adl_fail(&t->task.err, ADL_ERR_NOMEM, "no memory for %lld rates",
                        (long long)plan->H);
    int64_t total = c->settings->outer.steps * plan->H;
    for (int64_t k = 0; k < plan->H; k++)
        plan->lr[k] = adl_schedule_lr(c->settings, t->round * plan->H + k, total);
    plan->hop_steps = plan->H - (plan->explicit_last ? 1 : 0);
    bool possible = c->model_ops->hop_prepare && c->plain_sgd && plan->hop_steps > 0 &&
                    c->settings->outer.exchange != ADL_EXCHANGE_GRADIENTS;
    if (!possible)
        return ADL_OK;
    return c->model_ops->hop_prepare(c->model, t->workers[0], plan->lr, (int)plan->hop_steps,
                                     &plan->hop, &t->task.err);
}

/* What a worker's `steps` steps take. The micro-batch statistic cuts the last one finer, and the
 * inner-product tests on it compute that step's gradients twice. */
static struct adl_work work_of(const struct adl_round_plan *plan, const struct adl_worker *w,
                               double steps, bool last)
{
    double A = (double)w->step.micro_batches;
    struct adl_work work = {.steps = steps,
                            .micro_batches = A,
                            .samples = (double)w->step.samples,
                            .step0 = w->life_steps};
    if (!last || plan->need == ADL_NEED_NOTHING || plan->kind != ADL_STAT_MICRO_BATCH)
        return work;
    double cut = (double)adl_statistic_micro_batches(w->step.samples, w->step.micro_batches);
    bool twice = plan->need == ADL_NEED_INNER_PRODUCT && cut > 1;
    work.steps = steps + twice;
    work.micro_batches = (A * (steps - 1) + cut * (1 + twice)) / (steps + twice);
    return work;
}

/* What the local workers are charged for: all steps of a round (0), or one whose gradients are
 * exchanged. */
static void describe_work(const struct adl_round_plan *plan, double steps, bool last,
                          struct adl_work *work)
{
    const struct adl_trainer *t = plan->t;
    for (int i = 0; i < t->task.n_local; i++) {
        struct adl_worker *w = &plan->c->workers[t->workers[t->task.first_local + i]];
        double n = steps > 0 ? steps : (double)w->steps;
        bool gone = w->lost && plan->step > 0;
        work[i] = gone ? (struct adl_work){0} : work_of(plan, w, n, last);
        work[i].exchanged = steps > 0;
        w->life_steps += (uint64_t)n;
    }
}

/* What stays inside the workers' devices is counted as well. */
static void count_shards(const struct adl_round_plan *plan)
{
    struct adl_trainer *t = plan->t;
    double micro_batches = 0;
    for (int i = 0; i < t->n_workers; i++) {
        const struct adl_worker *w = &plan->c->workers[t->workers[i]];
        struct adl_work work = work_of(plan, w, (double)w->steps, true);
        micro_batches += work.steps * work.micro_batches;
    }
    adl_counts_shards(&t->counts, plan->c->gpus, micro_batches, plan->c->S_bytes);
}

static void send_speeds(const struct adl_round_plan *plan)
{
    struct adl_trainer *t = plan->t;
    for (int i = 0; plan->c->settings->cluster.measured && i < t->task.n_local; i++) {
        int j = t->task.first_local + i;
        t->scalars[(size_t)i * t->n_scalars + ADL_N_SCALARS + (size_t)j] =
            plan->c->workers[t->workers[j]].busy_s;
    }
}

static void receive_speeds(const struct adl_round_plan *plan)
{
    struct adl_trainer *t = plan->t;
    for (int j = 0; plan->c->settings->cluster.measured && j < t->n_workers; j++) {
        struct adl_worker *w = &plan->c->workers[t->workers[j]];
        if (w->lost)
            continue;
        w->compute_s += t->sums[ADL_N_SCALARS + j];
        w->ran += (double)w->step.samples * (double)w->steps;
    }
}

static double charged_bytes(const struct adl_round_plan *plan, int scalars)
{
    int speeds = plan->c->settings->cluster.measured ? plan->t->n_workers : 0;
    return plan->c->S_bytes + (double)(scalars + speeds) * (double)sizeof(double);
}

static enum adl_status sum_vectors(struct adl_round_plan *plan, bool gradients, void *out,
                                   int scalars, enum adl_cause cause)
{
    struct adl_trainer *t = plan->t;
    for (int i = 0; i < t->task.n_local; i++) {
        struct adl_worker *w = &plan->c->workers[t->workers[t->task.first_local + i]];
        t->in[i] = gradients ? w->g : w->x;
    }
    struct adl_reduction reduction = {.in = t->in,
                                      .out = out,
                                      .count = plan->c->P,
                                      .dtype = plan->c->dtype,
                                      .scalars_in = t->scalars,
                                      .scalars_out = t->sums,
                                      .n_scalars = t->n_scalars,
                                      .charged_bytes = charged_bytes(plan, scalars),
                                      .delay_s = plan->delay_s,
                                      .cause = cause};
    plan->delay_s = 0;
    return adl_exchange(plan->c, t, &reduction);
}

static void keep_seconds(const struct adl_round_plan *plan, const double *seconds)
{
    struct adl_trainer *t = plan->t;
    for (int i = 0; i < t->task.n_local; i++)
        plan->c->workers[t->workers[t->task.first_local + i]].busy_s += seconds[i];
}

static enum adl_status round_local(struct adl_round_plan *plan, struct adl_work *work,
                                   double *seconds, struct adl_stat *stat)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    const struct adl_space *space = c->space;
    describe_work(plan, 0, true, work);
    ADL_TRY(c->transport_ops->for_each(c->transport, &t->task, adl_worker_local_round, plan, work,
                                       seconds));
    keep_seconds(plan, seconds);
    send_speeds(plan);
    /* with the last inner gradients tested, their Q rides on their own exchange */
    bool own = t->stat_sum && plan->need != ADL_NEED_NOTHING && plan->kind == ADL_STAT_GRADIENT;
    ADL_TRY(sum_vectors(plan, false, t->sum, own ? 0 : adl_charged_scalars(plan), ADL_CAUSE_OUTER));
    receive_speeds(plan);
    double sums[ADL_N_SCALARS];
    memcpy(sums, t->sums, sizeof sums);
    if (own)
        ADL_TRY(sum_vectors(plan, true, t->stat_sum, 1, ADL_CAUSE_STATISTICS));
    if (c->settings->outer.exchange == ADL_EXCHANGE_PARAMETERS)
        space->combine(t->sum, 1, t->theta, -1, t->sum, c->P, c->dtype);
    t->train_loss = sums[ADL_SCALAR_LOSS] / sums[ADL_SCALAR_LOSS_N];
    ADL_TRY(adl_observe(plan, sums, stat));
    adl_outer_step(c->settings, space, t->theta, t->sum, t->v, c->P, c->dtype);
    return c->transport_ops->outer_step(c->transport, &t->task);
}

static enum adl_status round_gradients(struct adl_round_plan *plan, struct adl_work *work,
                                       double *seconds, struct adl_stat *stat)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    if (!c->settings->inner.keep_state)
        adl_inner_reset(&t->inner, c->space, c->P, c->dtype);
    double start_s = adl_now_s(c);
    for (plan->step = 0; plan->step < plan->H; plan->step++) {
        bool last = plan->step == plan->H - 1;
        describe_work(plan, 1, last, work);
        ADL_TRY(c->transport_ops->for_each(c->transport, &t->task, adl_worker_gradient, plan, work,
                                           seconds));
        keep_seconds(plan, seconds);
        if (last)
            send_speeds(plan);
        ADL_TRY(sum_vectors(plan, false, t->sum, last ? adl_charged_scalars(plan) : 0,
                            ADL_CAUSE_INNER));
        if (last) {
            double sums[ADL_N_SCALARS];
            memcpy(sums, t->sums, sizeof sums);
            receive_speeds(plan);
            t->train_loss = sums[ADL_SCALAR_LOSS] / sums[ADL_SCALAR_LOSS_N];
            ADL_TRY(adl_observe(plan, sums, stat));
        }
        adl_inner_step(c->settings, c->space, plan->lr[plan->step], t->theta, t->sum, NULL,
                       &t->inner, c->P, c->dtype);
    }
    if (t->n_devices > 1)
        adl_record_sync(t, ADL_CAUSE_INNER, (double)plan->H, (double)plan->H * c->S_bytes, start_s,
                        adl_now_s(c));
    return ADL_OK;
}

/* What a round does to the model beside the optimizers; progress: before it. */
static void change_model(const struct adl_round_plan *plan, double progress)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    if (c->model_ops->drifts && c->model_ops->drifts(c->model))
        c->model_ops->drift(c->model, t->theta, t->samples, t->samples + plan->ran);
    if (c->model_ops->advance)
        c->model_ops->advance(c->model, t->theta, progress, plan->H,
                              plan->kept_ran / (double)plan->H);
}

static enum adl_status run_round(struct adl_round_plan *plan)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    double progress = c->model_ops->progress ? c->model_ops->progress(c->model, t->theta) : 0;
    size_t n = (size_t)(t->task.n_local ? t->task.n_local : 1);
    struct adl_work *work = malloc(n * sizeof *work);
    double *seconds = calloc(n, sizeof *seconds);
    for (int i = 0; i < t->task.n_local; i++)
        c->workers[t->workers[t->task.first_local + i]].busy_s = 0;
    struct adl_record_round row = {.before = t->request};
    enum adl_status status =
        work && seconds ? ADL_OK : adl_fail(&t->task.err, ADL_ERR_NOMEM, "no memory for a round");
    if (status == ADL_OK)
        status = c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS
                     ? round_gradients(plan, work, seconds, &row.stat)
                     : round_local(plan, work, seconds, &row.stat);
    free(work);
    free(seconds);
    ADL_TRY(status);
    change_model(plan, progress);
    if (c->model_ops->eval_exact)
        ADL_TRY(c->model_ops->eval(c->model, t->theta, &t->loss, &t->task.err));
    count_shards(plan);
    adl_record_round(c, t, plan, &row);
    t->cursor += (uint64_t)(plan->H * plan->B);
    t->samples += plan->ran;
    t->lost += plan->ran - plan->kept_ran;
    t->round++;
    return ADL_OK;
}

enum adl_status adl_round(struct adl_controller *c, struct adl_trainer *t)
{
    struct adl_round_plan plan = {.c = c,
                                  .t = t,
                                  .H = c->settings->inner.steps,
                                  .kind = statistic_in_force(c, t),
                                  .need = c->need};
    plan.explicit_last = plan.need != ADL_NEED_NOTHING && plan.kind != ADL_STAT_PSEUDO_GRADIENT;
    enum adl_status status = plan_workers(&plan);
    if (status == ADL_OK)
        status = plan_rates_and_hop(&plan);
    if (status == ADL_OK)
        status = run_round(&plan);
    if (plan.hop)
        c->model_ops->hop_free(plan.hop);
    free(plan.lr);
    return status;
}

enum adl_status adl_epoch_body(struct adl_task *task, void *arg)
{
    const struct adl_epoch *epoch = arg;
    struct adl_trainer *t = task->user;
    for (int64_t i = 0; i < epoch->rounds; i++) {
        ADL_TRY(adl_round(epoch->c, t));
        bool diverged = epoch->c->model_ops->eval_exact ? !isfinite(t->loss) : isinf(t->train_loss);
        if (diverged)
            break;
    }
    return ADL_OK;
}
