/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/model_logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/logistic.h"

#define ROW(key_, type_, dflt_, min_, max_, member, doc_)                                          \
    {                                                                                              \
        .key = "model." key_, .type = type_, .dflt = dflt_, .min = min_, .max = max_,              \
        .offset = offsetof(struct adl_logistic_config, member), .doc = doc_                        \
    }

static const struct adl_field options[] = {
    ROW("data", ADL_TYPE_TEXT, "synthetic", 0, 0, data,
        "What is learned: a CSV file, relative to the experiment, whose first line names its "
        "columns; `synthetic`: a mixture of Gaussians."),
    ROW("label", ADL_TYPE_TEXT, "", 0, 0, label,
        "Column of the CSV that holds the class; all others are features. Unset: the last."),
    ROW("standardise", ADL_TYPE_BOOL, "true", 0, 0, standardise,
        "Whether features are scaled to mean 0 and variance 1."),
    ROW("l2", ADL_TYPE_REAL, "0.01", 1e-9, 1e9, l2,
        "Weight lambda of the regulariser lambda/2 |theta|^2, which makes the loss strongly "
        "convex: "
        "mu = lambda."),
    ROW("classes", ADL_TYPE_INT, "4", 2, 1000, classes, "Synthetic: classes."),
    ROW("features", ADL_TYPE_INT, "16", 1, 1e5, features,
        "Synthetic: features, beside the constant one."),
    ROW("samples", ADL_TYPE_INT, "1024", 2, 1e7, samples, "Synthetic: samples."),
    ROW("separation", ADL_TYPE_REAL, "2", 0, 1e6, separation,
        "Synthetic: distance of a class's mean from the origin, in standard deviations of a "
        "class."),
    ROW("data_seed", ADL_TYPE_INT, "1", 0, 1e15, data_seed,
        "Synthetic: seed of the data, which are the same for every seed of a run."),
    ROW("label_skew", ADL_TYPE_REAL, "0", 0, 1, label_skew,
        "Heterogeneous workers: probability that worker m draws from class m mod classes alone "
        "instead of from all samples."),
    {.key = NULL},
};

struct adl_model {
    const struct adl_logistic_config *config;
    uint64_t seed;
    size_t P;
    struct adl_logistic_data data;
    double *w;       /* [n] */
    double *optimum; /* [P] */
    double *scratch; /* [n_lanes x K] */
    struct adl_logistic f;
    struct adl_logistic_constants constants;
};

/* ---- opening */

static void close_model(struct adl_model *model)
{
    if (!model)
        return;
    adl_logistic_data_free(&model->data);
    free(model->w);
    free(model->optimum);
    free(model->scratch);
    free(model);
}

static enum adl_status get_data(struct adl_model *model, const char *base_dir, struct adl_err *err)
{
    const struct adl_logistic_config *c = model->config;
    const struct adl_logistic_mixture mixture = {.n = (size_t)c->samples,
                                                 .features = (size_t)c->features,
                                                 .K = (size_t)c->classes,
                                                 .separation = c->separation,
                                                 .seed = (uint64_t)c->data_seed};
    if (strcmp(c->data, "synthetic") != 0)
        ADL_TRY(adl_logistic_load(c->data, base_dir, c->label, &model->data, err));
    else if (c->samples < c->classes)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.samples: %lld are not enough for model.classes = %lld",
                        (long long)c->samples, (long long)c->classes);
    else
        ADL_TRY(adl_logistic_draw(&mixture, &model->data, err));
    if (c->standardise)
        adl_logistic_standardise(&model->data);
    return ADL_OK;
}

static size_t class_start(const struct adl_logistic_data *data, size_t class)
{
    return class > 0 ? data->class_end[class - 1] : 0;
}

/* w of model_logistic.h */
static void weigh(struct adl_model *model, int n_workers)
{
    const struct adl_logistic_data *data = &model->data;
    const double skew = model->config->label_skew;
    for (size_t k = 0; k < data->K; k++) {
        const size_t start = class_start(data, k), end = data->class_end[k];
        const size_t M = (size_t)n_workers, favour = M / data->K + (k < M % data->K);
        const double share = (double)favour / (double)M;
        for (size_t at = start; at < end; at++)
            model->w[data->of_class[at]] =
                (1.0 - skew) / (double)data->n + skew * share / (double)(end - start);
    }
}

static enum adl_status open_parts(struct adl_model *model, const struct adl_model_env *env,
                                  struct adl_err *err)
{
    ADL_TRY(get_data(model, env->base_dir, err));
    const struct adl_logistic_data *data = &model->data;
    model->P = data->K * data->D;
    model->w = calloc(data->n, sizeof *model->w);
    model->optimum = calloc(model->P, sizeof *model->optimum);
    model->scratch = calloc((size_t)env->n_lanes * data->K, sizeof *model->scratch);
    if (!model->w || !model->optimum || !model->scratch)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a regression of %zu parameters",
                        model->P);
    weigh(model, env->n_workers);
    model->f = (struct adl_logistic){data, model->w, model->config->l2};
    return adl_logistic_solve(&model->f, model->optimum, &model->constants, err);
}

static enum adl_status open_model(const void *config, const struct adl_model_env *env,
                                  struct adl_model **out, struct adl_err *err)
{
    struct adl_model *model = calloc(1, sizeof *model);
    if (!model)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a model");
    model->config = config;
    model->seed = env->seed;
    const enum adl_status status = open_parts(model, env, err);
    if (status != ADL_OK)
        close_model(model);
    else
        *out = model;
    return status;
}

static size_t n_params(const struct adl_model *model)
{
    return model->P;
}

/* W x and the gradient's outer product */
static double flops_per_sample(const struct adl_model *model)
{
    return 4.0 * (double)model->P;
}

static double tokens_per_sample(const struct adl_model *model)
{
    (void)model;
    return 1.0;
}

static enum adl_status init(struct adl_model *model, void *theta, struct adl_err *err)
{
    (void)err;
    memset(theta, 0, model->P * sizeof(double));
    return ADL_OK;
}

static bool heterogeneous(const struct adl_model *model)
{
    return model->config->label_skew > 0.0;
}

/* ---- gradient and loss */

/* The sample behind an index of a stream, as `worker` draws it. */
static size_t draw(const struct adl_model *model, const struct adl_rng *rng, uint64_t index,
                   int worker)
{
    const struct adl_logistic_data *data = &model->data;
    const double u = adl_rng_uniform(rng, 2 * index);
    const double skew = model->config->label_skew;
    if (skew == 0.0 || adl_rng_uniform(rng, 2 * index + 1) >= skew)
        return (size_t)(u * (double)data->n);
    const size_t class = (size_t)worker % data->K, start = class_start(data, class);
    return data->of_class[start + (size_t)(u * (double)(data->class_end[class] - start))];
}

static enum adl_status add_grad(struct adl_model *model, int lane, int worker, const void *theta,
                                const struct adl_samples *samples, void *grad, double *loss_sum,
                                struct adl_err *err)
{
    (void)err;
    const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_NOISE, samples->stream, 0);
    const double lambda = model->config->l2, count = (double)samples->count;
    double *p = model->scratch + (size_t)lane * model->data.K, *g = grad;
    const double *W = theta;
    double W2 = 0.0;
    for (size_t j = 0; j < model->P; j++) {
        W2 += W[j] * W[j];
        g[j] += count * lambda * W[j];
    }
    for (uint64_t k = 0; k < samples->count; k++) {
        const size_t i = draw(model, &rng, samples->first + k, worker);
        *loss_sum += adl_logistic_sample(&model->data, i, W, 1.0, g, p) + 0.5 * lambda * W2 -
                     model->constants.least;
    }
    return ADL_OK;
}

/* Trainers' tasks may ask at once: each has scratch of its own. */
static enum adl_status eval(struct adl_model *model, const void *theta, double *loss,
                            struct adl_err *err)
{
    double *p = malloc(model->data.K * sizeof *p);
    if (!p)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu classes", model->data.K);
    *loss = adl_logistic_value(&model->f, theta, NULL, p) - model->constants.least;
    free(p);
    return ADL_OK;
}

/* ---- what theory may know */

static enum adl_status problem(struct adl_model *model, struct adl_problem *out,
                               struct adl_err *err)
{
    const struct adl_logistic_constants *c = &model->constants;
    (void)err;
    out->L = c->L;
    out->mu = model->config->l2;
    out->s2 = c->s2_most;
    out->s2_optimum = c->s2_optimum;
    out->unequal = heterogeneous(model);
    out->D2 = 0.0;
    for (size_t j = 0; j < model->P; j++)
        out->D2 += model->optimum[j] * model->optimum[j];
    out->d0 = c->start - c->least;
    return ADL_OK;
}

const struct adl_model_ops adl_model_logistic = {
    .plugin =
        {
            .name = "logistic",
            .doc = "Softmax regression with L2 regulariser on a CSV or a mixture of Gaussians: "
                   "convex, not quadratic, its optimum and constants known.",
            .options = options,
            .config_size = sizeof(struct adl_logistic_config),
        },
    .space = &adl_space_cpu,
    .dtype = ADL_F64,
    .open = open_model,
    .close = close_model,
    .n_params = n_params,
    .flops_per_sample = flops_per_sample,
    .tokens_per_sample = tokens_per_sample,
    .init = init,
    .add_grad = add_grad,
    .eval = eval,
    .eval_exact = true,
    .heterogeneous = heterogeneous,
    .problem = problem,
};
