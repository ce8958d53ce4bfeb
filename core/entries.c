/* SPDX-License-Identifier: Apache-2.0 */
#include "core/entries.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_KEYS = 32, MAX_TEXT = 256 };

struct reader {
    const char *key;
    const char *at; /* what is left of the text */
    const struct adl_field *table;
    size_t size;
    char *entries;
    size_t n;
    struct adl_err *err;
};

static enum adl_status fail(const struct reader *r, const char *expected)
{
    return adl_fail(r->err, ADL_ERR_INPUT,
                    "%s: needs %s at '%.60s': a list is [{key: value, ...}, ...]", r->key, expected,
                    r->at);
}

static void skip_blanks(struct reader *r)
{
    r->at += strspn(r->at, " \t\n");
}

static bool take(struct reader *r, char c)
{
    skip_blanks(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* The text up to one of the characters `ends`, without blanks around it or quotes. */
static bool take_text(struct reader *r, const char *ends, char *out)
{
    skip_blanks(r);
    size_t n = strcspn(r->at, ends);
    const char *from = r->at;
    r->at += n;
    while (n > 0 && strchr(" \t\n", from[n - 1]))
        n--;
    if (n >= 2 && (*from == '"' || *from == '\'') && from[n - 1] == *from) {
        from++;
        n -= 2;
    }
    if (n == 0 || n >= MAX_TEXT)
        return false;
    memcpy(out, from, n);
    out[n] = '\0';
    return true;
}

static enum adl_status fail_unknown(const struct reader *r, const char *key)
{
    char known[MAX_TEXT] = "";
    for (const struct adl_field *f = r->table; f->key; f++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", f->key);
    }
    return adl_fail(r->err, ADL_ERR_INPUT, "%s: entry %zu: unknown key '%.60s'; there are %s",
                    r->key, r->n, key, known);
}

static enum adl_status read_pair(struct reader *r, char *entry, bool *given)
{
    char key[MAX_TEXT], value[MAX_TEXT], where[MAX_TEXT];
    if (!take_text(r, ":,{}[]", key) || !take(r, ':'))
        return fail(r, "a key and ':'");
    if (!take_text(r, ",{}[]", value))
        return fail(r, "a value");
    size_t i = 0;
    while (r->table[i].key && strcmp(r->table[i].key, key) != 0)
        i++;
    if (!r->table[i].key)
        return fail_unknown(r, key);
    if (given[i])
        return adl_fail(r->err, ADL_ERR_INPUT, "%s: entry %zu: '%s' is given twice", r->key, r->n,
                        key);
    snprintf(where, sizeof where, "%s: entry %zu: ", r->key, r->n);
    void *field = entry + r->table[i].offset;
    adl_field_free(&r->table[i], field); /* its default */
    ADL_TRY(adl_field_parse(&r->table[i], value, NULL, where, field, r->err));
    given[i] = true;
    return ADL_OK;
}

static enum adl_status fill_defaults(const struct reader *r, char *entry)
{
    for (const struct adl_field *f = r->table; f->key; f++)
        if (f->dflt)
            ADL_TRY(adl_field_parse(f, f->dflt, NULL, "", entry + f->offset, r->err));
    return ADL_OK;
}

static enum adl_status read_entry(struct reader *r)
{
    bool given[MAX_KEYS] = {false};
    if (!take(r, '{'))
        return fail(r, "'{'");
    char *more = realloc(r->entries, (r->n + 1) * r->size);
    if (!more)
        return adl_fail(r->err, ADL_ERR_NOMEM, "%s: no memory", r->key);
    r->entries = more;
    char *entry = more + r->n++ * r->size;
    memset(entry, 0, r->size);
    ADL_TRY(fill_defaults(r, entry));
    while (!take(r, '}')) {
        ADL_TRY(read_pair(r, entry, given));
        if (!take(r, ',') && *r->at != '}')
            return fail(r, "',' or '}'");
    }
    for (size_t i = 0; r->table[i].key; i++)
        if (!r->table[i].dflt && !given[i])
            return adl_fail(r->err, ADL_ERR_INPUT, "%s: entry %zu: '%s' is missing", r->key, r->n,
                            r->table[i].key);
    return ADL_OK;
}

static enum adl_status read_list(struct reader *r)
{
    skip_blanks(r);
    if (!*r->at)
        return ADL_OK;
    if (!take(r, '['))
        return fail(r, "'['");
    while (!take(r, ']')) {
        ADL_TRY(read_entry(r));
        if (!take(r, ',') && *r->at != ']')
            return fail(r, "',' or ']'");
    }
    skip_blanks(r);
    return *r->at ? fail(r, "nothing more") : ADL_OK;
}

enum adl_status adl_entries_parse(const char *key, const char *text, const struct adl_field *table,
                                  size_t size, void **out, size_t *n, struct adl_err *err)
{
    struct reader r = {.key = key, .at = text, .table = table, .size = size, .err = err};
    enum adl_status status = read_list(&r);
    if (status != ADL_OK) {
        adl_entries_free(table, size, r.entries, r.n);
        r.entries = NULL;
        r.n = 0;
    }
    *out = r.entries;
    *n = r.n;
    return status;
}

void adl_entries_free(const struct adl_field *table, size_t size, void *entries, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (const struct adl_field *f = table; f->key; f++)
            adl_field_free(f, (char *)entries + i * size + f->offset);
    free(entries);
}
