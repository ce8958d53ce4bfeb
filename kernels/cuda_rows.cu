/* SPDX-License-Identifier: Apache-2.0 */
/* Memory-bound kernels: a block a row, 16 bytes a thread and access. Where a row is looked at
 * twice, the second look finds it in the cache. */
#include "kernels/cuda_rows.cuh"

#include <float.h>

namespace
{

enum { MAX_THREADS = 256, LOGIT_THREADS = 512 };

/* Row n of x (N, C). */
template <class T> __device__ __forceinline__ T *row(T *x, size_t n, int C)
{
    return x + n * C;
}

/* Whether rows of C elements of type E allow 16 bytes at once. */
template <class E> bool wide_rows(int C, bool aligned)
{
    return aligned && C % adl_pack<E> == 0;
}

template <class E> unsigned row_threads(int C, unsigned most = MAX_THREADS)
{
    return adl_threads_for((C + adl_pack<E> - 1) / adl_pack<E>, most);
}

/* A pack of E, as floats, where floats are kept. */
template <int n>
__device__ __forceinline__ void store_floats(float *to, const float (&v)[n], int first, int C,
                                             bool wide)
{
    for (int part = 0; part < n; part += adl_pack<float>) {
        const float quad[] = {v[part], v[part + 1], v[part + 2], v[part + 3]};
        adl_store(to, quad, first + part, C, wide);
    }
}

#define ADL_FOR_PACKS(first, C, pack)                                                              \
    for (int first = threadIdx.x * (pack); first < (C); first += blockDim.x * (pack))

/* ---- sums and embedding */

template <class E> __global__ void add_kernel(E *y, const E *x, size_t n, bool wide)
{
    constexpr int pack = adl_pack<E>;
    const size_t i = (size_t(blockIdx.x) * blockDim.x + threadIdx.x) * pack;
    if (i >= n)
        return;
    wide = wide && i + pack <= n;
    float a[pack], b[pack];
    adl_load(a, y, i, n, wide);
    adl_load(b, x, i, n, wide);
    for (int j = 0; j < pack; j++)
        a[j] += b[j];
    adl_store(y, a, i, n, wide);
}

template <class E>
__global__ void embed_kernel(E *out, const float *table, const int32_t *tokens, int C, bool wide)
{
    constexpr int pack = adl_pack<E>;
    const float *from = row(table, size_t(tokens[blockIdx.x]), C);
    E *to = row(out, blockIdx.x, C);
    ADL_FOR_PACKS(c, C, pack)
    {
        float v[pack];
        adl_load(v, from, c, C, wide);
        adl_store(to, v, c, C, wide);
    }
}

enum { SORTED = 8 /* positions of a warp, so that a token is read once for all of them */ };

/* Sorts positions by token, those of one token in order: a warp counts what comes before its
 * positions. */
__global__ void sort_kernel(int32_t *sorted, int32_t *order, const int32_t *tokens, int N)
{
    const int first = (blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32) * SORTED;
    if (first >= N)
        return;
    int32_t token[SORTED];
    int before[SORTED] = {};
    for (int k = 0; k < SORTED; k++)
        token[k] = tokens[first + k < N ? first + k : first];
    for (int m = threadIdx.x % 32; m < N; m += 32) {
        const int32_t other = tokens[m];
        for (int k = 0; k < SORTED; k++)
            before[k] += other < token[k] || (other == token[k] && m < first + k);
    }
    for (int k = 0; k < SORTED; k++) {
        const int at = adl_warp_sum(before[k]);
        if (threadIdx.x % 32 == 0 && first + k < N) {
            sorted[at] = token[k];
            order[at] = first + k;
        }
    }
}

/* One past the last of the run of equal tokens that starts at `first`. */
__device__ int run_end(const int32_t *sorted, int first, int N)
{
    const int32_t token = sorted[first];
    int low = first + 1, high = N;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (sorted[middle] == token)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* A block adds the rows of one token, in order, for one slab of columns. */
template <class E>
__global__ void embed_backward_kernel(float *dtable, const E *dout, const int32_t *sorted,
                                      const int32_t *order, int N, int C, bool wide)
{
    constexpr int pack = adl_pack<E>;
    const int first = blockIdx.x, c = (blockIdx.y * blockDim.x + threadIdx.x) * pack;
    if ((first > 0 && sorted[first - 1] == sorted[first]) || c >= C)
        return;
    const int end = run_end(sorted, first, N);
    float *to = row(dtable, size_t(sorted[first]), C);
    float sum[pack];
    adl_load(sum, to, c, C, wide);
    ADL_UNROLL(4)
    for (int i = first; i < end; i++) {
        float v[pack];
        adl_load(v, row(dout, size_t(order[i]), C), c, C, wide);
        for (int j = 0; j < pack; j++)
            sum[j] += v[j];
    }
    for (int j = 0; j < pack; j++)
        if (c + j < C)
            to[c + j] = sum[j];
}

/* ---- RMSNorm */

template <class E>
__global__ void rmsnorm_kernel(E *out, E *sum, float *rstd, const E *a, const E *b, const float *w,
                               int C, float eps, bool wide)
{
    constexpr int pack = adl_pack<E>;
    ADL_SHARED(float, slots, 32);
    const size_t n = blockIdx.x;
    const int first = threadIdx.x * pack;
    float squares = 0.0f, kept[pack] = {}; /* the first pack: mostly a thread has no other */
    ADL_FOR_PACKS(c, C, pack)
    {
        float x[pack];
        adl_load(x, row(a, n, C), c, C, wide);
        if (b) {
            float more[pack];
            adl_load(more, row(b, n, C), c, C, wide);
            for (int j = 0; j < pack; j++)
                x[j] = adl_rounded<E>(x[j] + more[j]); /* as backward will see it */
            adl_store(row(sum, n, C), x, c, C, wide);
        }
        for (int j = 0; j < pack; j++) {
            squares += x[j] * x[j];
            kept[j] = c == first ? x[j] : kept[j];
        }
    }
    const float r = 1.0f / sqrtf(adl_block_sum(squares, slots) / float(C) + eps);
    if (threadIdx.x == 0)
        rstd[n] = r;
    const E *from = b ? sum : a;
    ADL_FOR_PACKS(c, C, pack)
    {
        float x[pack] = {}, scale[pack];
        if (c != first)
            adl_load(x, row(from, n, C), c, C, wide);
        adl_load(scale, w, c, C, wide);
        for (int j = 0; j < pack; j++)
            x[j] = (c == first ? kept[j] : x[j]) * r * scale[j];
        adl_store(row(out, n, C), x, c, C, wide);
    }
}

/* A warp a row, without a barrier between rows; a lane has the same columns of each, and their part
 * of dw in the warp's row of shared memory. partials (gridDim.x, C): the block's part of dw. */
template <class E>
__global__ void rmsnorm_backward_kernel(E *dx, float *partials, const E *dout, const E *x,
                                        const float *rstd, const float *w, int N, int C, bool wide)
{
    constexpr int pack = adl_pack<E>;
    ADL_SHARED_AT_LAUNCH(float, all_dw);
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    float *dw = row(all_dw, warp, C);
    for (int c = lane * pack; c < C; c += 32 * pack)
        for (int j = 0; j < pack && c + j < C; j++)
            dw[c + j] = 0.0f;
    for (int n = blockIdx.x * warps + warp; n < N; n += gridDim.x * warps) {
        const float r = rstd[n];
        float along = 0.0f;
        ADL_UNROLL(2)
        for (int c = lane * pack; c < C; c += 32 * pack) {
            float g[pack], v[pack], scale[pack];
            adl_load(g, row(dout, n, C), c, C, wide);
            adl_load(v, row(x, n, C), c, C, wide);
            adl_load(scale, w, c, C, wide);
            for (int j = 0; j < pack; j++)
                along += g[j] * scale[j] * v[j];
        }
        along = adl_warp_sum(along) * r * r / float(C);
        for (int c = lane * pack; c < C; c += 32 * pack) {
            float g[pack], v[pack], scale[pack], d[pack], sum[pack];
            adl_load(g, row(dout, n, C), c, C, wide);
            adl_load(v, row(x, n, C), c, C, wide);
            adl_load(scale, w, c, C, wide);
            adl_load(d, row(dx, n, C), c, C, wide);
            adl_load(sum, dw, c, C, wide);
            for (int j = 0; j < pack; j++) {
                sum[j] += g[j] * v[j] * r;
                d[j] += r * (g[j] * scale[j] - v[j] * along);
            }
            adl_store(row(dx, n, C), d, c, C, wide);
            store_floats(dw, sum, c, C, wide);
        }
    }
    __syncthreads();
    for (int c = threadIdx.x; c < C; c += blockDim.x) {
        float sum = 0.0f;
        for (int k = 0; k < warps; k++)
            sum += row(all_dw, k, C)[c];
        row(partials, blockIdx.x, C)[c] = sum;
    }
}

enum { COLUMNS = 32, COLUMN_THREADS = 8 };

/* dw [C] += column sums of partials (rows, C) */
__global__ void add_columns_kernel(float *dw, const float *partials, int rows, int C)
{
    ADL_SHARED(float, sums, COLUMN_THREADS *COLUMNS);
    const int c = blockIdx.x * COLUMNS + threadIdx.x;
    float sum = 0.0f;
    for (int n = threadIdx.y; c < C && n < rows; n += COLUMN_THREADS)
        sum += row(partials, n, C)[c];
    sums[threadIdx.y * COLUMNS + threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y > 0 || c >= C)
        return;
    float total = 0.0f;
    for (int y = 0; y < COLUMN_THREADS; y++)
        total += sums[y * COLUMNS + threadIdx.x];
    dw[c] += total;
}

/* ---- rotary positions, SwiGLU */

/* A block turns the queries and keys of a row: `heads` heads of 2 x half elements. */
template <class E>
__global__ void rope_kernel(E *qkv, const float *turns, int T, int heads, int half, int width,
                            float sign, bool wide)
{
    constexpr int pack = adl_pack<E>;
    const int packs = (half + pack - 1) / pack; /* of half a head */
    const float *turn = turns + size_t(blockIdx.x % T) * 2 * half;
    for (int k = threadIdx.x; k < heads * packs; k += blockDim.x) {
        const int i = k % packs * pack;
        E *x = row(qkv, blockIdx.x, width) + size_t(k / packs) * 2 * half;
        float left[pack], right[pack], t[2 * pack];
        adl_load(left, x, i, half, wide);
        adl_load(right, x + half, i, half, wide);
        adl_load(t, turn, 2 * i, 2 * half, wide);
        for (int j = 0; j < pack; j++) {
            const float c = t[2 * j], s = sign * t[2 * j + 1], l = left[j];
            left[j] = l * c - right[j] * s;
            right[j] = l * s + right[j] * c;
        }
        adl_store(x, left, i, half, wide);
        adl_store(x + half, right, i, half, wide);
    }
}

template <class E> __global__ void swiglu_kernel(E *out, const E *gate_up, int F, bool wide)
{
    constexpr int pack = adl_pack<E>;
    const E *from = row(gate_up, blockIdx.x, 2 * F);
    ADL_FOR_PACKS(f, F, pack)
    {
        float g[pack], u[pack];
        adl_load(g, from, f, F, wide);
        adl_load(u, from + F, f, F, wide);
        for (int j = 0; j < pack; j++)
            g[j] = g[j] / (1.0f + expf(-g[j])) * u[j];
        adl_store(row(out, blockIdx.x, F), g, f, F, wide);
    }
}

/* dgate_up may be gate_up: a thread reads what it writes first. */
template <class E>
__global__ void swiglu_backward_kernel(E *dgate_up, const E *dout, const E *gate_up, int F,
                                       bool wide)
{
    constexpr int pack = adl_pack<E>;
    const E *from = row(gate_up, blockIdx.x, 2 * F);
    E *to = row(dgate_up, blockIdx.x, 2 * F);
    ADL_FOR_PACKS(f, F, pack)
    {
        float g[pack], u[pack], d[pack];
        adl_load(g, from, f, F, wide);
        adl_load(u, from + F, f, F, wide);
        adl_load(d, row(dout, blockIdx.x, F), f, F, wide);
        for (int j = 0; j < pack; j++) {
            const float gate = g[j], s = 1.0f / (1.0f + expf(-gate));
            g[j] = d[j] * u[j] * s * (1.0f + gate * (1.0f - s));
            u[j] = d[j] * gate * s;
        }
        adl_store(to, g, f, F, wide);
        adl_store(to + F, u, f, F, wide);
    }
}

/* ---- cross-entropy */

/* Maximum and sum of exponentials over it, of what a thread has seen. The maximum starts at the
 * least finite number, so that NaN and infinity reach the sum. */
struct soft {
    float max, sum;
};

template <int n> __device__ __forceinline__ void see(soft &s, const float (&x)[n], int valid)
{
    float max = s.max;
    for (int j = 0; j < n; j++)
        if (j < valid)
            max = adl_max(x[j], max);
    s.sum *= expf(s.max - max);
    s.max = max;
    for (int j = 0; j < n; j++)
        if (j < valid)
            s.sum += expf(x[j] - max);
}

template <class E>
__global__ void cross_entropy_kernel(float *losses, E *logits, const int32_t *targets, int V,
                                     float scale, bool wide)
{
    constexpr int pack = adl_pack<E>;
    ADL_SHARED(float, slots, 32);
    E *x = row(logits, blockIdx.x, V);
    const int target = targets[blockIdx.x];
    const float at_target = adl_value(x[target]);
    soft s = {-FLT_MAX, 0.0f};
    ADL_FOR_PACKS(c, V, pack)
    {
        float v[pack];
        adl_load(v, x, c, V, wide);
        see(s, v, V - c);
    }
    const float max = adl_block_max(s.max, slots);
    const float sum = adl_block_sum(s.sum * expf(s.max - max), slots);
    const float factor = scale / sum;
    ADL_FOR_PACKS(c, V, pack)
    {
        float v[pack];
        adl_load(v, x, c, V, wide);
        for (int j = 0; j < pack; j++) {
            v[j] = expf(v[j] - max) * factor;
            if (c + j == target)
                v[j] -= scale;
        }
        adl_store(x, v, c, V, wide);
    }
    if (threadIdx.x == 0)
        losses[blockIdx.x] = logf(sum) + max - at_target;
}

} // namespace

/* ---- launches */

template <class E> void adl_cuda_rows<E>::add(adl_queue *queue, E *y, const E *x, size_t n)
{
    if (n > 0)
        adl_launch(queue, "add", add_kernel<E>, adl_ceil_div(n, MAX_THREADS * adl_pack<E>),
                   MAX_THREADS, 0, y, x, n, adl_aligned(y) && adl_aligned(x));
}

template <class E>
void adl_cuda_rows<E>::embed(adl_queue *queue, E *out, const float *table, const int32_t *tokens,
                             int N, int C)
{
    adl_launch(queue, "embed", embed_kernel<E>, N, row_threads<E>(C), 0, out, table, tokens, C,
               wide_rows<E>(C, adl_aligned(out) && adl_aligned(table)));
}

template <class E>
void adl_cuda_rows<E>::embed_backward(adl_queue *queue, float *dtable, const E *dout,
                                      const int32_t *tokens, int N, int C)
{
    int32_t *sorted = static_cast<int32_t *>(adl_cuda_scratch(queue, 2 * sizeof *sorted * N));
    if (!sorted)
        return;
    int32_t *order = sorted + N;
    adl_launch(queue, "embed_backward", sort_kernel, adl_ceil_div(N, MAX_THREADS / 32 * SORTED),
               MAX_THREADS, 0, sorted, order, tokens, N);
    const unsigned threads = row_threads<E>(C);
    adl_launch(queue, "embed_backward", embed_backward_kernel<E>,
               dim3(N, adl_ceil_div(C, threads * adl_pack<E>)), threads, 0, dtable, dout, sorted,
               order, N, C, wide_rows<E>(C, adl_aligned(dtable) && adl_aligned(dout)));
}

template <class E>
void adl_cuda_rows<E>::rmsnorm(adl_queue *queue, E *out, E *sum, float *rstd, const E *a,
                               const E *b, const float *w, int N, int C, float eps)
{
    const bool aligned = adl_aligned(out) && adl_aligned(a) && adl_aligned(w) &&
                         (!b || adl_aligned(b)) && (!b || adl_aligned(sum));
    adl_launch(queue, "rmsnorm", rmsnorm_kernel<E>, N, row_threads<E>(C), 0, out, sum, rstd, a, b,
               w, C, eps, wide_rows<E>(C, aligned));
}

template <class E>
void adl_cuda_rows<E>::rmsnorm_backward(adl_queue *queue, E *dx, float *dw, const E *dout,
                                        const E *x, const float *rstd, const float *w, int N, int C)
{
    enum { MAX_BLOCKS = 512, WARPS = 8, SHARED_BYTES = 32 * 1024 }; /* several blocks fit */
    const int row_bytes = int(sizeof *dw) * C, fit = SHARED_BYTES / row_bytes;
    const int warps = fit < 1 ? 1 : fit < WARPS ? fit : WARPS;
    const int wanted = (N + warps - 1) / warps, blocks = wanted < MAX_BLOCKS ? wanted : MAX_BLOCKS;
    float *partials =
        static_cast<float *>(adl_cuda_scratch(queue, sizeof *partials * size_t(blocks) * C));
    if (!partials)
        return;
    const bool aligned = adl_aligned(dx) && adl_aligned(dout) && adl_aligned(x) && adl_aligned(w);
    adl_launch(queue, "rmsnorm_backward", rmsnorm_backward_kernel<E>, blocks, 32 * warps,
               size_t(warps) * row_bytes, dx, partials, dout, x, rstd, w, N, C,
               wide_rows<E>(C, aligned));
    adl_launch(queue, "rmsnorm_backward", add_columns_kernel, adl_ceil_div(C, COLUMNS),
               dim3(COLUMNS, COLUMN_THREADS), 0, dw, partials, blocks, C);
}

template <class E>
void adl_cuda_rows<E>::rope(adl_queue *queue, E *qkv, const float *turns, int N,
                            const struct adl_attention *size, int backward)
{
    const int half = size->D / 2, heads = size->H + size->K;
    const int packs = (half + adl_pack<E> - 1) / adl_pack<E>;
    adl_launch(queue, "rope", rope_kernel<E>, N,
               adl_threads_for(size_t(heads) * packs, MAX_THREADS), 0, qkv, turns, size->T, heads,
               half, (size->H + 2 * size->K) * size->D, backward ? -1.0f : 1.0f,
               wide_rows<E>(half, adl_aligned(qkv) && adl_aligned(turns)));
}

template <class E>
void adl_cuda_rows<E>::swiglu(adl_queue *queue, E *out, const E *gate_up, int N, int F)
{
    adl_launch(queue, "swiglu", swiglu_kernel<E>, N, row_threads<E>(F), 0, out, gate_up, F,
               wide_rows<E>(F, adl_aligned(out) && adl_aligned(gate_up)));
}

template <class E>
void adl_cuda_rows<E>::swiglu_backward(adl_queue *queue, E *dgate_up, const E *dout,
                                       const E *gate_up, int N, int F)
{
    const bool aligned = adl_aligned(dgate_up) && adl_aligned(dout) && adl_aligned(gate_up);
    adl_launch(queue, "swiglu_backward", swiglu_backward_kernel<E>, N, row_threads<E>(F), 0,
               dgate_up, dout, gate_up, F, wide_rows<E>(F, aligned));
}

template <class E>
void adl_cuda_rows<E>::cross_entropy(adl_queue *queue, float *losses, E *logits,
                                     const int32_t *targets, int N, int V, float scale)
{
    adl_launch(queue, "cross_entropy", cross_entropy_kernel<E>, N, row_threads<E>(V, LOGIT_THREADS),
               0, losses, logits, targets, V, scale, wide_rows<E>(V, adl_aligned(logits)));
}

template struct adl_cuda_rows<float>;
template struct adl_cuda_rows<adl_bf16>;
