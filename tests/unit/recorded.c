/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run as a model: progress in closed form, what the batch tests measure and ask for,
 * tables that are wrong. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/record_curve.h"
#include "run_helper.h"

static char dir[] = "/tmp/adloco-test-XXXXXX";

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    test_remove(dir);
}

TestSuite(recorded, .init = make_dir, .fini = remove_dir);

static void write_record(const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/d.csv", dir);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

/* The loss falls by 1 in 1e6 samples, from 5; noise scale 100, steps of 50. */
static const char *const steady =
    "tokens,loss,noise_scale,batch\n0,5,100,50\n400000,4.6,100,50\n1000000,4,100,50\n";

static struct test_run run(const char *const *sets)
{
    char out[64];
    struct test_run r =
        test_run_in(dir,
                    "transport: threads\ncluster.workers: 4\nmethod: local_sgd\n"
                    "model: {kind: recorded, data: d.csv}\ninner: {lr: 0.1, steps: 5}\n"
                    "outer.steps: 20\nbatch.initial: 10\nseed: 3\n",
                    sets, ADL_RUN_NEW, NULL);
    snprintf(out, sizeof out, "%s/out", dir);
    test_remove(out);
    return r;
}

/* The loss that a run ends at. */
static double loss_of(const char *const *sets)
{
    struct test_run r = run(sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    free(r.records);
    return r.summary.loss_final;
}

/* ---- progress */

/* 100 steps of 40 samples, whatever the method, its optimizers and rates. */
Test(recorded, progress_has_its_closed_form)
{
    const double want = 5 - 1e-6 * 100 * 40 * (50.0 + 100) / (40 + 100);
    static const char *const methods[] = {"method=custom", "method=ddp", "method=local_sgd",
                                          "method=diloco"};
    write_record(steady);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (int rate = 0; rate < 3; rate++) {
            static const char *const rates[] = {"inner.lr=0.1", "inner.lr=1e-4", "inner.lr=0"};
            const char *const sets[] = {methods[i], rates[rate], "inner.weight_decay=0.1", NULL};
            cr_expect_float_eq(loss_of(sets), want, 1e-13, "%s, %s", methods[i], rates[rate]);
        }
    const char *const h[] = {"inner.steps=20", "outer.steps=5", NULL};
    cr_expect_float_eq(loss_of(h), want, 1e-13, "H is free");
    const char *const split[] = {"batch.max=3", "switch.mode=always", NULL};
    cr_expect_float_eq(loss_of(split), want, 1e-13, "micro-batches");
}

Test(recorded, progress_scales_by_one_over_one_plus_noise_over_batch)
{
    write_record(steady);
    const double steps = 100, full = steps * (50 + 100);
    for (int b = 1; b <= 1000000; b *= 10) {
        char set[40];
        snprintf(set, sizeof set, "batch.initial=%d", b);
        const char *const sets[] = {set, NULL};
        const double B = 4.0 * b;
        cr_expect_float_eq(loss_of(sets), 5 - 1e-6 * full / (1 + 100 / B), 1e-12, "batch %g", B);
    }
    const char *const huge[] = {"batch.initial=1000000", NULL};
    cr_expect_float_eq(loss_of(huge), 5 - 1e-6 * full, 1e-6, "full progress");
    const char *const quiet[] = {"model.noise.scale=0", NULL};
    cr_expect_float_eq(loss_of(quiet), 5 - 1e-6 * steps * 50, 1e-13,
                       "no noise: the run's own step");
    const char *const noisier[] = {"model.noise.scale=3", NULL};
    cr_expect_float_eq(loss_of(noisier), 5 - 1e-6 * steps * 40 * 350 / 340, 1e-13);
}

/* At the record's own batch its losses come back, though noise and batch change along it. */
Test(recorded, its_own_batch_replays_it)
{
    write_record("tokens,loss,noise_scale,batch\n0,5,10,40\n1000,4,300,40\n3000,3,20,40\n"
                 "8000,2.5,900,40\n");
    for (int rounds = 1; rounds <= 50; rounds += 7) {
        char set[40];
        snprintf(set, sizeof set, "outer.steps=%d", rounds);
        const char *const sets[] = {set, NULL};
        const double x = rounds * 5 * 40;
        const double want = x < 1000   ? 5 - x / 1000
                            : x < 3000 ? 4 - (x - 1000) / 2000
                            : x < 8000 ? 3 - (x - 3000) / 10000
                                       : 2.5;
        cr_expect_float_eq(loss_of(sets), want, 1e-12, "%d rounds: %.15g, not %.15g", rounds,
                           loss_of(sets), want);
    }
}

/* Tokens are counted in samples; what no column tells comes from a key. */
Test(recorded, tokens_and_batches_without_a_column)
{
    write_record("loss,other,noise_scale,tokens\n5,x,100,0\n4,x,100,512000000\n");
    const char *const sets[] = {"model.stand_in.tokens_per_sample=512", "model.recorded_batch=50",
                                NULL};
    cr_expect_float_eq(loss_of(sets), 5 - 1e-6 * 100 * 40 * 150 / 140, 1e-13);
    const char *const unknown[] = {"model.stand_in.tokens_per_sample=512", NULL};
    cr_expect_float_eq(loss_of(unknown), 5 - 1e-6 * 100 * 40 * 100 / 140, 1e-13);
    write_record("samples,loss,noise_scale\n0,5,100\n1000000,4,100\n");
    cr_expect_float_eq(loss_of(unknown), 5 - 1e-6 * 100 * 40 * 100 / 140, 1e-13);
    write_record("tokens,loss,noise_scale_tokens,batch_tokens\n0,5,51200,25600\n"
                 "512000000,4,51200,25600\n");
    cr_expect_float_eq(loss_of(unknown), 5 - 1e-6 * 100 * 40 * 150 / 140, 1e-13);
    const char *const other[] = {"model.stand_in.tokens_per_sample=9", "model.recorded_tokens=512",
                                 NULL};
    cr_expect_float_eq(loss_of(other), 5 - 1e-6 * 100 * 40 * 150 / 140, 1e-13);
}

/* Trainers of 20 and 10 samples go on apart for 50 steps; the larger one goes on from their mean by
 * request. */
Test(recorded, trainers_merge_at_their_mean)
{
    write_record(steady);
    const char *const sets[] = {"cluster.workers=3", "trainers=2", "merge.policy=worst_with_worst",
                                "merge.every=10", NULL};
    const double of_20 = 20 * 150.0 / 120, of_10 = 10 * 150.0 / 110;
    const double want = 5 - 1e-6 * 50 * ((2 * of_20 + of_10) / 3 + of_20);
    cr_expect_float_eq(loss_of(sets), want, 1e-12);
}

Test(recorded, steps_beyond_the_end_stay_there)
{
    struct adl_record_source source = {
        .data = "d.csv", .base_dir = dir, .tokens_per_sample = 1, .batch = 7};
    struct adl_record_curve curve = {0};
    struct adl_err err = {0};
    write_record("tokens,loss,noise_scale\n10,5,2\n20,4,4\n");
    cr_assert_eq(adl_record_open(&source, &curve, &err), ADL_OK, "%s", err.message);
    const struct adl_record_point before = adl_record_at(&curve, 0), in = adl_record_at(&curve, 15),
                                  end = adl_record_at(&curve, 20), past = adl_record_at(&curve, 99);
    cr_expect_eq(before.loss, 6);
    cr_expect_eq(before.noise, 2);
    cr_expect_eq(in.loss, 4.5);
    cr_expect_eq(in.slope, -0.1);
    cr_expect_eq(in.noise, 3);
    cr_expect_eq(in.batch, 7);
    cr_expect_eq(end.loss, 4);
    cr_expect_eq(end.slope, 0);
    cr_expect_eq(past.loss, 4);
    cr_expect_eq(past.noise, 4);
    cr_expect(isnan(adl_record_at(&curve, NAN).loss));
    double x = 10;
    for (int k = 0; k < 5; k++)
        x = adl_record_advance(&curve, x, 1, 5, 1);
    cr_expect_float_eq(adl_record_advance(&curve, 10, 5, 5, 1), x, 1e-12);
    cr_expect_float_eq(adl_record_advance(&curve, 20, 1000000000, 5, 1), 20 + 1e9 * 5 * 11 / 9, 1);
    adl_record_close(&curve);
}

/* ---- what the tests measure and ask for */

struct asked { /* means over the rounds */
    double S_over_U, request;
    int rounds;
};

static struct asked ask(const char *statistic, const char *steps, const char *workers)
{
    const char *const sets[] = {statistic,
                                steps,
                                workers,
                                "batch.policy=norm_test",
                                "batch.eta=0.5",
                                "batch.may_shrink=true",
                                "outer.steps=300",
                                "batch.initial=100",
                                NULL};
    struct test_run r = run(sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    struct asked asked = {.rounds = test_count_records(&r, "round")};
    double S = 0, U = 0;
    for (int i = 0; i < asked.rounds; i++) {
        S += test_record(&r, "round", i, "S");
        U += test_record(&r, "round", i, "U");
        asked.request += test_record(&r, "round", i, "next_request") / asked.rounds;
    }
    asked.S_over_U = S / U;
    free(r.records);
    return asked;
}

/* Noise scale 100 is asked for as 100 / 0.25 samples, by pseudo-gradients of H steps as 1/H of it.
 */
Test(recorded, requests_follow_the_noise_scale)
{
    static const struct {
        const char *statistic, *steps, *workers;
        double noise;
    } cases[] = {
        {"batch.statistic=gradient", "inner.steps=1", "cluster.workers=8", 100},
        {"batch.statistic=gradient", "inner.steps=5", "cluster.workers=8", 100},
        {"batch.statistic=micro_batch", "inner.steps=5", "cluster.workers=4", 100},
        {"batch.statistic=micro_batch", "inner.steps=2", "cluster.workers=1", 100},
        {"batch.statistic=pseudo_gradient", "inner.steps=1", "cluster.workers=8", 100},
        {"batch.statistic=pseudo_gradient", "inner.steps=5", "cluster.workers=8", 20},
    };
    write_record(steady);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct asked asked = ask(cases[i].statistic, cases[i].steps, cases[i].workers);
        cr_expect_eq(asked.rounds, 300);
        cr_expect_float_eq(asked.S_over_U, cases[i].noise, 0.05 * cases[i].noise, "%s %s: %g",
                           cases[i].statistic, cases[i].steps, asked.S_over_U);
        cr_expect_float_eq(asked.request, 4 * cases[i].noise, 0.4 * cases[i].noise, "%s %s: %g",
                           cases[i].statistic, cases[i].steps, asked.request);
    }
}

/* What is measured for the records alone changes neither batches nor losses, only the exchange. */
Test(recorded, observing_changes_nothing)
{
    write_record(steady);
    static const char *const statistics[] = {"batch.statistic=micro_batch",
                                             "batch.statistic=gradient",
                                             "batch.statistic=pseudo_gradient"};
    const char *const blind[] = {"batch.initial=1", NULL};
    struct test_run want = run(blind);
    for (int i = 0; i < 3; i++) {
        const char *const sets[] = {"batch.initial=1", "batch.observe=true", statistics[i], NULL};
        struct test_run r = run(sets);
        cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
        cr_expect_eq(r.summary.loss_final, want.summary.loss_final);
        for (int k = 0; k < 20; k++)
            cr_expect_eq(test_record(&r, "round", k, "next_request"), 4);
        /* a share of one sample tells nothing; four workers tell something */
        cr_expect_eq(isnan(test_record(&r, "round", 3, "noise_scale")), i == 0);
        cr_expect_gt(r.summary.counts.payload_bytes[ADL_CAUSE_OUTER] +
                         r.summary.counts.payload_bytes[ADL_CAUSE_STATISTICS],
                     want.summary.counts.payload_bytes[ADL_CAUSE_OUTER]);
        free(r.records);
    }
    free(want.records);
}

/* A noise scale that grows tenfold: so does the request. */
Test(recorded, requests_grow_with_the_record)
{
    write_record("tokens,loss,noise_scale,batch\n0,5,40,40\n200000,4,400,40\n");
    const char *const sets[] = {"cluster.workers=16",       "inner.steps=1",
                                "batch.policy=noise_scale", "batch.statistic=gradient",
                                "outer.steps=100000",       "stop.loss=4.0000001",
                                "batch.may_shrink=true",    "batch.initial=2",
                                "model.dim=1000",           NULL};
    struct test_run r = run(sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    cr_assert_str_eq(r.summary.status, "target_reached");
    const int rounds = test_count_records(&r, "round");
    double worst = 0, mean = 0;
    for (int i = 10; i < rounds; i++) {
        const double loss = test_record(&r, "round", i, "loss");
        const double off = test_record(&r, "round", i, "next_request") / (40 + 360 * (5 - loss));
        mean += off / (rounds - 10);
        worst = fmax(worst, fabs(log(off)));
    }
    cr_expect_float_eq(mean, 1, 0.05);
    cr_expect_lt(worst, log(1.5));
    free(r.records);
}

Test(recorded, what_adamw_makes_of_it_is_refused)
{
    write_record(steady);
    const char *const sets[] = {"method=adloco", NULL};
    struct test_run r = run(sets);
    cr_expect_eq(r.status, ADL_ERR_INPUT);
    cr_expect(strstr(r.err.message, "set inner.optimizer: sgd"), "%s", r.err.message);
    free(r.records);
    const char *const allowed[] = {"method=adloco", "batch.statistic=micro_batch", NULL};
    loss_of(allowed);
}

/* ---- tables */

Test(recorded, wrong_tables_are_named_by_place)
{
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"tokens,loss\n0,5\n1,4\n", "d.csv:1:1: no column 'noise_scale'"},
        {"loss,noise_scale\n0,5\n1,4\n", "d.csv:1:1: no column 'tokens'"},
        {"tokens,noise_scale\n0,5\n1,4\n", "d.csv:1:1: no column 'loss'"},
        {"tokens,loss,noise_scale\n0,5,1\n", "d.csv:2:1: one row"},
        {"tokens,loss,noise_scale\n0,5,1\n10,4,1\n10,3,1\n",
         "d.csv:4:1: tokens: '10' is not above the row before, '10'"},
        {"tokens,loss,noise_scale\n0,5,1\n10,4,-1\n", "d.csv:3:6: noise_scale: '-1'"},
        {"tokens,loss,noise_scale\n0,5,1\n10,nan,1\n", "d.csv:3:4: loss: 'nan'"},
        {"tokens,loss,noise_scale\n-1,5,1\n10,4,1\n", "d.csv:2:1: tokens: '-1'"},
        {"tokens,loss,noise_scale,batch\n0,5,1,0\n10,4,1,1\n", "d.csv:2:7: batch: '0'"},
        {"tokens,loss,noise_scale\n0,5,1\n10,4\n", "d.csv:3:1: 2 cells"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        write_record(cases[i].text);
        struct test_run r = run(NULL);
        cr_expect_eq(r.status, ADL_ERR_INPUT, "%s", cases[i].says);
        cr_expect(strstr(r.err.message, cases[i].says), "'%s' is not in '%s'", cases[i].says,
                  r.err.message);
        free(r.records);
    }
}
