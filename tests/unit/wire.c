/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/rng.h"
#include "core/settings.h"
#include "core/wire.h"

static const int wires[] = {ADL_WIRE_F32, ADL_WIRE_F64, ADL_WIRE_BF16, ADL_WIRE_F16, ADL_WIRE_INT8};
#define N_WIRES (sizeof wires / sizeof wires[0])

/* Of many sizes, both signs, and at the edges. */
static float some(uint64_t i)
{
    static const float edges[] = {0.0f,      -0.0f,      1.0f,       65504.0f,   65519.9f,
                                  65520.0f,  -INFINITY,  INFINITY,   0x1p-14f,   0x1p-24f,
                                  0x1p-25f,  0x1.8p-24f, 0x1.004p0f, 0x1.00cp0f, 3.3961e38f,
                                  0x1.01p0f, 1e-45f};
    if (i < sizeof edges / sizeof edges[0])
        return edges[i];
    const struct adl_rng rng = adl_rng_make(1, ADL_RNG_TEST, 0, 0);
    const double size = exp(60.0 * adl_rng_uniform(&rng, 2 * i) - 30.0);
    return (float)(adl_rng_uniform(&rng, 2 * i + 1) < 0.5 ? -size : size);
}

static void *packed(const float *x, size_t n, int wire)
{
    char *to = malloc(adl_wire_size(wire, n) + 1);
    to[adl_wire_size(wire, n)] = 77;
    adl_wire_pack(to, x, n, wire);
    cr_assert_eq(to[adl_wire_size(wire, n)], 77, "wire %d writes past its end", wire);
    return to;
}

static float there_and_back(float x, int wire)
{
    void *to = packed(&x, 1, wire);
    float y = NAN;
    adl_wire_unpack(&y, to, 1, wire, false);
    free(to);
    return y;
}

#ifdef __FLT16_MAX__
__extension__ typedef _Float16 half;
Test(wire, half_precision_is_the_compilers)
{
    for (uint64_t i = 0; i < 200000; i++) {
        const float x = some(i), want = (float)(half)x;
        cr_assert_eq(there_and_back(x, ADL_WIRE_F16), want, "%a: %a for %a", x,
                     there_and_back(x, ADL_WIRE_F16), want);
    }
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint16_t same = (uint16_t)bits;
        half h;
        float y;
        memcpy(&h, &same, sizeof h);
        adl_wire_unpack(&y, &same, 1, ADL_WIRE_F16, false);
        cr_assert(y == (float)h || (isnan(y) && isnan((float)h)), "%x", bits);
    }
}
#endif

/* The nearest of the two bfloat16 around x; of two as near, the even one. */
Test(wire, bfloat16_is_nearest)
{
    for (uint64_t i = 0; i < 200000; i++) {
        const float x = some(i);
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        const uint32_t down = bits & 0xFFFF0000u, up = down + 0x10000u;
        float below, above;
        memcpy(&below, &down, sizeof below);
        memcpy(&above, &up, sizeof above);
        const double d = fabs((double)x - below), u = fabs((double)above - x);
        float want = d < u || (d == u && !(down & 0x10000u)) ? below : above;
        if (isinf(x))
            want = x;
        if (isinf(above) && !isinf(x)) /* as if exponents went on */
            want = (bits & 0xFFFFu) >= 0x8000u ? above : below;
        cr_assert_eq(there_and_back(x, ADL_WIRE_BF16), want, "%a", x);
    }
}

Test(wire, fp32_and_fp64_are_exact)
{
    for (uint64_t i = 0; i < 1000; i++) {
        cr_assert_eq(there_and_back(some(i), ADL_WIRE_F32), some(i));
        cr_assert_eq(there_and_back(some(i), ADL_WIRE_F64), some(i));
    }
}

Test(wire, int8_is_within_half_a_step)
{
    enum { N = 3 * ADL_WIRE_BLOCK + 5 };
    float x[N], y[N];
    for (size_t i = 0; i < N; i++)
        x[i] = (float)sin((double)i) * (i < ADL_WIRE_BLOCK ? 1e-3f : 10.0f);
    memset(x + 2 * ADL_WIRE_BLOCK, 0, ADL_WIRE_BLOCK * sizeof *x);
    void *to = packed(x, N, ADL_WIRE_INT8);
    adl_wire_unpack(y, to, N, ADL_WIRE_INT8, false);
    for (size_t i = 0; i < N; i++) {
        const double most = i < ADL_WIRE_BLOCK ? 1e-3 : 10.0;
        cr_expect_leq(fabs((double)x[i] - y[i]), most / 127 / 2 * 1.001, "%zu", i);
    }
    cr_expect_eq(y[2 * ADL_WIRE_BLOCK], 0.0f);
    free(to);
}

Test(wire, not_a_number_stays)
{
    float x[2 * ADL_WIRE_BLOCK] = {1.0f}, y[2 * ADL_WIRE_BLOCK];
    for (size_t w = 0; w < N_WIRES; w++)
        cr_expect(isnan(there_and_back(NAN, wires[w])), "wire %d", wires[w]);
    x[3] = INFINITY;
    void *to = packed(x, 2 * ADL_WIRE_BLOCK, ADL_WIRE_INT8);
    adl_wire_unpack(y, to, 2 * ADL_WIRE_BLOCK, ADL_WIRE_INT8, false);
    cr_expect(isnan(y[0]) && isnan(y[3]) && isnan(y[ADL_WIRE_BLOCK - 1]));
    cr_expect_eq(y[ADL_WIRE_BLOCK], 0.0f, "its block only");
    free(to);
}

Test(wire, adding_adds)
{
    for (size_t w = 0; w < N_WIRES; w++) {
        float x[300], y[300], z[300];
        for (int i = 0; i < 300; i++) {
            x[i] = (float)cos(i);
            z[i] = (float)i;
        }
        void *to = packed(x, 300, wires[w]);
        adl_wire_unpack(y, to, 300, wires[w], false);
        adl_wire_unpack(z, to, 300, wires[w], true);
        for (int i = 0; i < 300; i++)
            cr_assert_eq(z[i], (float)i + y[i]);
        free(to);
    }
}

/* A zero's sign too, as bytes. */
Test(wire, fp32_and_fp64_keep_every_bit)
{
    for (uint64_t i = 0; i < 1000; i++)
        for (int w = 0; w < 2; w++) {
            const float x = some(i), y = there_and_back(x, wires[w]);
            cr_assert(memcmp(&x, &y, sizeof x) == 0, "%a: %a", x, y);
        }
}

/* Blocks whose scale is a rounded subnormal: no sign turns over. */
Test(wire, int8_of_the_smallest)
{
    for (int k = 1; k < 2000; k++) {
        const float x[2] = {(float)k * 0x1p-149f, (float)-k * 0x1p-149f};
        float y[2];
        void *to = packed(x, 2, ADL_WIRE_INT8);
        adl_wire_unpack(y, to, 2, ADL_WIRE_INT8, false);
        free(to);
        cr_assert(y[0] >= 0 && y[1] <= 0 && y[0] <= 2 * x[0], "%a: %a, %a", x[0], y[0], y[1]);
    }
}
