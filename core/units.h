/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as people write them: 1e6, 64Ki, 50us, 400Gbit/s. */
#ifndef ADL_CORE_UNITS_H
#define ADL_CORE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads all of text [n] as a number of dimension `unit` ("s", "B", "B/s", "flop/s", "flop", or
 * NULL for a plain number) into SI base units. False where it is not one, or not finite. */
bool adl_units_real(const char *text, size_t n, const char *unit, double *out);
/* The same for a whole number; whole after scaling, so that 1e3 and 64Ki are integers. */
bool adl_units_int(const char *text, size_t n, const char *unit, int64_t *out);

/* Shortest decimal text that reads back as the same double; buf holds at least 32 bytes. */
const char *adl_units_print(double value, char *buf, size_t size);

/* A value of this dimension as one would write it ("50us"); "" for plain numbers. */
const char *adl_units_example(const char *unit);

#endif
