/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/model_recorded.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/record_curve.h"

#define ROW(key_, type_, dflt_, min_, max_, member, doc_)                                          \
    {                                                                                              \
        .key = "model." key_, .type = type_, .dflt = dflt_, .min = min_, .max = max_,              \
        .offset = offsetof(struct adl_recorded_config, member), .doc = doc_                        \
    }

static const struct adl_field options[] = {
    ROW("data", ADL_TYPE_TEXT, "synthetic", 0, 0, data,
        "A recorded run: a CSV file, relative to the experiment, with the columns tokens or "
        "samples, loss, noise_scale (in samples) or noise_scale_tokens and, if known, batch or "
        "batch_tokens; from a run of ours by `adloco record`. `synthetic`: made up."),
    ROW("recorded_batch", ADL_TYPE_REAL, "0", 0, 1e15, batch,
        "Samples of a step of the recorded run, where its table has no column `batch`. 0: few "
        "beside its noise scale."),
    ROW("noise.scale", ADL_TYPE_REAL, "1", 0, 1e12, noise_scale,
        "Factor on the recorded noise scale: what if gradients were noisier?"),
    ROW("dim", ADL_TYPE_INT, "64", 2, 1e8, dim,
        "Elements of the vector that stands for gradients: more of them make estimates of their "
        "noise steadier."),
    ROW("recorded_tokens", ADL_TYPE_REAL, "", 1, INFINITY, recorded_tokens,
        "Tokens of a sample of the recorded run, by which its tokens are counted in samples. "
        "Unset: "
        "model.stand_in.tokens_per_sample, else 1."),
    ROW("stand_in.tokens_per_sample", ADL_TYPE_REAL, "", 1, INFINITY, tokens_per_sample,
        "Tokens of a sample, also of the recorded run where model.recorded_tokens is unset."),
    {.key = NULL},
};

enum { CHUNK = 256 };                 /* normals at a time, on the stack */
static const double millionths = 1e6; /* of the record: the unit of theta's last element */
static const double trace = 1e-9;     /* of slope, in nats a millionth */

struct adl_model {
    const struct adl_recorded_config *config;
    uint64_t seed;
    size_t dim;
    double tokens_per_sample;
    struct adl_record_curve curve;
    double start, unit; /* x = start + unit s, in samples */
};

/* What the record says at theta. */
struct place {
    double loss, slope; /* of theta's last element */
    double sd;          /* of one sample's noise in an element */
};

static void close_model(struct adl_model *model)
{
    if (model)
        adl_record_close(&model->curve);
    free(model);
}

static enum adl_status open_model(const void *config, const struct adl_model_env *env,
                                  struct adl_model **out, struct adl_err *err)
{
    const struct adl_recorded_config *c = config;
    struct adl_model *model = calloc(1, sizeof *model);
    if (!model)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a model");
    model->config = c;
    model->seed = env->seed;
    model->dim = (size_t)c->dim;
    model->tokens_per_sample = isnan(c->tokens_per_sample) ? 1.0 : c->tokens_per_sample;
    if (!isnan(c->recorded_tokens))
        model->tokens_per_sample = c->recorded_tokens;
    const struct adl_record_source source = {.data = c->data,
                                             .base_dir = env->base_dir,
                                             .tokens_per_sample = model->tokens_per_sample,
                                             .batch = c->batch};
    const enum adl_status status = adl_record_open(&source, &model->curve, err);
    if (status != ADL_OK) {
        close_model(model);
        return status;
    }
    model->start = model->curve.at[0];
    model->unit = (model->curve.at[model->curve.n - 1] - model->start) / millionths;
    *out = model;
    return ADL_OK;
}

static size_t n_params(const struct adl_model *model)
{
    return model->dim;
}

/* the noise's product and addition */
static double flops_per_sample(const struct adl_model *model)
{
    return 2.0 * (double)model->dim;
}

static double tokens_per_sample(const struct adl_model *model)
{
    return model->tokens_per_sample;
}

static enum adl_status init(struct adl_model *model, void *theta, struct adl_err *err)
{
    (void)err;
    memset(theta, 0, model->dim * sizeof(double));
    return ADL_OK;
}

/* ---- progress */

static double progress(const struct adl_model *model, const void *theta)
{
    return ((const double *)theta)[model->dim - 1];
}

static void advance(struct adl_model *model, void *theta, double from, int64_t steps, double batch)
{
    const double x = model->start + model->unit * from;
    const double to =
        adl_record_advance(&model->curve, x, steps, batch, model->config->noise_scale);
    ((double *)theta)[model->dim - 1] = (to - model->start) / model->unit;
}

/* ---- gradient and loss */

static struct place place_of(const struct adl_model *model, const void *theta)
{
    const double s = progress(model, theta);
    const struct adl_record_point at = adl_record_at(&model->curve, model->start + model->unit * s);
    struct place place = {.loss = at.loss, .slope = at.slope * model->unit};
    if (fabs(place.slope) < trace)
        place.slope = -trace;
    const double N = model->config->noise_scale * at.noise;
    place.sd = fabs(place.slope) * sqrt(N / (double)model->dim);
    return place;
}

/* y += scale z, z standard normals of (purpose, stream, index) */
static void add_normals(const struct adl_model *model, enum adl_rng_purpose purpose,
                        uint64_t stream, uint64_t index, double scale, double *y)
{
    const struct adl_rng rng = adl_rng_make(model->seed, purpose, stream, index);
    double z[CHUNK];
    for (size_t from = 0; from < model->dim; from += CHUNK) {
        const size_t n = model->dim - from < CHUNK ? model->dim - from : CHUNK;
        adl_rng_normals(&rng, from, n, z);
        for (size_t i = 0; i < n; i++)
            y[from + i] += scale * z[i];
    }
}

static enum adl_status add_grad(struct adl_model *model, int lane, int worker, const void *theta,
                                const struct adl_samples *samples, void *grad, double *loss_sum,
                                struct adl_err *err)
{
    (void)lane;
    (void)worker;
    (void)err;
    if (samples->first + samples->count != samples->slice_first + samples->slice_count)
        return ADL_OK; /* all of it comes with the slice's last micro-batch */
    const struct place place = place_of(model, theta);
    const double count = (double)samples->slice_count;
    double *g = grad;
    *loss_sum += count * place.loss;
    g[model->dim - 1] += count * place.slope;
    add_normals(model, ADL_RNG_MODEL_NOISE, samples->stream, samples->slice_first,
                sqrt(count) * place.sd, g);
    return ADL_OK;
}

static enum adl_status eval(struct adl_model *model, const void *theta, double *loss,
                            struct adl_err *err)
{
    (void)err;
    *loss = place_of(model, theta).loss;
    return ADL_OK;
}

/* ---- H steps at once */

struct adl_hop {
    double sum, root; /* of the rates, and of their squares' sum */
};

static enum adl_status hop_prepare(struct adl_model *model, int worker, const double *lr, int steps,
                                   struct adl_hop **out, struct adl_err *err)
{
    (void)model;
    (void)worker;
    struct adl_hop *hop = calloc(1, sizeof *hop);
    *out = hop;
    if (!hop)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a shortcut");
    double squares = 0.0;
    for (int k = 0; k < steps; k++) {
        hop->sum += lr[k];
        squares += lr[k] * lr[k];
    }
    hop->root = sqrt(squares);
    return ADL_OK;
}

static void hop_free(struct adl_hop *hop)
{
    free(hop);
}

static void hop_theta(struct adl_model *model, const struct adl_hop *hop, int worker, void *theta,
                      uint64_t stream, uint64_t first, uint64_t count)
{
    (void)worker;
    const struct place place = place_of(model, theta);
    double *x = theta;
    x[model->dim - 1] -= hop->sum * place.slope;
    add_normals(model, ADL_RNG_MODEL_HOP, stream, first, hop->root * place.sd / sqrt((double)count),
                x);
}

const struct adl_model_ops adl_model_recorded = {
    .plugin =
        {
            .name = "recorded",
            .doc = "A recorded run, from a CSV of tokens, loss and gradient noise scale: batches "
                   "and networks on anybody's training.",
            .options = options,
            .config_size = sizeof(struct adl_recorded_config),
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
    .hop_prepare = hop_prepare,
    .hop_free = hop_free,
    .hop = hop_theta,
    .progress = progress,
    .advance = advance,
};
