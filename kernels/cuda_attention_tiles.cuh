/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles of attention: loading them into shared memory, and products of tiles, of which each thread
 * holds a part in registers. Included by cuda_attention.cu. */
#ifndef ADL_KERNELS_CUDA_ATTENTION_TILES_CUH
#define ADL_KERNELS_CUDA_ATTENTION_TILES_CUH

#include "kernels/cuda_device.cuh"

namespace
{

/* A tile is TILE queries by TILE keys. 256 threads as 16 by 16: thread (y, x) has rows 4y .. 4y+3
 * of a tile; of its columns x + 16j where it computes scores, 4x + 64j .. + 3 where it sums
 * vectors. Tiles of rows lie in shared memory as floats, heads padded with zeros to D, rows apart
 * by 4 floats more, so that a warp's 16-byte reads hit different banks. */
constexpr int TILE = 64, THREADS = 256, SIDE = 16, ROWS = 4;
constexpr int SCORE_STRIDE = TILE + 4;

constexpr float log2_e = 1.44269504f, ln_2 = 0.693147181f;

template <int D> constexpr int tile_stride = D + 4;
template <int D> constexpr int tile_floats = TILE *tile_stride<D>;
constexpr int score_floats = TILE * SCORE_STRIDE;

struct sizes {
    int T, H, K, d; /* d: width of a head, at most D */
    bool wide;      /* 16 bytes at once are aligned */
};

/* Where a head's rows of a document are: of queries' kind, in (N, H d) or in (N, W). */
template <class T> struct head_rows {
    T *first;
    int stride;
};

template <class T>
__device__ __forceinline__ head_rows<T> in_qkv(T *qkv, const sizes &s, int document, int head)
{
    const int width = (s.H + 2 * s.K) * s.d;
    return {qkv + size_t(document) * s.T * width + size_t(head) * s.d, width};
}

template <class T>
__device__ __forceinline__ head_rows<T> in_out(T *out, const sizes &s, int document, int head)
{
    return {out + size_t(document) * s.T * s.H * s.d + size_t(head) * s.d, s.H * s.d};
}

struct four {
    float v[ROWS];
};

__device__ __forceinline__ four read_four(const float *shared)
{
    four f;
    adl_load(f.v, shared, 0, ROWS, true);
    return f;
}

/* tile = rows first .. first + TILE; zeros beyond the document and beyond the head. */
template <class E, int D>
__device__ void load_tile(float *tile, const head_rows<const E> &from, int first, const sizes &s)
{
    constexpr int pack = adl_pack<E>, packs = D / pack;
    for (int k = threadIdx.x; k < TILE * packs; k += THREADS) {
        const int r = k / packs, c = k % packs * pack;
        float v[pack] = {};
        if (first + r < s.T)
            adl_load(v, from.first + size_t(first + r) * from.stride, c, s.d, s.wide && c < s.d);
        for (int part = 0; part < pack; part += ROWS) {
            const float *at = v + part;
            const float quad[ROWS] = {at[0], at[1], at[2], at[3]};
            adl_store(tile + r * tile_stride<D> + c + part, quad, 0, ROWS, true);
        }
    }
}

typedef float scores[ROWS][ROWS];

/* out[i][j] = row 4y + i of a . row x + 16j of b */
template <int D> __device__ __forceinline__ void dots(scores &out, const float *a, const float *b)
{
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            out[i][j] = 0.0f;
    ADL_UNROLL(2)
    for (int c = 0; c < D; c += 4) {
        four va[ROWS], vb[ROWS];
        for (int i = 0; i < ROWS; i++) {
            va[i] = read_four(a + (ROWS * y + i) * tile_stride<D> + c);
            vb[i] = read_four(b + (x + SIDE * i) * tile_stride<D> + c);
        }
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < ROWS; j++)
                for (int k = 0; k < 4; k++)
                    out[i][j] += va[i].v[k] * vb[j].v[k];
    }
}

__device__ __forceinline__ void write_scores(float *shared, const scores &s)
{
    const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < ROWS; j++)
            shared[(ROWS * y + i) * SCORE_STRIDE + x + SIDE * j] = s[i][j];
}

/* A thread's part of TILE sums of vectors: rows 4y + i, columns 4x + 64j + k. */
template <int D> struct sums {
    static constexpr int quads = D / (4 * SIDE);
    float v[ROWS][quads][4];

    __device__ __forceinline__ void clear()
    {
        for (int i = 0; i < ROWS; i++)
            for (int j = 0; j < quads; j++)
                for (int k = 0; k < 4; k++)
                    v[i][j][k] = 0.0f;
    }

    __device__ __forceinline__ void scale_row(int i, float factor)
    {
        for (int j = 0; j < quads; j++)
            for (int k = 0; k < 4; k++)
                v[i][j][k] *= factor;
    }

    __device__ __forceinline__ void add_row(int i, float factor, const four (&row)[quads])
    {
        for (int j = 0; j < quads; j++)
            for (int k = 0; k < 4; k++)
                v[i][j][k] += factor * row[j].v[k];
    }

    static __device__ __forceinline__ void read_row(four (&row)[quads], const float *tile, int r)
    {
        const int x = threadIdx.x % SIDE;
        for (int j = 0; j < quads; j++)
            row[j] = read_four(tile + r * tile_stride<D> + 4 * x + 4 * SIDE * j);
    }

    /* += p tile, p (TILE, TILE) in shared memory */
    __device__ __forceinline__ void add_product(const float *p, const float *tile)
    {
        const int y = threadIdx.x / SIDE;
        ADL_UNROLL(2)
        for (int r = 0; r < TILE; r += 4) {
            four weights[ROWS];
            for (int i = 0; i < ROWS; i++)
                weights[i] = read_four(p + (ROWS * y + i) * SCORE_STRIDE + r);
            for (int k = 0; k < 4; k++) {
                four row[quads];
                read_row(row, tile, r + k);
                for (int i = 0; i < ROWS; i++)
                    add_row(i, weights[i].v[k], row);
            }
        }
    }

    /* += p^T tile */
    __device__ __forceinline__ void add_transposed(const float *p, const float *tile)
    {
        const int y = threadIdx.x / SIDE;
        ADL_UNROLL(4)
        for (int r = 0; r < TILE; r++) {
            const four weights = read_four(p + r * SCORE_STRIDE + ROWS * y);
            four row[quads];
            read_row(row, tile, r);
            for (int i = 0; i < ROWS; i++)
                add_row(i, weights.v[i], row);
        }
    }

    template <class E>
    __device__ void store(const head_rows<E> &to, int first, const float (&factor)[ROWS],
                          const sizes &s) const
    {
        struct alignas(4 * sizeof(E)) quad {
            E v[4];
        };
        const int y = threadIdx.x / SIDE, x = threadIdx.x % SIDE;
        for (int i = 0; i < ROWS; i++) {
            const int r = first + ROWS * y + i;
            for (int j = 0; j < quads; j++) {
                const int c = 4 * x + 4 * SIDE * j;
                if (r >= s.T || c >= s.d)
                    continue;
                E *at = to.first + size_t(r) * to.stride + c;
                quad q;
                for (int k = 0; k < 4; k++)
                    adl_round_to(q.v[k], v[i][j][k] * factor[i]);
                if (s.wide)
                    *reinterpret_cast<quad *>(at) = q;
                else
                    for (int k = 0; k < 4 && c + k < s.d; k++)
                        at[k] = q.v[k];
            }
        }
    }
};

} // namespace

#endif
