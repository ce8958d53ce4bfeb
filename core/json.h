/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON: to a stdio stream, numbers with 17 digits, NaN and infinity as null. */
#ifndef ADL_CORE_JSON_H
#define ADL_CORE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct adl_json {
    FILE *out;
    int depth;
    bool first[16]; /* whether nothing stands in this level yet */
    bool pretty;    /* a member per line in the outermost object */
};
/* key is NULL within arrays and for the outermost value. */
void adl_json_open(struct adl_json *j, const char *key, char bracket); /* '{' or '[' */
void adl_json_close(struct adl_json *j, char bracket);                 /* '}' or ']' */
void adl_json_real(struct adl_json *j, const char *key, double v);
void adl_json_int(struct adl_json *j, const char *key, int64_t v);
void adl_json_text(struct adl_json *j, const char *key, const char *v); /* NULL: null */
void adl_json_bool(struct adl_json *j, const char *key, bool v);

#endif
