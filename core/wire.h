/* SPDX-License-Identifier: Apache-2.0 */
/* fp32 vectors as they cross a network, by enum adl_wire of core/settings.h:
 *
 *   f32, f64    as they are
 *   bf16, f16   each element rounded to nearest, ties to even; overflow is infinity
 *   int8        blocks of 256 elements with one scale each, max |x| / 127, and x / scale rounded
 *               likewise; a block that holds NaN or infinity comes out as NaN. First all scales,
 *               fp32, filled up to a multiple of 16 bytes; then all elements.
 *
 * These are the formats' definition, on the host; core/space.h has them where vectors live. */
#ifndef ADL_CORE_WIRE_H
#define ADL_CORE_WIRE_H

#include <stdbool.h>
#include <stddef.h>

enum { ADL_WIRE_BLOCK = 256 };

/* Bytes that one element takes, without int8's scales. */
size_t adl_wire_bytes(int wire);
/* Bytes of n elements; where the elements of int8 start. */
size_t adl_wire_size(int wire, size_t n);
size_t adl_wire_scales_size(size_t n);

void adl_wire_pack(void *to, const void *x, size_t n, int wire);
/* y = what was packed; add: y += it */
void adl_wire_unpack(void *y, const void *from, size_t n, int wire, bool add);

#endif
