/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_wire.cuh"

extern "C" {
#include "core/settings.h"
#include "core/wire.h"
}

namespace
{

constexpr int THREADS = 256;

/* ---- half precision: core/wire.c explains */

struct f16 {
    uint16_t bits;
};

__device__ __forceinline__ uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

__device__ __forceinline__ float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

__device__ __forceinline__ void to_wire(f16 &to, float x)
{
    const uint32_t sign = bits_of(x) >> 16 & 0x8000u, size = bits_of(x) & 0x7FFFFFFFu;
    uint32_t half = 0x7E00u;
    if (size < 0x38800000u)
        half = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
    else if (size <= 0x7F800000u)
        half = (size - (112u << 23) + 0xFFFu + (size >> 13 & 1u)) >> 13;
    if (half > 0x7C00u && size <= 0x7F800000u)
        half = 0x7C00u;
    to.bits = static_cast<uint16_t>(sign | half);
}

__device__ __forceinline__ float from_wire(f16 x)
{
    const uint32_t sign = (x.bits & 0x8000u) << 16, size = x.bits & 0x7FFFu;
    if (size < 0x400u)
        return float_of(sign | bits_of(float(size) * 0x1p-24f));
    return float_of(sign |
                    (size >= 0x7C00u ? 0x7F800000u | size << 13 : (size << 13) + (112u << 23)));
}

__device__ __forceinline__ void to_wire(adl_bf16 &to, float x)
{
    adl_round_to(to, x);
}

__device__ __forceinline__ float from_wire(adl_bf16 x)
{
    return adl_value(x);
}

__device__ __forceinline__ void to_wire(float &to, float x)
{
    to = x;
}

__device__ __forceinline__ float from_wire(float x)
{
    return x;
}

__device__ __forceinline__ void to_wire(double &to, float x)
{
    to = x;
}

__device__ __forceinline__ float from_wire(double x)
{
    return static_cast<float>(x);
}

__device__ __forceinline__ float from_wire(int8_t x)
{
    return x;
}

/* Four elements a thread: 16 bytes of fp32. */
constexpr int PACK = 4;

template <class E> struct alignas(PACK * sizeof(E) < 16 ? PACK * sizeof(E) : 16) quad {
    E v[PACK];
};

template <class E> __global__ void pack_kernel(E *to, const float *x, size_t n, bool wide)
{
    const size_t i = (size_t(blockIdx.x) * THREADS + threadIdx.x) * PACK;
    if (i >= n)
        return;
    float v[PACK];
    quad<E> q;
    adl_load(v, x, i, n, wide && i + PACK <= n);
    for (int j = 0; j < PACK; j++)
        to_wire(q.v[j], v[j]);
    if (i + PACK <= n)
        *reinterpret_cast<quad<E> *>(to + i) = q;
    else
        for (int j = 0; i + j < n; j++)
            to[i + j] = q.v[j];
}

/* scales: of int8's blocks, which hold whole packs; nullptr for the others. */
template <class E>
__global__ void unpack_kernel(float *y, const E *from, const float *scales, size_t n, bool add,
                              bool wide)
{
    const size_t i = (size_t(blockIdx.x) * THREADS + threadIdx.x) * PACK;
    if (i >= n)
        return;
    float v[PACK] = {};
    quad<E> q = {};
    wide = wide && i + PACK <= n;
    if (i + PACK <= n)
        q = *reinterpret_cast<const quad<E> *>(from + i);
    else
        for (int j = 0; i + j < n; j++)
            q.v[j] = from[i + j];
    if (add)
        adl_load(v, y, i, n, wide);
    const float scale = scales ? scales[i / ADL_WIRE_BLOCK] : 1.0f;
    for (int j = 0; j < PACK; j++) {
        const float x = from_wire(q.v[j]) * scale;
        v[j] = add ? v[j] + x : x;
    }
    adl_store(y, v, i, n, wide);
}

/* ---- int8: a warp a block of elements, 8 a lane */

constexpr int LANE_ELEMENTS = ADL_WIRE_BLOCK / 32;

struct alignas(8) eight {
    int8_t v[LANE_ELEMENTS];
};

__global__ void pack_int8_kernel(float *scales, int8_t *elements, const float *x, size_t n,
                                 bool wide)
{
    const size_t block = size_t(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
    const size_t i = block * ADL_WIRE_BLOCK + threadIdx.x % 32 * LANE_ELEMENTS;
    float v[LANE_ELEMENTS], max = 0.0f;
    if (block * ADL_WIRE_BLOCK >= n)
        return;
    adl_load(v, x, i, n, wide && i + LANE_ELEMENTS <= n);
    for (int j = 0; j < LANE_ELEMENTS; j++)
        max = adl_max(isfinite(v[j]) ? fabsf(v[j]) : INFINITY, max);
    max = adl_warp_max(max);
    const float scale = isinf(max) ? NAN : max / 127.0f;
    if (threadIdx.x % 32 == 0)
        scales[block] = scale;
    eight e;
    for (int j = 0; j < LANE_ELEMENTS; j++)
        e.v[j] = scale > 0.0f ? static_cast<int8_t>(fminf(fmaxf(rintf(v[j] / scale), -127.0f), 127.0f)) : int8_t(0);
    if (i + LANE_ELEMENTS <= n)
        *reinterpret_cast<eight *>(elements + i) = e;
    else
        for (int j = 0; i + j < n; j++)
            elements[i + j] = e.v[j];
}

/* ---- launches */

unsigned blocks_for(size_t n)
{
    return adl_ceil_div(n, THREADS * PACK);
}

template <class E> void pack(adl_queue *queue, void *to, const float *x, size_t n)
{
    adl_launch(queue, "packing", pack_kernel<E>, blocks_for(n), THREADS, 0, static_cast<E *>(to), x,
               n, adl_aligned(x));
}

template <class E>
void unpack(adl_queue *queue, float *y, const void *from, size_t n, bool add,
            const float *scales = nullptr)
{
    adl_launch(queue, "unpacking", unpack_kernel<E>, blocks_for(n), THREADS, 0, y,
               static_cast<const E *>(from), scales, n, add, adl_aligned(y));
}

/* What fills the scales up is 0, so that equal vectors have equal bytes. */
void pack_int8(adl_queue *queue, void *to, const float *x, size_t n)
{
    const size_t scales = adl_wire_scales_size(n);
    adl_cuda_check(queue, cudaMemsetAsync(to, 0, scales, queue->stream), "packing");
    adl_launch(queue, "packing", pack_int8_kernel, adl_ceil_div(n, ADL_WIRE_BLOCK * (THREADS / 32)),
               THREADS, 0, static_cast<float *>(to), static_cast<int8_t *>(to) + scales, x, n,
               adl_aligned(x));
}

} // namespace

void adl_cuda_wire_pack(adl_queue *queue, void *to, const float *x, size_t n, int wire)
{
    if (n == 0)
        return;
    switch (wire) {
    case ADL_WIRE_F32:
        return pack<float>(queue, to, x, n);
    case ADL_WIRE_F64:
        return pack<double>(queue, to, x, n);
    case ADL_WIRE_BF16:
        return pack<adl_bf16>(queue, to, x, n);
    case ADL_WIRE_F16:
        return pack<f16>(queue, to, x, n);
    default:
        return pack_int8(queue, to, x, n);
    }
}

void adl_cuda_wire_unpack(adl_queue *queue, float *y, const void *from, size_t n, int wire,
                          bool add)
{
    if (n == 0)
        return;
    switch (wire) {
    case ADL_WIRE_F32:
        return unpack<float>(queue, y, from, n, add);
    case ADL_WIRE_F64:
        return unpack<double>(queue, y, from, n, add);
    case ADL_WIRE_BF16:
        return unpack<adl_bf16>(queue, y, from, n, add);
    case ADL_WIRE_F16:
        return unpack<f16>(queue, y, from, n, add);
    default:
        return unpack<int8_t>(queue, y, static_cast<const int8_t *>(from) + adl_wire_scales_size(n), n,
                              add, static_cast<const float *>(from));
    }
}
