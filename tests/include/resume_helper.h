/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that are stopped after some epochs and resumed, and what must then be the same. */
#ifndef ADL_TESTS_RESUME_HELPER_H
#define ADL_TESTS_RESUME_HELPER_H

#include "identity_cases.h"

#define RESUME_EXPERIMENT                                                                          \
    "name: t\ntransport: threads\ncollective: auto\n"                                              \
    "cluster: {platform: h100-64, workers: 16}\n"                                                  \
    "model: {kind: quadratic, dim: 7, condition: 30, noise: {kind: curvature, total: 4}}\n"        \
    "inner: {lr: 0.1, steps: 3}\nouter: {steps: 9}\n"                                              \
    "batch: {initial: 2, max: 4, cap: 5000}\nseeds: [3]\n"

/* Every kind of state: merges with several workers a device, both optimizers' moments, one
 * optimizer for all (ddp), running means, momentum, fresh states, no merges, devices that are away.
 */
static struct identity_case resume_cases[] = {
    {{"method=adloco"}},
    {{"method=adloco", "cluster.workers_per_device=1", "merge.every=1"}},
    {{"method=adloco", "merge.policy=all", "merge.every=4", "inner.optimizer=sgd"}},
    {{"method=adloco", "merge.policy=none", "batch.smoothing=0.5"}},
    {{"method=ddp", "inner.momentum=0.9", "inner.schedule=cosine", "batch.policy=norm_test"}},
    {{"method=ddp", "inner.optimizer=adamw", "trainers=3", "merge.policy=best_with_worst"}},
    {{"method=diloco", "inner.warmup=5", "batch.policy=augmented"}},
    {{"method=local_sgd", "batch.balance=speed", "cluster.speeds=[1, 2, 3]"}},
    {{"method=official_adloco"}},
    {{"method=adloco", "model.kind=recorded", "inner.optimizer=sgd", "merge.every=1"}},
    {{"method=diloco", "faults.events=[{device: 3, round: 2, for: 3}, {device: 9, round: 4}]"}},
    {{"method=adloco", "faults.rate=0.1", "cluster.workers_per_device=2"}},
};
enum { N_RESUME_CASES = sizeof resume_cases / sizeof *resume_cases };

struct resume_stop {
    int left; /* epochs until the answer is yes; never if 0 */
};

static inline bool resume_told_to_stop(void *arg)
{
    struct resume_stop *stop = arg;
    return stop->left > 0 && --stop->left == 0;
}

/* Runs a case in dir, as far as the given number of epochs (0: to the end). */
static inline struct test_run resume_run(const char *dir, const struct identity_case *c,
                                         const char *transport, enum adl_run_mode mode, int epochs)
{
    struct resume_stop stop = {.left = epochs};
    struct adl_run_observer observer = {.stop = resume_told_to_stop, .arg = &stop};
    char set[64];
    const char *sets[IDENTITY_SETS + 2] = {set};
    snprintf(set, sizeof set, "transport=%s", transport);
    for (int i = 0; i < IDENTITY_SETS && c->sets[i][0]; i++)
        sets[i + 1] = c->sets[i];
    return test_run_in(dir, RESUME_EXPERIMENT, sets, mode, &observer);
}

/* Records without the numbers that are times. */
static inline char *resume_without_times(const char *records)
{
    static const char *const keys[] = {"\"time_s\":", "\"start_s\":", "\"end_s\":"};
    char *text = strdup(records ? records : ""), *out = text;
    for (const char *at = text; *at;) {
        size_t key = 0;
        for (int k = 0; k < 3; k++)
            if (strncmp(at, keys[k], strlen(keys[k])) == 0)
                key = strlen(keys[k]);
        if (key == 0) {
            *out++ = *at++;
            continue;
        }
        at += key;
        at += strcspn(at, ",}\n");
    }
    *out = '\0';
    return text;
}

/* Whether a resumed run ended as the one that never stopped; else says where not. */
static inline bool resume_same(const struct test_run *whole, const struct test_run *resumed,
                               char *out, size_t size)
{
    if (!identity_same(whole, resumed, out, size))
        return false;
    char *x = resume_without_times(whole->records), *y = resume_without_times(resumed->records);
    bool same = x[0] != '\0' && strcmp(x, y) == 0;
    free(x);
    free(y);
    if (!same) {
        snprintf(out, size, "the records are not the same text");
        return false;
    }
    const struct adl_summary *a = &whole->summary, *b = &resumed->summary;
    same = strcmp(a->status, b->status) == 0 && a->trainers_final == b->trainers_final &&
           a->outer_steps == b->outer_steps && a->samples_useful == b->samples_useful &&
           a->loss_initial == b->loss_initial && a->batch_initial == b->batch_initial &&
           a->batch_final == b->batch_final && a->accumulation_max == b->accumulation_max &&
           a->merges == b->merges;
    if (!same)
        snprintf(out, size, "the summaries differ");
    return same;
}

#endif
