/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "core/rng.h"

/* Random123's known answers for philox4x32-10. */
Test(rng, known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], want[4];
    } rows[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        uint32_t got[4];
        adl_philox4x32(rows[r].counter, rows[r].key, got);
        for (int i = 0; i < 4; i++)
            cr_expect_eq(got[i], rows[r].want[i], "row %zu word %d: %08x", r, i, got[i]);
    }
}

Test(rng, every_part_of_the_address_counts)
{
    static const struct {
        uint64_t seed;
        enum adl_rng_purpose purpose;
        uint64_t a, b;
    } rows[] = {
        {1, ADL_RNG_TEST, 2, 3},
        {2, ADL_RNG_TEST, 2, 3},
        {1 + (1ull << 32), ADL_RNG_TEST, 2, 3},
        {1, ADL_RNG_SHUFFLE, 2, 3},
        {1, ADL_RNG_TEST, 3, 2},
        {1, ADL_RNG_TEST, 2, 4},
        {1, ADL_RNG_TEST, 2 + (1ull << 32), 3},
        {1, ADL_RNG_TEST, 2, 3 + (1ull << 32)},
        {0, ADL_RNG_TEST, 2, 3},
    };
    enum { N = sizeof rows / sizeof rows[0] };
    double first[N];
    for (int r = 0; r < N; r++) {
        const struct adl_rng rng =
            adl_rng_make(rows[r].seed, rows[r].purpose, rows[r].a, rows[r].b);
        first[r] = adl_rng_uniform(&rng, 0);
        cr_expect_neq(adl_rng_uniform(&rng, 1), first[r], "the index counts");
        cr_expect_neq(adl_rng_uniform(&rng, 1ull << 32), first[r], "its upper half too");
        for (int s = 0; s < r; s++)
            cr_expect_neq(first[s], first[r], "rows %d and %d", s, r);
    }
}

Test(rng, any_sub_range_is_the_same)
{
    enum { N = 200 };
    const struct adl_rng rng = adl_rng_make(7, ADL_RNG_TEST, 1, 2);
    double all[N], part[N + 1];
    adl_rng_normals(&rng, 0, N, all);
    for (size_t first = 0; first < N; first++) {
        for (size_t n = 0; first + n <= N; n++) {
            part[n] = -99.0;
            adl_rng_normals(&rng, first, n, part);
            cr_assert(memcmp(part, all + first, n * sizeof all[0]) == 0, "[%zu, +%zu)", first, n);
            cr_assert_eq(part[n], -99.0, "writes past its end: [%zu, +%zu)", first, n);
        }
    }
}

/* Bits of one machine, so that another machine's are seen to be the same. */
Test(rng, bits_are_pinned)
{
    static const double want[4] = {0x1.ce8031f3d931ap+0, -0x1.8355e73f6ea8p+0, 0x1.6a567cdc95a0ap-2,
                                   -0x1.9420ab459730fp-1};
    const struct adl_rng rng = adl_rng_make(1, ADL_RNG_MODEL_NOISE, 2, 3);
    double got[4];
    adl_rng_normals(&rng, 5, 4, got);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(got[i], want[i], "%d: %a", i, got[i]);
    cr_expect_eq(adl_rng_uniform(&rng, 9), 0x1.a129dcbd80a2ep-2, "%a", adl_rng_uniform(&rng, 9));
}

/* Box-Muller by libm in long double: block i gives two normals, quadrant from the low bits. */
Test(rng, normals_are_box_muller)
{
    const struct adl_rng rng = adl_rng_make(11, ADL_RNG_TEST, 0, 0);
    const long double quarter_pi = atanl(1.0L);
    for (uint64_t i = 0; i < 100000; i++) {
        uint32_t w[4];
        double z[2];
        adl_rng_block(&rng, i, w);
        adl_rng_normals(&rng, 2 * i, 2, z);
        const uint64_t p = (uint64_t)w[1] << 32 | w[0], q = (uint64_t)w[3] << 32 | w[2];
        const long double u = ((long double)(p >> 12) + 0.5L) * 0x1p-52L;
        const long double v = ((long double)(q >> 12) + 0.5L) * 0x1p-52L;
        const long double radius = sqrtl(-2.0L * logl(u));
        const long double c = radius * cosl(2.0L * quarter_pi * v);
        const long double s = radius * sinl(2.0L * quarter_pi * v);
        cr_assert_float_eq(z[0], (double)(q & 1 ? -c : c), 5e-15);
        cr_assert_float_eq(z[1], (double)(q & 2 ? -s : s), 5e-15);
    }
}

/* Moments of 10^6 normals and of their neighbours' products, in standard errors. */
Test(rng, normals_are_standard)
{
    enum { N = 1000000 };
    static double z[N];
    const struct adl_rng rng = adl_rng_make(3, ADL_RNG_TEST, 5, 8);
    double m1 = 0, m2 = 0, m3 = 0, m4 = 0, next = 0, tail = 0;
    adl_rng_normals(&rng, 0, N, z);
    for (int i = 0; i < N; i++) {
        m1 += z[i];
        m2 += z[i] * z[i];
        m3 += z[i] * z[i] * z[i];
        m4 += z[i] * z[i] * z[i] * z[i];
        next += z[i] * z[(i + 1) % N];
        tail += fabs(z[i]) > 3.0;
    }
    cr_expect_lt(fabs(m1 / N) * sqrt(N / 1.0), 4);
    cr_expect_lt(fabs(m2 / N - 1) * sqrt(N / 2.0), 4);
    cr_expect_lt(fabs(m3 / N) * sqrt(N / 15.0), 4);
    cr_expect_lt(fabs(m4 / N - 3) * sqrt(N / 96.0), 4);
    cr_expect_lt(fabs(next / N) * sqrt(N / 1.0), 4);
    const double beyond3 = erfc(3.0 / sqrt(2.0));
    cr_expect_lt(fabs(tail / N - beyond3) * sqrt(N / beyond3), 4);
}

Test(rng, uniforms_are_uniform)
{
    enum { N = 200000, BINS = 64 };
    const struct adl_rng rng = adl_rng_make(3, ADL_RNG_TEST, 1, 1);
    double count[BINS] = {0}, chi2 = 0;
    for (uint64_t i = 0; i < N; i++) {
        const double u = adl_rng_uniform(&rng, i);
        cr_assert(u > 0.0 && u < 1.0);
        count[(int)(u * BINS)]++;
    }
    for (int k = 0; k < BINS; k++)
        chi2 += pow(count[k] - (double)N / BINS, 2) / ((double)N / BINS);
    cr_expect_lt(fabs(chi2 - (BINS - 1)) / sqrt(2.0 * (BINS - 1)), 4);
}
