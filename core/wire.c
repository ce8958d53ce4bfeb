/* SPDX-License-Identifier: Apache-2.0 */
#include "core/wire.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/settings.h"

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint16_t to_bf16(float x)
{
    const uint32_t bits = bits_of(x);
    if (isnan(x))
        return (uint16_t)((bits | 0x400000u) >> 16);
    return (uint16_t)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/* 5 bits of exponent, 10 of fraction. Below 2^-14 numbers are multiples of 2^-24, which adding
 * and taking away 0.5 rounds to. */
static uint16_t to_f16(float x)
{
    const uint32_t sign = bits_of(x) >> 16 & 0x8000u, size = bits_of(x) & 0x7FFFFFFFu;
    uint32_t half;
    if (isnan(x))
        half = 0x7E00u;
    else if (size < 0x38800000u)
        half = bits_of(float_of(size) + 0.5f) - bits_of(0.5f);
    else
        half = (size - (112u << 23) + 0xFFFu + (size >> 13 & 1u)) >> 13;
    return (uint16_t)(sign | (half > 0x7C00u && !isnan(x) ? 0x7C00u : half));
}

static float from_f16(uint16_t half)
{
    const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, size = half & 0x7FFFu;
    if (size < 0x400u)
        return float_of(sign | bits_of((float)size * 0x1p-24f));
    return float_of(sign |
                    (size >= 0x7C00u ? 0x7F800000u | size << 13 : (size << 13) + (112u << 23)));
}

size_t adl_wire_scales_size(size_t n)
{
    const size_t blocks = (n + ADL_WIRE_BLOCK - 1) / ADL_WIRE_BLOCK;
    return (blocks * sizeof(float) + 15) / 16 * 16;
}

size_t adl_wire_bytes(int wire)
{
    switch (wire) {
    case ADL_WIRE_F64:
        return 8;
    case ADL_WIRE_BF16:
    case ADL_WIRE_F16:
        return 2;
    case ADL_WIRE_INT8:
        return 1;
    default:
        return 4;
    }
}

size_t adl_wire_size(int wire, size_t n)
{
    return (wire == ADL_WIRE_INT8 ? adl_wire_scales_size(n) : 0) + n * adl_wire_bytes(wire);
}

/* NaN where a block cannot be scaled. Where it is a rounded subnormal, x / scale may pass 127. */
static float scale_of(const float *x, size_t n)
{
    float max = 0.0f;
    for (size_t i = 0; i < n; i++) {
        const float size = isfinite(x[i]) ? fabsf(x[i]) : INFINITY;
        max = size > max ? size : max;
    }
    return isinf(max) ? NAN : max / 127.0f;
}

static void pack_int8(void *to, const float *x, size_t n)
{
    float *scales = to;
    int8_t *elements = (int8_t *)to + adl_wire_scales_size(n);
    memset(to, 0, adl_wire_scales_size(n));
    for (size_t first = 0; first < n; first += ADL_WIRE_BLOCK) {
        const size_t count = n - first < ADL_WIRE_BLOCK ? n - first : ADL_WIRE_BLOCK;
        const float scale = scale_of(x + first, count);
        scales[first / ADL_WIRE_BLOCK] = scale;
        for (size_t i = first; i < first + count; i++)
            elements[i] =
                scale > 0 ? (int8_t)fminf(fmaxf(rintf(x[i] / scale), -127.0f), 127.0f) : 0;
    }
}

void adl_wire_pack(void *to, const void *x, size_t n, int wire)
{
    const float *from = x;
    if (wire == ADL_WIRE_INT8 && n > 0)
        pack_int8(to, from, n);
    for (size_t i = 0; i < n; i++)
        if (wire == ADL_WIRE_BF16)
            ((uint16_t *)to)[i] = to_bf16(from[i]);
        else if (wire == ADL_WIRE_F16)
            ((uint16_t *)to)[i] = to_f16(from[i]);
        else if (wire == ADL_WIRE_F64)
            ((double *)to)[i] = from[i];
        else if (wire == ADL_WIRE_F32)
            ((float *)to)[i] = from[i];
}

static float element(const void *from, size_t i, size_t n, int wire)
{
    switch (wire) {
    case ADL_WIRE_BF16:
        return float_of((uint32_t)((const uint16_t *)from)[i] << 16);
    case ADL_WIRE_F16:
        return from_f16(((const uint16_t *)from)[i]);
    case ADL_WIRE_F64:
        return (float)((const double *)from)[i];
    case ADL_WIRE_INT8:
        return (float)((const int8_t *)from + adl_wire_scales_size(n))[i] *
               ((const float *)from)[i / ADL_WIRE_BLOCK];
    default:
        return ((const float *)from)[i];
    }
}

void adl_wire_unpack(void *y, const void *from, size_t n, int wire, bool add)
{
    float *to = y;
    for (size_t i = 0; i < n; i++) {
        const float x = element(from, i, n, wire);
        to[i] = add ? to[i] + x : x;
    }
}
