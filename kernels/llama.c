/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/llama.h"

#include <math.h>
#include <stdlib.h>

static const float eps = 1e-5f; /* of the norms */

/* Rows of logits at once: so many floats, so that a large vocabulary does not cost memory; more
 * only where fewer rows would not keep the operators busy. */
enum { LOGITS = 1 << 20 };

struct block { /* activations of one block, N rows each; sum of residuals, then norm, then ... */
    float *in; /* (N, C) residual stream at its start */
    float *norm1, *rstd1;    /* (N, C), [N] */
    float *qkv;              /* (N, W), rotated */
    float *mixed, *lse;      /* (N, H D), (B, H, T) */
    float *middle;           /* (N, C) residual stream between its halves */
    float *norm2, *rstd2;    /* (N, C), [N] */
    float *gate_up, *hidden; /* (N, 2F), (N, F) */
};

struct adl_llama {
    const struct adl_ops *ops;
    struct adl_llama_size size;
    struct adl_queue *queue;
    const float *turns;
    int documents;

    float *pool;               /* all of what follows, in the space of ops */
    float *weights;            /* [P] parameters rounded for products; NULL where ops do not */
    struct block *blocks;      /* [E] */
    float *added;              /* (N, C) what a half block adds to the residual stream */
    float *end, *norm, *rstd;  /* (N, C) residual stream at the end, its norm, [N] */
    float *logits;             /* (logit_rows, V) */
    float *losses;             /* [N] */
    float *dx;                 /* (N, C) gradient of the residual stream */
    float *dwide;              /* (N, max of W, F) */
    float *dnorm;              /* (N, C) */
    int32_t *inputs, *targets; /* [N] */
    int logit_rows;

    int32_t *host_tokens; /* [2N] */
    float *host_losses;   /* [N] */
};

static int head_width(const struct adl_llama_size *s)
{
    return s->C / s->H;
}

static int qkv_width(const struct adl_llama_size *s)
{
    return (s->H + 2 * s->K) * head_width(s);
}

static int logit_rows(const struct adl_ops *ops, const struct adl_llama_size *s, size_t N)
{
    const size_t few = (size_t)(LOGITS / s->V), busy = (size_t)ops->pass_tokens / 16;
    const size_t rows = few > busy ? few : busy;
    return (int)(rows < N ? rows : N);
}

/* ---- memory */

/* Hands out pieces of a pool; counts only where it is NULL. Pieces start at cache lines. */
struct allotment {
    float *pool;
    size_t used;
    int activation_bytes; /* of ops */
    bool rounds;          /* ops' products take rounded parameters */
};

static float *take(struct allotment *a, size_t n)
{
    const size_t at = a->used;
    a->used += (n + 15) / 16 * 16;
    return a->pool ? a->pool + at : NULL;
}

/* n elements of an activation. */
static float *take_activation(struct allotment *a, size_t n)
{
    return take(a, (n * (size_t)a->activation_bytes + 3) / 4);
}

static void lay_out(struct adl_llama *net, const struct adl_llama_size *s, size_t B,
                    struct block *blocks, struct allotment *a)
{
    const size_t N = B * (size_t)s->T, C = (size_t)s->C, F = (size_t)s->F;
    const size_t W = (size_t)qkv_width(s);
    for (int e = 0; e < s->E; e++) {
        struct block b = {.norm1 = take_activation(a, N * C), .rstd1 = take(a, N)};
        b.qkv = take_activation(a, N * W);
        b.mixed = take_activation(a, N * C);
        b.lse = take(a, N * (size_t)s->H);
        b.middle = take_activation(a, N * C);
        b.norm2 = take_activation(a, N * C);
        b.rstd2 = take(a, N);
        b.gate_up = take_activation(a, N * 2 * F);
        b.hidden = take_activation(a, N * F);
        b.in = take_activation(a, N * C);
        if (blocks)
            blocks[e] = b;
    }
    net->weights = a->rounds ? take_activation(a, adl_llama_n_params(s)) : NULL;
    net->added = take_activation(a, N * C);
    net->end = take_activation(a, N * C);
    net->norm = take_activation(a, N * C);
    net->rstd = take(a, N);
    net->logits = take_activation(a, (size_t)net->logit_rows * (size_t)s->V);
    net->losses = take(a, N);
    net->dx = take_activation(a, N * C);
    net->dwide = take_activation(a, N * (W > F ? W : F));
    net->dnorm = take_activation(a, N * C);
    net->inputs = (int32_t *)take(a, N);
    net->targets = (int32_t *)take(a, N);
}

size_t adl_llama_activations(const struct adl_ops *ops, const struct adl_llama_size *size,
                             int documents)
{
    const size_t N = (size_t)documents * (size_t)size->T;
    struct adl_llama unused = {.logit_rows = logit_rows(ops, size, N)};
    struct allotment a = {.activation_bytes = ops->activation_bytes, .rounds = ops->round != NULL};
    lay_out(&unused, size, (size_t)documents, NULL, &a);
    return a.used;
}

enum adl_status adl_llama_open(const struct adl_ops *ops, const struct adl_llama_size *size,
                               const float *turns, int documents, struct adl_llama **out,
                               struct adl_err *err)
{
    const size_t N = (size_t)documents * (size_t)size->T;
    const size_t floats = adl_llama_activations(ops, size, documents);
    struct adl_llama *net = calloc(1, sizeof *net);
    if (!net)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a network");
    *net = (struct adl_llama){.ops = ops, .size = *size, .turns = turns, .documents = documents};
    net->blocks = calloc((size_t)size->E, sizeof *net->blocks);
    net->host_tokens = malloc(2 * N * sizeof *net->host_tokens);
    net->host_losses = malloc(N * sizeof *net->host_losses);
    net->pool = ops->space->alloc(floats, ADL_F32);
    enum adl_status status = ADL_OK;
    if (!net->blocks || !net->host_tokens || !net->host_losses || !net->pool)
        status = adl_fail(err, ADL_ERR_NOMEM,
                          "no memory for the activations of %d documents of %d tokens: %zu bytes",
                          documents, size->T, 4 * floats);
    else
        status = ops->open(&net->queue, err);
    if (status != ADL_OK) {
        adl_llama_close(net);
        return status;
    }
    struct allotment a = {
        .pool = net->pool, .activation_bytes = ops->activation_bytes, .rounds = ops->round != NULL};
    net->logit_rows = logit_rows(ops, size, N);
    lay_out(net, size, (size_t)documents, net->blocks, &a);
    *out = net;
    return ADL_OK;
}

void adl_llama_close(struct adl_llama *net)
{
    if (!net)
        return;
    if (net->queue)
        net->ops->close(net->queue);
    net->ops->space->free(net->pool);
    free(net->blocks);
    free(net->host_tokens);
    free(net->host_losses);
    free(net);
}

struct adl_queue *adl_llama_queue(const struct adl_llama *net)
{
    return net->queue;
}

float *adl_llama_turns(const struct adl_ops *ops, struct adl_queue *queue,
                       const struct adl_llama_size *size)
{
    const int half = head_width(size) / 2;
    const size_t n = (size_t)size->T * (size_t)half * 2;
    float *host = malloc(n * sizeof *host), *turns = ops->space->alloc(n, ADL_F32);
    if (host && turns) {
        for (int t = 0; t < size->T; t++)
            for (int i = 0; i < half; i++) {
                const double angle = t * pow(10000.0, -(double)i / half);
                float *turn = host + 2 * ((size_t)t * (size_t)half + (size_t)i);
                turn[0] = (float)cos(angle);
                turn[1] = (float)sin(angle);
            }
        ops->upload(queue, turns, host, n * sizeof *host);
    } else {
        ops->space->free(turns);
        turns = NULL;
    }
    free(host);
    return turns;
}

/* ---- passes */

/* One pass: N rows of B documents. */
struct pass {
    struct adl_llama *net;
    const float *theta;
    float *grad;
    int N;
    struct adl_attention attention;
};

/* The parameters from `offset` on, as products take them. */
static const float *weights_at(const struct pass *p, size_t offset)
{
    const struct adl_llama *net = p->net;
    if (!net->weights)
        return p->theta + offset;
    return (const float *)((const char *)net->weights +
                           offset * (size_t)net->ops->activation_bytes);
}

static size_t tensor_at(const struct pass *p, int block, enum adl_llama_part part)
{
    return adl_llama_tensor(&p->net->size, 1 + (size_t)block * ADL_LLAMA_PARTS + part).offset;
}

static size_t norm_at(const struct pass *p)
{
    return adl_llama_tensor(&p->net->size, 1 + (size_t)p->net->size.E * ADL_LLAMA_PARTS).offset;
}

static size_t head_at(const struct pass *p)
{
    const struct adl_llama_size *s = &p->net->size;
    return s->tied ? 0 : adl_llama_tensor(s, adl_llama_n_tensors(s) - 1).offset;
}

static void forward_block(const struct pass *p, int e, const float *before, const float *added)
{
    const struct adl_ops *ops = p->net->ops;
    struct adl_queue *queue = p->net->queue;
    const struct adl_llama_size *s = &p->net->size;
    struct block *b = &p->net->blocks[e];
    const float *norm1 = p->theta + tensor_at(p, e, ADL_LLAMA_NORM1);
    const float *qkv = weights_at(p, tensor_at(p, e, ADL_LLAMA_QKV));
    const float *out = weights_at(p, tensor_at(p, e, ADL_LLAMA_OUT));
    const float *norm2 = p->theta + tensor_at(p, e, ADL_LLAMA_NORM2);
    const float *gate_up = weights_at(p, tensor_at(p, e, ADL_LLAMA_GATE_UP));
    const float *down = weights_at(p, tensor_at(p, e, ADL_LLAMA_DOWN));
    const int N = p->N, C = s->C, F = s->F;

    ops->rmsnorm(queue, b->norm1, b->in, b->rstd1, before, added, norm1, N, C, eps);
    ops->matmul(queue, b->qkv, b->norm1, qkv, N, C, qkv_width(s));
    ops->rope(queue, b->qkv, p->net->turns, N, &p->attention, 0);
    ops->attention(queue, b->mixed, b->lse, b->qkv, &p->attention);
    ops->matmul(queue, p->net->added, b->mixed, out, N, C, C);
    ops->rmsnorm(queue, b->norm2, b->middle, b->rstd2, b->in, p->net->added, norm2, N, C, eps);
    ops->matmul(queue, b->gate_up, b->norm2, gate_up, N, C, 2 * F);
    ops->swiglu(queue, b->hidden, b->gate_up, N, F);
    ops->matmul(queue, p->net->added, b->hidden, down, N, F, C);
}

static void forward(const struct pass *p)
{
    struct adl_llama *net = p->net;
    const struct adl_ops *ops = net->ops;
    const int N = p->N, C = net->size.C, E = net->size.E;
    /* the first block's residual stream is the embedding: nothing to add */
    ops->embed(net->queue, net->blocks[0].in, p->theta, net->inputs, N, C);
    forward_block(p, 0, net->blocks[0].in, NULL);
    for (int e = 1; e < E; e++)
        forward_block(p, e, net->blocks[e - 1].middle, net->added);
    ops->rmsnorm(net->queue, net->norm, net->end, net->rstd, net->blocks[E - 1].middle, net->added,
                 p->theta + norm_at(p), N, C, eps);
}

/* Row n of x (N, C). */
static float *row(const struct adl_llama *net, float *x, int n)
{
    return (float *)((char *)x + (size_t)n * net->size.C * net->ops->activation_bytes);
}

/* Losses, and where there is a gradient to be had, the head's and that of the final norm's
 * output, a few rows of logits at a time. */
static void head(const struct pass *p)
{
    struct adl_llama *net = p->net;
    const struct adl_ops *ops = net->ops;
    const int C = net->size.C, V = net->size.V;
    const float *w = weights_at(p, head_at(p)), scale = 1.0f / (float)net->size.T;
    for (int n = 0; n < p->N; n += net->logit_rows) {
        const int rows = p->N - n < net->logit_rows ? p->N - n : net->logit_rows;
        const float *in = row(net, net->norm, n);
        ops->matmul(net->queue, net->logits, in, w, rows, C, V);
        ops->cross_entropy(net->queue, net->losses + n, net->logits, net->targets + n, rows, V,
                           scale);
        if (p->grad)
            ops->matmul_backward(net->queue, row(net, net->dnorm, n), p->grad + head_at(p),
                                 net->logits, in, w, rows, C, V);
    }
}

static void backward_block(const struct pass *p, int e)
{
    struct adl_llama *net = p->net;
    const struct adl_ops *ops = net->ops;
    struct adl_queue *queue = net->queue;
    const struct adl_llama_size *s = &net->size;
    const struct block *b = &net->blocks[e];
    size_t at[ADL_LLAMA_PARTS];
    for (int part = 0; part < ADL_LLAMA_PARTS; part++)
        at[part] = tensor_at(p, e, part);
    const float *w = p->theta;
    float *g = p->grad, *dx = net->dx;
    const int N = p->N, C = s->C, F = s->F;

    ops->matmul_backward(queue, net->dwide, g + at[ADL_LLAMA_DOWN], dx, b->hidden,
                         weights_at(p, at[ADL_LLAMA_DOWN]), N, F, C);
    ops->swiglu_backward(queue, b->gate_up, net->dwide, b->gate_up, N, F);
    ops->matmul_backward(queue, net->dnorm, g + at[ADL_LLAMA_GATE_UP], b->gate_up, b->norm2,
                         weights_at(p, at[ADL_LLAMA_GATE_UP]), N, C, 2 * F);
    ops->rmsnorm_backward(queue, dx, g + at[ADL_LLAMA_NORM2], net->dnorm, b->middle, b->rstd2,
                          w + at[ADL_LLAMA_NORM2], N, C);
    ops->matmul_backward(queue, net->dnorm, g + at[ADL_LLAMA_OUT], dx, b->mixed,
                         weights_at(p, at[ADL_LLAMA_OUT]), N, C, C);
    ops->attention_backward(queue, net->dwide, net->dnorm, b->qkv, b->mixed, b->lse, &p->attention);
    ops->rope(queue, net->dwide, net->turns, N, &p->attention, 1);
    ops->matmul_backward(queue, net->dnorm, g + at[ADL_LLAMA_QKV], net->dwide, b->norm1,
                         weights_at(p, at[ADL_LLAMA_QKV]), N, C, qkv_width(s));
    ops->rmsnorm_backward(queue, dx, g + at[ADL_LLAMA_NORM1], net->dnorm, b->in, b->rstd1,
                          w + at[ADL_LLAMA_NORM1], N, C);
}

static void backward(const struct pass *p)
{
    struct adl_llama *net = p->net;
    const struct adl_ops *ops = net->ops;
    const int N = p->N, C = net->size.C;
    ops->zero(net->queue, net->dx, ((size_t)N * C * ops->activation_bytes + 3) / 4);
    ops->rmsnorm_backward(net->queue, net->dx, p->grad + norm_at(p), net->dnorm, net->end,
                          net->rstd, p->theta + norm_at(p), N, C);
    for (int e = net->size.E - 1; e >= 0; e--)
        backward_block(p, e);
    ops->embed_backward(net->queue, p->grad, net->dx, net->inputs, N, C);
}

/* Windows to inputs and, a token later, targets. */
static void upload(struct adl_llama *net, const int32_t *windows, int n)
{
    const int T = net->size.T;
    const size_t N = (size_t)n * (size_t)T;
    int32_t *inputs = net->host_tokens, *targets = inputs + N;
    for (int d = 0; d < n; d++)
        for (int t = 0; t < T; t++) {
            const int32_t *token = windows + (size_t)d * (T + 1) + t;
            inputs[(size_t)d * T + t] = token[0];
            targets[(size_t)d * T + t] = token[1];
        }
    net->ops->upload(net->queue, net->inputs, inputs, N * sizeof *inputs);
    net->ops->upload(net->queue, net->targets, targets, N * sizeof *targets);
}

enum adl_status adl_llama_run(struct adl_llama *net, const float *theta, const int32_t *windows,
                              int n, float *grad, double *losses, struct adl_err *err)
{
    const struct adl_llama_size *s = &net->size;
    const struct pass pass = {
        .net = net,
        .theta = theta,
        .grad = grad,
        .N = n * s->T,
        .attention = {.B = n, .T = s->T, .H = s->H, .K = s->K, .D = head_width(s)}};
    upload(net, windows, n);
    if (net->weights)
        net->ops->round(net->queue, net->weights, theta, adl_llama_n_params(s));
    forward(&pass);
    head(&pass);
    if (grad)
        backward(&pass);
    net->ops->download(net->queue, net->host_losses, net->losses,
                       (size_t)pass.N * sizeof *net->losses);
    ADL_TRY(net->ops->finish(net->queue, err));
    for (int d = 0; d < n; d++) {
        double sum = 0;
        for (int t = 0; t < s->T; t++)
            sum += (double)net->host_losses[(size_t)d * s->T + t];
        losses[d] = sum / s->T;
    }
    return ADL_OK;
}
