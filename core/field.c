/* SPDX-License-Identifier: Apache-2.0 */
#include "core/field.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/units.h"

/* Appends to buf, which stays terminated; what does not fit is cut. */
static void append(char *buf, size_t size, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
    size_t used = strlen(buf);
    va_list args;
    va_start(args, fmt);
    vsnprintf(buf + used, size - used, fmt, args);
    va_end(args);
}

static void append_choices(char *buf, size_t size, const char *choices)
{
    append(buf, size, "one of ");
    for (const char *c = choices; *c; c++)
        append(buf, size, *c == '|' ? ", " : "%c", *c);
}

static void append_names(char *buf, size_t size, const char *const *names)
{
    append(buf, size, "one of ");
    for (size_t i = 0; names && names[i]; i++)
        append(buf, size, "%s%s", i ? ", " : "", names[i]);
}

/* "1..65536", "at least 0", or nothing for any finite number. */
static void append_range(char *buf, size_t size, const struct adl_field *field)
{
    char min[32], max[32];
    bool below = isfinite(field->max), above = isfinite(field->min);
    if ((field->min == 0 && field->max == 0) || (!below && !above))
        return;
    adl_units_print(field->min, min, sizeof min);
    adl_units_print(field->max, max, sizeof max);
    if (!below)
        append(buf, size, "at least %s, ", min);
    else if (!above)
        append(buf, size, "at most %s, ", max);
    else
        append(buf, size, "%s..%s, ", min, max);
}

static void append_number(char *buf, size_t size, const struct adl_field *field)
{
    static const char *const kinds[] = {[ADL_TYPE_INT] = "an integer",
                                        [ADL_TYPE_REAL] = "a number",
                                        [ADL_TYPE_INTS] = "a list of integers like [1, 2]",
                                        [ADL_TYPE_REALS] = "a list of numbers like [1, 0.5]"};
    append(buf, size, "%s", kinds[field->type]);
    if (field->unit)
        append(buf, size, " in %s", field->unit);
    if (*adl_units_example(field->unit))
        append(buf, size, ", as in %s", adl_units_example(field->unit));
    append(buf, size, " (");
    append_range(buf, size, field);
}

const char *adl_field_allowed(const struct adl_field *field, const char *const *names, char *buf,
                              size_t size)
{
    buf[0] = '\0';
    switch (field->type) {
    case ADL_TYPE_BOOL:
        append(buf, size, "true or false (");
        break;
    case ADL_TYPE_TEXT:
        append(buf, size, "a text without control characters (");
        break;
    case ADL_TYPE_CHOICE:
        append_choices(buf, size, field->choices);
        append(buf, size, " (");
        break;
    case ADL_TYPE_NAME:
        append_names(buf, size, names);
        append(buf, size, " (");
        break;
    default:
        append_number(buf, size, field);
    }
    if (!field->dflt)
        append(buf, size, "required)");
    else
        append(buf, size, "default %s)", *field->dflt ? field->dflt : "unset");
    return buf;
}

static bool in_range(const struct adl_field *field, double value)
{
    return (field->min == 0 && field->max == 0) || (value >= field->min && value <= field->max);
}

/* Start and length of text without surrounding blanks. */
static const char *trim(const char *text, size_t *n)
{
    while (isspace((unsigned char)*text))
        text++;
    *n = strlen(text);
    while (*n > 0 && isspace((unsigned char)text[*n - 1]))
        --*n;
    return text;
}

static bool same(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && !strncmp(text, word, n);
}

static int choice_index(const char *choices, const char *text, size_t n)
{
    for (int i = 0;; i++) {
        size_t length = strcspn(choices, "|");
        if (length == n && !strncmp(choices, text, n))
            return i;
        if (!choices[length])
            return -1;
        choices += length + 1;
    }
}

static bool is_name(const char *const *names, const char *text)
{
    for (size_t i = 0; names && names[i]; i++)
        if (!strcmp(names[i], text))
            return true;
    return false;
}

static bool has_control(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return true;
    return false;
}

/* The elements of "[a, b]" or "a", one after the other; false at the end. */
static bool next_element(const char **cursor, const char *end, const char **element, size_t *n)
{
    if (*cursor >= end)
        return false;
    const char *comma = memchr(*cursor, ',', (size_t)(end - *cursor));
    const char *stop = comma ? comma : end;
    *element = *cursor;
    *n = (size_t)(stop - *cursor);
    *cursor = comma ? comma + 1 : end;
    return true;
}

/* Strips one pair of brackets; false where they are not a pair. */
static bool list_body(const char **text, const char **end)
{
    size_t n;
    *text = trim(*text, &n);
    *end = *text + n;
    bool opens = n > 0 && **text == '[', closes = n > 0 && (*text)[n - 1] == ']';
    if (opens != closes || (opens && n < 2))
        return false;
    if (opens) {
        ++*text;
        --*end;
        while (*text < *end && isspace((unsigned char)**text))
            ++*text;
    }
    return opens ? *text == *end || (*end)[-1] != ',' : true;
}

/* Counts the elements, and stores them where out is not NULL. */
static bool read_list(const struct adl_field *field, const char *text, void *out, size_t *n)
{
    const char *end, *element;
    size_t length;
    *n = 0;
    if (!list_body(&text, &end))
        return false;
    while (next_element(&text, end, &element, &length)) {
        int64_t i = 0;
        double x = 0;
        bool ok = field->type == ADL_TYPE_INTS ? adl_units_int(element, length, field->unit, &i)
                                               : adl_units_real(element, length, field->unit, &x);
        if (!ok || !in_range(field, field->type == ADL_TYPE_INTS ? (double)i : x))
            return false;
        if (out && field->type == ADL_TYPE_INTS)
            ((int64_t *)out)[*n] = i;
        else if (out)
            ((double *)out)[*n] = x;
        ++*n;
    }
    return true;
}

static enum adl_status parse_list(const struct adl_field *field, const char *text, void *out,
                                  bool *ok)
{
    size_t n;
    *ok = read_list(field, text, NULL, &n) && (n > 0 || (field->dflt && !*field->dflt));
    if (!*ok)
        return ADL_OK;
    void *values = n ? malloc(n * sizeof(double)) : NULL;
    if (n && !values)
        return ADL_ERR_NOMEM;
    read_list(field, text, values, &n);
    if (field->type == ADL_TYPE_INTS)
        *(struct adl_ints *)out = (struct adl_ints){values, n};
    else
        *(struct adl_reals *)out = (struct adl_reals){values, n};
    return ADL_OK;
}

static enum adl_status parse_text(const char *text, void *out)
{
    char *copy = strdup(text);
    if (!copy)
        return ADL_ERR_NOMEM;
    *(const char **)out = copy;
    return ADL_OK;
}

/* The value of a key that is not set. */
static enum adl_status parse_unset(const struct adl_field *field, void *out)
{
    switch (field->type) {
    case ADL_TYPE_INT:
        *(int64_t *)out = ADL_UNSET_INT;
        return ADL_OK;
    case ADL_TYPE_REAL:
        *(double *)out = NAN;
        return ADL_OK;
    case ADL_TYPE_INTS:
        *(struct adl_ints *)out = (struct adl_ints){NULL, 0};
        return ADL_OK;
    case ADL_TYPE_REALS:
        *(struct adl_reals *)out = (struct adl_reals){NULL, 0};
        return ADL_OK;
    default:
        return parse_text("", out);
    }
}

static enum adl_status parse_set(const struct adl_field *field, const char *text,
                                 const char *const *names, void *out, bool *ok)
{
    size_t n;
    const char *word = trim(text, &n);
    switch (field->type) {
    case ADL_TYPE_BOOL:
        *ok = same(word, n, "true") || same(word, n, "false");
        if (*ok)
            *(bool *)out = same(word, n, "true");
        return ADL_OK;
    case ADL_TYPE_INT: {
        int64_t value = 0;
        *ok = adl_units_int(word, n, field->unit, &value) && in_range(field, (double)value);
        if (*ok)
            *(int64_t *)out = value;
        return ADL_OK;
    }
    case ADL_TYPE_REAL: {
        double value = 0;
        *ok = adl_units_real(word, n, field->unit, &value) && in_range(field, value);
        if (*ok)
            *(double *)out = value;
        return ADL_OK;
    }
    case ADL_TYPE_CHOICE: {
        int index = choice_index(field->choices, word, n);
        *ok = index >= 0;
        if (*ok)
            *(int *)out = index;
        return ADL_OK;
    }
    case ADL_TYPE_NAME:
        *ok = is_name(names, text);
        return *ok ? parse_text(text, out) : ADL_OK;
    case ADL_TYPE_TEXT:
        *ok = !has_control(text);
        return *ok ? parse_text(text, out) : ADL_OK;
    default:
        return parse_list(field, text, out, ok);
    }
}

enum adl_status adl_field_parse(const struct adl_field *field, const char *text,
                                const char *const *names, const char *where, void *out,
                                struct adl_err *err)
{
    bool ok = true;
    enum adl_status status = !*text && field->dflt && !*field->dflt
                                 ? parse_unset(field, out)
                                 : parse_set(field, text, names, out, &ok);
    if (status != ADL_OK)
        return adl_fail(err, status, "%s: out of memory", field->key);
    if (ok)
        return ADL_OK;
    char allowed[512];
    return adl_fail(err, ADL_ERR_INPUT, "%s%s: '%.80s' is not %s", where ? where : "", field->key,
                    text, adl_field_allowed(field, names, allowed, sizeof allowed));
}

void adl_field_free(const struct adl_field *field, void *value)
{
    switch (field->type) {
    case ADL_TYPE_TEXT:
    case ADL_TYPE_NAME:
        free((void *)*(const char **)value);
        *(const char **)value = NULL;
        break;
    case ADL_TYPE_INTS:
        free((void *)((struct adl_ints *)value)->v);
        *(struct adl_ints *)value = (struct adl_ints){NULL, 0};
        break;
    case ADL_TYPE_REALS:
        free((void *)((struct adl_reals *)value)->v);
        *(struct adl_reals *)value = (struct adl_reals){NULL, 0};
        break;
    default:
        break;
    }
}

static char *canonical_list(const struct adl_field *field, const char *text)
{
    size_t n;
    read_list(field, text, NULL, &n);
    size_t size = n * 34 + 3; /* a number and ", " each, brackets, end */
    char *out = malloc(size);
    void *values = malloc(n ? n * sizeof(double) : 1);
    if (!out || !values) {
        free(out);
        free(values);
        return NULL;
    }
    read_list(field, text, values, &n);
    char *c = out;
    *c++ = '[';
    for (size_t i = 0; i < n; i++) {
        char number[32];
        if (field->type == ADL_TYPE_INTS)
            snprintf(number, sizeof number, "%lld", (long long)((int64_t *)values)[i]);
        else
            adl_units_print(((double *)values)[i], number, sizeof number);
        c += sprintf(c, "%s%s", i ? ", " : "", number);
    }
    strcpy(c, "]");
    free(values);
    return out;
}

char *adl_field_canonical(const struct adl_field *field, const char *text)
{
    size_t n;
    const char *word = trim(text, &n);
    char number[32];
    if (!*text && field->dflt && !*field->dflt)
        return strdup("");
    switch (field->type) {
    case ADL_TYPE_INT: {
        int64_t value = 0;
        adl_units_int(word, n, field->unit, &value);
        snprintf(number, sizeof number, "%lld", (long long)value);
        return strdup(number);
    }
    case ADL_TYPE_REAL: {
        double value = 0;
        adl_units_real(word, n, field->unit, &value);
        return strdup(adl_units_print(value + 0.0, number, sizeof number));
    }
    case ADL_TYPE_INTS:
    case ADL_TYPE_REALS:
        return canonical_list(field, text);
    case ADL_TYPE_BOOL:
    case ADL_TYPE_CHOICE:
        return strndup(word, n);
    default:
        return strdup(text);
    }
}
