/* SPDX-License-Identifier: Apache-2.0 */
/* One experiment, each method and policy once, and what must be the same to the bit on every
 * transport: batch decisions, merges, exchanges, bytes and losses. */
#ifndef ADL_TESTS_IDENTITY_CASES_H
#define ADL_TESTS_IDENTITY_CASES_H

#include "run_helper.h"

/* Flat, and with the platform's layout: for builds that read neither YAML nor platforms. */
#define IDENTITY_EXPERIMENT                                                                        \
    "name: t\ntransport: threads\ncollective: auto\n"                                              \
    "cluster.platform: h100-64\ncluster.workers: 16\n"                                             \
    "cluster.layout.devices_per_node: 8\n"                                                         \
    "cluster.layout.nodes_per_site: 8\ncluster.layout.nics_per_node: 8\n"                          \
    "model.kind: quadratic\nmodel.dim: 9\nmodel.condition: 30\n"                                   \
    "model.noise.kind: curvature\nmodel.noise.total: 4\n"                                          \
    "inner.lr: 0.2\ninner.steps: 4\nouter.steps: 7\n"                                              \
    "batch.initial: 2\nbatch.max: 4\nbatch.cap: 5000\nseeds: [3]\n"

enum { IDENTITY_SETS = 8, IDENTITY_NAME = 1300 };

struct identity_case {
    char sets[IDENTITY_SETS][160];
};

/* A small network instead of the quadratic. */
#define IDENTITY_LLAMA                                                                             \
    "model.kind=llama", "model.width=16", "model.context=8", "inner.lr=0.01", "batch.cap=96"

#define IDENTITY_LOGISTIC                                                                          \
    "model.kind=logistic", "model.features=3", "model.samples=50", "batch.cap=256"

static struct identity_case identity_cases[] = {
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
    {{"method=adloco", "cluster.workers_per_device=1", "trainers=5", "merge.every=1"}},
    {{"method=adloco", "cluster.placement=packed", "trainers=7", "merge.every=1"}},
    {{"method=adloco", "merge.policy=all", "merge.every=3"}},
    {{"method=adloco", "merge.policy=none", "switch.mode=always"}},
    {{"method=adloco", "switch.mode=never", "model.draw=sample"}},
    {{"method=official_adloco", "inner.optimizer=sgd"}},
    {{"method=official_adloco", "model.draw=sample", "trainers=16"}},
    {{"method=diloco", "model.noise.multiplicative=0.3"}},
    {{"method=local_sgd", "model.hetero.curvature=0.3", "model.hetero.shift=0.2"}},
    {{"method=diloco", "faults.events=[{device: 3, round: 2, for: 3}, {node: 1, round: 4}]"}},
    {{"method=ddp", "faults.rate=0.03", "faults.rounds=2", "batch.policy=norm_test"}},
    {{"method=adloco", "faults.rate=0.05", "batch.statistic=gradient"}},
    {{"method=local_sgd", "faults.rate=0.05", "faults.action=wait"}},
    {{"method=local_sgd", "faults.rate=0.05", "batch.policy=augmented"}},
    {{"method=diloco", "cluster.gpus_per_worker=4", "batch.initial=4", "batch.policy=norm_test"}},
    {{"method=ddp", "cluster.gpus_per_worker=2", "switch.mode=always", "batch.initial=6"}},
    {{"method=ddp", IDENTITY_LLAMA, "inner.momentum=0.9", "batch.policy=norm_test"}},
    {{"method=local_sgd", IDENTITY_LLAMA, "batch.policy=augmented", "model.threads=2"}},
    {{"method=diloco", IDENTITY_LLAMA, "inner.clip=1"}},
    {{"method=adloco", IDENTITY_LLAMA}},
    {{"method=ddp", "model.kind=recorded", "batch.policy=norm_test"}},
    {{"method=adloco", "model.kind=recorded", "inner.optimizer=sgd", "faults.rate=0.02"}},
    {{"method=diloco", "model.kind=recorded", "batch.observe=true", "batch.statistic=micro_batch"}},
    {{"method=ddp", IDENTITY_LOGISTIC, "batch.policy=augmented"}},
    {{"method=adloco", IDENTITY_LOGISTIC, "inner.optimizer=sgd", "model.label_skew=0.6"}},
    {{"method=official_adloco", IDENTITY_LLAMA}},
};

enum { N_IDENTITY_CASES = sizeof identity_cases / sizeof *identity_cases };

/* Runs a case on a transport. */
static inline struct test_run identity_run(const struct identity_case *c, const char *transport)
{
    char set[64];
    const char *sets[IDENTITY_SETS + 2] = {set};
    snprintf(set, sizeof set, "transport=%s", transport);
    for (int i = 0; i < IDENTITY_SETS && c->sets[i][0]; i++)
        sets[i + 1] = c->sets[i];
    return test_run_text(IDENTITY_EXPERIMENT, sets);
}

static inline void identity_name(const struct identity_case *c, char out[IDENTITY_NAME])
{
    out[0] = '\0';
    for (int i = 0; i < IDENTITY_SETS && c->sets[i][0]; i++)
        strcat(strcat(out, i ? " " : ""), c->sets[i]);
}

static inline bool identity_same_number(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* Whether rows of a kind agree in these keys; else says where in out [size]. */
static inline bool identity_same_rows(const struct test_run *a, const struct test_run *b,
                                      const char *row, const char *const *keys, char *out,
                                      size_t size)
{
    int n = test_count_records(a, row), m = test_count_records(b, row);
    if (n != m) {
        snprintf(out, size, "%d and %d rows '%s'", n, m, row);
        return false;
    }
    for (int i = 0; i < n; i++)
        for (int k = 0; keys[k]; k++) {
            double x = test_record(a, row, i, keys[k]), y = test_record(b, row, i, keys[k]);
            if (identity_same_number(x, y))
                continue;
            snprintf(out, size, "%s %d: %s %.17g and %.17g", row, i, keys[k], x, y);
            return false;
        }
    return true;
}

static inline bool identity_same_counts(const struct adl_counts *a, const struct adl_counts *b)
{
    for (int i = 0; i < ADL_N_CAUSES; i++) {
        if (a->exchanges[i] != b->exchanges[i] || a->payload_bytes[i] != b->payload_bytes[i])
            return false;
        for (int l = 0; l < ADL_N_LINK_CLASSES; l++)
            if (a->traffic[i].messages[l] != b->traffic[i].messages[l] ||
                a->traffic[i].bytes[l] != b->traffic[i].bytes[l])
                return false;
    }
    return true;
}

/* Whether two runs are the same but for times; else says where they differ. */
static inline bool identity_same(const struct test_run *a, const struct test_run *b, char *out,
                                 size_t size)
{
    static const char *const round_keys[] = {
        "trainer", "round", "workers", "request",      "batch",      "micro_batches", "samples",
        "S",       "U",     "G2",      "next_request", "train_loss", "loss",          NULL};
    static const char *const merge_keys[] = {"survivor",    "victim",     "weight_survivor",
                                             "loss_before", "loss_after", NULL};
    static const char *const eval_keys[] = {"round",   "trainers",  "request", "loss",
                                            "samples", "exchanges", NULL};
    const struct adl_summary *x = &a->summary, *y = &b->summary;
    if (!identity_same_rows(a, b, "round", round_keys, out, size) ||
        !identity_same_rows(a, b, "merge", merge_keys, out, size) ||
        !identity_same_rows(a, b, "eval", eval_keys, out, size))
        return false;
    if (!identity_same_counts(&x->counts, &y->counts)) {
        snprintf(out, size, "counts of exchanges differ");
        return false;
    }
    if (identity_same_number(x->loss_final, y->loss_final) &&
        x->exchange_rounds == y->exchange_rounds && x->samples == y->samples)
        return true;
    snprintf(out, size, "loss %.17g and %.17g, depth %g and %g", x->loss_final, y->loss_final,
             x->exchange_rounds, y->exchange_rounds);
    return false;
}

#endif
