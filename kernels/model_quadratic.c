/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/model_quadratic.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

#include "core/rng.h"
#include "kernels/nqm.h"

#define ROW(key_, type_, dflt_, min_, max_, choices_, member, doc_)                                \
    {                                                                                              \
        .key = "model." key_, .type = type_, .dflt = dflt_, .min = min_, .max = max_,              \
        .choices = choices_, .offset = offsetof(struct adl_quadratic_config, member), .doc = doc_  \
    }
#define REAL(key_, dflt_, min_, max_, member, doc_)                                                \
    ROW(key_, ADL_TYPE_REAL, dflt_, min_, max_, NULL, member, doc_)
#define CHOICE(key_, dflt_, choices_, member, doc_)                                                \
    ROW(key_, ADL_TYPE_CHOICE, dflt_, 0, 0, choices_, member, doc_)

static const struct adl_field options[] = {
    ROW("dim", ADL_TYPE_INT, "64", 1, 1e8, NULL, dim, "Number of parameters."),
    REAL("condition", "1000", 1, 1e15, condition,
         "Condition number kappa: largest over smallest curvature (not used by the spectra flat "
         "and power)."),
    CHOICE("spectrum", "log", "flat|log|linear|power|two_clusters", spectrum,
           "How the curvatures lie between lipschitz / condition and lipschitz; power: "
           "lipschitz x i^-power."),
    REAL("power", "1", 0, 16, power, "Exponent p of the spectrum `power`."),
    REAL("lipschitz", "1", 1e-12, 1e12, lipschitz,
         "Largest curvature L: plain SGD is stable for rates below 2/L."),
    CHOICE("noise.kind", "curvature", "constant|curvature|curvature2", noise_kind,
           "Variance of a sample's gradient by coordinate: constant, as h, as h^2."),
    REAL("noise.total", "1", 0, 1e12, noise_total,
         "Variance of a sample's gradient, summed over coordinates (tr C)."),
    REAL("noise.multiplicative", "0", 0, 1e12, noise_multiplicative,
         "Noise that vanishes at the optimum: variance this x h_i^2 x_i^2; rules the shortcut "
         "out."),
    REAL("start", "1.0", -1e12, 1e12, start, "Every coordinate of the start point."),
    REAL("hetero.curvature", "0", 0, 8, hetero_curvature,
         "Heterogeneous workers: sigma of the log-normal factor on each worker's curvatures."),
    REAL("hetero.shift", "0", 0, 1e12, hetero_shift,
         "Heterogeneous workers: standard deviation of each worker's optimum, by coordinate."),
    REAL("drift", "0", 0, 1e12, drift,
         "Continuous training: standard deviation of the optimum's moves, by coordinate. Needs "
         "trainers: 1; moves take effect at a round's end."),
    REAL("drift_every", "1e6", 1, 1e18, drift_every,
         "Samples between two moves of the optimum: few for a random walk, many for jumps."),
    CHOICE("draw", "batch", "batch|sample", draw,
           "Noise drawn once per worker and step (fast; the same bits however a step is split "
           "into micro-batches), or for each sample."),
    CHOICE("shortcut", "auto", "auto|never", shortcut,
           "Whether plain SGD may take a round's steps at once, which has the same law but other "
           "draws; auto where noise is additive and drawn per batch."),
    {.key = NULL},
};

enum { CHUNK = 256 }; /* normals at a time, on the stack */

struct adl_model {
    const struct adl_quadratic_config *config;
    uint64_t seed;
    size_t dim;
    double *h;        /* [dim] */
    double *sd;       /* [dim] sqrt(c), of one sample */
    double *h_worker; /* [n_workers x dim]; NULL where homogeneous: h */
    double *optimum;  /* [n_workers x dim]; NULL where homogeneous: all 0 */
    double *h_mean;   /* [dim] of eval; points to h where homogeneous */
    double *x_mean;   /* [dim] of eval; NULL where homogeneous */
};

/* One worker's function. */
struct bowl {
    const double *h;
    const double *optimum; /* NULL: 0 */
};

static bool heterogeneous(const struct adl_model *model)
{
    return model->optimum != NULL;
}

static struct bowl bowl_of(const struct adl_model *model, int worker)
{
    if (!heterogeneous(model))
        return (struct bowl){.h = model->h, .optimum = NULL};
    const size_t at = (size_t)worker * model->dim;
    return (struct bowl){.h = model->h_worker + at, .optimum = model->optimum + at};
}

static inline double offset(const struct bowl *bowl, const double *x, size_t i)
{
    return bowl->optimum != NULL ? x[i] - bowl->optimum[i] : x[i];
}

static double value(const struct bowl *bowl, const double *x, size_t dim)
{
    double sum = 0.0;
    for (size_t i = 0; i < dim; i++) {
        const double y = offset(bowl, x, i);
        sum += bowl->h[i] * y * y;
    }
    return 0.5 * sum;
}

/* ---- opening */

static void close_model(struct adl_model *model)
{
    if (model == NULL)
        return;
    if (model->h_mean != model->h)
        free(model->h_mean);
    free(model->h);
    free(model->h_worker);
    free(model->sd);
    free(model->optimum);
    free(model->x_mean);
    free(model);
}

/* Draws every worker's function and averages them. */
static void shape_workers(struct adl_model *model, int n_workers)
{
    const double sigma = model->config->hetero_curvature, shift = model->config->hetero_shift;
    const size_t dim = model->dim;
    for (int m = 0; m < n_workers; m++) {
        const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_SHAPE, (uint64_t)m, 0);
        double *h = model->h_worker + (size_t)m * dim;
        double *optimum = model->optimum + (size_t)m * dim;
        adl_rng_normals(&rng, 0, dim, h);
        adl_rng_normals(&rng, dim, dim, optimum);
        for (size_t i = 0; i < dim; i++) {
            h[i] = model->h[i] * exp(sigma * h[i] - 0.5 * sigma * sigma);
            optimum[i] *= shift;
            model->h_mean[i] += h[i] / n_workers;
            model->x_mean[i] += h[i] * optimum[i] / n_workers;
        }
    }
    for (size_t i = 0; i < dim; i++)
        model->x_mean[i] /= model->h_mean[i];
}

static bool allocate(struct adl_model *model, int n_workers, bool spread)
{
    const size_t dim = model->dim, n = (size_t)n_workers;
    model->h = calloc(dim, sizeof *model->h);
    model->sd = calloc(dim, sizeof *model->sd);
    model->h_mean = model->h;
    if (!spread)
        return model->h != NULL && model->sd != NULL;
    model->optimum = calloc(n * dim, sizeof *model->optimum);
    model->h_worker = calloc(n * dim, sizeof *model->h_worker);
    model->h_mean = calloc(dim, sizeof *model->h_mean);
    model->x_mean = calloc(dim, sizeof *model->x_mean);
    return model->h != NULL && model->sd != NULL && model->optimum != NULL &&
           model->h_worker != NULL && model->h_mean != NULL && model->x_mean != NULL;
}

static enum adl_status open_model(const void *config, const struct adl_model_env *env,
                                  struct adl_model **out, struct adl_err *err)
{
    const struct adl_quadratic_config *c = config;
    const bool spread = c->hetero_curvature > 0.0 || c->hetero_shift > 0.0;
    struct adl_model *model = calloc(1, sizeof *model);
    if (model != NULL) {
        model->config = c;
        model->seed = env->seed;
        model->dim = (size_t)c->dim;
    }
    if (model == NULL || !allocate(model, env->n_workers, spread)) {
        close_model(model);
        return adl_fail(err, ADL_ERR_NOMEM,
                        "model.dim: no memory for %lld parameters and %d workers",
                        (long long)c->dim, spread ? env->n_workers : 1);
    }
    adl_nqm_spectrum((enum adl_spectrum)c->spectrum, model->dim, c->condition, c->power,
                     c->lipschitz, model->h);
    adl_nqm_noise((enum adl_noise)c->noise_kind, model->dim, model->h, c->noise_total, model->sd);
    for (size_t i = 0; i < model->dim; i++)
        model->sd[i] = sqrt(model->sd[i]);
    if (spread)
        shape_workers(model, env->n_workers);
    *out = model;
    return ADL_OK;
}

static size_t n_params(const struct adl_model *model)
{
    return model->dim;
}

/* h x, its addition, the noise's product and addition */
static double flops_per_sample(const struct adl_model *model)
{
    return 4.0 * (double)model->dim;
}

static double tokens_per_sample(const struct adl_model *model)
{
    (void)model;
    return 1.0;
}

static enum adl_status init(struct adl_model *model, void *theta, struct adl_err *err)
{
    (void)err;
    double *x = theta;
    for (size_t i = 0; i < model->dim; i++)
        x[i] = model->config->start;
    return ADL_OK;
}

/* ---- gradient and loss */

static inline size_t chunk_at(size_t from, size_t dim)
{
    return dim - from < CHUNK ? dim - from : CHUNK;
}

/* grad += sum of `count` samples' noise: one draw at (stream, index). */
static void add_noise(const struct adl_model *model, const struct bowl *bowl, const double *x,
                      uint64_t stream, uint64_t index, double count, double *restrict grad)
{
    const double scale = sqrt(count);
    const double ratio = scale * sqrt(model->config->noise_multiplicative);
    const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_NOISE, stream, index);
    const struct adl_rng rng2 = adl_rng_make(model->seed, ADL_RNG_MODEL_NOISE2, stream, index);
    double z[CHUNK];

    for (size_t from = 0; from < model->dim; from += CHUNK) {
        const size_t n = chunk_at(from, model->dim);
        adl_rng_normals(&rng, from, n, z);
        for (size_t i = 0; i < n; i++)
            grad[from + i] += scale * model->sd[from + i] * z[i];
        if (ratio == 0.0)
            continue;
        adl_rng_normals(&rng2, from, n, z);
        for (size_t i = 0; i < n; i++)
            grad[from + i] += ratio * bowl->h[from + i] * offset(bowl, x, from + i) * z[i];
    }
}

static enum adl_status add_grad(struct adl_model *model, int lane, int worker, const void *theta,
                                const struct adl_samples *samples, void *grad, double *loss_sum,
                                struct adl_err *err)
{
    (void)lane;
    (void)err;
    const struct bowl bowl = bowl_of(model, worker);
    const bool per_sample = model->config->draw == ADL_DRAW_SAMPLE;
    const uint64_t end = samples->first + samples->count;
    if (!per_sample && end != samples->slice_first + samples->slice_count)
        return ADL_OK; /* all of it comes with the slice's last micro-batch */

    const double count = (double)(per_sample ? samples->count : samples->slice_count);
    const double *x = theta;
    double *g = grad;
    for (size_t i = 0; i < model->dim; i++)
        g[i] += count * bowl.h[i] * offset(&bowl, x, i);
    *loss_sum += count * value(&bowl, x, model->dim);
    if (per_sample)
        for (uint64_t index = samples->first; index < end; index++)
            add_noise(model, &bowl, x, samples->stream, index, 1.0, g);
    else
        add_noise(model, &bowl, x, samples->stream, samples->slice_first, count, g);
    return ADL_OK;
}

static enum adl_status eval(struct adl_model *model, const void *theta, double *loss,
                            struct adl_err *err)
{
    (void)err;
    const struct bowl mean = {.h = model->h_mean, .optimum = model->x_mean};
    *loss = value(&mean, theta, model->dim);
    return ADL_OK;
}

/* ---- H steps at once */

struct adl_hop {       /* y = x - optimum becomes keep y + sd z / sqrt(count) */
    double *keep, *sd; /* [dim] */
};

static void hop_free(struct adl_hop *hop)
{
    if (hop == NULL)
        return;
    free(hop->keep);
    free(hop->sd);
    free(hop);
}

static enum adl_status hop_prepare(struct adl_model *model, int worker, const double *lr, int steps,
                                   struct adl_hop **out, struct adl_err *err)
{
    *out = NULL;
    if (model->config->shortcut == ADL_SHORTCUT_NEVER || model->config->draw == ADL_DRAW_SAMPLE ||
        model->config->noise_multiplicative > 0.0)
        return ADL_OK;
    struct adl_hop *hop = calloc(1, sizeof *hop);
    if (hop != NULL) {
        hop->keep = calloc(model->dim, sizeof *hop->keep);
        hop->sd = calloc(model->dim, sizeof *hop->sd);
    }
    if (hop == NULL || hop->keep == NULL || hop->sd == NULL) {
        hop_free(hop);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a shortcut of %zu parameters",
                        model->dim);
    }
    const struct bowl bowl = bowl_of(model, worker);
    for (size_t i = 0; i < model->dim; i++) {
        const struct adl_nqm_map map = adl_nqm_hop_map(bowl.h[i], lr, (size_t)steps);
        hop->keep[i] = map.A;
        hop->sd[i] = model->sd[i] * sqrt(map.V);
    }
    *out = hop;
    return ADL_OK;
}

static void hop_theta(struct adl_model *model, const struct adl_hop *hop, int worker, void *theta,
                      uint64_t stream, uint64_t first, uint64_t count)
{
    const struct bowl bowl = bowl_of(model, worker);
    const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_HOP, stream, first);
    const double scale = 1.0 / sqrt((double)count);
    double *x = theta;
    double z[CHUNK];

    for (size_t from = 0; from < model->dim; from += CHUNK) {
        const size_t n = chunk_at(from, model->dim);
        adl_rng_normals(&rng, from, n, z);
        for (size_t i = from; i < from + n; i++) {
            const double noise = scale * hop->sd[i] * z[i - from];
            const double centre = bowl.optimum != NULL ? bowl.optimum[i] : 0.0;
            x[i] = centre + hop->keep[i] * (x[i] - centre) + noise;
        }
    }
}

/* ---- an optimum that moves */

static bool drifts(const struct adl_model *model)
{
    return model->config->drift > 0.0;
}

/* Move k happens when the trainer has seen k x drift_every samples. */
static void drift_theta(struct adl_model *model, void *theta, double from, double to)
{
    const double every = model->config->drift_every;
    double *x = theta;
    double z[CHUNK];
    for (double k = floor(from / every) + 1.0; k * every <= to; k += 1.0) {
        /* apart from the workers' shapes, whose last number is 0 */
        const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_SHAPE, (uint64_t)k, 1);
        for (size_t at = 0; at < model->dim; at += CHUNK) {
            const size_t n = chunk_at(at, model->dim);
            adl_rng_normals(&rng, at, n, z);
            for (size_t i = 0; i < n; i++)
                x[at + i] -= model->config->drift * z[i];
        }
    }
}

/* ---- what theory may know */

static enum adl_status problem(struct adl_model *model, struct adl_problem *out,
                               struct adl_err *err)
{
    const bool multiplicative = model->config->noise_multiplicative > 0.0;
    if (drifts(model))
        return adl_fail(err, ADL_ERR_INPUT, "model.drift: theory knows no optimum that moves");
    if (!adl_problem_allocate(out, model->dim, multiplicative))
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the constants of %zu parameters",
                        model->dim);
    out->L = out->s2 = out->d0 = out->D2 = 0.0;
    out->mu = INFINITY;
    out->unequal = heterogeneous(model);
    for (size_t i = 0; i < model->dim; i++) {
        const double centre = model->x_mean != NULL ? model->x_mean[i] : 0.0;
        const double h = model->h_mean[i], x = model->config->start - centre;
        out->h[i] = h;
        out->c[i] = model->sd[i] * model->sd[i];
        out->x0[i] = x;
        if (multiplicative)
            out->beta[i] = model->config->noise_multiplicative * h * h;
        out->L = fmax(out->L, h);
        out->mu = fmin(out->mu, h);
        out->s2 += out->c[i];
        out->d0 += 0.5 * h * x * x;
        out->D2 += x * x;
    }
    out->s2_optimum = out->s2;
    if (multiplicative) /* grows with the distance to the optimum: no constant bounds it */
        out->s2 = NAN;
    return ADL_OK;
}

const struct adl_model_ops adl_model_quadratic = {
    .plugin =
        {
            .name = "quadratic",
            .doc = "Noisy quadratic model: exact losses and closed-form moments, any number of "
                   "simulated workers.",
            .options = options,
            .config_size = sizeof(struct adl_quadratic_config),
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
    .heterogeneous = heterogeneous,
    .drifts = drifts,
    .drift = drift_theta,
    .problem = problem,
};
