/* SPDX-License-Identifier: Apache-2.0 */
/* Times of devices over a run: profiles, shares, stagger, exchanges that overlap with the backward
 * pass, devices of several GPUs; and what holds of every run: sums of time, monotonicity. */
#include <criterion/criterion.h>

#include "sim/profile.h"
#include "sim/share.h"
#include "sim_runs.h"

static void near(double a, double b, double tolerance, const char *what)
{
    cr_expect(fabs(a - b) <= tolerance * fabs(b), "%s: %.17g is not %.17g", what, a, b);
}

/* ---- profiles ---- */

static void write_text(char path[40], const char *text)
{
    strcpy(path, "/tmp/adloco-profile-XXXXXX");
    FILE *out = fdopen(mkstemp(path), "w");
    fputs(text, out);
    fclose(out);
}

Test(profile, finishes)
{
    char path[40];
    write_text(path, "# slow from 10 s to 20 s, then fast\n10 0.5\n  20 2 # twice\n\n5 0.1 3\n");
    struct adl_profiles *profiles;
    struct adl_err err = {0};
    cr_assert_eq(adl_profiles_read(path, NULL, &profiles, &err), ADL_OK, "%s", err.message);
    unlink(path);
    const struct adl_profile *all = adl_profiles_of(profiles, 0),
                             *third = adl_profiles_of(profiles, 3);
    near(adl_profile_finish(all, 0, 4), 4, 1e-15, "before");
    near(adl_profile_finish(all, 8, 4), 14, 1e-15, "into the slow part");
    near(adl_profile_finish(all, 8, 11), 22, 1e-15, "through it");
    near(adl_profile_finish(all, 30, 11), 35.5, 1e-15, "behind");
    near(adl_profile_finish(third, 0, 6), 15, 1e-15, "one with lines of its own");
    near(adl_profile_finish(NULL, 3, 6), 9, 1e-15, "none");
    for (double start = 0; start < 30; start += 1.7)
        for (double work = 0.1; work < 30; work *= 1.9)
            near(adl_profile_work(all, start, adl_profile_finish(all, start, work)), work, 1e-12,
                 "work is the inverse");
    cr_expect_null(adl_profiles_of(NULL, 0));
    adl_profiles_free(profiles);
}

Test(profile, bad_files)
{
    const struct {
        const char *text, *said;
    } cases[] = {
        {"", "no line"},         {"1\n", ":1: '1' is not"},     {"0 1\n1 0\n", ":2: factor 0"},
        {"-1 1\n", "time -1"},   {"1 1 x\n", "is not 'time"},   {"1 1 -2\n", "device -2"},
        {"1 1\n1 2\n", "twice"}, {"1 1 2 3\n", "is not 'time"}, {"nan 1\n", "time nan"},
        {"1 inf\n", "factor"},   {"1 1 1.5\n", "device 1.5"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[40];
        write_text(path, cases[i].text);
        struct adl_profiles *profiles;
        struct adl_err err = {0};
        cr_expect_eq(adl_profiles_read(path, NULL, &profiles, &err), ADL_ERR_INPUT, "%s",
                     cases[i].text);
        cr_expect(strstr(err.message, cases[i].said), "'%s': %s", cases[i].text, err.message);
        unlink(path);
    }
    struct adl_profiles *profiles;
    struct adl_err err = {0};
    cr_expect_eq(adl_profiles_read("none", "/nowhere/", &profiles, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "/nowhere/none"), "%s", err.message);
}

/* ---- sharing ---- */

/* Two that want all of the device, one that wants a tenth; the second comes at 1 s. */
Test(share, rates_are_fair)
{
    struct adl_share share = {0};
    struct adl_job big, late, small;
    cr_assert(adl_share_add(&share, NULL, 0, 2, 2, &big));
    cr_assert(adl_share_add(&share, NULL, 0, 1, 10, &small));
    near(adl_share_predict(&share, NULL, &big), 2 / 0.9, 1e-12, "nine tenths");
    cr_assert(adl_share_add(&share, NULL, 1, 0.45, 0.45, &late));
    near(big.left_s, 1.1, 1e-12, "after a second");
    near(adl_share_predict(&share, NULL, &late), 2, 1e-12, "half of nine tenths");
    near(adl_share_predict(&share, NULL, &big), 2 + 0.65 / 0.9, 1e-12, "alone again");
    adl_share_advance(&share, NULL, 2.5);
    cr_expect(late.done && !big.done && share.n == 2);
    near(late.finish_s, 2, 1e-12, "end");
    adl_share_advance(&share, NULL, 100);
    cr_expect(big.done && small.done && share.n == 0);
    near(big.finish_s, 2 + 0.65 / 0.9, 1e-12, "end of the first");
    near(small.finish_s, 10, 1e-12, "never in anyone's way");
    adl_share_free(&share);
}

Test(share, a_device_slows_down)
{
    const double times[] = {1}, factors[] = {0.5};
    struct adl_profile profile = {-1, 1, times, factors};
    struct adl_share share = {0};
    struct adl_job a, b;
    adl_share_add(&share, &profile, 0, 1, 1, &a);
    adl_share_add(&share, &profile, 0, 2, 2, &b);
    near(adl_share_predict(&share, &profile, &a), 3, 1e-12, "half each, at half speed after 1 s");
    near(adl_share_predict(&share, &profile, &b), 5, 1e-12, "then alone");
    adl_share_free(&share);
}

/* ---- runs ---- */

/* 8 H100s; with no overhead a sample takes 6e9 x 2000 x 1e3 / 4e14 = 30 ms and 1e9 parameters are
 * 4 GB, a ring of which takes 10/6 .. of 4 GB at 450 GB/s. */
#define RUN                                                                                        \
    "transport: sim\ncollective: ring\ncluster: {platform: nvswitch-8}\n"                          \
    "device: {overhead: 0, half_samples: 0, memory: 0}\n"                                          \
    "model: {kind: quadratic, dim: 4, stand_in: {params: 1e9, tokens_per_sample: 2000}}\n"         \
    "inner: {lr: 0.1, steps: 5}\nouter: {steps: 4}\nbatch: {initial: 4, max: 64}\n"

static struct test_run run_with(const char *const *sets)
{
#if !defined ADL_HAVE_SIMGRID || !defined ADL_HAVE_YAML
    cr_skip_test("a simulated experiment needs SimGrid and libfyaml");
#endif
    struct test_run r = sim_run_text(RUN, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    free(r.records);
    return r;
}

#define RUN_WITH(...) run_with((const char *[]){__VA_ARGS__, NULL}).summary

/* Every worker's sync delay is its wait, transfer and outer step, and time is all accounted for. */
Test(device_times, sums_match)
{
    const char *cases[][6] = {
        {"method=ddp", "device.jitter=0.3"},
        {"method=diloco", "device.spread=0.2", "device.drift=0.2"},
        {"method=adloco", "device.sharing=turns", "device.stall_probability=0.1"},
        {"method=adloco", "cluster.stagger=0.01", "device.jitter=0.3"},
        {"method=adloco", "device.sharing=turns", "cluster.stagger=0.01"},
        {"method=ddp", "cluster.gpus_per_worker=4", "device.shard_overlap=0.1"},
        {"method=diloco", "cluster.gpus_per_worker=2", "device.shard_overlap=0",
         "device.drift=0.1"},
        {"method=local_sgd", "faults.rate=0.1", "faults.rounds=2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct test_run r = run_with(cases[i]);
        const struct adl_book_totals *t = &r.summary.times;
        double delay_s = t->by_time_s[ADL_TIME_WAIT] + t->by_time_s[ADL_TIME_TRANSFER] +
                         t->by_time_s[ADL_TIME_OUTER];
        near(t->sync_sum_s, delay_s, 1e-9, cases[i][0]);
        cr_expect_lt(t->residual, 1e-9);
        double all_s = delay_s + t->by_time_s[ADL_TIME_COMPUTE] + t->by_time_s[ADL_TIME_IDLE];
        near(all_s, (double)r.summary.world * r.summary.time_s, 1e-9, "all of the time");
    }
}

/* A device that slows down never shortens a run. */
Test(device_times, slower_devices_never_shorten_a_run)
{
    const char *const methods[] = {"method=ddp", "method=diloco", "method=adloco"};
    const char *const sharing[] = {"device.sharing=processor", "device.sharing=turns"};
    for (int m = 0; m < 3; m++)
        for (int s = 0; s < 2; s++) {
            double before_s = 0;
            for (double factor = 1; factor > 0.3; factor *= 0.8) {
                char text[64], path[40], set[80];
                snprintf(text, sizeof text, "0 %g 3\n0.5 %g 5\n", factor, factor);
                write_text(path, text);
                snprintf(set, sizeof set, "device.profile=%s", path);
                double time_s = RUN_WITH(methods[m], sharing[s], set).time_s;
                unlink(path);
                cr_expect(time_s >= before_s * (1 - 1e-12), "%s %s at %g: %.17g after %.17g",
                          methods[m], sharing[s], factor, time_s, before_s);
                before_s = time_s;
            }
        }
}

/* 20 steps of 4 samples of 30 ms; a profile that halves every speed from 0.6 s on. */
Test(device_times, a_profile_slows_a_run)
{
    double memory_s = 14 * 1e9 / 3.35e12; /* weights, master weights and gradients of SGD */
    double step_s = 4 * 0.03 + memory_s;
    char path[40], set[80];
    write_text(path, "0.6 0.5\n");
    snprintf(set, sizeof set, "device.profile=%s", path);
    struct adl_summary even = RUN_WITH("method=local_sgd"),
                       slow = RUN_WITH("method=local_sgd", set);
    unlink(path);
    near(even.times.compute_max_s, 20 * step_s, 1e-9, "compute");
    double synchronized = even.time_s - 20 * step_s;
    near(slow.time_s, 0.6 + 2 * (20 * step_s - 0.6) + synchronized, 0.01, "half speed after 0.6 s");
}

/* Streams that set off apart are idle first, once an epoch. */
Test(device_times, stagger)
{
    struct adl_summary s = RUN_WITH("method=adloco", "trainers=4", "cluster.stagger=0.1",
                                    "merge.policy=none", "outer.steps=2");
    near(s.times.by_time_s[ADL_TIME_IDLE], 2 * 8 * (0.1 + 0.2 + 0.3), 1e-9, "idle");
}

/* ---- gradient exchanges that overlap ---- */

static double ddp_step_s(const char *buckets, const char *batch, const char *micro)
{
    struct adl_summary s = RUN_WITH("method=ddp", buckets, batch, micro, "switch.mode=always");
    return s.time_s / 20;
}

/* 4 GB in a ring of eight take 14/8 x 4e9 / 450e9 s, and 14 latencies of 1 us each bucket. */
Test(device_times, buckets_overlap_with_the_backward_pass)
{
    double memory_s = 14 * 1e9 / 3.35e12, ring_s = 14.0 / 8 * 4e9 / 450e9, latency_s = 14e-6;
    double compute_s = 4 * 0.03, backward_s = 2.0 / 3 * compute_s;
    near(ddp_step_s("sim.ddp_buckets=1", "batch.initial=4", "batch.max=4"),
         compute_s + memory_s + ring_s + latency_s, 1e-6, "no overlap");
    /* hidden but for the last bucket */
    near(ddp_step_s("sim.ddp_buckets=8", "batch.initial=4", "batch.max=4"),
         compute_s + memory_s + ring_s / 8 + latency_s, 1e-6, "eight buckets");
    /* of four micro-batches only the last one's backward pass counts */
    cr_assert_lt(ring_s, backward_s / 4 * 7 / 8);
    near(ddp_step_s("sim.ddp_buckets=8", "batch.initial=4", "batch.max=1"),
         compute_s + memory_s + ring_s / 8 + latency_s, 1e-6, "accumulation");
}

/* Where the network is the slower one, it starts with the first bucket and never rests. */
Test(device_times, a_slow_network_hides_the_backward_pass)
{
    double memory_s = 14 * 1e9 / 3.35e12, ring_s = 14.0 / 8 * 4e9 / 450e9, latency_s = 14e-6;
    double compute_s = 4 * 0.003, backward_s = 2.0 / 3 * compute_s;
    struct adl_summary s =
        RUN_WITH("method=ddp", "sim.ddp_buckets=8", "model.stand_in.tokens_per_sample=200");
    near(s.time_s / 20, compute_s + memory_s - 7.0 / 8 * backward_s + ring_s + 8 * latency_s, 1e-6,
         "a step");
    near(s.times.by_time_s[ADL_TIME_TRANSFER] / 8 / 20,
         ring_s + 8 * latency_s - 7.0 / 8 * backward_s, 1e-6, "exposed transfer");
}

/* ---- devices of several GPUs ---- */

/* Four GPUs a worker: a quarter of the time, and gathers of 3 x 3/4 x 4 GB at 450 GB/s a
 * micro-batch beside it. */
Test(device_times, a_worker_on_four_gpus)
{
    double gather_s = 3 * 0.75 * 4e9 / 450e9 + 9e-6, memory_s = 14 * 1e9 / 4 / 3.35e12;
    struct adl_summary s = RUN_WITH("method=local_sgd", "cluster.gpus_per_worker=4",
                                    "device.shard_overlap=0", "batch.initial=8");
    cr_expect_eq(s.world, 2);
    near(s.times.compute_max_s, 20 * (2 * 0.03 + memory_s), 1e-9, "compute");
    /* two devices exchange quarters in four rings at once */
    double ring_s = 4e9 / 4 / 450e9 + 2e-6;
    near(s.times.by_time_s[ADL_TIME_TRANSFER] / 2, 20 * gather_s + 4 * ring_s, 1e-6, "transfer");
    s = RUN_WITH("method=local_sgd", "cluster.gpus_per_worker=4", "batch.initial=8");
    near(s.times.by_time_s[ADL_TIME_TRANSFER] / 2, 4 * ring_s, 1e-6, "gathers hidden");
}

Test(device_times, mfu_is_filled)
{
    struct adl_summary s = RUN_WITH("method=local_sgd");
    double flops = s.samples * 6e9 * 2000;
    near(s.mfu, flops / (8 * 989e12 * s.time_s), 1e-9, "mfu");
    s = RUN_WITH("method=local_sgd", "cluster.gpus_per_worker=4");
    near(s.mfu, s.samples * 6e9 * 2000 / (8 * 989e12 * s.time_s), 1e-9, "of all GPUs");
}
