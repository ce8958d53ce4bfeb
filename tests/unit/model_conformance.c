/* SPDX-License-Identifier: Apache-2.0 */
/* What core/model.h asks of every model, for every model in the registry that this machine can
 * open, at the defaults of its own rows but without noise (rows "model.noise.*" that are numbers
 * are 0) where a loss and its gradient must agree. A model on a device is opened on the emulated
 * one (tests/cuda_emulator) where that is in the build, and at sizes that it can carry. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/model.h"
#include "core/registry.h"
#include "core/rng.h"

enum { N_WORKERS = 4, N_LANES = 2 };

/* A model, its configuration, and vectors of its size. */
struct subject {
    const struct adl_model_ops *ops;
    void *config;
    struct adl_model *model;
    size_t n;
    void *theta, *grad;
    double loss;
};

/* A vector's elements, which the caller frees. */
static double *get(const struct subject *s, const void *x)
{
    double *values = malloc(s->n * sizeof *values);
    cr_assert_not_null(values);
    cr_assert_eq(s->ops->space->get(values, x, s->n * adl_dtype_bytes(s->ops->dtype), NULL),
                 ADL_OK);
    for (size_t i = s->n; s->ops->dtype == ADL_F32 && i-- > 0;) {
        float element;
        memcpy(&element, (float *)values + i, sizeof element);
        values[i] = (double)element;
    }
    return values;
}

/* x = values, rounded to the model's type. */
static void put(const struct subject *s, void *x, const double *values)
{
    float *rounded = malloc(s->n * sizeof *rounded);
    cr_assert_not_null(rounded);
    for (size_t i = 0; i < s->n; i++)
        rounded[i] = (float)values[i];
    const void *from = s->ops->dtype == ADL_F64 ? (const void *)values : rounded;
    cr_assert_eq(s->ops->space->put(x, from, s->n * adl_dtype_bytes(s->ops->dtype), NULL), ADL_OK);
    free(rounded);
}

static void fill(const struct subject *s, void *x, double value)
{
    double *values = malloc(s->n * sizeof *values);
    cr_assert_not_null(values);
    for (size_t i = 0; i < s->n; i++)
        values[i] = value;
    put(s, x, values);
    free(values);
}

static void *vector(const struct subject *s)
{
    void *x = s->ops->space->alloc(s->n, s->ops->dtype);
    cr_assert_not_null(x);
    return x;
}

static bool same(const struct subject *s, const void *x, const void *y)
{
    double *a = get(s, x), *b = get(s, y);
    const bool equal = memcmp(a, b, s->n * sizeof *a) == 0;
    free(a);
    free(b);
    return equal;
}

/* Rounding of the model's own arithmetic. */
static double tolerance(const struct subject *s)
{
    return s->ops->dtype == ADL_F64 ? 1e-10 : 1e-3;
}

/* Values for an emulated device, or the row's default. */
static const char *small(const struct adl_field *row)
{
    static const char *const rows[][2] = {{"model.preset", "custom"}, {"model.vocab", "32"},
                                          {"model.width", "8"},       {"model.layers", "1"},
                                          {"model.heads", "1"},       {"model.hidden", "16"},
                                          {"model.context", "6"},     {"model.eval_samples", "2"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(row->key, rows[i][0]))
            return rows[i][1];
    return row->dflt;
}

static void *config_of(const struct adl_model_ops *ops, bool quiet)
{
    const struct adl_plugin *plugin = &ops->plugin;
    char *config = calloc(1, plugin->config_size);
    cr_assert_not_null(config);
    for (const struct adl_field *row = plugin->options; row != NULL && row->key != NULL; row++) {
        const bool noise = strncmp(row->key, "model.noise.", 12) == 0;
        const char *text = ops->space->on_host ? row->dflt : small(row);
        if (quiet && noise && row->type == ADL_TYPE_REAL)
            text = "0";
        struct adl_err err = {0};
        cr_assert_not_null(text, "%s has no default", row->key);
        cr_assert_eq(adl_field_parse(row, text, NULL, NULL, config + row->offset, &err), ADL_OK,
                     "%s", err.message);
    }
    return config;
}

static void free_config(const struct adl_model_ops *ops, void *config)
{
    for (const struct adl_field *row = ops->plugin.options; row != NULL && row->key != NULL; row++)
        adl_field_free(row, (char *)config + row->offset);
    free(config);
}

/* Whether the model can be opened here; says why where not. */
static bool can_run(const struct adl_model_ops *ops)
{
    const struct adl_model_env env = {
        .seed = 1, .n_workers = N_WORKERS, .n_lanes = N_LANES, .base_dir = "."};
    struct adl_model *model = NULL;
    struct adl_err err = {0};
    void *config = config_of(ops, false);
    const enum adl_status status = ops->open(config, &env, &model, &err);
    if (status == ADL_ERR_UNSUPPORTED)
        fprintf(stderr, "SKIPPED model %s: %s\n", ops->plugin.name, err.message);
    ops->close(model);
    free_config(ops, config);
    return status != ADL_ERR_UNSUPPORTED;
}

static struct adl_model *open_in(const struct subject *s, uint64_t seed, int n_workers, int n_lanes)
{
    const struct adl_model_env env = {
        .seed = seed, .n_workers = n_workers, .n_lanes = n_lanes, .base_dir = "."};
    struct adl_model *model = NULL;
    struct adl_err err = {0};
    cr_assert_eq(s->ops->open(s->config, &env, &model, &err), ADL_OK, "%s", err.message);
    return model;
}

/* theta: the start, moved a little, so that nothing is special about it. */
static struct subject open_subject(const struct adl_model_ops *ops, bool quiet)
{
    struct subject s = {.ops = ops, .config = config_of(ops, quiet)};
    const struct adl_rng rng = adl_rng_make(1, ADL_RNG_TEST, 0, 0);
    s.model = open_in(&s, 1, N_WORKERS, N_LANES);
    s.n = ops->n_params(s.model);
    cr_assert_gt(s.n, 0);
    s.theta = vector(&s);
    s.grad = vector(&s);
    cr_assert_eq(ops->init(s.model, s.theta, NULL), ADL_OK);
    double *theta = get(&s, s.theta);
    for (size_t i = 0; i < s.n; i++)
        theta[i] += 0.02 * (adl_rng_uniform(&rng, i) - 0.5);
    put(&s, s.theta, theta);
    free(theta);
    return s;
}

static void close_subject(struct subject *s)
{
    s->ops->space->free(s->theta);
    s->ops->space->free(s->grad);
    s->ops->close(s->model);
    free_config(s->ops, s->config);
}

/* grad, loss += micro-batch [first, +count) of the slice [40, +8). */
static void add(struct subject *s, int lane, int worker, uint64_t first, uint64_t count)
{
    const struct adl_samples samples = {
        .stream = 2, .first = first, .count = count, .slice_first = 40, .slice_count = 8};
    struct adl_err err = {0};
    cr_assert_eq(
        s->ops->add_grad(s->model, lane, worker, s->theta, &samples, s->grad, &s->loss, &err),
        ADL_OK, "%s: %s", s->ops->plugin.name, err.message);
}

static void clear(struct subject *s)
{
    s->ops->space->zero(s->grad, s->n, s->ops->dtype);
    s->loss = 0.0;
}

#define FOR_EACH_MODEL(ops)                                                                        \
    for (const struct adl_model_ops *const *at = adl_registry()->models, *ops = *at; ops != NULL;  \
         ops = *++at)                                                                              \
        if (can_run(ops))

Test(model, describes_itself)
{
    int n = 0;
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        cr_expect(ops->plugin.name[0] != '\0' && ops->plugin.doc[0] != '\0');
        cr_expect_gt(ops->flops_per_sample(s.model), 0.0);
        cr_expect_geq(ops->tokens_per_sample(s.model), 1.0);
        for (const struct adl_field *row = ops->plugin.options; row->key != NULL; row++)
            cr_expect(strncmp(row->key, "model.", 6) == 0, "%s", row->key);
        close_subject(&s);
        n++;
    }
    cr_expect_gt(n, 0, "an empty list tests nothing");
}

Test(model, theta_is_untouched)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        void *before = vector(&s);
        double loss;
        ops->space->copy(before, s.theta, s.n, ops->dtype);
        add(&s, 0, 1, 40, 8);
        cr_assert_eq(ops->eval(s.model, s.theta, &loss, NULL), ADL_OK);
        cr_expect(same(&s, before, s.theta), "%s", ops->plugin.name);
        ops->space->free(before);
        close_subject(&s);
    }
}

Test(model, gradients_are_added)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        void *alone = vector(&s);
        add(&s, 0, 1, 40, 8);
        const double loss = s.loss;
        ops->space->copy(alone, s.grad, s.n, ops->dtype);
        fill(&s, s.grad, 3.0);
        s.loss = 5.0;
        add(&s, 0, 1, 40, 8);
        double *first = get(&s, alone), *both = get(&s, s.grad);
        for (size_t i = 0; i < s.n; i++)
            cr_assert_float_eq(both[i], 3.0 + first[i],
                               tolerance(&s) * (3.0 + fabs(3.0 + first[i])), "%s, parameter %zu",
                               ops->plugin.name, i);
        free(first);
        free(both);
        cr_expect_float_eq(s.loss, 5.0 + loss, tolerance(&s) * (5.0 + fabs(loss)));
        cr_expect_neq(loss, 0.0);
        ops->space->free(alone);
        close_subject(&s);
    }
}

Test(model, splits_into_micro_batches)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        void *whole = vector(&s);
        add(&s, 0, 1, 40, 8);
        const double loss = s.loss;
        ops->space->copy(whole, s.grad, s.n, ops->dtype);
        clear(&s);
        add(&s, 0, 1, 40, 1);
        add(&s, 0, 1, 41, 5);
        add(&s, 0, 1, 46, 2);
        const double scale = sqrt(ops->space->dot(whole, whole, s.n, ops->dtype));
        double *sum = get(&s, s.grad), *want = get(&s, whole);
        for (size_t i = 0; i < s.n; i++)
            cr_assert_float_eq(sum[i], want[i], tolerance(&s) * scale, "%s, parameter %zu",
                               ops->plugin.name, i);
        free(sum);
        free(want);
        cr_expect_float_eq(s.loss, loss, tolerance(&s) * fabs(loss));
        ops->space->free(whole);
        close_subject(&s);
    }
}

Test(model, a_sample_is_the_same_everywhere)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        void *first = vector(&s);
        add(&s, 0, 1, 40, 8);
        const double loss = s.loss;
        ops->space->copy(first, s.grad, s.n, ops->dtype);
        clear(&s);
        add(&s, N_LANES - 1, 1, 40, 8);
        cr_expect(same(&s, first, s.grad) && s.loss == loss, "%s: lanes", ops->plugin.name);
        if (ops->heterogeneous == NULL || !ops->heterogeneous(s.model)) {
            clear(&s);
            add(&s, 0, N_WORKERS - 1, 40, 8);
            cr_expect(same(&s, first, s.grad) && s.loss == loss, "%s: workers", ops->plugin.name);
        }
        ops->space->free(first);
        close_subject(&s);
    }
}

Test(model, start_depends_on_the_seed_only)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        void *other = vector(&s);
        struct adl_model *model = open_in(&s, 1, 7, 1);
        cr_assert_eq(ops->init(s.model, s.theta, NULL), ADL_OK);
        cr_assert_eq(ops->init(model, other, NULL), ADL_OK);
        cr_expect(same(&s, s.theta, other), "%s", ops->plugin.name);
        cr_assert_eq(ops->init(model, other, NULL), ADL_OK);
        cr_expect(same(&s, s.theta, other), "%s: a second time", ops->plugin.name);
        ops->close(model);
        ops->space->free(other);
        close_subject(&s);
    }
}

/* The slope along one direction, by central differences, where nothing is noise. */
Test(model, gradient_is_the_losss_slope)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, true);
        const double step = ops->dtype == ADL_F64 ? 1e-5 : 1e-3;
        const struct adl_rng rng = adl_rng_make(1, ADL_RNG_TEST, 1, 0);
        void *way = vector(&s), *slope = vector(&s);
        double *random = get(&s, way);
        for (size_t i = 0; i < s.n; i++)
            random[i] = 2.0 * adl_rng_uniform(&rng, i) - 1.0;
        put(&s, way, random);
        free(random);
        add(&s, 0, 1, 40, 8);
        ops->space->copy(slope, s.grad, s.n, ops->dtype);
        const double want = ops->space->dot(slope, way, s.n, ops->dtype);
        ops->space->axpy(s.theta, step, way, s.n, ops->dtype);
        clear(&s);
        add(&s, 0, 1, 40, 8);
        const double up = s.loss;
        ops->space->axpy(s.theta, -2.0 * step, way, s.n, ops->dtype);
        clear(&s);
        add(&s, 0, 1, 40, 8);
        cr_expect_float_eq((up - s.loss) / (2.0 * step), want, 1e-2 * fabs(want), "%s",
                           ops->plugin.name);
        ops->space->free(way);
        ops->space->free(slope);
        close_subject(&s);
    }
}

Test(model, nan_passes_through)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        double loss = 0.0;
        fill(&s, s.theta, NAN);
        add(&s, 0, 1, 40, 8);
        double *grad = get(&s, s.grad);
        cr_expect(isnan(s.loss) && isnan(grad[0]), "%s", ops->plugin.name);
        free(grad);
        cr_assert_eq(ops->eval(s.model, s.theta, &loss, NULL), ADL_OK);
        cr_expect(isnan(loss), "%s", ops->plugin.name);
        close_subject(&s);
    }
}

Test(model, shortcut_moves_theta_and_can_be_repeated)
{
    FOR_EACH_MODEL(ops)
    {
        struct subject s = open_subject(ops, false);
        const double lr[3] = {0.1, 0.1, 0.1};
        struct adl_hop *hop = NULL;
        if (ops->hop_prepare != NULL)
            cr_assert_eq(ops->hop_prepare(s.model, 1, lr, 3, &hop, NULL), ADL_OK);
        if (hop != NULL) {
            void *again = vector(&s), *before = vector(&s);
            ops->space->copy(again, s.theta, s.n, ops->dtype);
            ops->space->copy(before, s.theta, s.n, ops->dtype);
            ops->hop(s.model, hop, 1, s.theta, 2, 40, 8);
            ops->hop(s.model, hop, 1, again, 2, 40, 8);
            cr_expect(same(&s, s.theta, again), "%s: the same samples", ops->plugin.name);
            cr_expect_not(same(&s, s.theta, before), "%s", ops->plugin.name);
            ops->space->copy(again, before, s.n, ops->dtype);
            ops->hop(s.model, hop, 1, again, 2, 48, 8);
            cr_expect_not(same(&s, s.theta, again), "%s: other samples", ops->plugin.name);
            ops->space->free(again);
            ops->space->free(before);
            ops->hop_free(hop);
        }
        close_subject(&s);
    }
}
