/* SPDX-License-Identifier: Apache-2.0 */
/* What the calls of core/space.h do to elements: which vectors they read, which of them they write,
 * and how an element of each becomes what is written. Each is read, and written, once.
 *
 * A thread takes packs_of<F> packs of 16 bytes of every vector, and reads them all before it uses
 * the first, so that enough reads are under way at any time. Included by space_cuda.cu. */
#ifndef ADL_KERNELS_SPACE_CUDA_PACKS_CUH
#define ADL_KERNELS_SPACE_CUDA_PACKS_CUH

#include "kernels/cuda_device.cuh"

namespace
{

template <class R> using pack_of = R[adl_pack<R>];

/* The first `writes` of the vectors that are read may be written at other places. */
template <class R, int reads_, int writes_> struct streams {
    using real = R;
    static constexpr int reads = reads_, writes = writes_, pack = adl_pack<R>;
    static constexpr bool sums = false;
    const R *in[reads];
    R *out[writes ? writes : 1];

    bool aligned() const
    {
        bool all = true;
        for (const R *x : in)
            all = all && adl_aligned(x);
        for (int i = 0; i < writes; i++)
            all = all && adl_aligned(out[i]);
        return all;
    }
};

template <class R> struct axpy : streams<R, 2, 1> {
    R a;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[2], int j) const
    {
        v[0][j] += a * v[1][j];
    }
};

template <class R> struct scale : streams<R, 1, 1> {
    R a;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[1], int j) const
    {
        v[0][j] *= a;
    }
};

template <class R> struct combine : streams<R, 2, 1> {
    R a, b;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[2], int j) const
    {
        v[0][j] = a * v[0][j] + b * v[1][j];
    }
};

/* x, g */
template <class R> struct sgd : streams<R, 2, 1> {
    R lr, decay;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[2], int j) const
    {
        v[0][j] -= lr * (v[1][j] + decay * v[0][j]);
    }
};

/* x, momentum, g */
template <class R> struct momentum_sgd : streams<R, 3, 2> {
    R lr, momentum, decay;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[3], int j) const
    {
        v[1][j] = momentum * v[1][j] + (v[2][j] + decay * v[0][j]);
        v[0][j] -= lr * v[1][j];
    }
};

/* x, first and second moment, g */
template <class R> struct adamw : streams<R, 4, 3> {
    R beta1, new1, beta2, new2, rate, root, eps, keep;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[4], int j) const
    {
        v[1][j] = beta1 * v[1][j] + new1 * v[3][j];
        v[2][j] = beta2 * v[2][j] + new2 * v[3][j] * v[3][j];
        v[0][j] = keep * v[0][j] - rate * v[1][j] / (root * sqrt(v[2][j]) + eps);
    }
};

/* x, momentum, pseudo-gradient */
template <class R> struct nesterov : streams<R, 3, 2> {
    R lr, momentum;

    __device__ __forceinline__ void operator()(pack_of<R> (&v)[3], int j) const
    {
        v[1][j] = momentum * v[1][j] + v[2][j];
        v[0][j] -= lr * (v[2][j] + momentum * v[1][j]);
    }
};

/* ---- those that add to a sum return what they add */

template <class R> struct dot : streams<R, 2, 0> {
    static constexpr bool sums = true;

    __device__ __forceinline__ double operator()(pack_of<R> (&v)[2], int j) const
    {
        return double(v[0][j]) * double(v[1][j]);
    }
};

template <class R> struct scale_norm2 : streams<R, 1, 1> {
    static constexpr bool sums = true;
    R a;

    __device__ __forceinline__ double operator()(pack_of<R> (&v)[1], int j) const
    {
        v[0][j] *= a;
        return double(v[0][j]) * double(v[0][j]);
    }
};

template <class R> struct combine_norm2 : streams<R, 2, 1> {
    static constexpr bool sums = true;
    R a, b, c;

    __device__ __forceinline__ double operator()(pack_of<R> (&v)[2], int j) const
    {
        const R combined = a * v[0][j] + b * v[1][j];
        v[0][j] = combined * c;
        return double(combined) * double(combined);
    }
};

/* ---- packs */

/* Four reads of 16 bytes a thread: with 1,024 threads a multiprocessor twice what bandwidth times
 * latency asks for. */
template <class F> constexpr int packs_of = F::reads < 4 ? (4 + F::reads - 1) / F::reads : 1;
/* Sums go over elements in one order, whatever else is done to them: see core/space.h. */
constexpr int packs_of_sums = 2;

/* f at packs from element `first` on, `apart` elements apart; adds what f returns, in the order of
 * elements. */
template <int packs, class F>
__device__ __forceinline__ void apply_whole(double &sum, const F &f, size_t first, size_t apart)
{
    pack_of<typename F::real> v[packs][F::reads];
    for (int k = 0; k < packs; k++)
        for (int r = 0; r < F::reads; r++)
            adl_load(v[k][r], f.in[r], first + k * apart, size_t(-1), true);
    for (int k = 0; k < packs; k++)
        for (int j = 0; j < F::pack; j++) {
            if constexpr (F::sums)
                sum += f(v[k], j);
            else
                f(v[k], j);
        }
    for (int k = 0; k < packs; k++)
        for (int w = 0; w < F::writes; w++)
            adl_stream_out(f.out[w] + first + k * apart, v[k][w]);
}

/* The same, element by element, of those before n. */
template <class F>
__device__ __forceinline__ void apply_single(double &sum, const F &f, int packs, size_t first,
                                             size_t apart, size_t n)
{
    ADL_UNROLL(1)
    for (int k = 0; k < packs * F::pack; k++) {
        const size_t i = first + k / F::pack * apart + k % F::pack;
        if (i >= n)
            continue;
        pack_of<typename F::real> v[F::reads];
        for (int r = 0; r < F::reads; r++)
            v[r][0] = f.in[r][i];
        if constexpr (F::sums)
            sum += f(v, 0);
        else
            f(v, 0);
        for (int w = 0; w < F::writes; w++)
            f.out[w][i] = v[w][0];
    }
}

/* wide: all vectors are aligned to packs. */
template <int packs, class F>
__device__ __forceinline__ void apply(double &sum, const F &f, size_t first, size_t apart, size_t n,
                                      bool wide)
{
    if (wide && first + (packs - 1) * apart + F::pack <= n)
        apply_whole<packs>(sum, f, first, apart);
    else
        apply_single(sum, f, packs, first, apart, n);
}

} // namespace

#endif
