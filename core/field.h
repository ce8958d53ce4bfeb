/* SPDX-License-Identifier: Apache-2.0 */
/* Option rows: each key of an experiment is declared once, as a row of a table, and that row
 * parses, validates, documents and dumps it. A table belongs to whoever uses the values: the
 * core (core/settings.h) or a plugin (a transport's or a model's own struct). */
#ifndef ADL_CORE_FIELD_H
#define ADL_CORE_FIELD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum adl_type {
    ADL_TYPE_BOOL,   /* bool:              true | false */
    ADL_TYPE_INT,    /* int64_t:           12, 1e6, 64Ki; ADL_UNSET_INT where dflt is "" */
    ADL_TYPE_REAL,   /* double:            NAN where dflt is "" */
    ADL_TYPE_TEXT,   /* const char *:      owned by the config; "" where unset */
    ADL_TYPE_CHOICE, /* int:               index into `choices` */
    ADL_TYPE_NAME,   /* const char *:      one of the names of a registry list, see `choices` */
    ADL_TYPE_INTS,   /* struct adl_ints:   [1, 2, 3] or one number */
    ADL_TYPE_REALS   /* struct adl_reals:  likewise */
};

#define ADL_UNSET_INT INT64_MIN

struct adl_ints {
    const int64_t *v; /* owned by the config */
    size_t n;
};
struct adl_reals {
    const double *v; /* owned by the config */
    size_t n;
};

struct adl_field {
    const char *key; /* full dotted key: "batch.initial"; NULL ends a table */
    enum adl_type type;
    const char *unit;    /* "s", "B", "B/s", "flop/s", "flop", or NULL: a plain number */
    const char *dflt;    /* as a user would type it; "" = unset; NULL = required */
    double min, max;     /* inclusive range for numbers and list elements; both 0: any finite */
    const char *choices; /* CHOICE: "a|b|c"; NAME: "@transports", "@models", "@methods",
                            "@batch_policies": the names of that list of the registry */
    const char *doc;     /* one sentence; a second may give advice */
    size_t offset;       /* of the value in the owner's struct */
    bool aside;          /* runs that differ in nothing else are the same run, by the same id */
};

/* Parses text into the typed value at out (sized for the type). Memory for TEXT, NAME and
 * lists comes from malloc and is owned by the caller (adl_field_free). On failure returns
 * ADL_ERR_INPUT with a message of the form
 *   KEY: 'eight' is not an integer (1..65536, default 64)
 * prefixed by `where` ("file.yaml:14:9: ") if that is non-NULL and not empty. `names` is the
 * NULL-ended list for a NAME row (may be NULL otherwise). */
enum adl_status adl_field_parse(const struct adl_field *field, const char *text,
                                const char *const *names, const char *where, void *out,
                                struct adl_err *err);
void adl_field_free(const struct adl_field *field, void *value);

/* Canonical text of a text value (numbers in SI base units, the shortest digits that read back
 * as the same double; lists in brackets), so that equal settings have equal dumps. Returns
 * malloc'ed text or NULL on no memory. The text must have parsed. */
char *adl_field_canonical(const struct adl_field *field, const char *text);

/* "an integer (1..65536, default 64)", "one of ring, hierarchical, multi_ring (default ring)":
 * what is allowed. Writes to buf, returns buf. */
const char *adl_field_allowed(const struct adl_field *field, const char *const *names, char *buf,
                              size_t size);

/* The candidate nearest to `word` by edit distance, or NULL if none is near (distance <= 1/3 of
 * the length, or a shared last component). */
const char *adl_nearest(const char *word, const char *const *candidates, size_t n);

#endif
