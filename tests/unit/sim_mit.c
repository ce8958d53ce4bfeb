/* SPDX-License-Identifier: Apache-2.0 */
/* Multi-instance training: K streams on a device, each computing Tc and synchronizing Ts a round.
 * How much more they get done than one does follows laws (queues of one server and K customers),
 * which keys alone reach:
 *
 *   device.sharing: turns     one stream computes at a time; cluster.stagger sets them apart
 *   device.sharing: processor all at once, at a share of the speed
 *   device.jitter_law         exponential: a step's time, and with inner.steps: 1 a round's
 *   merge.policy, merge.every an epoch as long as the run: trainers that meet never get apart
 *   the platform's network    latency: no stream is in another's way; bandwidth: they share it */
#include <criterion/criterion.h>

#include "sim_runs.h"

/* Two devices; the second one speed_factor times as fast. */
static void write_platform(char path[32], double bandwidth, double latency_s, double speed_factor)
{
    strcpy(path, "/tmp/adloco-mit-XXXXXX");
    FILE *out = fdopen(mkstemp(path), "w");
    fprintf(out,
            "<?xml version=\"1.0\"?>\n"
            "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n"
            "<host id=\"g0\" speed=\"1Tf\"/><host id=\"g1\" speed=\"%.17gTf\"/>\n"
            "<link id=\"l\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" "
            "sharing_policy=\"SPLITDUPLEX\"/>\n"
            "<route src=\"g0\" dst=\"g1\" symmetrical=\"NO\"><link_ctn id=\"l\" "
            "direction=\"UP\"/></route>\n"
            "<route src=\"g1\" dst=\"g0\" symmetrical=\"NO\"><link_ctn id=\"l\" "
            "direction=\"DOWN\"/></route>\n"
            "</zone></platform>\n",
            speed_factor, bandwidth, latency_s);
    fclose(out);
}

struct setup {
    const char *sharing, *law;
    double Ts;    /* Tc is 1 s */
    bool network; /* Ts by a bandwidth that streams share, else by a latency that they do not */
    int rounds;
    double stagger, half_samples, speed_factor;
};

/* Samples a second of K streams. A sample is 1e12 flops, a vector 4 MB; a ring of two takes two
 * latencies and moves the whole vector each way. */
static double throughput(const struct setup *s, int K)
{
#if !defined ADL_HAVE_SIMGRID || !defined ADL_HAVE_YAML
    cr_skip_test("a simulated experiment needs SimGrid and libfyaml");
#endif
    char platform[32], sets[14][96];
    const char *list[15] = {0};
    write_platform(platform, s->network ? 4e6 / s->Ts : 1e15, s->network ? 1e-6 : s->Ts / 2,
                   s->speed_factor > 0 ? s->speed_factor : 1);
    int n = 0;
#define SET(...) snprintf(sets[n++], sizeof sets[0], __VA_ARGS__)
    SET("cluster.platform=%s", platform);
    SET("cluster.workers_per_device=%d", K);
    SET("trainers=%d", K);
    SET("merge.policy=worst_with_worst");
    SET("merge.every=%d", s->rounds);
    SET("outer.steps=%d", s->rounds);
    SET("device.sharing=%s", s->sharing);
    SET("device.jitter_law=%s", s->law ? s->law : "lognormal");
    SET("device.half_samples=%g", s->half_samples);
    SET("cluster.stagger=%g", s->stagger);
#undef SET
    for (int i = 0; i < n; i++)
        list[i] = sets[i];
    struct test_run r = sim_run_text(
        "transport: sim\ncollective: ring\nmethod: local_sgd\ninner.steps: 1\n"
        "device: {overhead: 0}\n"
        "model: {kind: quadratic, dim: 2, stand_in: {params: 1e6, tokens_per_sample: 166666.67}}\n",
        list);
    unlink(platform);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    cr_assert_lt(r.summary.times.residual, 1e-9);
    free(r.records);
    return r.summary.samples / r.summary.time_s;
}

static void expect_gain(const struct setup *s, int K, double law)
{
    double gain = throughput(s, K) / throughput(s, 1);
    cr_expect_float_eq(gain, law, 0.03 * law, "%s, K = %d, Ts = %g: %g, not %g", s->sharing, K,
                       s->Ts, gain, law);
}

/* Staggered streams in turns: one synchronizes while others compute, until the device is full. */
Test(mit, turns_gain_up_to_a_full_device)
{
    static const struct {
        int K;
        double Ts;
    } cases[] = {{2, 1}, {2, 3}, {4, 1}, {4, 0.3}, {8, 3}, {2, 0.05}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup s = {.sharing = "turns", .Ts = cases[i].Ts, .rounds = 200, .stagger = 1};
        expect_gain(&s, cases[i].K, fmin(cases[i].K, 1 + cases[i].Ts));
    }
}

/* In phase on a shared device everyone synchronizes while nobody computes. */
Test(mit, in_phase_at_shared_speed)
{
    static const struct {
        int K;
        double Ts;
    } cases[] = {{2, 1}, {4, 1}, {8, 1}, {2, 2}, {4, 0.3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup s = {.sharing = "processor", .Ts = cases[i].Ts, .rounds = 50};
        int K = cases[i].K;
        expect_gain(&s, K, K * (1 + s.Ts) / (K + s.Ts));
    }
}

/* Set apart, streams that share the speed overlap as those in turns do. */
Test(mit, staggered_at_shared_speed)
{
    struct setup s = {.sharing = "processor", .Ts = 1, .rounds = 200, .stagger = 1};
    expect_gain(&s, 2, 2);
}

/* Whose network is shared in phase as well gains nothing. */
Test(mit, in_phase_on_a_shared_network)
{
    struct setup s = {.sharing = "processor", .Ts = 1, .network = true, .rounds = 50};
    expect_gain(&s, 2, 1);
    expect_gain(&s, 4, 1);
    s.Ts = 0.3;
    expect_gain(&s, 8, 1);
}

/* In turns a shared network bounds utilization by Tc / max(Tc, Ts). */
Test(mit, turns_on_a_shared_network)
{
    struct setup s = {.sharing = "turns", .Ts = 2, .network = true, .rounds = 300, .stagger = 1};
    expect_gain(&s, 4, (1 + s.Ts) / s.Ts);
    s.Ts = 0.5;
    expect_gain(&s, 4, 1 + s.Ts);
}

/* Exponential times of computing, the synchronization as it is (its law does not matter): the
 * machine repair model. The second device is fast, so that nobody waits for it. */
Test(mit, exponential_times)
{
    static const struct {
        int K;
        double Ts;
    } cases[] = {{2, 1}, {4, 1}, {4, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct setup s = {.sharing = "turns",
                          .law = "exponential",
                          .Ts = cases[i].Ts,
                          .rounds = 6000,
                          .speed_factor = 1e6};
        double U[2];
        for (int k = 0; k < 2; k++) {
            int K = k ? cases[i].K : 1;
            double term = 1, sum = 1;
            for (int j = 1; j <= K; j++)
                sum += term *= (K - j + 1) / s.Ts;
            U[k] = 1 - 1 / sum;
        }
        expect_gain(&s, cases[i].K, U[1] / U[0]);
    }
}

/* A device that one stream of a sample fills to a fifth takes five at once for nothing. */
Test(mit, an_underfilled_device)
{
    struct setup s = {.sharing = "processor", .Ts = 1e-3, .rounds = 50, .half_samples = 4};
    expect_gain(&s, 2, 2);
    expect_gain(&s, 5, 5);
    expect_gain(&s, 8, 5);
}
