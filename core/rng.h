/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: Philox4x32-10 (Salmon et al., SC'11). A draw is a pure function
 * of (seed, purpose, a, b, index), so the same experiment gives the same bits on every
 * transport and on any number of processes. */
#ifndef ADL_CORE_RNG_H
#define ADL_CORE_RNG_H

#include <stddef.h>
#include <stdint.h>

enum adl_rng_purpose { /* keeps streams of different uses apart */
    ADL_RNG_MODEL_INIT = 1,
    ADL_RNG_MODEL_NOISE,
    ADL_RNG_MODEL_NOISE2,
    ADL_RNG_MODEL_HOP,
    ADL_RNG_MODEL_SHAPE, /* heterogeneous workers */
    ADL_RNG_SHUFFLE,
    ADL_RNG_DEVICE_SPEED,
    ADL_RNG_DEVICE_JITTER,
    ADL_RNG_DEVICE_DRIFT,
    ADL_RNG_BOOTSTRAP,
    ADL_RNG_TEST,
    ADL_RNG_DEVICE_STALL,
    ADL_RNG_FAULT
};

struct adl_rng {
    uint32_t key[2]; /* from seed, purpose, and the upper halves of a and b */
    uint32_t hi[2];  /* the lower halves of a and b */
};

/* The stream (seed, purpose, a, b). */
struct adl_rng adl_rng_make(uint64_t seed, enum adl_rng_purpose purpose, uint64_t a, uint64_t b);

/* The raw block at counter `index`: four words. */
void adl_rng_block(const struct adl_rng *rng, uint64_t index, uint32_t out[4]);
/* Uniform in (0, 1), 53 bits; element `index` of the stream. */
double adl_rng_uniform(const struct adl_rng *rng, uint64_t index);
/* out[i] = element first + i of the stream of standard normals (Box-Muller; two per block);
 * any sub-range gives the same numbers. */
void adl_rng_normals(const struct adl_rng *rng, uint64_t first, size_t n, double *out);
/* Known-answer access for tests: Philox4x32-10 of counter and key. */
void adl_philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

#endif
