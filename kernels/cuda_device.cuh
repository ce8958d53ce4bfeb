/* SPDX-License-Identifier: Apache-2.0 */
/* What kernels and their launchers are written with. The same source is compiled by nvcc for
 * GPUs, and as plain C++ for tests against tests/cuda_emulator, which runs it on the CPU: hence
 * shared memory and launches are spelled through this file.
 *
 * Letters and shapes: kernels/ops.h. E is the element type of activations. All sums run in an
 * order that sizes alone decide, without atomics, so bits do not change from run to run. */
#ifndef ADL_KERNELS_CUDA_DEVICE_CUH
#define ADL_KERNELS_CUDA_DEVICE_CUH

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_runtime.h>

/* Memory of a block: an array of so many elements. */
#define ADL_SHARED(type, name, count) __shared__ type name[count]
/* Memory of a block whose size the launch gives. */
#define ADL_SHARED_AT_LAUNCH(type, name)                                                           \
    extern __shared__ __align__(16) unsigned char adl_shared_bytes[];                              \
    type *name = reinterpret_cast<type *>(adl_shared_bytes)
#define ADL_PRAGMA(text) _Pragma(#text)
#define ADL_UNROLL(n)    ADL_PRAGMA(unroll n)
#else
#include "cuda_emulator.h"
#define ADL_UNROLL(n)
#endif

/* ---- bfloat16: the upper half of a float */

struct adl_bf16 {
    uint16_t bits;
};

/* An element as what it is computed in: float, or double for doubles. */
static __host__ __device__ __forceinline__ float adl_value(float x)
{
    return x;
}

static __host__ __device__ __forceinline__ double adl_value(double x)
{
    return x;
}

static __host__ __device__ __forceinline__ float adl_value(adl_bf16 x)
{
    const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

static __host__ __device__ __forceinline__ void adl_round_to(float &element, float x)
{
    element = x;
}

static __host__ __device__ __forceinline__ void adl_round_to(double &element, double x)
{
    element = x;
}

/* To nearest, ties to even; NaN stays NaN. */
static __host__ __device__ __forceinline__ void adl_round_to(adl_bf16 &element, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const bool nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
    const uint32_t rounded = nan ? bits | 0x400000u : bits + 0x7FFFu + ((bits >> 16) & 1u);
    element.bits = static_cast<uint16_t>(rounded >> 16);
}

/* x as an element of type E holds it. */
template <class E> static __host__ __device__ __forceinline__ float adl_rounded(float x)
{
    E element;
    adl_round_to(element, x);
    return adl_value(element);
}

/* ---- 16 bytes at a time */

template <class E> constexpr int adl_pack = 16 / static_cast<int>(sizeof(E));

template <class E> struct alignas(16) adl_raw_pack {
    E v[adl_pack<E>];
};

template <class E> static __device__ __forceinline__ adl_raw_pack<E> adl_read_pack(const E *x)
{
    const uint4 bytes = *reinterpret_cast<const uint4 *>(x); /* a vector to the compiler */
    adl_raw_pack<E> raw;
    memcpy(&raw, &bytes, sizeof raw);
    return raw;
}

template <class E>
static __device__ __forceinline__ void adl_write_pack(E *x, const adl_raw_pack<E> &raw)
{
    uint4 bytes;
    memcpy(&bytes, &raw, sizeof bytes);
    *reinterpret_cast<uint4 *>(x) = bytes;
}

/* The pack of values that starts at element `first` of x [count], zeros behind the end. wide: its
 * address is a multiple of 16 and it ends before count, so that one instruction reads it. */
template <class E, class R, int n>
static __device__ __forceinline__ void adl_load(R (&v)[n], const E *x, size_t first, size_t count,
                                                bool wide)
{
    for (int part = 0; part < n; part += adl_pack<E>) {
        if (wide) {
            const auto raw = adl_read_pack(x + first + part);
            for (int j = 0; j < adl_pack<E>; j++)
                v[part + j] = adl_value(raw.v[j]);
        } else {
            for (int j = 0; j < adl_pack<E>; j++)
                v[part + j] = first + part + j < count ? adl_value(x[first + part + j]) : R(0);
        }
    }
}

template <class E, class R, int n>
static __device__ __forceinline__ void adl_round_pack(adl_raw_pack<E> &raw, const R (&v)[n])
{
    for (int j = 0; j < n; j++)
        adl_round_to(raw.v[j], v[j]);
}

/* By the device's instruction for two: adl_round_to takes seven each, and has other bits for NaN
 * only. */
template <int n>
static __device__ __forceinline__ void adl_round_pack(adl_raw_pack<adl_bf16> &raw,
                                                      const float (&v)[n])
{
    for (int j = 0; j < n; j += 2) {
        const __nv_bfloat162 two = __floats2bfloat162_rn(v[j], v[j + 1]);
        memcpy(raw.v + j, &two, sizeof two);
    }
}

template <class E, class R, int n>
static __device__ __forceinline__ void adl_store(E *x, const R (&v)[n], size_t first, size_t count,
                                                 bool wide)
{
    static_assert(n == adl_pack<E>, "a pack");
    if (wide) {
        adl_raw_pack<E> raw;
        adl_round_pack(raw, v);
        adl_write_pack(x + first, raw);
    } else {
        for (int j = 0; j < n; j++)
            if (first + j < count)
                adl_round_to(x[first + j], v[j]);
    }
}

/* A whole pack to global memory that nobody reads soon. (Marked so, the assembler also keeps the
 * store whole: it takes plain ones apart where a value has another use.) */
template <class E, int n>
static __device__ __forceinline__ void adl_stream_out(E *x, const E (&v)[n])
{
    static_assert(n == adl_pack<E>, "a pack");
    uint4 bytes;
    memcpy(&bytes, v, sizeof bytes);
    __stcs(reinterpret_cast<uint4 *>(x), bytes);
}

static inline bool adl_aligned(const void *x)
{
    return reinterpret_cast<uintptr_t>(x) % 16 == 0;
}

/* ---- sums and maxima of a block, the same in every thread. The block is whole warps, 1024
 * threads at most. `slots` is shared memory of 32 values, free again when the call returns. */

template <class R> static __device__ __forceinline__ R adl_warp_sum(R x)
{
    for (int distance = 16; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xFFFFFFFFu, x, distance);
    return x;
}

static __device__ __forceinline__ float adl_max(float a, float b)
{
    return a > b ? a : b;
}

static __device__ __forceinline__ float adl_warp_max(float x)
{
    for (int distance = 16; distance > 0; distance /= 2)
        x = adl_max(x, __shfl_xor_sync(0xFFFFFFFFu, x, distance));
    return x;
}

template <class R> static __device__ __forceinline__ R adl_block_sum(R x, R *slots)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = adl_warp_sum(x);
    if (lane == 0)
        slots[warp] = x;
    __syncthreads();
    x = adl_warp_sum(lane < warps ? slots[lane] : R(0));
    __syncthreads();
    return x;
}

static __device__ __forceinline__ float adl_block_max(float x, float *slots)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    x = adl_warp_max(x);
    if (lane == 0)
        slots[warp] = x;
    __syncthreads();
    x = adl_warp_max(lane < warps ? slots[lane] : slots[0]);
    __syncthreads();
    return x;
}

static inline unsigned adl_ceil_div(size_t a, size_t b)
{
    return static_cast<unsigned>((a + b - 1) / b);
}

/* Threads of a block that goes over so many items together: whole warps. */
static inline unsigned adl_threads_for(size_t items, unsigned most)
{
    const size_t threads = (items + 31) / 32 * 32;
    return threads < most ? static_cast<unsigned>(threads ? threads : 32) : most;
}

#endif
