/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cuda_wire.cuh"

extern "C" {
#include "core/settings.h"
#include "core/wire.h"
}

namespace
{

constexpr int THREADS = 256;

using ::adl_round_to; /* of elements that others have too */
using ::adl_value;

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

__device__ __forceinline__ void adl_round_to(f16 &to, float x)
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

__device__ __forceinline__ float adl_value(f16 x)
{
    const uint32_t sign = (x.bits & 0x8000u) << 16, size = x.bits & 0x7FFFu;
    if (size < 0x400u)
        return float_of(sign | bits_of(float(size) * 0x1p-24f));
    return float_of(sign |
                    (size >= 0x7C00u ? 0x7F800000u | size << 13 : (size << 13) + (112u << 23)));
}

__device__ __forceinline__ float adl_value(int8_t x)
{
    return x;
}

/* ---- a thread takes PACKS packs of PACK elements, a block's threads side by side: every access is
 * to whole cache lines, and all reads are under way before the first is used */

constexpr int PACK = 4, PACKS = 4;
constexpr size_t APART = THREADS * PACK, BLOCK = PACKS * APART;

template <class E> struct alignas(PACK * sizeof(E) < 16 ? PACK * sizeof(E) : 16) quad {
    E v[PACK];
};

template <class E> __device__ __forceinline__ quad<E> load_quad(const E *x)
{
    return *reinterpret_cast<const quad<E> *>(x);
}

/* Element by element, those of the block that are before n. */
template <class F> __device__ __forceinline__ void for_elements(size_t start, size_t n, const F &f)
{
    ADL_UNROLL(1)
    for (size_t i = start + threadIdx.x; i < n && i < start + BLOCK; i += THREADS)
        f(i);
}

/* wide: both are aligned to quads. */
template <class E>
__global__ void __launch_bounds__(THREADS) pack_kernel(E *to, const float *x, size_t n, bool wide)
{
    const size_t start = blockIdx.x * BLOCK, first = start + threadIdx.x * PACK;
    if (!wide || start + BLOCK > n)
        return for_elements(start, n, [=](size_t i) { adl_round_to(to[i], x[i]); });
    quad<float> from[PACKS];
    for (int k = 0; k < PACKS; k++)
        from[k] = load_quad(x + first + k * APART);
    for (int k = 0; k < PACKS; k++) {
        quad<E> q;
        for (int j = 0; j < PACK; j++)
            adl_round_to(q.v[j], from[k].v[j]);
        *reinterpret_cast<quad<E> *>(to + first + k * APART) = q;
    }
}

/* scales: of int8's blocks, which hold whole packs; nullptr for the others. */
template <class E>
__global__ void __launch_bounds__(THREADS)
    unpack_kernel(float *y, const E *from, const float *scales, size_t n, bool add, bool wide)
{
    const size_t start = blockIdx.x * BLOCK, first = start + threadIdx.x * PACK;
    const auto value = [=](E element, size_t i) {
        const float scale = scales ? scales[i / ADL_WIRE_BLOCK] : 1.0f;
        return static_cast<float>(adl_value(element)) * scale;
    };
    if (!wide || start + BLOCK > n)
        return for_elements(
            start, n, [=](size_t i) { y[i] = add ? y[i] + value(from[i], i) : value(from[i], i); });
    quad<E> packed[PACKS];
    quad<float> sum[PACKS] = {};
    for (int k = 0; k < PACKS; k++)
        packed[k] = load_quad(from + first + k * APART);
    for (int k = 0; add && k < PACKS; k++)
        sum[k] = load_quad(y + first + k * APART);
    for (int k = 0; k < PACKS; k++) {
        const size_t i = first + k * APART;
        for (int j = 0; j < PACK; j++) {
            const float x = value(packed[k].v[j], i);
            sum[k].v[j] = add ? sum[k].v[j] + x : x;
        }
        *reinterpret_cast<quad<float> *>(y + i) = sum[k];
    }
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
        e.v[j] = scale > 0.0f
                     ? static_cast<int8_t>(fminf(fmaxf(rintf(v[j] / scale), -127.0f), 127.0f))
                     : int8_t(0);
    if (i + LANE_ELEMENTS <= n)
        *reinterpret_cast<eight *>(elements + i) = e;
    else
        for (int j = 0; j < LANE_ELEMENTS; j++)
            if (i + j < n)
                elements[i + j] = e.v[j];
}

/* ---- launches */

template <class E> void pack(adl_queue *queue, void *to, const float *x, size_t n)
{
    adl_launch(queue, "packing", pack_kernel<E>, adl_ceil_div(n, BLOCK), THREADS, 0,
               static_cast<E *>(to), x, n, adl_aligned(x) && adl_aligned(to));
}

template <class E>
void unpack(adl_queue *queue, float *y, const void *from, size_t n, bool add,
            const float *scales = nullptr)
{
    adl_launch(queue, "unpacking", unpack_kernel<E>, adl_ceil_div(n, BLOCK), THREADS, 0, y,
               static_cast<const E *>(from), scales, n, add, adl_aligned(y) && adl_aligned(from));
}

/* What fills the scales up is 0, so that equal vectors have equal bytes. */
void pack_int8(adl_queue *queue, void *to, const float *x, size_t n)
{
    const size_t scales = adl_wire_scales_size(n);
    adl_cuda_check(queue, cudaMemsetAsync(to, 0, scales, queue->stream), "packing");
    adl_launch(queue, "packing", pack_int8_kernel, adl_ceil_div(n, ADL_WIRE_BLOCK * (THREADS / 32)),
               THREADS, 0, static_cast<float *>(to), static_cast<int8_t *>(to) + scales, x, n,
               adl_aligned(x) && adl_aligned(to));
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
        return unpack<int8_t>(queue, y, static_cast<const int8_t *>(from) + adl_wire_scales_size(n),
                              n, add, static_cast<const float *>(from));
    }
}
