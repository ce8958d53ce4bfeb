/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax regression: tables that are wrong, the optimum, the constants, who draws which sample. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/rng.h"
#include "core/csv.h"
#include "kernels/model_logistic.h"
#include "run_helper.h"

static struct adl_logistic_config mixture(void)
{
    return (struct adl_logistic_config){.data = "synthetic",
                                        .label = "",
                                        .standardise = true,
                                        .l2 = 0.02,
                                        .classes = 3,
                                        .features = 5,
                                        .samples = 90,
                                        .separation = 1.5,
                                        .data_seed = 7};
}

static struct adl_model *open_it(const struct adl_logistic_config *config, const char *dir)
{
    const struct adl_model_env env = {.seed = 1, .n_workers = 4, .n_lanes = 1, .base_dir = dir};
    struct adl_err err = {0};
    struct adl_model *model = NULL;
    cr_assert_eq(adl_model_logistic.open(config, &env, &model, &err), ADL_OK, "%s", err.message);
    return model;
}

static void write_text(const char *dir, const char *text)
{
    char path[64];
    snprintf(path, sizeof path, "%s/d.csv", dir);
    FILE *out = fopen(path, "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

/* ---- tables */

Test(logistic, wrong_tables_are_named_by_place)
{
    static const struct {
        const char *text, *label, *says;
    } cases[] = {
        {"", "", "d.csv: is empty"},
        {"# nothing\n\n", "", "d.csv: is empty"},
        {"a,b\n", "", "d.csv:2:1: no line behind"},
        {"a,b,y\n1,2,x\n1,2\n", "", "d.csv:3:1: 2 cells in a line; the first line names 3"},
        {"a,b,y\n1,2,x\n\n1,2,3,z\n", "", "d.csv:4:1: 4 cells"},
        {"a,,y\n1,2,x\n", "", "d.csv:1:3: '' where a column's name is needed"},
        {"1,2,x\n1,2,y\n", "", "d.csv:1:1: '1' where a column's name is needed"},
        {"a,a,y\n1,2,x\n", "", "d.csv:1:3: a second column 'a'"},
        {"a,b,y\n1,two,x\n", "", "d.csv:2:3: b: 'two' is not a finite number"},
        {"a,b,y\n1,nan,x\n", "", "d.csv:2:3: b: 'nan' is not a finite number"},
        {"a,b,y\n1,,x\n", "", "d.csv:2:3: b: '' is not a finite number"},
        {"a,b,y\n1, 1e999,x\n", "", "d.csv:2:4: b: '1e999' is not a finite number"},
        {"a,b,y\n1,2,x\n3,4,\n", "", "d.csv:3:5: y: a class is missing"},
        {"a,b,y\n1,2,x\n3,4,x\n", "", "d.csv:2:5: y: 'x' is the only class"},
        {"a,b,y\n1,2,x\n3,4,z\n", "c", "d.csv:1:1: no column 'c', which model.label names"},
        {"a,b,y\n1,2,\"x\n", "", "d.csv:2:5: a quote that does not end"},
        {"a,b,y\n1,\"2\"0,x\n", "", "d.csv:2:6: '0' behind a closing quote"},
        {"a,b\n1,\xff\n", "", "is not valid UTF-8"},
    };
    char dir[] = "/tmp/adloco-test-XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct adl_logistic_config config = mixture();
        const struct adl_model_env env = {.seed = 1, .n_workers = 4, .n_lanes = 1, .base_dir = dir};
        struct adl_model *model = NULL;
        struct adl_err err = {0};
        config.data = "d.csv";
        config.label = cases[i].label;
        write_text(dir, cases[i].text);
        cr_expect_eq(adl_model_logistic.open(&config, &env, &model, &err), ADL_ERR_INPUT);
        cr_expect(strstr(err.message, cases[i].says), "'%s' is not in '%s'", cases[i].says,
                  err.message);
    }
    test_remove(dir);
}

Test(logistic, reads_what_programs_write)
{
    char dir[] = "/tmp/adloco-test-XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    write_text(dir, "\xef\xbb\xbf\"the \"\"class\"\"\", a , \"b\"\r\n# a remark\r\nx y,1,\"-2\"\r\n"
                    "\r\nz , 3e0,\t4 \r\n\"x y\",5,6");
    struct adl_csv *csv = NULL;
    struct adl_err err = {0};
    double number;
    cr_assert_eq(adl_csv_read("d.csv", dir, &csv, &err), ADL_OK, "%s", err.message);
    cr_expect_eq(csv->n_columns, 3);
    cr_expect_eq(csv->n_rows, 3);
    cr_expect_eq(adl_csv_find(csv, "the \"class\""), 0);
    cr_expect_eq(adl_csv_find(csv, "b"), 2);
    cr_expect_eq(adl_csv_find(csv, "c"), 3);
    cr_expect_str_eq(adl_csv_cell(csv, 1, 0)->text, "z");
    cr_expect_eq(adl_csv_cell(csv, 1, 0)->line, 5);
    cr_assert_eq(adl_csv_number(csv, 0, 2, -3, 3, &number, &err), ADL_OK, "%s", err.message);
    cr_expect_eq(number, -2.0);
    cr_assert_eq(adl_csv_number(csv, 1, 2, -3, 3, &number, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "d.csv:5:10: b: '4' is not a finite number from -3 to 3"), "%s",
              err.message);
    adl_csv_free(csv);

    struct adl_logistic_config config = mixture();
    config.data = "d.csv";
    config.label = "the \"class\"";
    struct adl_model *model = open_it(&config, dir);
    cr_expect_eq(adl_model_logistic.n_params(model), 2 * 3);
    adl_model_logistic.close(model);
    test_remove(dir);
}

/* ---- optimum and constants */

/* One constant feature and classes 3 : 1: by symmetry W = (u, -u), f a function of u alone. */
Test(logistic, optimum_of_two_classes_by_bisection)
{
    char dir[] = "/tmp/adloco-test-XXXXXX";
    cr_assert_not_null(mkdtemp(dir));
    write_text(dir, "a,y\n5,x\n5,x\n5,z\n5,x\n");
    struct adl_logistic_config config = mixture();
    config.data = "d.csv";
    config.l2 = 0.3;
    struct adl_model *model = open_it(&config, dir);
    struct adl_problem problem = {0};
    cr_assert_eq(adl_model_logistic.problem(model, &problem, NULL), ADL_OK);
    double low = 0, high = 5, u = 0;
    for (int i = 0; i < 100; i++) {
        u = 0.5 * (low + high);
        const double p = 1 / (1 + exp(-2 * u));
        *((p - 0.75) + config.l2 * u < 0 ? &low : &high) = u;
    }
    const double p = 1 / (1 + exp(-2 * u));
    const double least = -0.75 * log(p) - 0.25 * log(1 - p) + config.l2 * u * u;
    cr_expect_float_eq(problem.D2, 2 * u * u, 1e-14);
    cr_expect_float_eq(problem.d0, log(2) - least, 1e-15);
    cr_expect_float_eq(problem.L, 0.5 + 0.3, 1e-15);
    cr_expect_eq(problem.mu, 0.3);
    cr_expect_float_eq(problem.s2, 2, 1e-15);
    /* a sample's gradient is +-(q, -q), q = 1 - p or p */
    const double mean = 0.75 * (p - 1) + 0.25 * p;
    const double square = 0.75 * (p - 1) * (p - 1) + 0.25 * p * p;
    cr_expect_float_eq(problem.s2_optimum, 2 * (square - mean * mean), 1e-14);
    adl_model_logistic.close(model);
    test_remove(dir);
}

struct moments { /* of a sample's gradient */
    double mean[3 * 6], variance;
};

/* From n draws of one worker. */
static struct moments sampled(struct adl_model *model, const double *theta, int worker, uint64_t n)
{
    struct moments m = {.variance = 0};
    double square = 0, loss = 0;
    for (uint64_t i = 0; i < n; i++) {
        double g[3 * 6] = {0};
        const struct adl_samples one = {3, i, 1, i, 1};
        adl_model_logistic.add_grad(model, 0, worker, theta, &one, g, &loss, NULL);
        for (int j = 0; j < 18; j++) {
            m.mean[j] += g[j] / (double)n;
            square += g[j] * g[j] / (double)n;
        }
    }
    m.variance = square;
    for (int j = 0; j < 18; j++)
        m.variance -= m.mean[j] * m.mean[j];
    return m;
}

/* The gradient of eval, by differences. */
static void slope(struct adl_model *model, const double *theta, double *out)
{
    double x[18], up, down;
    memcpy(x, theta, sizeof x);
    for (int j = 0; j < 18; j++) {
        x[j] = theta[j] + 1e-5;
        adl_model_logistic.eval(model, x, &up, NULL);
        x[j] = theta[j] - 1e-5;
        adl_model_logistic.eval(model, x, &down, NULL);
        x[j] = theta[j];
        out[j] = (up - down) / 2e-5;
    }
}

static void random_point(double *theta, uint64_t number, double scale)
{
    const struct adl_rng rng = adl_rng_make(5, ADL_RNG_TEST, number, 0);
    adl_rng_normals(&rng, 0, 18, theta);
    for (int j = 0; j < 18; j++)
        theta[j] *= scale;
}

/* Steps of 1/L end where f - f* is 0: f* is the least there is. */
static void descend(struct adl_model *model, double L, double *theta)
{
    double g[18];
    for (int k = 0; k < 1500; k++) {
        slope(model, theta, g);
        for (int j = 0; j < 18; j++)
            theta[j] -= g[j] / L;
    }
}

Test(logistic, constants_bound_what_they_should)
{
    struct adl_logistic_config config = mixture();
    struct adl_model *model = open_it(&config, ".");
    struct adl_problem problem = {0};
    double best[18] = {0}, theta[18], g[18], loss;
    cr_assert_eq(adl_model_logistic.problem(model, &problem, NULL), ADL_OK);
    cr_assert_eq(adl_model_logistic.eval(model, best, &loss, NULL), ADL_OK);
    cr_expect_eq(loss, problem.d0);
    descend(model, problem.L, best);
    adl_model_logistic.eval(model, best, &loss, NULL);
    cr_expect_float_eq(loss, 0, 1e-12);
    cr_expect_float_eq(sampled(model, best, 0, 40000).variance, problem.s2_optimum,
                       0.03 * problem.s2_optimum);
    for (uint64_t i = 0; i < 30; i++) {
        random_point(theta, i, i % 3 == 0 ? 0.1 : i % 3 == 1 ? 1 : 10);
        double distance = 0, norm = 0;
        adl_model_logistic.eval(model, theta, &loss, NULL);
        slope(model, theta, g);
        for (int j = 0; j < 18; j++) {
            distance += pow(theta[j] - best[j], 2);
            norm += g[j] * g[j];
        }
        cr_expect_geq(loss, 0.5 * problem.mu * distance * (1 - 1e-6));
        cr_expect_leq(loss, 0.5 * problem.L * distance);
        cr_expect_leq(norm, 2 * problem.L * loss * (1 + 1e-6));
        cr_expect_leq(sampled(model, theta, 0, 3000).variance, problem.s2);
    }
    adl_model_logistic.close(model);
}

/* Workers draw from their own functions, whose average is what eval tells. */
static void check_draws(double skew)
{
    struct adl_logistic_config config = mixture();
    config.label_skew = skew;
    struct adl_model *model = open_it(&config, ".");
    double theta[18], want[18], mean[18] = {0}, apart = 0;
    random_point(theta, 100, 0.3);
    slope(model, theta, want);
    struct moments m[4];
    for (int worker = 0; worker < 4; worker++) {
        m[worker] = sampled(model, theta, worker, 20000);
        for (int j = 0; j < 18; j++) {
            mean[j] += m[worker].mean[j] / 4;
            apart = fmax(apart, fabs(m[worker].mean[j] - m[0].mean[j]));
        }
    }
    for (int j = 0; j < 18; j++)
        cr_expect_float_eq(mean[j], want[j], 0.02, "skew %g, parameter %d: %g, not %g", skew, j,
                           mean[j], want[j]);
    cr_expect(skew > 0 ? apart > 0.2 : apart == 0, "skew %g: %g apart", skew, apart);
    cr_expect_eq(adl_model_logistic.heterogeneous(model), skew > 0);
    adl_model_logistic.close(model);
}

Test(logistic, workers_draw_from_what_is_evaluated)
{
    check_draws(0);
    check_draws(0.5);
    check_draws(1);
}

Test(logistic, the_problem_is_one_over_seeds)
{
    struct adl_logistic_config config = mixture();
    struct adl_problem problems[3] = {0};
    for (int i = 0; i < 3; i++) {
        config.data_seed = i == 2 ? 8 : 7;
        const struct adl_model_env env = {
            .seed = (uint64_t)(1 + i), .n_workers = 4, .n_lanes = 1, .base_dir = "."};
        struct adl_model *model = NULL;
        cr_assert_eq(adl_model_logistic.open(&config, &env, &model, NULL), ADL_OK);
        adl_model_logistic.problem(model, &problems[i], NULL);
        adl_model_logistic.close(model);
    }
    cr_expect_eq(problems[0].d0, problems[1].d0);
    cr_expect_neq(problems[0].d0, problems[2].d0);
}

/* ---- a run */

Test(logistic, skewed_workers_stall_where_others_arrive)
{
    const char *yaml = "transport: threads\ncluster.workers: 4\nmethod: local_sgd\n"
                       "model: {kind: logistic, samples: 200, features: 4, l2: 0.02}\n"
                       "inner: {lr: 0.3, steps: 32}\nouter.steps: 300\n"
                       "batch.initial: 256\nseed: 2\n";
    const char *const skewed[] = {"model.label_skew=0.9", NULL};
    struct test_run even = test_run_text(yaml, NULL), skew = test_run_text(yaml, skewed);
    cr_assert_eq(even.status, ADL_OK, "%s", even.err.message);
    cr_assert_eq(skew.status, ADL_OK, "%s", skew.err.message);
    cr_expect_lt(even.summary.loss_final, 1e-3);
    cr_expect_gt(skew.summary.loss_final, 10 * even.summary.loss_final);
    free(even.records);
    free(skew.records);
}
