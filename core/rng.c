/* SPDX-License-Identifier: Apache-2.0 */
#include "core/rng.h"

#include <math.h>
#include <string.h>

enum { ROUNDS = 10, LANES = 16 /* blocks at once: enough to hide latencies */ };

/* One block in place (Salmon et al. 2011, section 3.3). */
static inline void philox(uint32_t c[4], uint32_t key0, uint32_t key1)
{
    for (int r = 0; r < ROUNDS; r++) {
        const uint64_t p0 = 0xD2511F53u * (uint64_t)c[0];
        const uint64_t p1 = 0xCD9E8D57u * (uint64_t)c[2];
        c[0] = (uint32_t)(p1 >> 32) ^ c[1] ^ key0;
        c[1] = (uint32_t)p1;
        c[2] = (uint32_t)(p0 >> 32) ^ c[3] ^ key1;
        c[3] = (uint32_t)p0;
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

void adl_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    memcpy(out, counter, 4 * sizeof out[0]);
    philox(out, key[0], key[1]);
}

/* The finalizer of SplitMix64: a bijection that keeps 0. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

struct adl_rng adl_rng_make(uint64_t seed, enum adl_rng_purpose purpose, uint64_t a, uint64_t b)
{
    const uint64_t upper = (a >> 32) << 32 | b >> 32;
    const uint64_t key = mix(mix(seed) + (uint64_t)purpose * 0x9E3779B97F4A7C15u) ^ mix(upper);
    return (struct adl_rng){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .hi = {(uint32_t)a, (uint32_t)b},
    };
}

static inline void block(const struct adl_rng *rng, uint64_t index, uint32_t out[4])
{
    out[0] = (uint32_t)index;
    out[1] = (uint32_t)(index >> 32);
    out[2] = rng->hi[0];
    out[3] = rng->hi[1];
    philox(out, rng->key[0], rng->key[1]);
}

void adl_rng_block(const struct adl_rng *rng, uint64_t index, uint32_t out[4])
{
    block(rng, index, out);
}

static inline double from_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint64_t to_bits(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The upper 52 bits k as (k + 1/2) / 2^52: exact, and never 0 or 1. */
static inline double open_unit(uint64_t word)
{
    return from_bits(word >> 12 | 0x3FF0000000000000u) - (1.0 - 0x1p-53);
}

double adl_rng_uniform(const struct adl_rng *rng, uint64_t index)
{
    uint32_t w[4];
    block(rng, index, w);
    return open_unit((uint64_t)w[1] << 32 | w[0]);
}

/* The functions below are ours and not libm's, because libm's last bits change from machine to
 * machine, and because loops of plain arithmetic vectorise. Errors stay below 1e-15. */

/* -ln u for u in (0, 1): u = 2^e m with m in [1/sqrt 2, sqrt 2), ln m = 2 artanh((m-1)/(m+1)). */
static inline double minus_log(double u)
{
    const uint64_t sqrt_half = 0x3FE6A09E667F3BCDu;
    const uint64_t bias = 64; /* keeps the exponent positive: u >= 2^-53 */
    const uint64_t biased = (to_bits(u) + (bias << 52) - sqrt_half) >> 52;
    const double m = from_bits(to_bits(u) + (bias << 52) - (biased << 52));
    const double e = from_bits(0x4330000000000000u | biased) - (0x1p52 + (double)bias);
    const double s = (m - 1.0) / (m + 1.0);
    const double z = s * s;
    double p = 1.0 / 21;
    p = p * z + 1.0 / 19;
    p = p * z + 1.0 / 17;
    p = p * z + 1.0 / 15;
    p = p * z + 1.0 / 13;
    p = p * z + 1.0 / 11;
    p = p * z + 1.0 / 9;
    p = p * z + 1.0 / 7;
    p = p * z + 1.0 / 5;
    p = p * z + 1.0 / 3;
    return -(e * 0x1.62e42fefa39efp-1 + 2.0 * (s + s * z * p));
}

/* Taylor series, |x| <= pi/4. */
static inline double sine(double x)
{
    const double z = x * x;
    double p = -1.0 / 1307674368000;
    p = p * z + 1.0 / 6227020800;
    p = p * z - 1.0 / 39916800;
    p = p * z + 1.0 / 362880;
    p = p * z - 1.0 / 5040;
    p = p * z + 1.0 / 120;
    p = p * z - 1.0 / 6;
    return x + x * z * p;
}

static inline double cosine(double x)
{
    const double z = x * x;
    double p = 1.0 / 20922789888000;
    p = p * z - 1.0 / 87178291200;
    p = p * z + 1.0 / 479001600;
    p = p * z - 1.0 / 3628800;
    p = p * z + 1.0 / 40320;
    p = p * z - 1.0 / 720;
    p = p * z + 1.0 / 24;
    p = p * z - 1.0 / 2;
    return 1.0 + z * p;
}

/* Normals 2 block .. 2 (block + LANES). Box-Muller with the quadrant drawn apart: two signs, and
 * an angle pi/4 + x with x uniform in (-pi/4, pi/4), whose cosine and sine are
 * (cos x -+ sin x) / sqrt 2; the root takes in sqrt(-2 ln u) / sqrt 2. */
static void normals_batch(const struct adl_rng *rng, uint64_t first_block, double out[2 * LANES])
{
    uint64_t words[2][LANES];
    double radius[LANES];

    for (int i = 0; i < LANES; i++) {
        uint32_t w[4];
        block(rng, first_block + (uint64_t)i, w);
        words[0][i] = (uint64_t)w[1] << 32 | w[0];
        words[1][i] = (uint64_t)w[3] << 32 | w[2];
    }
    for (int i = 0; i < LANES; i++)
        radius[i] = minus_log(open_unit(words[0][i]));
    for (int i = 0; i < LANES; i++)
        radius[i] = sqrt(radius[i]);
    for (int i = 0; i < LANES; i++) {
        const double quarter_pi = 0x1.921fb54442d18p-1;
        const double x = (open_unit(words[1][i]) - 0.5) * (2 * quarter_pi);
        const double c = cosine(x), s = sine(x);
        const uint64_t sign = 0x8000000000000000u;
        out[2 * i] = from_bits(to_bits(radius[i] * (c - s)) ^ (words[1][i] << 63));
        out[2 * i + 1] = from_bits(to_bits(radius[i] * (c + s)) ^ (words[1][i] << 62 & sign));
    }
}

void adl_rng_normals(const struct adl_rng *rng, uint64_t first, size_t n, double *out)
{
    uint64_t block_index = first / 2;
    size_t skip = first % 2;

    while (n > 0) {
        double batch[2 * LANES];
        const size_t have = 2 * LANES - skip;
        if (skip == 0 && n >= 2 * LANES) {
            normals_batch(rng, block_index, out);
        } else {
            normals_batch(rng, block_index, batch);
            memcpy(out, batch + skip, (n < have ? n : have) * sizeof out[0]);
        }
        if (n <= have)
            return;
        out += have;
        n -= have;
        block_index += LANES;
        skip = 0;
    }
}
