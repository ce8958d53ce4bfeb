/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated run that was stopped after any epoch and resumed: the clock goes on from where it
 * stood, so that times are those of the run that never stopped, also where speeds change with
 * time. Without the engine to the bit; its clock has a grain of 1 ns. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "resume_helper.h"
#include "sim_runs.h"

static char dir[] = "/tmp/adloco-sim-resume-XXXXXX", profile_set[64], links_set[64];

static void write_file(const char *name, const char *text, const char *key, char set[64])
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(set, 64, "%s=%s", key, name);
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
}

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
    write_file("devices.txt", "0.02 0.5\n0.05 0.25 3\n0.08 0.8\n", "device.profile", profile_set);
    write_file("links.txt", "0.01 * 1e-4\n0.05 * 2e-5\n0.08 * 1e-3\n", "sim.profile", links_set);
}

static void remove_dir(void)
{
    test_remove(dir);
}

TestSuite(sim_resume, .init = make_dir, .fini = remove_dir);

static struct test_run run(const char *const *sets, enum adl_run_mode mode, int epochs)
{
    struct resume_stop stop = {.left = epochs};
    struct adl_run_observer observer = {.stop = resume_told_to_stop, .arg = &stop};
    return sim_run_in(dir, RESUME_EXPERIMENT, sets, mode, &observer);
}

/* Every number of every row: times within `grain_s`, the others to the bit. */
static void expect_same_rows(const struct test_run *whole, const struct test_run *rest,
                             double grain_s, const char *what)
{
    static const char *const rows[] = {"round", "sync", "merge", "eval"};
    static const char *const times[] = {"time_s", "start_s", "end_s"};
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
        for (int i = 0; i < test_count_records(whole, rows[r]); i++)
            for (size_t k = 0; k < sizeof times / sizeof *times; k++) {
                double x = test_record(whole, rows[r], i, times[k]);
                double y = test_record(rest, rows[r], i, times[k]);
                cr_assert(identity_same_number(x, y) || fabs(x - y) <= grain_s,
                          "%s: %s %d: %s %.17g and %.17g", what, rows[r], i, times[k], x, y);
            }
}

/* Sums over workers and rounds: as many grains as workers and rounds. What a returning device
 * receives before a resumed run's first epoch is transfer, without the stop idleness. */
static void expect_same_totals(const struct adl_book_totals *whole,
                               const struct adl_book_totals *rest, double grain_s, const char *what)
{
    double sum_s = 0, slack_s;
    for (int t = 0; t < ADL_N_TIMES; t++)
        sum_s += whole->by_time_s[t];
    slack_s = 16 * 9 * grain_s + 1e-12 * sum_s;
    for (int t = 0; t < ADL_TIME_TRANSFER; t++)
        cr_assert_float_eq(rest->by_time_s[t], whole->by_time_s[t], slack_s, "%s: %s %g and %g",
                           what, adl_time_names[t], whole->by_time_s[t], rest->by_time_s[t]);
    cr_assert_float_eq(rest->by_time_s[ADL_TIME_TRANSFER] + rest->by_time_s[ADL_TIME_IDLE],
                       whole->by_time_s[ADL_TIME_TRANSFER] + whole->by_time_s[ADL_TIME_IDLE],
                       slack_s, "%s", what);
    cr_assert_float_eq(rest->busy_s, whole->busy_s, slack_s, "%s", what);
}

/* Stopped after each number of epochs. */
static void expect_resumes(const char *const *sets, double grain_s)
{
#if !defined ADL_HAVE_SIMGRID || !defined ADL_HAVE_YAML
    cr_skip_test("a simulated experiment needs SimGrid and libfyaml");
#endif
    char difference[300];
    struct test_run whole = run(sets, ADL_RUN_OVERWRITE, 0);
    cr_assert_eq(whole.status, ADL_OK, "%s: %s", sets[1], whole.err.message);
    int epochs = 1;
    for (;; epochs += 2) {
        struct test_run part = run(sets, ADL_RUN_OVERWRITE, epochs);
        free(part.records);
        if (part.status != ADL_ERR_CANCELLED)
            break;
        struct test_run rest = run(sets, ADL_RUN_RESUME, 0);
        cr_assert_eq(rest.status, ADL_OK, "%s: %s", sets[1], rest.err.message);
        cr_assert(resume_same(&whole, &rest, difference, sizeof difference), "%s after %d: %s",
                  sets[1], epochs, difference);
        expect_same_rows(&whole, &rest, grain_s, sets[1]);
        cr_assert_float_eq(rest.summary.time_s, whole.summary.time_s, grain_s);
        cr_assert_lt(rest.summary.times.residual, 1e-9, "%s", sets[1]);
        expect_same_totals(&whole.summary.times, &rest.summary.times, grain_s, sets[1]);
        free(rest.records);
    }
    cr_assert_gt(epochs, 3, "%s", sets[1]);
    free(whole.records);
}

Test(sim_resume, to_the_bit_without_the_engine)
{
    const char *cases[][6] = {
        {"transport=sim", "method=diloco", "sim.fidelity=analytic", profile_set},
        {"transport=sim", "method=adloco", "sim.fidelity=analytic", profile_set,
         "cluster.workers_per_device=1"},
        {"transport=sim", "method=ddp", "sim.fidelity=analytic", "device.jitter=0.1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_resumes(cases[i], 0);
}

Test(sim_resume, to_the_grain_of_the_engine)
{
    const char *cases[][6] = {
        {"transport=sim", "method=adloco", "cluster.workers_per_device=2", profile_set},
        {"transport=sim", "method=diloco", "trainers=2", links_set, "model.stand_in.params=1e4"},
        {"transport=sim", "method=diloco", links_set, "model.stand_in.params=1e4",
         "faults.events=[{device: 3, round: 2, for: 3}, {device: 0, round: 4}]"},
        {"transport=sim", "method=adloco", "device.sharing=turns", "cluster.stagger=1us",
         "merge.every=2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_resumes(cases[i], 1e-8);
}
