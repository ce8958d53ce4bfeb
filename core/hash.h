/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of runs and plans: FNV-1a, 64 bits, as 16 hex digits. */
#ifndef ADL_CORE_HASH_H
#define ADL_CORE_HASH_H

#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ADL_HASH_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t adl_hash_bytes(uint64_t hash, const void *data, size_t n)
{
    for (const unsigned char *at = data, *end = at + n; at < end; at++)
        hash = (hash ^ *at) * UINT64_C(0x100000001b3);
    return hash;
}

static inline uint64_t adl_hash_text(uint64_t hash, const char *text)
{
    return adl_hash_bytes(hash, text, strlen(text));
}

static inline void adl_hash_print(uint64_t hash, char out[17])
{
    snprintf(out, 17, "%016" PRIx64, hash);
}

#endif
