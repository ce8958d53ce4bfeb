/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "kernels/model_quadratic.h"
#include "kernels/nqm.h"

static const struct adl_model_ops *const ops = &adl_model_quadratic;
enum { D = 300, WORKERS = 3 }; /* more than one chunk of normals */

static struct adl_quadratic_config defaults(void)
{
    return (struct adl_quadratic_config){
        .dim = D,
        .condition = 100,
        .spectrum = ADL_SPECTRUM_LOG,
        .power = 1,
        .lipschitz = 2,
        .noise_kind = ADL_NOISE_CURVATURE,
        .noise_total = 3,
        .start = 1.5,
    };
}

static struct adl_model *open_seeded(const struct adl_quadratic_config *config, uint64_t seed)
{
    const struct adl_model_env env = {
        .seed = seed, .n_workers = WORKERS, .n_lanes = 1, .base_dir = "."};
    struct adl_model *model = NULL;
    struct adl_err err = {0};
    cr_assert_eq(ops->open(config, &env, &model, &err), ADL_OK, "%s", err.message);
    return model;
}

static struct adl_model *open_model(const struct adl_quadratic_config *config)
{
    return open_seeded(config, 5);
}

static void point(double x[D])
{
    for (int i = 0; i < D; i++)
        x[i] = sin(1.0 + i);
}

/* grad and *loss += micro-batch [first, +count) of the slice [slice, +of). */
static void add(struct adl_model *model, int worker, const double *x, uint64_t first,
                uint64_t count, uint64_t slice, uint64_t of, double *grad, double *loss)
{
    const struct adl_samples samples = {
        .stream = 9, .first = first, .count = count, .slice_first = slice, .slice_count = of};
    cr_assert_eq(ops->add_grad(model, 0, worker, x, &samples, grad, loss, NULL), ADL_OK);
}

static double eval(struct adl_model *model, const double *x)
{
    double loss;
    cr_assert_eq(ops->eval(model, x, &loss, NULL), ADL_OK);
    return loss;
}

Test(quadratic, gradient_is_the_losss_slope)
{
    for (int spread = 0; spread <= 1; spread++) {
        struct adl_quadratic_config config = defaults();
        config.noise_total = 0;
        config.hetero_curvature = 0.5 * spread;
        config.hetero_shift = 2.0 * spread;
        struct adl_model *model = open_model(&config);
        double x[D], g[D], average[D] = {0}, unused[D] = {0};
        point(x);
        for (int worker = 0; worker < WORKERS; worker++) {
            double loss = 0;
            memset(g, 0, sizeof g);
            add(model, worker, x, 0, 1, 0, 1, g, &loss);
            for (int i = 0; i < D; i += 23) {
                double up = 0, down = 0, there[D];
                memcpy(there, x, sizeof x);
                there[i] += 1e-3;
                add(model, worker, there, 0, 1, 0, 1, unused, &up);
                there[i] -= 2e-3;
                add(model, worker, there, 0, 1, 0, 1, unused, &down);
                cr_assert_float_eq(g[i], (up - down) / 2e-3, 1e-8, "worker %d, %d", worker, i);
            }
            for (int i = 0; i < D; i++)
                average[i] += g[i] / WORKERS;
        }
        for (int i = 0; i < D; i += 23) { /* what is judged is what the workers descend together */
            double there[D];
            memcpy(there, x, sizeof x);
            there[i] += 1e-3;
            const double up = eval(model, there);
            there[i] -= 2e-3;
            cr_assert_float_eq(average[i], (up - eval(model, there)) / 2e-3, 1e-8);
        }
        ops->close(model);
    }
}

Test(quadratic, workers_differ_only_where_told)
{
    struct adl_quadratic_config config = defaults();
    double x[D], g[WORKERS][D] = {{0}}, loss[WORKERS] = {0};
    point(x);
    struct adl_model *model = open_model(&config);
    for (int w = 0; w < WORKERS; w++)
        add(model, w, x, 40, 4, 40, 4, g[w], &loss[w]);
    cr_expect_not(ops->heterogeneous(model));
    cr_expect(memcmp(g[0], g[2], sizeof g[0]) == 0 && loss[0] == loss[2]);
    cr_expect_float_eq(loss[0], 4 * eval(model, x), 1e-12);
    ops->close(model);

    config.hetero_shift = 0.1;
    model = open_model(&config);
    cr_expect(ops->heterogeneous(model));
    cr_expect_gt(eval(model, x), 0.0);
    memset(g, 0, sizeof g);
    for (int w = 0; w < WORKERS; w++)
        add(model, w, x, 40, 4, 40, 4, g[w], &loss[w]);
    cr_expect_neq(g[0][0], g[2][0]);
    ops->close(model);
}

/* Three micro-batches of one slice, onto a gradient that is not 0. */
static void split(const struct adl_quadratic_config *config, double whole[D], double parts[D],
                  double loss[2])
{
    struct adl_model *model = open_model(config);
    double x[D];
    point(x);
    for (int i = 0; i < D; i++)
        whole[i] = parts[i] = 7.0 + i;
    loss[0] = loss[1] = 3.0;
    add(model, 1, x, 20, 10, 20, 10, whole, &loss[0]);
    add(model, 1, x, 20, 5, 20, 10, parts, &loss[1]);
    add(model, 1, x, 25, 1, 20, 10, parts, &loss[1]);
    if (config->draw == ADL_DRAW_BATCH)
        for (int i = 0; i < D; i++)
            cr_assert_eq(parts[i], 7.0 + i, "all of a slice comes with its last micro-batch");
    add(model, 1, x, 26, 4, 20, 10, parts, &loss[1]);
    ops->close(model);
}

Test(quadratic, splits_into_micro_batches)
{
    for (int noise = 0; noise <= 1; noise++) {
        struct adl_quadratic_config config = defaults();
        config.noise_multiplicative = 0.5 * noise;
        double whole[D], parts[D], loss[2];
        split(&config, whole, parts, loss);
        cr_expect(memcmp(whole, parts, sizeof whole) == 0, "to the bit");
        cr_expect_eq(loss[0], loss[1]);
        cr_expect_neq(whole[0], 7.0);

        config.draw = ADL_DRAW_SAMPLE;
        split(&config, whole, parts, loss);
        for (int i = 0; i < D; i++)
            cr_assert_float_eq(whole[i], parts[i], 1e-12 * fabs(whole[i]));
        cr_expect_float_eq(loss[0], loss[1], 1e-12 * loss[0]);
    }
}

/* The same ten samples on one worker and on three. */
Test(quadratic, splits_over_workers_where_drawn_by_sample)
{
    struct adl_quadratic_config config = defaults();
    config.draw = ADL_DRAW_SAMPLE;
    config.noise_multiplicative = 0.5;
    struct adl_model *model = open_model(&config);
    double x[D], one[D] = {0}, three[D] = {0}, loss[2] = {0};
    point(x);
    add(model, 0, x, 20, 10, 20, 10, one, &loss[0]);
    add(model, 0, x, 20, 2, 20, 2, three, &loss[1]);
    add(model, 1, x, 22, 5, 22, 5, three, &loss[1]);
    add(model, 2, x, 27, 3, 27, 3, three, &loss[1]);
    for (int i = 0; i < D; i++)
        cr_assert_float_eq(one[i], three[i], 1e-12 * (1 + fabs(one[i])));
    ops->close(model);
}

Test(quadratic, noise_is_addressed)
{
    struct adl_quadratic_config config = defaults();
    double x[D], g[4][D] = {{0}}, loss = 0;
    point(x);
    struct adl_model *model = open_model(&config), *other = open_seeded(&config, 6);
    add(model, 0, x, 20, 2, 20, 2, g[0], &loss);
    add(model, 0, x, 20, 2, 20, 2, g[1], &loss);
    add(model, 0, x, 22, 2, 22, 2, g[2], &loss);
    add(other, 0, x, 20, 2, 20, 2, g[3], &loss);
    cr_expect(memcmp(g[0], g[1], sizeof g[0]) == 0, "the same slice, the same noise");
    cr_expect_neq(g[0][0], g[2][0], "another slice");
    cr_expect_neq(g[0][0], g[3][0], "another seed");
    ops->close(model);
    ops->close(other);
}

Test(quadratic, values_that_diverge_are_values)
{
    struct adl_quadratic_config config = defaults();
    struct adl_model *model = open_model(&config);
    double x[D] = {0}, g[D] = {0}, loss = 0;
    x[3] = INFINITY;
    add(model, 0, x, 0, 1, 0, 1, g, &loss);
    cr_expect(isinf(g[3]) && isinf(loss) && isinf(eval(model, x)) && isfinite(g[2]));
    x[3] = NAN;
    add(model, 0, x, 0, 1, 0, 1, g, &loss);
    cr_expect(isnan(g[3]) && isnan(loss) && isnan(eval(model, x)) && isfinite(g[2]));
    ops->close(model);
}

Test(quadratic, no_shortcut_where_it_would_change_the_law)
{
    const double lr[2] = {0.1, 0.1};
    for (int why = 0; why <= 3; why++) {
        struct adl_quadratic_config config = defaults();
        config.noise_multiplicative = why == 1 ? 0.1 : 0.0;
        config.draw = why == 2 ? ADL_DRAW_SAMPLE : ADL_DRAW_BATCH;
        config.shortcut = why == 3 ? ADL_SHORTCUT_NEVER : ADL_SHORTCUT_AUTO;
        struct adl_model *model = open_model(&config);
        struct adl_hop *hop = NULL;
        cr_assert_eq(ops->hop_prepare(model, 0, lr, 2, &hop, NULL), ADL_OK);
        cr_expect_eq(hop == NULL, why != 0, "reason %d", why);
        ops->hop_free(hop);
        ops->close(model);
    }
}

/* Without noise a hop is the steps, worker by worker, for rates that change. */
Test(quadratic, hop_is_its_steps)
{
    const double lr[4] = {0.3, 0.2, 0.4, 0.05};
    struct adl_quadratic_config config = defaults();
    config.noise_total = 0;
    config.hetero_curvature = 0.5;
    config.hetero_shift = 2;
    struct adl_model *model = open_model(&config);
    for (int worker = 0; worker < WORKERS; worker++) {
        double hopped[D], stepped[D];
        struct adl_hop *hop = NULL;
        point(hopped);
        point(stepped);
        cr_assert_eq(ops->hop_prepare(model, worker, lr, 4, &hop, NULL), ADL_OK);
        ops->hop(model, hop, worker, hopped, 9, 0, 2);
        ops->hop_free(hop);
        for (int k = 0; k < 4; k++) {
            double g[D] = {0}, loss = 0;
            add(model, worker, stepped, 0, 2, 0, 2, g, &loss);
            for (int i = 0; i < D; i++)
                stepped[i] -= lr[k] * g[i] / 2;
        }
        for (int i = 0; i < D; i++)
            cr_assert_float_eq(hopped[i], stepped[i], 1e-13 * (1 + fabs(stepped[i])));
    }
    ops->close(model);
}

/* Moves are normal, with the variance they are given, the same however rounds cut them. */
Test(quadratic, the_optimum_moves_in_its_law)
{
    enum { MOVES = 400 };
    struct adl_quadratic_config config = defaults();
    double whole[D] = {0}, cut[D] = {0}, sum = 0, squares = 0;
    config.drift = 0.3;
    config.drift_every = 100;
    struct adl_model *model = open_model(&config);
    cr_assert(ops->drifts(model));
    ops->drift(model, whole, 0, 100.0 * MOVES);
    for (int k = 0; k < MOVES; k++) {
        double before[D];
        memcpy(before, cut, sizeof cut);
        ops->drift(model, cut, 100.0 * k, 100.0 * k + 99);
        for (int i = 0; i < D; i++)
            cr_assert_eq(cut[i], before[i], "no move before its sample");
        ops->drift(model, cut, 100.0 * k + 99, 100.0 * k + 100);
        for (int i = 0; i < D; i++) {
            const double z = (cut[i] - before[i]) / 0.3;
            sum += z;
            squares += z * z;
        }
    }
    for (int i = 0; i < D; i++)
        cr_assert_eq(cut[i], whole[i]);
    const double n = (double)D * MOVES;
    cr_expect_lt(fabs(sum / sqrt(n)), 4);
    cr_expect_lt(fabs((squares / n - 1) / sqrt(2 / n)), 4);
    ops->close(model);
    config.drift = 0;
    model = open_model(&config);
    cr_expect(!ops->drifts(model));
    ops->close(model);
}

/* AddressSanitizer: let malloc fail, as it does outside. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(quadratic, worlds_too_large_are_refused)
{
    struct adl_quadratic_config config = defaults();
    config.dim = 1000000;
    config.hetero_shift = 1;
    const struct adl_model_env env = {.seed = 1, .n_workers = 2000000000, .n_lanes = 1};
    struct adl_model *model = NULL;
    struct adl_err err = {0};
    cr_expect_eq(ops->open(&config, &env, &model, &err), ADL_ERR_NOMEM);
    cr_expect_null(model);
    cr_expect(strstr(err.message, "model.dim") != NULL, "%s", err.message);
}
