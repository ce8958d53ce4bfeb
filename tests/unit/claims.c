/* SPDX-License-Identifier: Apache-2.0 */
/* Claims judged on runs that were made up, so that the answer is known. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "analysis/claims.h"
#include "analysis/stats_gsl.h"

enum { SEEDS = 12 };

static char dir[] = "/tmp/adl-claims-XXXXXX";

static void write_text(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *out = fopen(path, "w");
    cr_assert(out);
    fputs(text, out);
    fclose(out);
}

/* Loss and exchanges of a made-up run at point i. */
typedef void curve_fn(int i, double *samples, double *exchanges, double *loss);

struct made_up {
    const char *variant, *status;
    double exchanges; /* of seed k: times 1 + k/100 */
    curve_fn *curve;
    int points;
};

static void write_run(const struct made_up *run, int id, int seed)
{
    char name[128], text[1024], *rows = NULL;
    size_t size;
    FILE *out = open_memstream(&rows, &size);
    for (int i = 0; run->curve && i < run->points; i++) {
        double samples, exchanges, loss;
        run->curve(i, &samples, &exchanges, &loss);
        fprintf(out,
                "{\"row\": \"eval\", \"round\": %d, \"loss\": %.17g, \"samples\": %.17g, "
                "\"exchanges\": %.17g, \"time_s\": %d}\n",
                i, loss, samples, exchanges, i);
    }
    fclose(out);
    snprintf(name, sizeof name, "%s/runs/%d", dir, id);
    mkdir(name, 0777);
    snprintf(name, sizeof name, "runs/%d/records.jsonl", id);
    write_text(name, rows);
    free(rows);
    snprintf(text, sizeof text,
             "{\"run_id\": \"%d\", \"variant\": \"%s\", \"seed\": %d, \"status\": \"%s\", "
             "\"exchanges\": %.17g, \"samples_useful\": 10, \"time_s\": 5, \"world\": 4, "
             "\"samples\": 20, \"sync_delay_s\": {\"sum\": 8, \"mean\": 2}}",
             id, run->variant, seed, run->status, run->exchanges * (1 + seed / 100.0));
    snprintf(name, sizeof name, "runs/%d/summary.json", id);
    write_text(name, text);
}

/* A sweep of SEEDS runs of each; all are at the point "a=1 platform=x(y=2, z)". */
static void write_sweep(const struct made_up *runs, int n)
{
    char name[64], *plan = NULL;
    size_t size;
    snprintf(name, sizeof name, "%s/runs", dir);
    mkdir(name, 0777);
    FILE *out = open_memstream(&plan, &size);
    fputs("{\"id\": \"1\", \"name\": \"made up\", \"runs\": [", out);
    for (int v = 0, id = 0; v < n; v++)
        for (int seed = 1; seed <= SEEDS; seed++, id++) {
            fprintf(out,
                    "%s{\"run_id\": \"%d\", \"variant\": \"%s\", \"point\": \"a=1 platform=x(y=2, "
                    "z)\", \"seed\": %d}",
                    id ? ", " : "", id, runs[v].variant, seed);
            write_run(&runs[v], id, seed);
        }
    fputs("]}", out);
    fclose(out);
    write_text("plan.json", plan);
    free(plan);
}

static struct adl_claim *load(const char *asks)
{
    char path[256], text[4096];
    struct adl_claim *claim = NULL;
    struct adl_err err = {0};
    snprintf(text, sizeof text,
             "claim:\n  title: t\n  says: s\n  regime: r\n  tuning: u\n  asks:\n%s", asks);
    write_text("E1.yaml", text);
    snprintf(path, sizeof path, "%s/E1.yaml", dir);
    cr_assert_eq(adl_claim_load(path, &claim, &err), ADL_OK, "%s", err.message);
    return claim;
}

static void setup(void)
{
    if (adl_gsl_check(NULL) != ADL_OK) {
        fprintf(stderr, "skipped: this build has no GSL\n");
        exit(0);
    }
    cr_assert(mkdtemp(dir));
}

static void teardown(void)
{
    char command[256];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(claims, .init = setup, .fini = teardown);

static void judge(const struct adl_claim *claim, struct adl_claim_answer *answers)
{
    struct adl_err err = {0};
    cr_assert_eq(adl_claim_judge(claim, dir, false, 0, answers, &err), ADL_OK, "%s", err.message);
}

Test(claims, points_are_matched_by_whole_keys)
{
    struct adl_claim *claim = load(
        "    - {regime: g, measure: exchanges, of: a, below: 1, at: {a: 1, p: 'x(y=2, z)'}}\n");
    const struct adl_tree *at = claim->asks[0].at;
    cr_assert(adl_claim_at(at, "a=1 p=x(y=2, z)"));
    cr_assert(adl_claim_at(at, "p=x(y=2, z) a=1 b=3"));
    cr_assert(!adl_claim_at(at, "a=10 p=x(y=2, z)"));
    cr_assert(!adl_claim_at(at, "aa=1 p=x(y=2, z)"));
    cr_assert(!adl_claim_at(at, "a=1"));
    cr_assert(adl_claim_at(NULL, "anything"));
    adl_claim_free(claim);
}

Test(claims, ratios_are_judged_against_their_threshold)
{
    const struct made_up runs[] = {{"few", "target_reached", 30, NULL, 0},
                                   {"many", "target_reached", 100, NULL, 0}};
    struct adl_claim_answer a[4];
    struct adl_claim *claim =
        load("    - {regime: g, measure: exchanges, of: few, over: many, below: 0.5}\n"
             "    - {regime: g, measure: exchanges, of: few, over: many, above: 0.5}\n"
             "    - {regime: g, measure: exchanges, of: few, over: many, below: 0.2}\n"
             "    - {regime: g, measure: sync_sample, of: few, over: many, above: 0.9}\n");
    write_sweep(runs, 2);
    judge(claim, a);
    cr_assert_eq(a[0].n, SEEDS);
    cr_assert_float_eq(a[0].estimate.value, 0.3, 1e-12);
    cr_assert_float_eq(a[0].of, 30 * 1.065, 1e-12);
    cr_assert_float_eq(a[0].over, 106.5, 1e-12);
    cr_assert(a[0].holds);
    cr_assert(!a[1].holds);
    cr_assert(!a[2].holds);
    cr_assert_float_eq(a[3].of, 8.0 / 20, 1e-12);
    cr_assert(a[3].holds);
    /* Holm over three: the smallest p times 3, the primary one is left alone */
    cr_assert_float_eq(a[3].adjusted, 3 * a[3].p, 1e-12);
    cr_assert_eq(a[0].adjusted, a[0].p);
    adl_claim_free(claim);
}

/* A value has to lie between two bounds; what is known of it decides against both. */
Test(claims, two_bounds_are_both_asked)
{
    const struct made_up runs[] = {{"few", "target_reached", 30, NULL, 0},
                                   {"many", "target_reached", 100, NULL, 0}};
    struct adl_claim_answer a[3];
    struct adl_claim *claim =
        load("    - {regime: g, measure: exchanges, of: few, over: many, above: 0.2, below: 0.5}\n"
             "    - {regime: g, measure: exchanges, of: few, over: many, above: 0.31, below: 1}\n"
             "    - {regime: g, measure: exchanges, of: few, over: many, above: 0.1, below: "
             "0.29}\n");
    char *text = NULL;
    size_t size;
    write_sweep(runs, 2);
    judge(claim, a);
    cr_assert(a[0].holds);
    cr_assert(!a[1].holds, "below the lower bound");
    cr_assert(!a[2].holds, "above the upper bound");
    FILE *out = open_memstream(&text, &size);
    adl_claims_write(&(struct adl_claim_result){.claim = claim, .answers = a}, 1, false, out);
    fclose(out);
    cr_assert(strstr(text, "and between 0.2 and 0.5 was asked: the claim holds"), "%s", text);
    free(text);
    adl_claim_free(claim);
}

Test(claims, a_run_that_fell_short_decides_by_whose_it_is)
{
    const struct made_up runs[] = {{"few", "target_reached", 30, NULL, 0},
                                   {"late", "completed", 100, NULL, 0},
                                   {"lost", "diverged", 10, NULL, 0}};
    struct adl_claim_answer a[5];
    struct adl_claim *claim =
        load("    - {regime: g, measure: exchanges, of: few, over: late, below: 0.5}\n"
             "    - {regime: g, measure: exchanges, of: late, over: few, above: 2}\n"
             "    - {regime: g, measure: throughput, of: late, above: 1.9}\n"
             "    - {regime: g, measure: throughput, of: lost, above: 1.9}\n"
             "    - {regime: g, measure: sync_event, of: late, above: 1.9}\n");
    write_sweep(runs, 3);
    judge(claim, a);
    cr_assert(a[0].holds);
    cr_assert_eq(a[0].short_over, SEEDS);
    cr_assert(!a[1].holds);
    cr_assert_eq(a[1].short_of, SEEDS);
    cr_assert(isnan(a[1].estimate.value));
    cr_assert(a[2].holds); /* asked at the end: no target has to be reached */
    cr_assert(!a[3].holds);
    cr_assert_eq(a[3].short_of, SEEDS);
    cr_assert(a[4].holds); /* a rate is what it is, wherever the run ends */
    adl_claim_free(claim);
}

Test(claims, quick_asks_the_primary_question_on_few_seeds)
{
    const struct made_up runs[] = {{"few", "target_reached", 30, NULL, 0}};
    struct adl_claim_answer a[2];
    struct adl_err err = {0};
    struct adl_claim *claim = load("    - {regime: g, measure: exchanges, of: few, below: 50}\n"
                                   "    - {regime: g, measure: exchanges, of: few, below: 40}\n");
    write_sweep(runs, 1);
    cr_assert_eq(adl_claim_judge(claim, dir, true, 3, a, &err), ADL_OK, "%s", err.message);
    cr_assert_eq(a[0].n, 3);
    cr_assert_eq(a[1].n, 0);
    cr_assert(!a[1].holds);
    cr_assert_str_eq(a[0].estimate.method, "t on logs");
    cr_assert_eq(adl_claim_judge(claim, dir, true, 1, a, &err), ADL_ERR_INPUT);
    cr_assert(strstr(err.message, "one seed has no interval"), "%s", err.message);
    adl_claim_free(claim);
}

/* ---- measures of curves */

static void logarithm(int i, double *samples, double *exchanges, double *loss)
{
    *exchanges = i;
    *samples = i ? 100 * exp(0.5 * i + 0.01 * (i % 2)) : 0;
    *loss = 1;
}

static void root(int i, double *samples, double *exchanges, double *loss)
{
    *exchanges = i;
    *samples = i * i * (1 + 0.01 * (i % 2));
    *loss = 1;
}

/* 40 steps of 100 samples; the loss is 2 and 1 by turns. */
static void saw(int i, double *samples, double *exchanges, double *loss)
{
    *samples = 100 * i;
    *exchanges = i;
    *loss = 1 + i % 2;
}

/* 100 samples an exchange. */
static void line(int i, double *samples, double *exchanges, double *loss)
{
    *exchanges = i;
    *samples = 100 * i;
    *loss = 1;
}

Test(claims, laws_are_told_apart)
{
    const struct made_up runs[] = {{"log", "completed", 1, logarithm, 20},
                                   {"root", "completed", 1, root, 20},
                                   {"line", "completed", 1, line, 20}};
    struct adl_claim_answer a[9];
    struct adl_claim *claim = load("    - {regime: g, measure: log_law, of: log, above: 10}\n"
                                   "    - {regime: g, measure: log_law, of: root, below: -10}\n"
                                   "    - {regime: g, measure: exponent, of: root, above: 0.48}\n"
                                   "    - {regime: g, measure: exponent, of: root, below: 0.52}\n"
                                   "    - {regime: g, measure: log_law, of: log, above: 10, "
                                   "window: [1, 4]}\n"
                                   "    - {regime: g, measure: log_r2, of: log, above: 0.999}\n"
                                   "    - {regime: g, measure: log_r2, of: root, below: 0.9}\n"
                                   "    - {regime: g, measure: linear_r2, of: line, above: "
                                   "0.99999}\n"
                                   "    - {regime: g, measure: linear_r2, of: root, below: "
                                   "0.97}\n");
    write_sweep(runs, 3);
    judge(claim, a);
    for (int i = 0; i < 4; i++)
        cr_assert(a[i].holds, "question %d: %g", i, a[i].estimate.value);
    for (int i = 5; i < 9; i++)
        cr_assert(a[i].holds, "question %d: %g", i, a[i].estimate.value);
    cr_assert_eq(a[4].short_of, SEEDS, "four points are too few for a law");
    adl_claim_free(claim);
}

Test(claims, roughness_and_tracking_are_those_of_the_second_half)
{
    const struct made_up runs[] = {{"fine", "completed", 1, saw, 41},
                                   {"coarse", "completed", 1, saw, 11},
                                   {"sparse", "completed", 1, saw, 6}};
    struct adl_claim_answer a[6];
    struct adl_claim *claim =
        load("    - {regime: g, measure: roughness, of: coarse, above: 0.1}\n"
             "    - {regime: g, measure: roughness, of: fine, above: 0.1}\n"
             "    - {regime: g, measure: roughness, of: sparse, above: 0.1}\n"
             "    - {regime: g, measure: tracking, of: fine, above: 0.1}\n"
             "    - {regime: g, measure: roughness, of: coarse, over: sparse, "
             "above: 0.1}\n"
             "    - {regime: g, measure: roughness, of: coarse, least: 0.5, above: 0.1}\n");
    write_sweep(runs, 3);
    judge(claim, a);
    cr_assert_float_eq(a[5].estimate.value, 1.2, 1e-9);
    /* losses 2 1 2 1 2 1: increments of mean -1/5 and variance 1.2, mean loss 1.5 */
    cr_assert_float_eq(a[0].estimate.value, 1.2 / pow(1.5, 2), 1e-9);
    /* windows of four steps see no change at all */
    cr_assert_float_eq(a[1].of, 0, 1e-12);
    cr_assert_eq(a[2].short_of, SEEDS, "two windows a step are no measurement");
    cr_assert_float_eq(a[3].of, 1.5, 1e-9);
    cr_assert_eq(a[4].unmeasured, SEEDS);
    cr_assert(!a[4].holds);
    adl_claim_free(claim);
}

Test(claims, the_report_says_what_was_asked_and_what_came_out)
{
    const struct made_up runs[] = {{"few", "target_reached", 30, NULL, 0},
                                   {"many", "target_reached", 100, NULL, 0}};
    struct adl_claim_answer a[3];
    char *text = NULL;
    size_t size;
    struct adl_claim *claim =
        load("    - {regime: here, measure: exchanges, of: few, over: many, below: 0.5}\n"
             "    - {regime: there, measure: exchanges, of: few, over: many, below: 0.2}\n"
             "    - {regime: nowhere, measure: exchanges, of: none, over: many, below: 0.2}\n");
    write_sweep(runs, 2);
    judge(claim, a);
    FILE *out = open_memstream(&text, &size);
    adl_claims_write(&(struct adl_claim_result){.claim = claim, .answers = a}, 1, false, out);
    fclose(out);
    cr_assert(strstr(text, "the ratio is 0.3 (95% from 0.3 to 0.3, BCa bootstrap), and below 0.5 "
                           "was asked: the claim holds. It does not hold in 1 of 1 secondary"),
              "%s", text);
    cr_assert(strstr(text, "| nowhere | exchanges to the target, none over many | - / - | - | "
                           "below 0.2 | - | not run |"),
              "%s", text);
    free(text);
    adl_claim_free(claim);
}
