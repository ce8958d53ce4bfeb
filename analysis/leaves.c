/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/leaves.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

enum { MAX_DEPTH = 16, PATH_BYTES = 512 };

struct reader {
    const char *name, *start, *at;
    adl_leaf_fn *fn;
    void *arg;
    struct adl_err *err;
    int depth;
    char path[PATH_BYTES];
    char *text; /* of the present string; as large as the whole input */
};

static enum adl_status broken(struct reader *r, const char *expected)
{
    return adl_fail(r->err, ADL_ERR_INPUT, "%s: broken JSON at byte %ld: expected %s", r->name,
                    (long)(r->at - r->start) + 1, expected);
}

static void skip_space(struct reader *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool take(struct reader *r, char c)
{
    skip_space(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

static char *put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        *out++ = (char)code;
    } else if (code < 0x800) {
        *out++ = (char)(0xc0 | code >> 6);
        *out++ = (char)(0x80 | (code & 0x3f));
    } else {
        *out++ = (char)(0xe0 | code >> 12);
        *out++ = (char)(0x80 | (code >> 6 & 0x3f));
        *out++ = (char)(0x80 | (code & 0x3f));
    }
    return out;
}

/* The character after a backslash. A \u stands for one code unit: a pair of surrogates, which
 * nothing here writes, would become two odd characters, not an error. */
static enum adl_status read_escape(struct reader *r, char **out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (*r->at == 'u') {
        char hex[5] = "";
        size_t n = strnlen(r->at + 1, 4);
        memcpy(hex, r->at + 1, n);
        char *end;
        unsigned long code = strtoul(hex, &end, 16);
        if (end != hex + 4 || code == 0)
            return broken(r, "four hex digits, not 0000");
        *out = put_utf8(*out, (unsigned)code);
        r->at += 5;
        return ADL_OK;
    }
    const char *escape = *r->at ? strchr(from, *r->at) : NULL;
    if (!escape)
        return broken(r, "an escape");
    *(*out)++ = to[escape - from];
    r->at++;
    return ADL_OK;
}

/* A string into r->text; an escape is never shorter than what it stands for. */
static enum adl_status read_string(struct reader *r)
{
    if (!take(r, '"'))
        return broken(r, "a string");
    char *out = r->text;
    while (*r->at != '"') {
        if (!*r->at)
            return broken(r, "the end of a string");
        char c = *r->at++;
        if (c == '\\')
            ADL_TRY(read_escape(r, &out));
        else
            *out++ = c;
    }
    r->at++;
    *out = '\0';
    return ADL_OK;
}

static enum adl_status read_literal(struct reader *r)
{
    size_t n = strspn(r->at, "+-.0123456789abcdefghijklmnopqrstuvwxyzE");
    memcpy(r->text, r->at, n);
    r->text[n] = '\0';
    if (strcmp(r->text, "null") == 0) {
        r->at += n;
        return r->fn(r->arg, r->path, NULL, r->err);
    }
    if (strcmp(r->text, "true") != 0 && strcmp(r->text, "false") != 0) {
        char *end;
        strtod(r->text, &end);
        if (n == 0 || *end || !strchr("-0123456789", r->text[0]))
            return broken(r, "a value");
    }
    r->at += n;
    return r->fn(r->arg, r->path, r->text, r->err);
}

static enum adl_status read_value(struct reader *r);

/* Appends a component to the path for the time of one value. */
static enum adl_status read_member(struct reader *r, const char *component)
{
    size_t length = strlen(r->path);
    int n = snprintf(r->path + length, PATH_BYTES - length, "%s%s", length ? "." : "", component);
    if (n < 0 || (size_t)n >= PATH_BYTES - length)
        return broken(r, "shorter keys");
    ADL_TRY(read_value(r));
    r->path[length] = '\0';
    return ADL_OK;
}

static enum adl_status read_collection(struct reader *r, char close)
{
    if (++r->depth > MAX_DEPTH)
        return broken(r, "fewer levels");
    r->at++;
    for (size_t i = 0; !take(r, close); i++) {
        if (i > 0 && !take(r, ','))
            return broken(r, "',' or the end of a list or object");
        char component[PATH_BYTES];
        snprintf(component, sizeof component, "%zu", i);
        if (close == '}') {
            ADL_TRY(read_string(r));
            snprintf(component, sizeof component, "%s", r->text);
            if (!take(r, ':'))
                return broken(r, "':'");
        }
        ADL_TRY(read_member(r, component));
    }
    r->depth--;
    return ADL_OK;
}

static enum adl_status read_value(struct reader *r)
{
    skip_space(r);
    switch (*r->at) {
    case '{':
        return read_collection(r, '}');
    case '[':
        return read_collection(r, ']');
    case '"':
        ADL_TRY(read_string(r));
        return r->fn(r->arg, r->path, r->text, r->err);
    default:
        return read_literal(r);
    }
}

enum adl_status adl_leaves_parse(const char *name, const char *text, adl_leaf_fn *fn, void *arg,
                                 struct adl_err *err)
{
    struct reader r = {.name = name, .start = text, .at = text, .fn = fn, .arg = arg, .err = err};
    r.text = malloc(strlen(text) + 1);
    if (!r.text)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory", name);
    enum adl_status status = read_value(&r);
    if (status == ADL_OK) {
        skip_space(&r);
        if (*r.at)
            status = broken(&r, "the end");
    }
    free(r.text);
    return status;
}

enum adl_status adl_leaves_load(const char *path, adl_leaf_fn *fn, void *arg, struct adl_err *err)
{
    char *text;
    size_t n;
    ADL_TRY(adl_text_read(path, &text, &n, err));
    enum adl_status status = adl_leaves_parse(path, text, fn, arg, err);
    free(text);
    return status;
}
