/* SPDX-License-Identifier: Apache-2.0 */
/* The formulas agree with what was published, and a broken one does not. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/validate.h"
#include "build_config.h"
#include "core/csv.h"

#define TABLES ADL_SOURCE_DIR "/analysis/published"

static struct adl_validation validate(const struct adl_formulas *formulas)
{
    struct adl_validation v;
    struct adl_err err = {0};
    cr_assert_eq(adl_validate(TABLES, formulas, &v, &err), ADL_OK, "%s", err.message);
    return v;
}

static size_t count(const struct adl_validation *v, const char *source, enum adl_verdict verdict)
{
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        n += strstr(v->rows[i].source, source) != NULL &&
             adl_validate_verdict(&v->rows[i]) == verdict;
    return n;
}

Test(validate, all_judged_rows_pass)
{
    struct adl_validation v = validate(&adl_formulas);
    cr_expect_eq(v.n_failed, 0);
    for (size_t i = 0; i < v.n; i++)
        cr_expect_neq(adl_validate_verdict(&v.rows[i]), ADL_VERDICT_FAIL, "%s: %s: %g against %g",
                      v.rows[i].source, v.rows[i].row, v.rows[i].published, v.rows[i].ours);
    /* 30 cells each, but for the two named ones; 3 regions; 18 warm runs at 1 to 5 Gbit/s */
    cr_expect_eq(count(&v, "closed form", ADL_VERDICT_PASS), 28);
    cr_expect_eq(count(&v, "closed form", ADL_VERDICT_NONE), 2);
    cr_expect_eq(count(&v, "queue", ADL_VERDICT_PASS), 28);
    cr_expect_eq(count(&v, "INTELLECT", ADL_VERDICT_PASS), 3);
    cr_expect_eq(count(&v, "synchronization", ADL_VERDICT_PASS), 18);
    cr_expect_eq(count(&v, "synchronization", ADL_VERDICT_NONE), 27);
    cr_expect_geq(count(&v, "scaling", ADL_VERDICT_PASS), 12);
    adl_validation_free(&v);
}

Test(validate, what_is_not_judged)
{
    struct adl_validation v = validate(&adl_formulas);
    size_t named = 0;
    for (size_t i = 0; i < v.n; i++) {
        const struct adl_validate_row *r = &v.rows[i];
        const bool none = adl_validate_verdict(r) == ADL_VERDICT_NONE;
        if (strstr(r->source, "Streaming") && none) {
            named++;
            cr_expect(strstr(r->row, "B data_parallel, utilization 0.99") && r->row[0] == '1' &&
                          r->row[2] != '0',
                      "%s", r->row);
        }
        if (r->measured == ADL_MEASURED_DDP || r->measured == ADL_MEASURED_COLD)
            cr_expect(none, "%s", r->row);
        if (r->measured == ADL_MEASURED_WARM)
            cr_expect_eq(none, r->link_bit_per_s < 1e9, "%s", r->row);
    }
    cr_expect_eq(named, 4);
    adl_validation_free(&v);
}

/* ---- every formula, broken in turn, fails */

static double streaming_without_factor(const struct adl_streaming *s, double utilization)
{
    return 0.75 * adl_formulas.streaming_bandwidth(s, utilization);
}

static double queue_of_half_the_bits(const struct adl_streaming *s, double bit_per_s)
{
    return adl_formulas.streaming_queue(s, 2 * bit_per_s);
}

static double wall_clock_without_outer(const struct adl_scaling_law *law)
{
    return adl_formulas.wall_clock_s(law) - adl_formulas.outer_s(law);
}

static double outer_twice(const struct adl_scaling_law *law)
{
    return 2 * adl_formulas.outer_s(law);
}

static double ring_of_all(double P, double S, double a, double b)
{
    return adl_formulas.ring_s(P, S, a, b) * P / (P - 1);
}

static double utilization_of_sync(double compute_s, double sync_s)
{
    return 1 - 1.01 * sync_s / (compute_s + sync_s);
}

Test(validate, broken_formulas_fail)
{
    struct adl_formulas broken[6];
    const char *const source[6] = {"closed form", "queue",           "wall clock",
                                   "bound",       "synchronization", "INTELLECT"};
    for (int i = 0; i < 6; i++)
        broken[i] = adl_formulas;
    broken[0].streaming_bandwidth = streaming_without_factor;
    broken[1].streaming_queue = queue_of_half_the_bits;
    broken[2].wall_clock_s = wall_clock_without_outer;
    broken[3].outer_s = outer_twice;
    broken[4].ring_s = ring_of_all;
    broken[5].utilization = utilization_of_sync;
    for (int i = 0; i < 6; i++) {
        struct adl_validation v = validate(&broken[i]);
        cr_expect_gt(v.n_failed, 0, "%s", source[i]);
        cr_expect_gt(count(&v, source[i], ADL_VERDICT_FAIL), 0, "%s", source[i]);
        adl_validation_free(&v);
    }
}

/* The queue agrees with the closed form where it never runs dry. */
Test(validate, queue_and_closed_form)
{
    const struct adl_streaming s = {2, 1e9, 16, 0.1, 100};
    for (double utilization = 0.3; utilization < 0.985; utilization += 0.05) {
        const double bandwidth = adl_formulas.streaming_bandwidth(&s, utilization);
        cr_expect_float_eq(adl_formulas.streaming_queue(&s, bandwidth), utilization, 1e-12);
    }
    /* so fast that each bucket is gone before the next: the last one's own time is left */
    const double late_s = 16e9 / 128 / 1e14;
    cr_expect_float_eq(adl_formulas.streaming_queue(&s, 1e14), 10 / (10 + late_s), 1e-12);
}

/* ---- tables */

static enum adl_status load(const char *text, struct adl_csv **table, struct adl_err *err)
{
    char path[] = "/tmp/adloco-table-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    enum adl_status status = adl_csv_read(path, "", table, err);
    unlink(path);
    return status;
}

Test(validate, tables_are_read)
{
    struct adl_csv *t = NULL;
    struct adl_err err = {0};
    double v;
    const char *text;
    cr_assert_eq(load("# source\na,b\n\n1,x\r\n2.5e3,y", &t, &err), ADL_OK, "%s", err.message);
    cr_assert_eq(t->n_rows, 2);
    cr_expect(adl_csv_named_number(t, 1, "a", &v, &err) == ADL_OK && v == 2500);
    cr_expect(adl_csv_named(t, 0, "b", &text, &err) == ADL_OK && !strcmp(text, "x"));
    cr_expect_eq(adl_csv_named_number(t, 0, "b", &v, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, ":4:3: b: 'x' is not a finite number"), "%s", err.message);
    err = (struct adl_err){0};
    cr_expect_eq(adl_csv_named(t, 0, "c", &text, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "no column 'c'"), "%s", err.message);
    adl_csv_free(t);
}

Test(validate, broken_tables_are_refused)
{
    const struct {
        const char *text, *why;
    } cases[] = {{"a,b\n1\n", ":2:1: 1 cells in a line; the first line names 2 columns"},
                 {"a,b\n1,2,3\n", ":2:1: 3 cells in a line"},
                 {"a,b\n", "no line behind the columns' names"},
                 {"# nothing\n", "is empty"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adl_csv *t = NULL;
        struct adl_err err = {0};
        cr_expect_eq(load(cases[i].text, &t, &err), ADL_ERR_INPUT, "%s", cases[i].text);
        cr_expect(strstr(err.message, cases[i].why), "%s", err.message);
    }
    struct adl_validation v;
    struct adl_err err = {0};
    cr_expect_eq(adl_validate("/nonexistent", &adl_formulas, &v, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "/nonexistent/"), "%s", err.message);
}
