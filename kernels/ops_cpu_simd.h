/* SPDX-License-Identifier: Apache-2.0 */
/* What the CPU operators' loops share: several instruction sets from one source, and reductions
 * and exponentials that compilers can vectorise without being allowed to reorder additions.
 * Multiplications and additions are never fused, so every instruction set gives the same bits. */
#ifndef ADL_KERNELS_OPS_CPU_SIMD_H
#define ADL_KERNELS_OPS_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

/* The version that fits the machine is chosen as the program loads, before the sanitizers that
 * count calls and accesses are ready for it. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__) &&    \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ADL_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ADL_SIMD
#endif

/* Before a loop: what its steps read and write does not meet. */
#ifdef __clang__
#define ADL_APART _Pragma("clang loop vectorize(assume_safety)")
#else
#define ADL_APART _Pragma("GCC ivdep")
#endif

#define ADL_INLINE static inline __attribute__((always_inline))

/* Sums and maxima run in this many lanes, element i in lane i mod ADL_LANES; then the lanes are
 * folded in halves. */
enum { ADL_LANES = 16 };

ADL_INLINE float adl_lanes_sum(const float lanes[ADL_LANES])
{
    float x[ADL_LANES];
    memcpy(x, lanes, sizeof x);
    for (int half = ADL_LANES / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            x[i] += x[i + half];
    return x[0];
}

/* The largest of x [n], n >= 1. A NaN may be passed over: whoever goes on computes with x. */
ADL_INLINE float adl_max(const float *x, int n)
{
    float lanes[ADL_LANES];
    for (int j = 0; j < ADL_LANES; j++)
        lanes[j] = x[0];
    int i = 0;
    for (; i + ADL_LANES <= n; i += ADL_LANES)
        for (int j = 0; j < ADL_LANES; j++)
            lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    for (int j = 0; i + j < n; j++)
        lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
    float max = lanes[0];
    for (int j = 1; j < ADL_LANES; j++)
        max = lanes[j] > max ? lanes[j] : max;
    return max;
}

ADL_INLINE float adl_dot(const float *x, const float *y, int n)
{
    float lanes[ADL_LANES] = {0};
    int i = 0;
    for (; i + ADL_LANES <= n; i += ADL_LANES)
        for (int j = 0; j < ADL_LANES; j++)
            lanes[j] += x[i + j] * y[i + j];
    for (int j = 0; i + j < n; j++)
        lanes[j] += x[i + j] * y[i + j];
    return adl_lanes_sum(lanes);
}

/* exp(x) within 2 units in the last place for -87.3 <= x <= 88; smaller and larger x count as
 * these bounds, NaN stays. x = n ln 2 + r, |r| <= ln 2 / 2, exp = 2^n times r's Taylor series. */
ADL_INLINE float adl_exp(float x)
{
    const float round = 12582912.0f; /* 1.5 x 2^23: adding it leaves no bits after the point */
    x = x < -87.3f ? -87.3f : x;
    x = x > 88.0f ? 88.0f : x;
    const float shifted = x * 1.44269504f + round;
    const float n = shifted - round;
    const float r = x - n * 0.693145752f - n * 1.42860677e-6f; /* ln 2 in two parts */
    float p = 1.0f / 5040;
    p = p * r + 1.0f / 720;
    p = p * r + 1.0f / 120;
    p = p * r + 1.0f / 24;
    p = p * r + 1.0f / 6;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    uint32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4B400000u + 127u) << 23;
    float power;
    memcpy(&power, &bits, sizeof power);
    return p * power;
}

/* y [n] = exp(x - shift), and the sum of y. */
ADL_INLINE float adl_exp_shifted(float *y, const float *x, float shift, int n)
{
    float lanes[ADL_LANES] = {0};
    int i = 0;
    for (; i + ADL_LANES <= n; i += ADL_LANES)
        for (int j = 0; j < ADL_LANES; j++) {
            const float e = adl_exp(x[i + j] - shift);
            y[i + j] = e;
            lanes[j] += e;
        }
    for (int j = 0; i + j < n; j++) {
        const float e = adl_exp(x[i + j] - shift);
        y[i + j] = e;
        lanes[j] += e;
    }
    return adl_lanes_sum(lanes);
}

#endif
