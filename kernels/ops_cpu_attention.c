/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention by tiles (Dao et al. 2022): scores exist for one tile at a time, forward keeps
 * a running maximum and sum for each query, backward recomputes the scores from their log-sum. */
#include <math.h>
#include <string.h>

#include "kernels/gemm.h"
#include "kernels/ops_cpu_parts.h"
#include "kernels/ops_cpu_simd.h"

_Static_assert(ADL_TILE_KEYS % ADL_TILE_QUERIES == 0, "every query of a tile sees its first key");

/* One tile: queries [q, q + nq) of a document by keys [k, k + nk), none of which lies beyond the
 * last query. */
struct tile {
    int q, nq, k, nk;
};

static struct tile tile_at(int q, int k, int T)
{
    struct tile t = {.q = q, .k = k};
    t.nq = T - q < ADL_TILE_QUERIES ? T - q : ADL_TILE_QUERIES;
    const int keys = q + t.nq - k;
    t.nk = keys < ADL_TILE_KEYS ? keys : ADL_TILE_KEYS;
    return t;
}

/* Keys of the tile that query row i may look at: at least one. */
static inline int visible(const struct tile *t, int i)
{
    const int n = t->q + i + 1 - t->k;
    return n < t->nk ? n : t->nk;
}

static struct adl_matrix plain(const float *v, int stride)
{
    return (struct adl_matrix){.v = v, .stride = stride};
}

static struct adl_matrix transposed(const float *v, int stride)
{
    return (struct adl_matrix){.v = v, .stride = stride, .transposed = true};
}

/* Scores to probabilities before division: p = exp(s - running maximum); out's rows so far are
 * brought to the new maximum. */
ADL_SIMD static void soften(struct adl_queue *queue, const struct tile *t, float *out, int stride,
                            int D)
{
    for (int i = 0; i < t->nq; i++) {
        float *s = queue->scores + (size_t)i * t->nk;
        const int n = visible(t, i);
        float max = adl_max(s, n);
        max = max > queue->max[i] ? max : queue->max[i];
        const float sum = adl_exp_shifted(s, s, max, n);
        const float keep = adl_exp(queue->max[i] - max);
        queue->sum[i] = queue->sum[i] * keep + sum;
        queue->max[i] = max;
        float *restrict o = out + (size_t)i * stride;
        for (int d = 0; t->k > 0 && d < D; d++)
            o[d] *= keep;
        memset(s + n, 0, (size_t)(t->nk - n) * sizeof *s);
    }
}

ADL_SIMD static void divide(const struct adl_queue *queue, int nq, float *out, int stride,
                            float *lse, int D)
{
    for (int i = 0; i < nq; i++) {
        const float factor = 1.0f / queue->sum[i];
        float *restrict o = out + (size_t)i * stride;
        for (int d = 0; d < D; d++)
            o[d] *= factor;
        lse[i] = queue->max[i] + logf(queue->sum[i]);
    }
}

void adl_cpu_attention(struct adl_queue *queue, float *out, float *lse, const float *qkv,
                       const struct adl_attention *size)
{
    const int T = size->T, H = size->H, D = size->D, width = (H + 2 * size->K) * D;
    const float scale = 1.0f / sqrtf((float)D);
    for (int bh = 0; bh < size->B * H; bh++) {
        const int b = bh / H, h = bh % H, kv = h / (H / size->K);
        const float *query = qkv + (size_t)b * T * width + (size_t)h * D;
        const float *key = qkv + (size_t)b * T * width + (size_t)(H + kv) * D;
        const float *value = key + (size_t)size->K * D;
        for (int q = 0; q < T; q += ADL_TILE_QUERIES) {
            float *o = out + ((size_t)b * T + q) * H * D + (size_t)h * D;
            struct tile t = tile_at(q, 0, T);
            for (int i = 0; i < t.nq; i++) {
                queue->max[i] = -INFINITY;
                queue->sum[i] = 0.0f;
            }
            for (int k = 0; k < q + t.nq; k += ADL_TILE_KEYS) {
                t = tile_at(q, k, T);
                adl_gemm(t.nq, t.nk, D, scale, plain(query + (size_t)q * width, width),
                         transposed(key + (size_t)k * width, width), 0.0f, queue->scores, t.nk);
                soften(queue, &t, o, H * D, D);
                adl_gemm(t.nq, D, t.nk, 1.0f, plain(queue->scores, t.nk),
                         plain(value + (size_t)k * width, width), k > 0 ? 1.0f : 0.0f, o, H * D);
            }
            divide(queue, t.nq, o, H * D, lse + (size_t)bh * T + q, D);
        }
    }
}

/* scores = probabilities, from the log-sums. */
ADL_SIMD static void probabilities(struct adl_queue *queue, const struct tile *t, const float *lse)
{
    for (int i = 0; i < t->nq; i++) {
        float *s = queue->scores + (size_t)i * t->nk;
        const int n = visible(t, i);
        for (int j = 0; j < n; j++)
            s[j] = adl_exp(s[j] - lse[i]);
        memset(s + n, 0, (size_t)(t->nk - n) * sizeof *s);
    }
}

/* dscores = p (dp - sum over keys of p dp): sum [nq] holds the latter, as out . dout. */
ADL_SIMD static void score_gradients(struct adl_queue *queue, const struct tile *t)
{
    for (int i = 0; i < t->nq; i++) {
        const float *restrict p = queue->scores + (size_t)i * t->nk;
        float *restrict d = queue->dscores + (size_t)i * t->nk;
        for (int j = 0; j < t->nk; j++)
            d[j] = p[j] * (d[j] - queue->sum[i]);
    }
}

ADL_SIMD static void row_dots(struct adl_queue *queue, int nq, const float *x, const float *y,
                              int stride, int D)
{
    for (int i = 0; i < nq; i++)
        queue->sum[i] = adl_dot(x + (size_t)i * stride, y + (size_t)i * stride, D);
}

/* What one head's backward pass looks at; all at the document's first token. */
struct head {
    const float *query, *key, *value, *out, *dout, *lse;
    float *dquery, *dkey, *dvalue;
    int width, out_width, D;
    float scale;
};

static void tile_backward(struct adl_queue *queue, const struct head *h, const struct tile *t)
{
    const int D = h->D, width = h->width, nq = t->nq, nk = t->nk;
    const size_t q = (size_t)t->q * width, k = (size_t)t->k * width;
    const float *dout = h->dout + (size_t)t->q * h->out_width;
    adl_gemm(nq, nk, D, h->scale, plain(h->query + q, width), transposed(h->key + k, width), 0.0f,
             queue->scores, nk);
    probabilities(queue, t, h->lse + t->q);
    adl_gemm(nk, D, nq, 1.0f, transposed(queue->scores, nk), plain(dout, h->out_width), 1.0f,
             h->dvalue + k, width);
    adl_gemm(nq, nk, D, 1.0f, plain(dout, h->out_width), transposed(h->value + k, width), 0.0f,
             queue->dscores, nk);
    score_gradients(queue, t);
    adl_gemm(nq, D, nk, h->scale, plain(queue->dscores, nk), plain(h->key + k, width), 1.0f,
             h->dquery + q, width);
    adl_gemm(nk, D, nq, h->scale, transposed(queue->dscores, nk), plain(h->query + q, width), 1.0f,
             h->dkey + k, width);
}

static void head_backward(struct adl_queue *queue, const struct head *h, int T)
{
    for (int q = 0; q < T; q += ADL_TILE_QUERIES) {
        struct tile t = tile_at(q, 0, T);
        const size_t at = (size_t)q * h->out_width;
        row_dots(queue, t.nq, h->out + at, h->dout + at, h->out_width, h->D);
        for (int k = 0; k < q + t.nq; k += ADL_TILE_KEYS) {
            t = tile_at(q, k, T);
            tile_backward(queue, h, &t);
        }
    }
}

void adl_cpu_attention_backward(struct adl_queue *queue, float *dqkv, const float *dout,
                                const float *qkv, const float *out, const float *lse,
                                const struct adl_attention *size)
{
    const int T = size->T, H = size->H, K = size->K, D = size->D, width = (H + 2 * K) * D;
    memset(dqkv, 0, (size_t)size->B * T * width * sizeof *dqkv);
    for (int bh = 0; bh < size->B * H; bh++) {
        const int b = bh / H, h = bh % H, kv = h / (H / K);
        const size_t row = (size_t)b * T * width, out_row = ((size_t)b * T * H + h) * D;
        const size_t query = row + (size_t)h * D, key = row + (size_t)(H + kv) * D;
        const size_t value = key + (size_t)K * D;
        const struct head head = {.query = qkv + query,
                                  .key = qkv + key,
                                  .value = qkv + value,
                                  .out = out + out_row,
                                  .dout = dout + out_row,
                                  .lse = lse + (size_t)bh * T,
                                  .dquery = dqkv + query,
                                  .dkey = dqkv + key,
                                  .dvalue = dqkv + value,
                                  .width = width,
                                  .out_width = H * D,
                                  .D = D,
                                  .scale = 1.0f / sqrtf((float)D)};
        head_backward(queue, &head, T);
    }
}
