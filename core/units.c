/* SPDX-License-Identifier: Apache-2.0 */
#include "core/units.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NUMBER = 64 };

/* Scaling is by one multiplication and one division by exact numbers, so that 50us is the double
 * nearest to 5e-5. */
struct scale {
    const char *text;
    double mul, div;
};

static const struct scale prefixes[] = {
    {"", 1, 1},           {"k", 1e3, 1},        {"K", 1e3, 1},     {"M", 1e6, 1},
    {"G", 1e9, 1},        {"T", 1e12, 1},       {"P", 1e15, 1},    {"E", 1e18, 1},
    {"Ki", 0x1p10, 1},    {"Mi", 0x1p20, 1},    {"Gi", 0x1p30, 1}, {"Ti", 0x1p40, 1},
    {"m", 1, 1e3},        {"u", 1, 1e6},        {"n", 1, 1e9},     {"p", 1, 1e12},
    {"\xc2\xb5", 1, 1e6}, {"\xce\xbc", 1, 1e6}, /* both mu's of Unicode */
};

static const struct {
    const char *dimension;
    struct scale unit;
    bool prefixed;
} units[] = {
    {"s", {"s", 1, 1}, true},           {"s", {"min", 60, 1}, false},
    {"s", {"h", 3600, 1}, false},       {"s", {"d", 86400, 1}, false},
    {"B", {"B", 1, 1}, true},           {"B", {"bit", 1, 8}, true},
    {"B/s", {"B/s", 1, 1}, true},       {"B/s", {"Bps", 1, 1}, true},
    {"B/s", {"bit/s", 1, 8}, true},     {"B/s", {"bps", 1, 8}, true},
    {"flop/s", {"flop/s", 1, 1}, true}, {"flop/s", {"flops", 1, 1}, true},
    {"flop/s", {"FLOP/s", 1, 1}, true}, {"flop/s", {"FLOPS", 1, 1}, true},
    {"flop", {"flop", 1, 1}, true},     {"flop", {"FLOP", 1, 1}, true},
};

const char *adl_units_example(const char *unit)
{
    static const char *const examples[][2] = {{"s", "50us"},
                                              {"B", "80GiB"},
                                              {"B/s", "10GB/s or 400Gbit/s"},
                                              {"flop/s", "400Tflop/s"},
                                              {"flop", "2Gflop"}};
    for (size_t i = 0; unit && i < sizeof examples / sizeof *examples; i++)
        if (!strcmp(examples[i][0], unit))
            return examples[i][1];
    return "";
}

/* Length of the decimal number that s starts with; strtod alone would take "inf" and "0x1". */
static size_t decimal_length(const char *s)
{
    const char *c = s;
    if (*c == '+' || *c == '-')
        c++;
    size_t digits = 0;
    for (; isdigit((unsigned char)*c); c++)
        digits++;
    if (*c == '.')
        for (c++; isdigit((unsigned char)*c); c++)
            digits++;
    if (digits == 0)
        return 0;
    if (*c == 'e' || *c == 'E') {
        const char *e = c + 1;
        if (*e == '+' || *e == '-')
            e++;
        if (isdigit((unsigned char)*e)) {
            while (isdigit((unsigned char)*e))
                e++;
            c = e;
        }
    }
    return (size_t)(c - s);
}

static bool find_prefix(const char *text, size_t n, bool fractions, struct scale *out)
{
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
        if (strlen(prefixes[i].text) == n && !strncmp(prefixes[i].text, text, n) &&
            (fractions || prefixes[i].div == 1)) {
            *out = prefixes[i];
            return true;
        }
    return false;
}

/* What the text after a number means; nothing is the base unit. */
static bool find_scale(const char *suffix, const char *dimension, double *mul, double *div)
{
    struct scale prefix;
    size_t n = strlen(suffix);
    *mul = *div = 1;
    if (n == 0)
        return true;
    if (!dimension) {
        bool ok = find_prefix(suffix, n, false, &prefix);
        *mul = ok ? prefix.mul : 1;
        return ok;
    }
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        const struct scale *unit = &units[i].unit;
        size_t u = strlen(unit->text);
        if (strcmp(units[i].dimension, dimension) || n < u || strcmp(suffix + n - u, unit->text) ||
            !find_prefix(suffix, n - u, true, &prefix) || (n > u && !units[i].prefixed))
            continue;
        *mul = prefix.mul * unit->mul;
        *div = prefix.div * unit->div;
        return true;
    }
    return false;
}

/* Copies text [n] without surrounding blanks. */
static bool trimmed(const char *text, size_t n, char out[MAX_NUMBER])
{
    while (n > 0 && isspace((unsigned char)*text)) {
        text++;
        n--;
    }
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    if (n == 0 || n >= MAX_NUMBER)
        return false;
    memcpy(out, text, n);
    out[n] = '\0';
    return true;
}

bool adl_units_real(const char *text, size_t n, const char *unit, double *out)
{
    char number[MAX_NUMBER];
    if (!trimmed(text, n, number))
        return false;
    size_t length = decimal_length(number);
    if (length == 0)
        return false;
    const char *suffix = number + length;
    while (*suffix == ' ')
        suffix++;
    double mul, div;
    if (!find_scale(suffix, unit, &mul, &div))
        return false;
    number[length] = '\0';
    double value = strtod(number, NULL) * mul / div;
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}

bool adl_units_int(const char *text, size_t n, const char *unit, int64_t *out)
{
    char number[MAX_NUMBER];
    if (!trimmed(text, n, number))
        return false;
    if (strspn(number + (*number == '+' || *number == '-'), "0123456789") ==
        strlen(number) - (*number == '+' || *number == '-')) {
        char *end;
        errno = 0;
        *out = strtoll(number, &end, 10);
        return errno == 0 && end != number;
    }
    double value;
    if (!adl_units_real(number, strlen(number), unit, &value) || value != floor(value) ||
        fabs(value) >= 0x1p63)
        return false;
    *out = (int64_t)value;
    return true;
}

/* "1e+09" -> "1e9", "1e-08" -> "1e-8" */
static void tidy_exponent(char *number)
{
    char *to = strchr(number, 'e');
    if (!to)
        return;
    const char *from = ++to;
    if (*from == '-')
        to++;
    from++;
    while (*from == '0')
        from++;
    memmove(to, from, strlen(from) + 1);
}

const char *adl_units_print(double value, char *buf, size_t size)
{
    if (value == floor(value) && fabs(value) < 1e6) {
        snprintf(buf, size, "%.0f", value);
        return buf;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(buf, size, "%.*g", digits, value);
        if (strtod(buf, NULL) == value)
            break;
    }
    tidy_exponent(buf);
    return buf;
}
