/* SPDX-License-Identifier: Apache-2.0 */
#include "core/json.h"

#include <inttypes.h>
#include <math.h>

static void put_text(FILE *out, const char *s)
{
    fputc('"', out);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c == '\n')
            fputs("\\n", out);
        else if (c == '\t')
            fputs("\\t", out);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void start_member(struct adl_json *j, const char *key)
{
    if (j->depth > 0) {
        if (!j->first[j->depth])
            fputc(',', j->out);
        j->first[j->depth] = false;
        if (j->pretty && j->depth == 1)
            fputs("\n  ", j->out);
    }
    if (key) {
        put_text(j->out, key);
        fputs(j->pretty ? ": " : ":", j->out);
    }
}

void adl_json_open(struct adl_json *j, const char *key, char bracket)
{
    start_member(j, key);
    fputc(bracket, j->out);
    j->first[++j->depth] = true;
}

void adl_json_close(struct adl_json *j, char bracket)
{
    if (j->pretty && j->depth == 1)
        fputc('\n', j->out);
    fputc(bracket, j->out);
    j->depth--;
    if (j->pretty && j->depth == 0)
        fputc('\n', j->out);
}

void adl_json_real(struct adl_json *j, const char *key, double v)
{
    start_member(j, key);
    if (isfinite(v))
        fprintf(j->out, "%.17g", v);
    else
        fputs("null", j->out);
}

void adl_json_int(struct adl_json *j, const char *key, int64_t v)
{
    start_member(j, key);
    fprintf(j->out, "%" PRId64, v);
}

void adl_json_text(struct adl_json *j, const char *key, const char *v)
{
    start_member(j, key);
    if (v)
        put_text(j->out, v);
    else
        fputs("null", j->out);
}

void adl_json_bool(struct adl_json *j, const char *key, bool v)
{
    start_member(j, key);
    fputs(v ? "true" : "false", j->out);
}
