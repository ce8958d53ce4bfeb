/* SPDX-License-Identifier: Apache-2.0 */
/* The same experiment on threads and on the simulator: batch decisions, merges, exchanges, bytes
 * and losses are the same to the bit, for every method and policy. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "build_config.h"
#include "run_helper.h"

#define EXPERIMENT                                                                                 \
    "name: t\ntransport: threads\ncollective: auto\n"                                              \
    "cluster: {platform: h100-64, workers: 16}\n"                                                  \
    "model: {kind: quadratic, dim: 9, condition: 30, noise: {kind: curvature, total: 4}}\n"        \
    "inner: {lr: 0.2, steps: 4}\nouter: {steps: 7}\n"                                              \
    "batch: {initial: 2, max: 4, cap: 5000}\nseeds: [3]\n"

struct identity_case {
    char sets[4][64];
};

static struct identity_case cases[] = {
    {{"method=ddp"}},
    {{"method=ddp", "inner.momentum=0.9", "inner.schedule=cosine", "batch.policy=norm_test"}},
    {{"method=ddp", "batch.policy=augmented", "inner.clip=0.5"}},
    {{"method=local_sgd"}},
    {{"method=local_sgd", "batch.policy=geometric", "batch.growth=1.7"}},
    {{"method=local_sgd", "batch.policy=inner_product", "model.shortcut=never"}},
    {{"method=diloco"}},
    {{"method=diloco", "inner.optimizer=sgd", "inner.schedule=cosine", "inner.warmup=6"}},
    {{"method=diloco", "batch.policy=noise_scale", "batch.may_shrink=true"}},
    {{"method=diloco", "batch.policy=augmented", "batch.statistic=gradient"}},
    {{"method=diloco", "batch.policy=norm_test", "batch.statistic=micro_batch"}},
    {{"method=diloco", "batch.policy=norm_test", "batch.smoothing=0.5"}},
    {{"method=local_sgd", "cluster.speeds=[1, 2, 3]", "batch.balance=speed"}},
    {{"method=local_sgd", "cluster.speeds=[1, 2, 3]", "batch.balance=steps"}},
    {{"method=adloco", "inner.optimizer=sgd"}},
    {{"method=adloco"}},
    {{"method=adloco", "cluster.workers_per_device=1", "cluster.placement=packed"}},
    {{"method=adloco", "merge.policy=best_with_worst", "trainers=6"}},
    {{"method=adloco", "merge.policy=all", "merge.every=3"}},
    {{"method=adloco", "merge.policy=none", "switch.mode=always"}},
    {{"method=adloco", "switch.mode=never", "model.draw=sample"}},
    {{"method=official_adloco", "inner.optimizer=sgd"}},
    {{"method=official_adloco", "model.draw=sample", "trainers=16"}},
    {{"method=diloco", "model.noise.multiplicative=0.3"}},
    {{"method=local_sgd", "model.hetero.curvature=0.3", "model.hetero.shift=0.2"}},
};

ParameterizedTestParameters(identity, threads_and_sim)
{
    return cr_make_param_array(struct identity_case, cases, sizeof cases / sizeof *cases);
}

static void expect_same_rows(const struct test_run *a, const struct test_run *b, const char *row,
                             const char *const *keys, const char *what)
{
    int n = test_count_records(a, row);
    cr_assert_eq(n, test_count_records(b, row), "%s: %d and %d rows '%s'", what, n,
                 test_count_records(b, row), row);
    for (int i = 0; i < n; i++)
        for (int k = 0; keys[k]; k++) {
            double x = test_record(a, row, i, keys[k]), y = test_record(b, row, i, keys[k]);
            cr_assert(x == y || (isnan(x) && isnan(y)), "%s: %s %d: %s %.17g and %.17g", what, row,
                      i, keys[k], x, y);
        }
}

static void expect_same_counts(const struct adl_counts *a, const struct adl_counts *b,
                               const char *what)
{
    for (int i = 0; i < ADL_N_CAUSES; i++) {
        cr_assert_eq(a->exchanges[i], b->exchanges[i], "%s", what);
        cr_assert_eq(a->payload_bytes[i], b->payload_bytes[i], "%s", what);
        for (int l = 0; l < ADL_N_LINK_CLASSES; l++) {
            cr_assert_eq(a->traffic[i].messages[l], b->traffic[i].messages[l], "%s", what);
            cr_assert_eq(a->traffic[i].bytes[l], b->traffic[i].bytes[l], "%s", what);
        }
    }
}

ParameterizedTest(struct identity_case *c, identity, threads_and_sim)
{
#ifndef ADL_HAVE_SIMGRID
    cr_skip_test("SimGrid is not in this build");
#endif
    const char *threads[6] = {0}, *sim[6] = {"transport=sim"};
    char what[300] = "";
    for (int i = 0; i < 4 && c->sets[i][0]; i++) {
        threads[i] = sim[i + 1] = c->sets[i];
        strcat(strcat(what, c->sets[i]), " ");
    }
    struct test_run a = test_run_text(EXPERIMENT, threads);
    struct test_run b = test_run_text(EXPERIMENT, sim);
    cr_assert_eq(a.status, ADL_OK, "%s: %s", what, a.err.message);
    cr_assert_eq(b.status, ADL_OK, "%s: %s", what, b.err.message);
    static const char *const round_keys[] = {
        "trainer", "round", "workers", "request",      "batch",      "micro_batches", "samples",
        "S",       "U",     "G2",      "next_request", "train_loss", "loss",          NULL};
    static const char *const merge_keys[] = {"survivor",    "victim",     "weight_survivor",
                                             "loss_before", "loss_after", NULL};
    static const char *const eval_keys[] = {"round",   "trainers",  "request", "loss",
                                            "samples", "exchanges", NULL};
    expect_same_rows(&a, &b, "round", round_keys, what);
    expect_same_rows(&a, &b, "merge", merge_keys, what);
    expect_same_rows(&a, &b, "eval", eval_keys, what);
    expect_same_counts(&a.summary.counts, &b.summary.counts, what);
    cr_assert_eq(a.summary.loss_final, b.summary.loss_final, "%s", what);
    cr_assert_eq(a.summary.exchange_rounds, b.summary.exchange_rounds, "%s", what);
    cr_assert_lt(a.summary.times.residual, 1e-9, "%s: %g", what, a.summary.times.residual);
    cr_assert_lt(b.summary.times.residual, 1e-9, "%s: %g", what, b.summary.times.residual);
    cr_assert_gt(test_count_records(&a, "round"), 0);
    free(a.records);
    free(b.records);
}
