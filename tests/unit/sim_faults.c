/* SPDX-License-Identifier: Apache-2.0 */
/* Faults: the schedule, what a fault costs in decisions, counts and time, and how a run goes on. */
#include <criterion/criterion.h>

#include "build_config.h"
#include "core/faults.h"
#include "sim_runs.h"

static struct adl_faults *open_faults(const char *events, double rate, int64_t rounds, int64_t seed)
{
    struct adl_settings s = {.seed = seed};
    s.faults.events = events;
    s.faults.rate = rate;
    s.faults.rounds = rounds;
    struct adl_faults *faults;
    struct adl_err err = {0};
    cr_assert_eq(adl_faults_open(&s, 8, 4, &faults, &err), ADL_OK, "%s", err.message);
    return faults;
}

static void expect_faults(const struct adl_faults *f, int device, const char *by_round)
{
    for (int r = 0; by_round[r]; r++) {
        enum adl_fault want = by_round[r] == 's'   ? ADL_FAULT_STRIKES
                              : by_round[r] == 'd' ? ADL_FAULT_DOWN
                                                   : ADL_FAULT_NONE;
        cr_expect_eq(adl_fault_of(f, device, r, false), want, "device %d, round %d", device, r);
    }
}

Test(faults, schedule)
{
    struct adl_faults *f =
        open_faults("[{device: 2, round: 1, for: 3}, {node: 1, round: 4, for: 2},"
                    " {device: 5, round: 5, for: 2}]",
                    0, 1, 1);
    expect_faults(f, 0, "........");
    expect_faults(f, 2, ".sdd....");
    expect_faults(f, 4, "....sd..");
    expect_faults(f, 5, "....sdd.");
    bool fresh;
    cr_expect(adl_fault_rejoins(f, 2, 4, false, &fresh) && fresh);
    cr_expect(!adl_fault_rejoins(f, 2, 3, false, &fresh) &&
              !adl_fault_rejoins(f, 2, 5, false, &fresh));
    /* epochs end where someone leaves (after the strike) or is back */
    cr_expect_eq(adl_faults_next(f, 0, 20), 2);
    cr_expect_eq(adl_faults_next(f, 2, 20), 4);
    cr_expect_eq(adl_faults_next(f, 4, 20), 5);
    cr_expect_eq(adl_faults_next(f, 5, 20), 6);
    cr_expect_eq(adl_faults_next(f, 7, 20), 20);
    cr_expect_eq(adl_faults_next(NULL, 0, 20), 20);
    adl_faults_close(f);
}

Test(faults, a_link_keeps_the_state)
{
    struct adl_faults *f = open_faults("[{link: 0, round: 1, for: 2}]", 0, 1, 1);
    bool fresh;
    expect_faults(f, 3, ".sd.");
    expect_faults(f, 4, "....");
    cr_expect(adl_fault_rejoins(f, 3, 3, false, &fresh) && !fresh);
    for (int r = 0; r < 4; r++)
        cr_expect_eq(adl_fault_of(f, 3, r, true), ADL_FAULT_NONE, "to nobody on its node");
    cr_expect(!adl_fault_rejoins(f, 3, 3, true, &fresh));
    adl_faults_close(f);
}

/* 8 devices over 10,000 rounds: 800 +- 28 faults at 1%. */
Test(faults, rate)
{
    struct adl_faults *f = open_faults("", 0.01, 3, 7), *other = open_faults("", 0.01, 3, 8);
    int strikes = 0, down = 0, different = 0;
    for (int d = 0; d < 8; d++)
        for (int r = 0; r < 10000; r++) {
            enum adl_fault fault = adl_fault_of(f, d, r, false);
            strikes += fault == ADL_FAULT_STRIKES;
            down += fault == ADL_FAULT_DOWN;
            different += fault != adl_fault_of(other, d, r, false);
        }
    cr_expect(abs(strikes - 785) < 120, "%d", strikes); /* those while one runs join it */
    cr_expect(abs(down - 2 * strikes) < 120, "%d", down);
    cr_expect_gt(different, 1000, "another seed");
    adl_faults_close(f);
    adl_faults_close(other);
}

Test(faults, bad_events)
{
    const struct {
        const char *events, *said;
    } cases[] = {
        {"[{round: 3}]", "one of device, node, link"},
        {"[{device: 1, node: 0, round: 3}]", "one of device, node, link"},
        {"[{device: 8, round: 3}]", "device 8, but there are 8"},
        {"[{node: 2, round: 3}]", "node 2, but there are 2"},
        {"[{device: 1}]", "round"},
        {"[{device: 1, round: -1}]", "round"},
        {"[{device: 1, round: 2, for: 0}]", "for"},
        {"[{device: 1, round: 2, until: 3}]", "until"},
        {"device 1", "faults.events"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adl_settings s = {.seed = 1};
        s.faults.events = cases[i].events;
        struct adl_faults *faults;
        struct adl_err err = {0};
        cr_expect_eq(adl_faults_open(&s, 8, 4, &faults, &err), ADL_ERR_INPUT, "%s",
                     cases[i].events);
        cr_expect(strstr(err.message, cases[i].said), "%s: %s", cases[i].events, err.message);
    }
}

/* ---- runs ---- */

/* No noise, so that the loss does not depend on who computes: 8 devices, a second a step. */
#define RUN                                                                                        \
    "transport: sim\ncollective: ring\n"                                                           \
    "cluster: {platform: nvswitch-8}\n"                                                            \
    "device: {overhead: 0, half_samples: 0}\n"                                                     \
    "model: {kind: quadratic, dim: 4, noise: {total: 0},\n"                                        \
    "        stand_in: {params: 1e9, tokens_per_sample: 1e4}}\n"                                   \
    "method: local_sgd\ninner: {lr: 0.1, steps: 10}\nouter: {steps: 6}\nbatch.initial: 2\n"

static struct test_run run_with(const char *const *sets)
{
#if !defined ADL_HAVE_SIMGRID || !defined ADL_HAVE_YAML
    cr_skip_test("a simulated experiment needs SimGrid and libfyaml");
#endif
    struct test_run r = sim_run_text(RUN, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    cr_assert_lt(r.summary.times.residual, 1e-9);
    return r;
}

#define RUN_WITH(...) run_with((const char *[]){__VA_ARGS__, NULL})

/* What is lost, counted by hand: the two steps' samples of one worker in one round. */
Test(faults, a_dropped_worker)
{
    struct test_run calm = RUN_WITH("seed=1");
    struct test_run r = RUN_WITH("faults.events=[{device: 3, round: 2, for: 2}]");
    cr_expect_eq(r.summary.faults, 1);
    cr_expect_eq(r.summary.samples_lost, 2 * 10);
    /* the request stays: seven workers run its 16 samples in the next round */
    cr_expect_eq(r.summary.samples, calm.summary.samples);
    cr_expect_eq(r.summary.samples_useful, calm.summary.samples - 20);
    cr_expect_eq(test_record(&r, "round", 2, "workers"), 8);
    cr_expect_eq(test_record(&r, "round", 3, "workers"), 7);
    cr_expect_eq(test_record(&r, "round", 4, "workers"), 8);
    /* without noise, dropping with renormalised weights changes nothing */
    cr_expect_float_eq(r.summary.loss_final, calm.summary.loss_final,
                       1e-12 * calm.summary.loss_final);
    /* one exchange more: the parameters to the device that is back */
    const struct adl_counts *c = &r.summary.counts;
    cr_expect_eq(c->exchanges[ADL_CAUSE_REDISTRIBUTION], 1);
    cr_expect_eq(c->payload_bytes[ADL_CAUSE_REDISTRIBUTION], 4e9);
    cr_expect_eq(c->exchanges[ADL_CAUSE_OUTER], 6);
    free(r.records);
    free(calm.records);
}

/* A round is 20 samples of 6e13 flops on 400 Tflop/s. With seven workers two have three of the 16
 * samples, half as many again. */
Test(faults, what_a_fault_takes)
{
    double sample_s = 6e13 / 400e12;
    struct test_run calm = RUN_WITH("seed=1");
    struct test_run drop =
        RUN_WITH("faults.events=[{device: 3, round: 2, for: 2}]", "faults.timeout=7s");
    struct test_run wait = RUN_WITH("faults.events=[{device: 3, round: 2, for: 2}]",
                                    "faults.action=wait", "faults.repair=100s");
    double more_s = drop.summary.time_s - calm.summary.time_s;
    /* ring of seven instead of eight; the broadcast of 4 GB over 450 GB/s */
    cr_expect_float_eq(more_s, 7 + 10 * sample_s, 0.02, "%g", more_s);
    cr_expect_float_eq(wait.summary.time_s, calm.summary.time_s + 100, 1e-6);
    cr_expect_eq(wait.summary.samples_lost, 0);
    cr_expect_eq(wait.summary.loss_final, calm.summary.loss_final);
    cr_expect_eq(wait.summary.counts.exchanges[ADL_CAUSE_REDISTRIBUTION], 0);
    double ideal = calm.summary.goodput * calm.summary.time_s;
    cr_expect_float_eq(wait.summary.goodput * wait.summary.time_s, ideal, 1e-9 * ideal);
    cr_expect_lt(drop.summary.goodput, calm.summary.goodput);
    cr_expect_float_eq(drop.summary.goodput / drop.summary.compute_utilization, 940.0 / 960, 1e-9,
                       "20 of 960 samples are lost");
    cr_expect_lt(wait.summary.goodput, drop.summary.goodput);
    free(calm.records);
    free(drop.records);
    free(wait.records);
}

Test(faults, without_anyone_else_a_trainer_waits)
{
    struct test_run calm = RUN_WITH("seed=1");
    struct test_run r =
        RUN_WITH("faults.events=[{node: 0, round: 2, for: 2}]", "faults.repair=50s");
    cr_expect_eq(r.summary.samples_lost, 0);
    cr_expect_eq(r.summary.loss_final, calm.summary.loss_final);
    cr_expect_float_eq(r.summary.time_s, calm.summary.time_s + 50, 1e-6);
    free(r.records);
    free(calm.records);
}

/* Two trainers of eight devices: on a node each they go on without the node's link; over both, a
 * trainer loses what is behind it. */
Test(faults, a_trainer_at_home)
{
    const char *link = "faults.events=[{link: 0, round: 2, for: 2}]";
    struct test_run calm = RUN_WITH("trainers=2", "cluster.workers=16", "cluster.placement=packed",
                                    "cluster.platform=h200-16");
    struct test_run home = RUN_WITH("trainers=2", "cluster.workers=16", "cluster.placement=packed",
                                    "cluster.platform=h200-16", link);
    struct test_run apart =
        RUN_WITH("trainers=1", "cluster.workers=16", "cluster.platform=h200-16", link);
    cr_expect_eq(home.summary.faults, 0);
    cr_expect_eq(home.summary.samples_lost, 0);
    cr_expect_float_eq(home.summary.time_s, calm.summary.time_s, 1e-9);
    cr_expect_eq(apart.summary.faults, 8);
    cr_expect_eq(apart.summary.samples_lost, 8 * 20);
    free(calm.records);
    free(home.records);
    free(apart.records);
}

/* A block of ddp fails in its first exchange: one step's samples are lost, not ten's. */
Test(faults, ddp)
{
    struct test_run r = RUN_WITH("method=ddp", "faults.events=[{device: 0, round: 0}]");
    cr_expect_eq(r.summary.samples_lost, 2);
    cr_expect_eq(r.summary.samples, 6 * 10 * 16 - 9 * 2);
    free(r.records);
}

/* Merges stay at their rounds although faults end epochs in between. */
Test(faults, merges_keep_their_rounds)
{
    struct test_run r = RUN_WITH("trainers=4", "merge.policy=worst_with_worst", "merge.every=3",
                                 "faults.events=[{device: 7, round: 0, for: 2}]");
    cr_expect_eq(r.summary.merges, 1);
    cr_expect_eq(test_record(&r, "round", 0, "workers"), 2);
    cr_expect_eq(r.summary.outer_steps, 6);
    free(r.records);
}

Test(faults, same_seed_same_bits)
{
    struct test_run a = RUN_WITH("faults.rate=0.05", "faults.rounds=2");
    struct test_run b = RUN_WITH("faults.rate=0.05", "faults.rounds=2");
    struct test_run c = RUN_WITH("faults.rate=0.05", "faults.rounds=2", "seed=2");
    cr_expect_gt(a.summary.faults, 0);
    cr_expect_eq(a.summary.time_s, b.summary.time_s);
    cr_expect_str_eq(strchr(a.records, '\n'), strchr(b.records, '\n'));
    cr_expect_neq(a.summary.time_s, c.summary.time_s);
    free(a.records);
    free(b.records);
    free(c.records);
}
