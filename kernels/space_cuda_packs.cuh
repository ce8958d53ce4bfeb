/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does with the pack of elements that starts at i, for the calls of core/space.h:
 * each element is read, and written, once. wide: 16 bytes at once. Included by space_cuda.cu. */
#ifndef ADL_KERNELS_SPACE_CUDA_PACKS_CUH
#define ADL_KERNELS_SPACE_CUDA_PACKS_CUH

#include "kernels/cuda_device.cuh"

namespace
{

template <class R> struct axpy {
    static constexpr int pack = adl_pack<R>;
    R *y;
    const R *x;
    R a;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R vx[pack], vy[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vy, y, i, n, wide);
        for (int j = 0; j < pack; j++)
            vy[j] += a * vx[j];
        adl_store(y, vy, i, n, wide);
    }
};

template <class R> struct scale {
    static constexpr int pack = adl_pack<R>;
    R *y;
    R a;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R v[pack];
        adl_load(v, y, i, n, wide);
        for (int j = 0; j < pack; j++)
            v[j] *= a;
        adl_store(y, v, i, n, wide);
    }
};

template <class R> struct combine {
    static constexpr int pack = adl_pack<R>;
    R *y;
    const R *x, *z;
    R a, b;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R vx[pack], vz[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vz, z, i, n, wide);
        for (int j = 0; j < pack; j++)
            vx[j] = a * vx[j] + b * vz[j];
        adl_store(y, vx, i, n, wide);
    }
};

template <class R> struct sgd {
    static constexpr int pack = adl_pack<R>;
    R *x, *v; /* v may be NULL */
    const R *g;
    R lr, momentum, decay;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R vx[pack], vg[pack], vv[pack] = {};
        adl_load(vx, x, i, n, wide);
        adl_load(vg, g, i, n, wide);
        if (v)
            adl_load(vv, v, i, n, wide);
        for (int j = 0; j < pack; j++) {
            const R slope = vg[j] + decay * vx[j];
            vv[j] = v ? momentum * vv[j] + slope : slope;
            vx[j] -= lr * vv[j];
        }
        adl_store(x, vx, i, n, wide);
        if (v)
            adl_store(v, vv, i, n, wide);
    }
};

template <class R> struct adamw {
    static constexpr int pack = adl_pack<R>;
    R *x, *m, *v;
    const R *g;
    R beta1, new1, beta2, new2, rate, root, eps, keep;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R vx[pack], vm[pack], vv[pack], vg[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vm, m, i, n, wide);
        adl_load(vv, v, i, n, wide);
        adl_load(vg, g, i, n, wide);
        for (int j = 0; j < pack; j++) {
            vm[j] = beta1 * vm[j] + new1 * vg[j];
            vv[j] = beta2 * vv[j] + new2 * vg[j] * vg[j];
            vx[j] = keep * vx[j] - rate * vm[j] / (root * sqrt(vv[j]) + eps);
        }
        adl_store(x, vx, i, n, wide);
        adl_store(m, vm, i, n, wide);
        adl_store(v, vv, i, n, wide);
    }
};

template <class R> struct nesterov {
    static constexpr int pack = adl_pack<R>;
    R *x, *v;
    const R *p;
    R lr, momentum;

    __device__ void operator()(size_t i, size_t n, bool wide) const
    {
        R vx[pack], vp[pack], vv[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vp, p, i, n, wide);
        adl_load(vv, v, i, n, wide);
        for (int j = 0; j < pack; j++) {
            vv[j] = momentum * vv[j] + vp[j];
            vx[j] -= lr * (vp[j] + momentum * vv[j]);
        }
        adl_store(x, vx, i, n, wide);
        adl_store(v, vv, i, n, wide);
    }
};

/* ---- those that add to a sum */

template <class R> struct dot {
    static constexpr int pack = adl_pack<R>;
    const R *x, *y;

    __device__ void operator()(double &sum, size_t i, size_t n, bool wide) const
    {
        R vx[pack], vy[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vy, y, i, n, wide);
        for (int j = 0; j < pack; j++)
            sum += double(vx[j]) * double(vy[j]);
    }
};

template <class R> struct scale_norm2 {
    static constexpr int pack = adl_pack<R>;
    R *y;
    R a;

    __device__ void operator()(double &sum, size_t i, size_t n, bool wide) const
    {
        R v[pack];
        adl_load(v, y, i, n, wide);
        for (int j = 0; j < pack; j++) {
            v[j] *= a;
            sum += i + j < n ? double(v[j]) * double(v[j]) : 0.0;
        }
        adl_store(y, v, i, n, wide);
    }
};

template <class R> struct combine_norm2 {
    static constexpr int pack = adl_pack<R>;
    R *y;
    const R *x, *z;
    R a, b, c;

    __device__ void operator()(double &sum, size_t i, size_t n, bool wide) const
    {
        R vx[pack], vz[pack];
        adl_load(vx, x, i, n, wide);
        adl_load(vz, z, i, n, wide);
        for (int j = 0; j < pack; j++) {
            const R combined = a * vx[j] + b * vz[j];
            vx[j] = combined * c;
            sum += i + j < n ? double(combined) * double(combined) : 0.0;
        }
        adl_store(y, vx, i, n, wide);
    }
};

} // namespace

#endif
