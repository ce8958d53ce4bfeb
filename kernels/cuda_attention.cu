/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_attention.cuh"

#include <math.h>

#include "kernels/cuda_attention_tiles.cuh"

namespace
{

/* Over the 16 threads that share rows. */
__device__ __forceinline__ float row_sum(float x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
    return x;
}

__device__ __forceinline__ float row_max(float x)
{
    for (int distance = SIDE / 2; distance > 0; distance /= 2)
        x = adl_max(x, __shfl_xor_sync(0xFFFFFFFFu, x, distance));
    return x;
}

/* Running maximum (of scores times log2 e) and sum of a thread's rows. */
struct softmax {
    float max[ROWS], sum[ROWS];
};

/* Scores to exp(score - maximum); brings what has been summed so far to the new maximum. */
template <int D>
__device__ __forceinline__ void soften(scores &s, softmax &run, sums<D> &out, float scale,
                                       bool diagonal)
{
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    for (int i = 0; i < ROWS; i++) {
        float max = run.max[i];
        for (int j = 0; j < ROWS; j++) {
            const bool hidden = diagonal && x + SIDE * j > ROWS * y + i;
            s[i][j] = hidden ? -INFINITY : s[i][j] * scale;
            max = adl_max(s[i][j], max);
        }
        max = row_max(max);
        const float keep = exp2f(run.max[i] - max);
        float sum = 0.0f;
        for (int j = 0; j < ROWS; j++) {
            s[i][j] = exp2f(s[i][j] - max);
            sum += s[i][j];
        }
        run.sum[i] = run.sum[i] * keep + row_sum(sum);
        run.max[i] = max;
        out.scale_row(i, keep);
    }
}

/* Block (x, y, z): a tile of queries, the longest first, of head y of document z. */
template <class E, int D>
__global__ void __launch_bounds__(THREADS, 2)
    forward_kernel(E *out, float *lse, const E *qkv, sizes s, float scale)
{
    ADL_SHARED_AT_LAUNCH(float, queries);
    float *other = queries + tile_floats<D>, *p = other + tile_floats<D>;
    const int h = blockIdx.y, document = blockIdx.z, kv = s.H + h / (s.H / s.K);
    const int tile = gridDim.x - 1 - blockIdx.x, first = tile * TILE;
    const head_rows<const E> keys = in_qkv(qkv, s, document, kv);
    const head_rows<const E> values = in_qkv(qkv, s, document, kv + s.K);
    sums<D> sum;
    softmax run;
    sum.clear();
    for (int i = 0; i < ROWS; i++) {
        run.max[i] = -INFINITY;
        run.sum[i] = 0.0f;
    }
    load_tile<E, D>(queries, in_qkv(qkv, s, document, h), first, s);
    for (int k = 0; k <= tile; k++) {
        scores score;
        load_tile<E, D>(other, keys, k * TILE, s);
        __syncthreads();
        dots<D>(score, queries, other);
        soften(score, run, sum, scale * log2_e, k == tile);
        write_scores(p, score);
        __syncthreads();
        load_tile<E, D>(other, values, k * TILE, s);
        __syncthreads();
        sum.add_product(p, other);
        __syncthreads();
    }
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    float factor[ROWS];
    for (int i = 0; i < ROWS; i++) {
        const int t = first + ROWS * y + i;
        factor[i] = 1.0f / run.sum[i];
        if (x == 0 && t < s.T)
            lse[(size_t(document) * s.H + h) * s.T + t] = (run.max[i] + log2f(run.sum[i])) * ln_2;
    }
    sum.template store<E>(in_out(out, s, document, h), first, factor, s);
}

/* along (B, H, T) = out . dout: a head and token by `lanes` threads, a pack each. */
template <class E>
__global__ void along_kernel(float *along, const E *out, const E *dout, sizes s, size_t n,
                             int lanes)
{
    constexpr int pack = adl_pack<E>;
    const size_t thread = size_t(blockIdx.x) * blockDim.x + threadIdx.x, i = thread / lanes;
    const int c = int(thread % lanes) * pack;
    float sum = 0.0f;
    if (i < n && c < s.d) {
        const size_t t = i % s.T, bh = i / s.T;
        const size_t at = ((bh / s.H * s.T + t) * s.H + bh % s.H) * s.d;
        float a[pack], b[pack];
        adl_load(a, out + at, c, s.d, s.wide);
        adl_load(b, dout + at, c, s.d, s.wide);
        for (int j = 0; j < pack; j++)
            sum += a[j] * b[j];
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
    if (i < n && c == 0)
        along[i] = sum;
}

/* What backward knows of a thread's rows (queries); beyond the document probabilities are 0. */
struct query_rows {
    float lse[ROWS], along[ROWS];

    __device__ __forceinline__ query_rows(const float *lses, const float *alongs, size_t at,
                                          int first, int T)
    {
        const int y = threadIdx.x / SIDE;
        for (int i = 0; i < ROWS; i++) {
            const int t = first + ROWS * y + i;
            lse[i] = t < T ? lses[at + t] * log2_e : INFINITY;
            along[i] = t < T ? alongs[at + t] : 0.0f;
        }
    }
};

/* Scores to probabilities. */
__device__ __forceinline__ void probabilities(scores &s, const query_rows &rows, float scale,
                                              bool diagonal)
{
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++) {
            const bool hidden = diagonal && x + SIDE * j > ROWS * y + i;
            s[i][j] = hidden ? 0.0f : exp2f(s[i][j] * (scale * log2_e) - rows.lse[i]);
        }
}

/* dp = gradient of scores before their scaling, from that of probabilities p. */
__device__ __forceinline__ void score_gradients(scores &dp, const scores &p, const query_rows &rows)
{
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            dp[i][j] = p[i][j] * (dp[i][j] - rows.along[i]);
}

/* Block as in forward. */
template <class E, int D>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1)
    query_gradient_kernel(E *dqkv, const E *dout, const E *qkv, const float *lse,
                          const float *along, sizes s, float scale)
{
    ADL_SHARED_AT_LAUNCH(float, queries);
    float *douts = queries + tile_floats<D>, *other = douts + tile_floats<D>;
    float *ds = other + tile_floats<D>;
    const int h = blockIdx.y, document = blockIdx.z, kv = s.H + h / (s.H / s.K);
    const int tile = gridDim.x - 1 - blockIdx.x, first = tile * TILE;
    const query_rows rows(lse, along, (size_t(document) * s.H + h) * s.T, first, s.T);
    const head_rows<const E> keys = in_qkv(qkv, s, document, kv);
    const head_rows<const E> values = in_qkv(qkv, s, document, kv + s.K);
    sums<D> sum;
    sum.clear();
    load_tile<E, D>(queries, in_qkv(qkv, s, document, h), first, s);
    load_tile<E, D>(douts, in_out(dout, s, document, h), first, s);
    for (int k = 0; k <= tile; k++) {
        scores p, dp;
        load_tile<E, D>(other, values, k * TILE, s);
        __syncthreads();
        dots<D>(dp, douts, other);
        __syncthreads();
        load_tile<E, D>(other, keys, k * TILE, s);
        __syncthreads();
        dots<D>(p, queries, other);
        probabilities(p, rows, scale, k == tile);
        score_gradients(dp, p, rows);
        write_scores(ds, dp);
        __syncthreads();
        sum.add_product(ds, other);
        __syncthreads();
    }
    const float factor[ROWS] = {scale, scale, scale, scale};
    sum.template store<E>(in_qkv(dqkv, s, document, h), first, factor, s);
}

/* Block (x, y, z): a tile of keys and values of head y of document z, and all queries that look
 * at it: of H / K heads, in order. */
template <class E, int D>
__global__ void __launch_bounds__(THREADS, D <= 64 ? 2 : 1)
    key_value_gradient_kernel(E *dqkv, const E *dout, const E *qkv, const float *lse,
                              const float *along, sizes s, float scale)
{
    ADL_SHARED_AT_LAUNCH(float, keys);
    float *values = keys + tile_floats<D>, *queries = values + tile_floats<D>;
    float *douts = queries + tile_floats<D>, *shared = douts + tile_floats<D>;
    const int kv = blockIdx.y, document = blockIdx.z, group = s.H / s.K;
    const int tile = blockIdx.x, first = tile * TILE, tiles = gridDim.x;
    sums<D> dkeys, dvalues;
    dkeys.clear();
    dvalues.clear();
    load_tile<E, D>(keys, in_qkv(qkv, s, document, s.H + kv), first, s);
    load_tile<E, D>(values, in_qkv(qkv, s, document, s.H + s.K + kv), first, s);
    for (int h = kv * group; h < (kv + 1) * group; h++)
        for (int q = tile; q < tiles; q++) {
            const query_rows rows(lse, along, (size_t(document) * s.H + h) * s.T, q * TILE, s.T);
            scores p, dp;
            load_tile<E, D>(queries, in_qkv(qkv, s, document, h), q * TILE, s);
            load_tile<E, D>(douts, in_out(dout, s, document, h), q * TILE, s);
            __syncthreads();
            dots<D>(p, queries, keys);
            probabilities(p, rows, scale, q == tile);
            write_scores(shared, p);
            __syncthreads();
            dvalues.add_transposed(shared, douts);
            dots<D>(dp, douts, values);
            score_gradients(dp, p, rows);
            __syncthreads();
            write_scores(shared, dp);
            __syncthreads();
            dkeys.add_transposed(shared, queries);
            __syncthreads();
        }
    const float scaled[ROWS] = {scale, scale, scale, scale}, plain[ROWS] = {1, 1, 1, 1};
    dkeys.template store<E>(in_qkv(dqkv, s, document, s.H + kv), first, scaled, s);
    dvalues.template store<E>(in_qkv(dqkv, s, document, s.H + s.K + kv), first, plain, s);
}

/* ---- launches */

template <class E> sizes sizes_of(const struct adl_attention *size, bool aligned)
{
    return {size->T, size->H, size->K, size->D, aligned && size->D % adl_pack<E> == 0};
}

bool head_fits(adl_queue *queue, const struct adl_attention *size)
{
    if (size->D > ADL_CUDA_MAX_HEAD)
        adl_cuda_failed(queue, "attention", "heads wider than 128 are not written for GPUs");
    return size->D <= ADL_CUDA_MAX_HEAD;
}

template <class E, int D>
void forward_for(adl_queue *queue, E *out, float *lse, const E *qkv,
                 const struct adl_attention *size)
{
    const dim3 grid(adl_ceil_div(size->T, TILE), size->H, size->B);
    adl_launch(queue, "attention", forward_kernel<E, D>, grid, THREADS,
               (2 * tile_floats<D> + score_floats) * sizeof(float), out, lse, qkv,
               sizes_of<E>(size, adl_aligned(out) && adl_aligned(qkv)),
               1.0f / sqrtf(float(size->D)));
}

template <class E, int D>
void backward_for(adl_queue *queue, E *dqkv, const E *dout, const E *qkv, const float *lse,
                  const float *along, const struct adl_attention *size)
{
    const unsigned tiles = adl_ceil_div(size->T, TILE);
    const sizes s = sizes_of<E>(size, adl_aligned(dqkv) && adl_aligned(dout) && adl_aligned(qkv));
    const float scale = 1.0f / sqrtf(float(size->D));
    adl_launch(queue, "attention_backward", query_gradient_kernel<E, D>,
               dim3(tiles, size->H, size->B), THREADS,
               (3 * tile_floats<D> + score_floats) * sizeof(float), dqkv, dout, qkv, lse, along, s,
               scale);
    adl_launch(queue, "attention_backward", key_value_gradient_kernel<E, D>,
               dim3(tiles, size->K, size->B), THREADS,
               (4 * tile_floats<D> + score_floats) * sizeof(float), dqkv, dout, qkv, lse, along, s,
               scale);
}

} // namespace

template <class E>
void adl_cuda_attention<E>::forward(adl_queue *queue, E *out, float *lse, const E *qkv,
                                    const struct adl_attention *size)
{
    if (!head_fits(queue, size))
        return;
    if (size->D <= 64)
        forward_for<E, 64>(queue, out, lse, qkv, size);
    else
        forward_for<E, 128>(queue, out, lse, qkv, size);
}

template <class E>
void adl_cuda_attention<E>::backward(adl_queue *queue, E *dqkv, const E *dout, const E *qkv,
                                     const E *out, const float *lse,
                                     const struct adl_attention *size)
{
    const size_t n = size_t(size->B) * size->H * size->T;
    float *along = static_cast<float *>(adl_cuda_scratch(queue, n * sizeof *along));
    if (!along || !head_fits(queue, size))
        return;
    int lanes = 1; /* a power of two, at most a warp: heads are not wider than 128 */
    while (lanes * adl_pack<E> < size->D)
        lanes *= 2;
    adl_launch(queue, "attention_backward", along_kernel<E>, adl_ceil_div(n * lanes, THREADS),
               THREADS, 0, along, out, dout,
               sizes_of<E>(size, adl_aligned(out) && adl_aligned(dout)), n, lanes);
    if (size->D <= 64)
        backward_for<E, 64>(queue, dqkv, dout, qkv, lse, along, size);
    else
        backward_for<E, 128>(queue, dqkv, dout, qkv, lse, along, size);
}

template struct adl_cuda_attention<float>;
template struct adl_cuda_attention<adl_bf16>;
