/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people read them: three significant digits and a unit; "-" for NAN. All write to
 * out [size] and return it. */
#ifndef ADL_ANALYSIS_HUMAN_H
#define ADL_ANALYSIS_HUMAN_H

#include <stddef.h>

const char *adl_human_count(double v, char *out, size_t size);   /* 725, 1.23e6 */
const char *adl_human_bytes(double v, char *out, size_t size);   /* 54.3 GB; powers of 1000 */
const char *adl_human_seconds(double v, char *out, size_t size); /* 33.1 s, 1.20 ms, 41700 s */
const char *adl_human_share(double v, char *out, size_t size);   /* 0.123 -> 12.3% */

#endif
