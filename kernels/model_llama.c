/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/model_llama.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "kernels/cuda_module.h"
#include "kernels/gemm.h"
#include "kernels/llama.h"
#include "kernels/team.h"
#include "kernels/tokens.h"

#define ROW(key_, type_, dflt_, min_, max_, choices_, member, doc_)                                \
    {                                                                                              \
        .key = "model." key_, .type = type_, .dflt = dflt_, .min = min_, .max = max_,              \
        .choices = choices_, .offset = offsetof(struct adl_llama_config, member), .doc = doc_      \
    }
#define SIZE(key_, min_, max_, member, doc_)                                                       \
    ROW(key_, ADL_TYPE_INT, "", min_, max_, NULL, member, doc_ " Unset: the preset's.")

static const struct adl_field options[] = {
    ROW("preset", ADL_TYPE_CHOICE, "tiny", 0, 0, "tiny|3m|30m|microllama-300m|custom", preset,
        "Sizes of the network by one name, each of which may be set beside it: 0.1, 3.2, 30 or 305 "
        "million parameters; `custom`: width, layers and heads must be set."),
    SIZE("vocab", 2, 65536, vocab, "Tokens are below this; a text of bytes needs 256."),
    SIZE("width", 2, 65536, width, "Width of the residual stream."),
    SIZE("layers", 1, 1000, layers, "Number of blocks."),
    SIZE("heads", 1, 1024, heads, "Attention heads; they divide the width."),
    SIZE("kv_heads", 1, 1024, kv_heads,
         "Heads of keys and values, each shared by heads / kv_heads queries."),
    SIZE("hidden", 1, 1e6, hidden, "Width within SwiGLU, about 8/3 of the width."),
    SIZE("context", 1, 1e6, context, "Tokens of a sample."),
    ROW("tie", ADL_TYPE_CHOICE, "preset", 0, 0, "preset|true|false", tie,
        "Whether the head is the embedding's own table; small networks save many parameters."),
    ROW("data", ADL_TYPE_TEXT, "synthetic", 0, 0, NULL, data,
        "What is learned: a text, `.bin` token files as of llm.c, a pattern or a list [a, b] of "
        "them, relative to the experiment; `synthetic`: letters by chance, 1.2 nats a token."),
    ROW("heldout", ADL_TYPE_REAL, "0.05", 0, 1e12, NULL, heldout,
        "The end of the data, kept for evaluation: a fraction of the samples, or from 1 on their "
        "number."),
    ROW("eval_samples", ADL_TYPE_INT, "64", 1, 1e9, NULL, eval_samples,
        "Held-out samples of an evaluation, spread over all of them."),
    ROW("threads", ADL_TYPE_INT, "1", 1, 256, NULL, threads,
        "Threads that share a worker's micro-batch, sample by sample. Their number changes bits."),
    ROW("blas_threads", ADL_TYPE_INT, "1", 1, 256, NULL, blas_threads,
        "OpenBLAS threads of a matrix product. Their number changes bits; several workers or "
        "model.threads use a machine better."),
    ROW("precision", ADL_TYPE_CHOICE, "fp32", 0, 0, "fp32|bf16", precision,
        "Of activations and matrix products; parameters, their gradients and optimizer states are "
        "fp32 in either case. bf16 needs model.kind: llama_cuda."),
    {.key = NULL},
};

enum { INIT_CHUNK = 4096 };

struct hand { /* one thread's share of a lane's work */
    struct adl_llama *net;
    int32_t *windows; /* [documents x (T + 1)] */
    float *grad;      /* [P]; NULL for the first: it has the caller's */
    struct adl_err err;
};

struct lane { /* opened at first use */
    struct adl_team *team;
    struct hand *hands; /* [threads] */
    double *losses;     /* [capacity] by sample */
    size_t capacity;
};

struct adl_model {
    const struct adl_ops *ops;
    const struct adl_llama_config *config;
    struct adl_llama_size size;
    size_t P;
    int documents; /* of one pass */
    int threads;
    uint64_t seed;
    struct adl_tokens *tokens;
    struct adl_queue *queue; /* of init and of the table below */
    float *turns;
    struct lane *lanes; /* [n_lanes + 1], the last for eval */
    int n_lanes;
};

/* ---- sizes */

static int pick(int64_t set, int preset)
{
    return set == ADL_UNSET_INT ? preset : (int)set;
}

static enum adl_status check_size(const struct adl_llama_size *s, struct adl_err *err)
{
    if (s->C < 1 || s->E < 1 || s->H < 1)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.preset: custom needs model.width, model.layers and model.heads");
    if (s->C % (2 * s->H) != 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.heads: %d heads of width %d: model.width must be a multiple of "
                        "2 x model.heads",
                        s->H, s->C);
    if (s->H % s->K != 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.kv_heads: %d does not divide the %d of model.heads", s->K, s->H);
    return ADL_OK;
}

static enum adl_status size_of(const struct adl_llama_config *c, struct adl_llama_size *out,
                               struct adl_err *err)
{
    const struct adl_llama_preset *preset = &adl_llama_presets[c->preset];
    struct adl_llama_size s = {.V = 256, .T = 256, .tied = true};
    if (preset->name)
        s = preset->size;
    s.V = pick(c->vocab, s.V);
    s.C = pick(c->width, s.C);
    s.E = pick(c->layers, s.E);
    s.K = pick(c->kv_heads, s.K == s.H ? pick(c->heads, s.K) : s.K);
    s.H = pick(c->heads, s.H);
    s.F =
        pick(c->hidden, s.F > 0 && c->width == ADL_UNSET_INT ? s.F : (8 * s.C / 3 + 15) / 16 * 16);
    s.T = pick(c->context, s.T);
    s.tied = c->tie == ADL_TIE_PRESET ? s.tied : c->tie == ADL_TIE_YES;
    *out = s;
    return check_size(out, err);
}

/* ---- opening */

static void close_lane(const struct adl_model *model, struct lane *lane)
{
    adl_team_free(lane->team);
    for (int i = 0; lane->hands && i < model->threads; i++) {
        adl_llama_close(lane->hands[i].net);
        free(lane->hands[i].windows);
        model->ops->space->free(lane->hands[i].grad);
    }
    free(lane->hands);
    free(lane->losses);
}

static void close_model(struct adl_model *model)
{
    if (!model)
        return;
    for (int i = 0; model->lanes && i <= model->n_lanes; i++)
        close_lane(model, &model->lanes[i]);
    free(model->lanes);
    adl_tokens_free(model->tokens);
    if (model->turns)
        model->ops->space->free(model->turns);
    if (model->queue)
        model->ops->close(model->queue);
    free(model);
}

static enum adl_status open_parts(struct adl_model *model, const struct adl_model_env *env,
                                  struct adl_err *err)
{
    const struct adl_llama_config *c = model->config;
    ADL_TRY(size_of(c, &model->size, err));
    model->P = adl_llama_n_params(&model->size);
    const struct adl_tokens_source source = {.data = c->data,
                                             .base_dir = env->base_dir,
                                             .vocabulary = model->size.V,
                                             .context = model->size.T,
                                             .heldout = c->heldout,
                                             .seed = env->seed};
    ADL_TRY(adl_tokens_open(&source, &model->tokens, err));
    /* a worker keeps parameters, two moments and a gradient; a lane its gradients; few trainers */
    const struct adl_llama_demand demand = {.passes = (model->n_lanes + 1) * model->threads,
                                            .vectors = 4 * env->n_workers +
                                                       (1 + model->threads) * model->n_lanes + 4};
    ADL_TRY(adl_llama_documents(model->ops, &model->size, &demand, &model->documents, err));
    ADL_TRY(model->ops->open(&model->queue, err));
    model->turns = adl_llama_turns(model->ops, model->queue, &model->size);
    model->lanes = calloc((size_t)model->n_lanes + 1, sizeof *model->lanes);
    if (!model->turns || !model->lanes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a model of %d tokens a sample",
                        model->size.T);
    ADL_TRY(model->ops->finish(model->queue, err)); /* other queues will read the table */
    return adl_gemm_set_threads((int)c->blas_threads, err);
}

static enum adl_status open_on(const struct adl_ops *ops, const void *config,
                               const struct adl_model_env *env, struct adl_model **out,
                               struct adl_err *err)
{
    const struct adl_llama_config *c = config;
    struct adl_model *model = calloc(1, sizeof *model);
    if (!model)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a model");
    model->ops = ops;
    model->config = c;
    model->seed = env->seed;
    model->threads = (int)c->threads;
    model->n_lanes = env->n_lanes;
    const enum adl_status status = open_parts(model, env, err);
    if (status != ADL_OK)
        close_model(model);
    else
        *out = model;
    return status;
}

static enum adl_status open_cpu(const void *config, const struct adl_model_env *env,
                                struct adl_model **out, struct adl_err *err)
{
    const struct adl_llama_config *c = config;
    if (c->precision != ADL_PRECISION_FP32)
        return adl_fail(
            err, ADL_ERR_INPUT,
            "model.precision: bf16 needs model.kind: llama_cuda; llama computes in fp32");
    return open_on(&adl_ops_cpu, config, env, out, err);
}

static enum adl_status open_cuda(const void *config, const struct adl_model_env *env,
                                 struct adl_model **out, struct adl_err *err)
{
    const struct adl_llama_config *c = config;
    const struct adl_cuda_module *cuda;
    ADL_TRY(adl_cuda_module_get(&cuda, err));
    return open_on(c->precision == ADL_PRECISION_BF16 ? cuda->bf16 : cuda->f32, config, env, out,
                   err);
}

static size_t n_params(const struct adl_model *model)
{
    return model->P;
}

static double flops_per_sample(const struct adl_model *model)
{
    return adl_llama_flops(&model->size);
}

static double tokens_per_sample(const struct adl_model *model)
{
    return model->size.T;
}

static enum adl_status describe(const void *config, FILE *out, struct adl_err *err)
{
    struct adl_llama_size size;
    ADL_TRY(size_of(config, &size, err));
    adl_llama_print_layout(&size, out);
    return ADL_OK;
}

static void init_tensor(struct adl_model *model, const struct adl_llama_tensor *t, size_t number,
                        float *theta)
{
    const struct adl_rng rng = adl_rng_make(model->seed, ADL_RNG_MODEL_INIT, number, 0);
    const size_t n = t->rows * t->cols;
    for (size_t from = 0; from < n; from += INIT_CHUNK) {
        const size_t count = n - from < INIT_CHUNK ? n - from : INIT_CHUNK;
        double z[INIT_CHUNK];
        float x[INIT_CHUNK];
        if (t->init > 0)
            adl_rng_normals(&rng, from, count, z);
        for (size_t i = 0; i < count; i++)
            x[i] = t->init > 0 ? (float)(t->init * z[i]) : 1.0f;
        model->ops->upload(model->queue, theta + t->offset + from, x, count * sizeof *x);
    }
}

static enum adl_status init(struct adl_model *model, void *theta, struct adl_err *err)
{
    for (size_t i = 0; i < adl_llama_n_tensors(&model->size); i++) {
        const struct adl_llama_tensor t = adl_llama_tensor(&model->size, i);
        init_tensor(model, &t, i, theta);
    }
    return model->ops->finish(model->queue, err);
}

/* ---- passes over samples */

/* What a lane's hands compute together. */
struct work {
    struct adl_model *model;
    struct lane *lane;
    const float *theta;
    float *grad; /* NULL: losses only */
    uint64_t stream, first, count;
    bool heldout; /* first + i counts held-out samples, spread over all of them */
    int hands;    /* that have samples */
};

static enum adl_status fetch(const struct work *w, uint64_t i, int32_t *window, struct adl_err *err)
{
    const struct adl_tokens *tokens = w->model->tokens;
    uint64_t number;
    if (w->heldout)
        number = adl_tokens_training(tokens) + i * adl_tokens_heldout(tokens) / w->count;
    else
        number = adl_tokens_sample(tokens, w->stream, w->first + i);
    return adl_tokens_window(tokens, number, window, err);
}

/* Samples [from, to) of the work, a chunk at a time. */
static enum adl_status run_samples(const struct work *w, struct hand *hand, float *grad,
                                   uint64_t from, uint64_t to)
{
    const struct adl_model *model = w->model;
    const size_t window = (size_t)model->size.T + 1;
    while (from < to) {
        const uint64_t left = to - from;
        const int n = left < (uint64_t)model->documents ? (int)left : model->documents;
        for (int i = 0; i < n; i++)
            ADL_TRY(fetch(w, from + (uint64_t)i, hand->windows + (size_t)i * window, &hand->err));
        ADL_TRY(adl_llama_run(hand->net, w->theta, hand->windows, n, grad, w->lane->losses + from,
                              &hand->err));
        from += (uint64_t)n;
    }
    return ADL_OK;
}

static void hand_main(void *arg, int i)
{
    const struct work *w = arg;
    struct hand *hand = &w->lane->hands[i];
    hand->err.status = ADL_OK;
    if (i >= w->hands)
        return;
    float *grad = w->grad;
    if (grad && i > 0) {
        grad = hand->grad;
        w->model->ops->zero(adl_llama_queue(hand->net), grad, w->model->P);
    }
    const uint64_t hands = (uint64_t)w->hands, each = w->count / hands, more = w->count % hands;
    const uint64_t at = (uint64_t)i, from = at * each + (at < more ? at : more);
    const enum adl_status status = run_samples(w, hand, grad, from, from + each + (at < more));
    if (status != ADL_OK)
        adl_fail(&hand->err, status, "thread %d of the model failed", i); /* unless it says why */
}

static enum adl_status open_hand(const struct adl_model *model, struct hand *hand, bool first,
                                 struct adl_err *err)
{
    const size_t tokens = (size_t)model->documents * ((size_t)model->size.T + 1);
    ADL_TRY(
        adl_llama_open(model->ops, &model->size, model->turns, model->documents, &hand->net, err));
    hand->windows = malloc(tokens * sizeof *hand->windows);
    if (!first)
        hand->grad = model->ops->space->alloc(model->P, ADL_F32);
    if (!hand->windows || (!first && !hand->grad))
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a thread's gradient of %zu parameters",
                        model->P);
    return ADL_OK;
}

static enum adl_status open_lane(const struct adl_model *model, struct lane *lane, uint64_t count,
                                 struct adl_err *err)
{
    if (!lane->hands) {
        lane->hands = calloc((size_t)model->threads, sizeof *lane->hands);
        if (!lane->hands)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d threads", model->threads);
        for (int i = 0; i < model->threads; i++)
            ADL_TRY(open_hand(model, &lane->hands[i], i == 0, err));
    }
    if (!lane->team)
        ADL_TRY(adl_team_create(model->threads, &lane->team, err));
    if (count <= lane->capacity)
        return ADL_OK;
    double *losses = realloc(lane->losses, count * sizeof *losses);
    if (!losses)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the losses of %llu samples",
                        (unsigned long long)count);
    lane->losses = losses;
    lane->capacity = count;
    return ADL_OK;
}

/* Threads' gradients are added in their order, each element by itself: the same bits however the
 * elements are split. */
static void add_gradients(void *arg, int i)
{
    const struct work *w = arg;
    const struct adl_model *model = w->model;
    const size_t each = model->P / (size_t)model->threads, from = (size_t)i * each;
    const size_t n = i + 1 < model->threads ? each : model->P - from;
    struct hand *hand = &w->lane->hands[i];
    for (int h = 1; h < w->hands; h++)
        model->ops->add(adl_llama_queue(hand->net), w->grad + from, w->lane->hands[h].grad + from,
                        n);
    model->ops->finish(adl_llama_queue(hand->net), &hand->err);
}

static enum adl_status first_failure(const struct work *w, struct adl_err *err)
{
    for (int i = 0; i < w->model->threads; i++) {
        const struct adl_err *found = &w->lane->hands[i].err;
        if (found->status != ADL_OK)
            return adl_fail(err, found->status, "%s", found->message);
    }
    return ADL_OK;
}

static enum adl_status run_work(struct work *w, double *loss_sum, struct adl_err *err)
{
    const struct adl_model *model = w->model;
    ADL_TRY(open_lane(model, w->lane, w->count, err));
    w->hands = w->count < (uint64_t)model->threads ? (int)w->count : model->threads;
    adl_team_run(w->lane->team, hand_main, w);
    ADL_TRY(first_failure(w, err));
    if (w->grad && w->hands > 1)
        adl_team_run(w->lane->team, add_gradients, w);
    ADL_TRY(first_failure(w, err));
    for (uint64_t i = 0; i < w->count; i++)
        *loss_sum += w->lane->losses[i];
    return ADL_OK;
}

static enum adl_status add_grad(struct adl_model *model, int lane, int worker, const void *theta,
                                const struct adl_samples *samples, void *grad, double *loss_sum,
                                struct adl_err *err)
{
    (void)worker;
    struct work work = {.model = model,
                        .lane = &model->lanes[lane],
                        .theta = theta,
                        .grad = grad,
                        .stream = samples->stream,
                        .first = samples->first,
                        .count = samples->count};
    return run_work(&work, loss_sum, err);
}

static enum adl_status eval(struct adl_model *model, const void *theta, double *loss,
                            struct adl_err *err)
{
    const uint64_t all = adl_tokens_heldout(model->tokens);
    const uint64_t wanted = (uint64_t)model->config->eval_samples;
    struct work work = {.model = model,
                        .lane = &model->lanes[model->n_lanes],
                        .theta = theta,
                        .count = wanted < all ? wanted : all,
                        .heldout = true};
    double sum = 0;
    ADL_TRY(run_work(&work, &sum, err));
    *loss = sum / (double)work.count;
    return ADL_OK;
}

#define LLAMA(name_, doc_, space_, open_)                                                          \
    {                                                                                              \
        .plugin = {.name = name_,                                                                  \
                   .doc = doc_,                                                                    \
                   .options = options,                                                             \
                   .config_size = sizeof(struct adl_llama_config)},                                \
        .space = space_, .dtype = ADL_F32, .open = open_, .close = close_model,                    \
        .n_params = n_params, .flops_per_sample = flops_per_sample,                                \
        .tokens_per_sample = tokens_per_sample, .init = init, .add_grad = add_grad, .eval = eval,  \
        .eval_exact = false, .describe = describe                                                  \
    }

const struct adl_model_ops adl_model_llama =
    LLAMA("llama", "LLaMA-like language model on text or token files, fp32 on the CPU.",
          &adl_space_cpu, open_cpu);

const struct adl_model_ops adl_model_llama_cuda =
    LLAMA("llama_cuda", "The same on an NVIDIA GPU, fp32 or bf16; workers share it on streams.",
          &adl_space_cuda, open_cuda);
