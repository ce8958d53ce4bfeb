/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/human.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Decimals that make three significant digits of 1 <= v < 1000 after rounding. */
static int decimals(double v)
{
    return v < 9.995 ? 2 : v < 99.95 ? 1 : 0;
}

const char *adl_human_count(double v, char *out, size_t size)
{
    if (isnan(v)) {
        snprintf(out, size, "-");
    } else if (fabs(v) < 99999.5) {
        snprintf(out, size, "%.*f", v == floor(v) || fabs(v) >= 1000 ? 0 : 1, v);
    } else if (isinf(v)) {
        snprintf(out, size, "%sinf", v < 0 ? "-" : "");
    } else {
        char text[32]; /* "1.23e+06" */
        snprintf(text, sizeof text, "%.2e", v);
        char *e = strchr(text, 'e');
        snprintf(out, size, "%.*se%d", (int)(e - text), text, atoi(e + 1));
    }
    return out;
}

const char *adl_human_bytes(double v, char *out, size_t size)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    if (isnan(v)) {
        snprintf(out, size, "-");
        return out;
    }
    int unit = 0;
    for (; v >= 999.5 && unit < 5; unit++)
        v /= 1000;
    snprintf(out, size, "%.*f %s", unit == 0 ? 0 : decimals(v), v, units[unit]);
    return out;
}

const char *adl_human_seconds(double v, char *out, size_t size)
{
    if (isnan(v))
        snprintf(out, size, "-");
    else if (v == 0)
        snprintf(out, size, "0 s");
    else if (v < 0.9995e-3)
        snprintf(out, size, "%.*f us", decimals(v * 1e6), v * 1e6);
    else if (v < 0.9995)
        snprintf(out, size, "%.*f ms", decimals(v * 1e3), v * 1e3);
    else
        snprintf(out, size, "%.*f s", decimals(v), v);
    return out;
}

const char *adl_human_share(double v, char *out, size_t size)
{
    if (isnan(v))
        snprintf(out, size, "-");
    else
        snprintf(out, size, "%.*f%%", v < 0.0995 ? 2 : 1, 100 * v);
    return out;
}
