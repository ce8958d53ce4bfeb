/* SPDX-License-Identifier: Apache-2.0 */
/* The controller's invariants, on the threads transport, as whole runs. Several pin faults of
 * the released reference code: H counts optimizer steps, accumulation divides the batch, no
 * shard cuts a round short, requests are scaled by the batch that ran. */
#include <criterion/criterion.h>

#include "core/space.h"
#include "kernels/model_quadratic.h"
#include "run_helper.h"

#define EXPERIMENT                                                                                 \
    "name: t\ntransport: threads\n"                                                                \
    "model: {kind: quadratic, dim: 12, condition: 50, noise: {kind: curvature, total: 4}}\n"       \
    "inner: {lr: 0.2, steps: 5}\nouter: {steps: 6}\nseeds: [7]\n"

static struct test_run run_ok(const char *const *sets)
{
    struct test_run r = test_run_text(EXPERIMENT, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    return r;
}
#define RUN(...) run_ok((const char *const[]){__VA_ARGS__, NULL})

Test(controller, one_worker_one_step_outer_rate_one_is_plain_sgd)
{
    struct test_run r =
        RUN("cluster.workers=1", "inner.steps=1", "outer.optimizer=sgd", "outer.lr=1",
            "outer.steps=40", "batch.initial=3", "model.shortcut=never");
    /* the same by hand, sample by sample of stream 0 */
    const struct adl_model_ops *ops = &adl_model_quadratic;
    struct adl_quadratic_config config = {0};
    struct adl_plan *plan;
    struct adl_err err = {0};
    FILE *f = fopen("/tmp/adloco-plain-sgd.yaml", "w");
    fputs(EXPERIMENT, f);
    fclose(f);
    cr_assert_eq(
        adl_plan_load(adl_registry(), "/tmp/adloco-plain-sgd.yaml", NULL, 0, NULL, &plan, &err),
        ADL_OK, "%s", err.message);
    cr_assert_eq(adl_config_fill(plan->runs[0].config, ops->plugin.options, &config, &err), ADL_OK);
    struct adl_model *model;
    struct adl_model_env env = {.seed = 7, .n_workers = 1, .n_lanes = 1, .base_dir = "./"};
    cr_assert_eq(ops->open(&config, &env, &model, &err), ADL_OK);
    double theta[12], grad[12], x[12], loss, unused = 0;
    cr_assert_eq(ops->init(model, theta, &err), ADL_OK);
    const struct adl_space *space = ops->space;
    for (uint64_t step = 0; step < 40; step++) {
        struct adl_samples samples = {0, 3 * step, 3, 3 * step, 3};
        space->zero(grad, 12, ADL_F64);
        ops->add_grad(model, 0, 0, theta, &samples, grad, &unused, &err);
        for (int i = 0; i < 12; i++) {
            x[i] = theta[i] - 0.2 * (grad[i] * (1.0 / 3));
            theta[i] = theta[i] - (theta[i] - x[i]); /* as a pseudo-gradient */
        }
    }
    ops->eval(model, theta, &loss, &err);
    cr_assert_float_eq(r.summary.loss_final, loss, 1e-12 * loss, "%.17g %.17g",
                       r.summary.loss_final, loss);
    ops->close(model);
    adl_plan_free(plan);
    free(r.records);
}

Test(controller, accumulation_equals_one_big_batch_to_the_bit)
{
    const char *const cases[][2] = {{"method=local_sgd", "batch.initial=12"},
                                    {"method=ddp", "batch.initial=12"},
                                    {"method=diloco", "batch.initial=7"}};
    for (size_t i = 0; i < 3; i++) {
        struct test_run whole = RUN("cluster.workers=4", "model.shortcut=never", cases[i][0],
                                    cases[i][1], "batch.max=0");
        struct test_run split = RUN("cluster.workers=4", "model.shortcut=never", cases[i][0],
                                    cases[i][1], "batch.max=2");
        cr_assert_eq(whole.summary.accumulation_max, 1);
        cr_assert_gt(split.summary.accumulation_max, 3);
        cr_assert_eq(whole.summary.loss_final, split.summary.loss_final, "%s", cases[i][0]);
        free(whole.records);
        free(split.records);
    }
}

Test(controller, splitting_a_batch_over_workers_changes_nothing)
{
    double loss[3];
    const char *const workers[3][2] = {{"cluster.workers=1", "batch.initial=12"},
                                       {"cluster.workers=4", "batch.initial=3"},
                                       {"cluster.workers=12", "batch.initial=1"}};
    for (int i = 0; i < 3; i++) {
        struct test_run r = RUN("method=ddp", "model.draw=sample", workers[i][0], workers[i][1],
                                "batch.max=2", "switch.mode=always");
        loss[i] = r.summary.loss_final;
        free(r.records);
    }
    cr_assert_float_eq(loss[1], loss[0], 1e-12 * loss[0]);
    cr_assert_float_eq(loss[2], loss[0], 1e-12 * loss[0]);
}

Test(controller, adloco_with_one_trainer_constant_batch_and_no_switch_is_diloco)
{
    struct test_run diloco = RUN("method=diloco", "cluster.workers=6", "batch.initial=4");
    struct test_run adloco =
        RUN("method=adloco", "trainers=1", "cluster.workers_per_device=1", "cluster.workers=6",
            "batch.initial=4", "batch.policy=constant", "switch.mode=never");
    cr_assert_eq(diloco.summary.loss_final, adloco.summary.loss_final);
    cr_assert_eq(adl_counts_wire_bytes(&diloco.summary.counts),
                 adl_counts_wire_bytes(&adloco.summary.counts));
    free(diloco.records);
    free(adloco.records);
}

/* Six rounds of five optimizer steps, whatever the accumulation and however large the batch. */
Test(controller, H_counts_optimizer_steps_and_no_shard_cuts_a_round)
{
    struct test_run r =
        RUN("method=local_sgd", "cluster.workers=3", "batch.initial=1000", "batch.max=10");
    cr_assert_eq(r.summary.samples, 6.0 * 5 * 3000);
    cr_assert_eq(r.summary.accumulation_max, 100);
    for (int i = 0; i < 6; i++) {
        cr_assert_eq(test_record(&r, "round", i, "batch"), 3000);
        cr_assert_eq(test_record(&r, "round", i, "inner_steps"), 5);
        cr_assert_eq(test_record(&r, "round", i, "samples"), 15000);
    }
    free(r.records);
}

/* Variance of one sample's pseudo-gradient after H plain SGD steps: alpha^2 sum c V (theory 1,
 * drift), for the experiment's spectrum and noise. */
static double pseudo_gradient_variance(double alpha, int H)
{
    double h[12], sum_h = 0, variance = 0;
    for (int i = 0; i < 12; i++)
        sum_h += h[i] = exp(-log(50) * i / 11);
    for (int i = 0; i < 12; i++) {
        double a2 = pow(1 - alpha * h[i], 2);
        variance += alpha * alpha * (4 * h[i] / sum_h) * (1 - pow(a2, H)) / (1 - a2);
    }
    return variance;
}

/* Under a cap the statistic is scaled by the batch that ran: it keeps measuring the noise of one
 * sample. Scaled by the request instead, it would drift with it, and the request without bound. */
Test(controller, a_capped_batch_is_judged_by_what_ran)
{
    struct test_run r = RUN("method=local_sgd", "cluster.workers=4", "batch.policy=norm_test",
                            "batch.max=4", "switch.mode=never", "outer.steps=200");
    double sum = 0, expected = pseudo_gradient_variance(0.2, 5);
    for (int i = 100; i < 200; i++) {
        cr_assert_eq(test_record(&r, "round", i, "batch"), 16);
        cr_assert_gt(test_record(&r, "round", i, "request"), 16);
        sum += test_record(&r, "round", i, "S");
    }
    cr_assert_float_eq(sum / 100, expected, 0.2 * expected, "%g, not %g", sum / 100, expected);
    free(r.records);
}

Test(controller, the_released_codes_norm_is_debiased_here)
{
    /* pure noise at the optimum: the plug-in test sees a gradient and stops asking early */
    struct test_run plug_in = RUN("method=local_sgd", "model.start=0", "cluster.workers=8",
                                  "batch.policy=norm_test", "batch.eta=0.8", "batch.debias=false");
    struct test_run debiased = RUN("method=local_sgd", "model.start=0", "cluster.workers=8",
                                   "batch.policy=norm_test", "batch.eta=0.8");
    cr_assert_gt(debiased.summary.batch_final, 2 * plug_in.summary.batch_final, "%g %g",
                 debiased.summary.batch_final, plug_in.summary.batch_final);
    free(plug_in.records);
    free(debiased.records);
}

Test(controller, exchange_counts_follow_the_method)
{
    struct {
        const char *sets[5];
        double exchanges, statistics, payload;
    } cases[] = {
        {{"method=ddp"}, 30, 0, 30 * 96.0},
        {{"method=local_sgd"}, 6, 0, 6 * 96.0},
        {{"method=diloco", "batch.policy=norm_test"}, 6, 0, 6 * 104.0},
        {{"method=diloco", "batch.policy=norm_test", "batch.statistic=micro_batch"},
         6,
         0,
         6 * 112.0},
        {{"method=diloco", "batch.policy=norm_test", "batch.statistic=gradient"},
         12,
         6,
         6 * 96.0 + 6 * 104.0},
        {{"method=diloco", "batch.policy=inner_product"}, 12, 6, 6 * 104.0 + 6 * 8},
        {{"method=diloco", "batch.policy=augmented", "batch.statistic=gradient"},
         18,
         12,
         6 * 96.0 + 6 * 104.0 + 6 * 8},
        {{"method=ddp", "batch.policy=norm_test"}, 30, 0, 30 * 96.0 + 6 * 8},
        {{"method=ddp", "batch.policy=inner_product"}, 36, 6, 30 * 96.0 + 6 * 8 + 6 * 8},
        {{"method=local_sgd", "inner.steps=1", "batch.policy=norm_test",
          "batch.statistic=gradient"},
         6,
         0,
         6 * 104.0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[10] = {"cluster.workers=4", "model.stand_in.wire_dtype=f64",
                                "batch.initial=2", "batch.cap=64"};
        for (int k = 0; k < 5 && cases[i].sets[k]; k++)
            sets[4 + k] = cases[i].sets[k];
        struct test_run r = run_ok(sets);
        const struct adl_counts *counts = &r.summary.counts;
        cr_assert_eq(adl_counts_exchanges(counts), cases[i].exchanges, "case %zu: %g", i,
                     adl_counts_exchanges(counts));
        cr_assert_eq(counts->exchanges[ADL_CAUSE_STATISTICS], cases[i].statistics, "case %zu", i);
        cr_assert_eq(adl_counts_payload(counts), cases[i].payload, "case %zu: %g", i,
                     adl_counts_payload(counts));
        /* a ring of four: 2 x 3 bytes on the wire for each of payload */
        cr_assert_float_eq(adl_counts_wire_bytes(counts), 6 * cases[i].payload, 1e-6);
        cr_assert_eq(r.summary.exchange_rounds, cases[i].exchanges);
        free(r.records);
    }
}

Test(controller, a_trainer_alone_on_one_device_exchanges_nothing)
{
    struct test_run one = RUN("method=diloco", "cluster.workers=1");
    struct test_run two = RUN("method=diloco", "cluster.workers=2", "cluster.workers_per_device=2");
    cr_assert_eq(adl_counts_exchanges(&one.summary.counts), 0);
    cr_assert_eq(adl_counts_exchanges(&two.summary.counts), 0);
    cr_assert_eq(adl_counts_wire_bytes(&two.summary.counts), 0);
    free(one.records);
    free(two.records);
}

Test(controller, one_worker_tests_its_own_micro_batches_and_a_share_of_one_asks_for_two)
{
    struct test_run r =
        RUN("method=local_sgd", "cluster.workers=1", "batch.policy=norm_test", "batch.eta=0.3");
    cr_assert_eq(test_record(&r, "round", 0, "request"), 1);
    cr_assert_eq(test_record(&r, "round", 0, "next_request"), 2);
    cr_assert_gt(r.summary.batch_final, 2);
    free(r.records);
}

Test(controller, trainers_merge_to_the_last_one_and_every_worker_keeps_a_trainer)
{
    struct test_run r = RUN("method=adloco", "cluster.workers_per_device=1", "cluster.workers=10",
                            "trainers=4", "inner.optimizer=sgd", "outer.steps=12");
    cr_assert_eq(r.summary.trainers_final, 1);
    cr_assert_eq(r.summary.merges, 3);
    cr_assert_eq(test_count_records(&r, "merge"), 3);
    cr_assert_eq(r.summary.counts.exchanges[ADL_CAUSE_MERGE], 3 + 3); /* and three gatherings */
    /* workers of all trainers together, round by round of trainer 0's epoch */
    double by_round[12] = {0};
    for (int i = 0; i < test_count_records(&r, "round"); i++)
        by_round[(int)test_record(&r, "round", i, "round")] +=
            test_record(&r, "round", i, "workers");
    for (int i = 0; i < 12; i++)
        cr_assert_eq(by_round[i], 10, "round %d: %g workers", i, by_round[i]);
    cr_assert_lt(r.summary.samples_useful, r.summary.samples);
    free(r.records);
}

Test(controller, merging_identical_trainers_moves_nothing_but_workers)
{
    /* without noise all trainers are equal, and the merged loss is the unmerged one */
    struct test_run r = RUN("method=adloco", "cluster.workers_per_device=1", "cluster.workers=8",
                            "inner.optimizer=sgd", "model.noise.total=0", "batch.policy=constant");
    for (int i = 0; i < 2; i++) {
        double before = test_record(&r, "merge", i, "loss_before");
        cr_assert_float_eq(test_record(&r, "merge", i, "loss_after"), before, 1e-12 * before);
    }
    free(r.records);
}

Test(controller, merge_policies_pick_their_pairs)
{
    int64_t requests[] = {40, 0, 10, 30, 10};
    int survivor, victim;
    adl_merge_pair(ADL_MERGE_WORST_WITH_WORST, requests, 5, &survivor, &victim);
    cr_assert_eq(survivor, 2);
    cr_assert_eq(victim, 4);
    adl_merge_pair(ADL_MERGE_BEST_WITH_WORST, requests, 5, &survivor, &victim);
    cr_assert_eq(survivor, 0);
    cr_assert_eq(victim, 2);
    adl_merge_pair(ADL_MERGE_NONE, requests, 5, &survivor, &victim);
    cr_assert_eq(victim, -1);
    int64_t last[] = {0, 5, 0};
    adl_merge_pair(ADL_MERGE_ALL, last, 3, &survivor, &victim);
    cr_assert_eq(victim, -1);
}

Test(controller, geometric_batches_grow_by_the_round)
{
    struct test_run r = RUN("method=local_sgd", "cluster.workers=4", "batch.policy=geometric",
                            "batch.initial=2", "batch.growth=2");
    for (int i = 0; i < 6; i++)
        cr_assert_eq(test_record(&r, "round", i, "batch"), 8 << i);
    free(r.records);
}

Test(controller, recorded_requests_are_replayed)
{
    struct test_run first = RUN("method=local_sgd", "cluster.workers=4", "batch.policy=norm_test");
    FILE *f = fopen("/tmp/adloco-recorded.jsonl", "w");
    fputs(first.records, f);
    fclose(f);
    struct test_run again = RUN("method=local_sgd", "cluster.workers=4", "batch.policy=recorded",
                                "batch.recorded=/tmp/adloco-recorded.jsonl");
    cr_assert_eq(again.summary.loss_final, first.summary.loss_final);
    cr_assert_gt(again.summary.batch_final, again.summary.batch_initial);
    free(first.records);
    free(again.records);
}

Test(controller, balance_follows_declared_speeds)
{
    struct test_run speed = RUN("method=local_sgd", "cluster.workers=4", "batch.initial=10",
                                "cluster.speeds=[2, 1, 1, 1]", "batch.balance=speed");
    struct test_run steps =
        RUN("method=local_sgd", "cluster.workers=4", "batch.initial=10",
            "cluster.speeds=[2, 1, 1, 1]", "batch.balance=steps", "inner.steps=4");
    cr_assert_eq(test_record(&speed, "round", 0, "samples"), 5 * 40);
    cr_assert_eq(test_record(&steps, "round", 0, "samples"), 4 * 10 + 3 * 2 * 10);
    free(speed.records);
    free(steps.records);
}

Test(controller, a_diverging_run_is_a_result)
{
    struct test_run r =
        RUN("method=local_sgd", "cluster.workers=2", "inner.lr=3", "outer.steps=100");
    cr_assert_str_eq(r.summary.status, "diverged");
    free(r.records);
}

/* One move a round, after its steps: E x^2 = A^2R x0^2 + drift^2 (1 + A^2 + ... + A^2(R-1)). */
Test(controller, a_moving_optimum_is_followed_as_far_as_its_law_allows)
{
    enum { DIM = 20000, ROUNDS = 6 };
    struct test_run r =
        RUN("method=local_sgd", "cluster.workers=2", "model.dim=20000", "model.spectrum=flat",
            "model.noise.total=0", "model.drift=0.5", "model.drift_every=10", "inner.lr=0.05");
    double A = pow(1 - 0.05, 5), var = 0, mean = 1;
    for (int k = 0; k < ROUNDS; k++) {
        var = A * A * var + 0.25;
        mean *= A;
    }
    const double expected = 0.5 * DIM * (mean * mean + var);
    const double sd = 0.5 * sqrt(DIM * (2 * var * var + 4 * mean * mean * var));
    cr_assert_lt(fabs(r.summary.loss_final - expected) / sd, 4, "%g, not %g +- %g",
                 r.summary.loss_final, expected, sd);
    free(r.records);
    struct test_run two =
        test_run_text(EXPERIMENT, (const char *const[]){"trainers=2", "cluster.workers=2",
                                                        "model.drift=1", NULL});
    cr_assert_eq(two.status, ADL_ERR_INPUT);
    cr_assert(strstr(two.err.message, "trainers: 2"), "%s", two.err.message);
    free(two.records);
}

Test(controller, stops_at_the_loss_and_at_the_samples)
{
    struct test_run loss =
        RUN("method=local_sgd", "cluster.workers=4", "stop.loss=1.0", "outer.steps=50");
    cr_assert_str_eq(loss.summary.status, "target_reached");
    cr_assert_leq(loss.summary.loss_final, 1.0);
    cr_assert_eq(loss.summary.exchanges_to_target, loss.summary.outer_steps);
    struct test_run samples =
        RUN("method=local_sgd", "cluster.workers=4", "stop.samples=40", "outer.steps=50");
    cr_assert_str_eq(samples.summary.status, "completed");
    cr_assert_eq(samples.summary.samples, 40);
    free(loss.records);
    free(samples.records);
}

Test(controller, time_is_attributed_without_rest)
{
    struct test_run r = RUN("method=adloco", "cluster.workers_per_device=2", "cluster.workers=8",
                            "inner.optimizer=sgd");
    cr_assert_lt(r.summary.times.residual, 1e-9);
    free(r.records);
}
