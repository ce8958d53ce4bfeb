/* SPDX-License-Identifier: Apache-2.0 */
#include "core/flat.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"

struct reader {
    const char *path;
    adl_flat_fn *fn;
    void *arg;
    struct adl_err *err;
    int line;
};

/* Takes the backslashes out of a quoted value in place; *end is behind its closing quote. */
static char *unquote(char *text, char **end)
{
    char *to = text;
    char *from = text + 1;
    for (; *from && *from != '"'; from++) {
        if (*from == '\\' && from[1])
            from++;
        *to++ = *from;
    }
    *end = *from ? from + 1 : NULL;
    *to = '\0';
    return text;
}

/* Ends text before a comment and trailing blanks. */
static void strip(char *text)
{
    size_t n = strlen(text);
    for (size_t i = 0; i < n; i++)
        if (text[i] == '#' && (i == 0 || isspace((unsigned char)text[i - 1])))
            n = i;
    while (n > 0 && isspace((unsigned char)text[n - 1]))
        n--;
    text[n] = '\0';
}

static enum adl_status fail_line(const struct reader *reader, const char *text)
{
    return adl_fail(reader->err, ADL_ERR_INPUT,
                    "%s:%d: '%.60s' is not a line of the form 'key: value'", reader->path,
                    reader->line, text);
}

static enum adl_status read_line(const struct reader *reader, char *line)
{
    if (!line[strspn(line, " \t\r")] || *line == '#')
        return ADL_OK;
    size_t length = strcspn(line, ": \t");
    if (length == 0 || line[length] != ':')
        return fail_line(reader, line);
    line[length] = '\0';
    char *value = line + length + 1;
    value += strspn(value, " \t");
    if (*value == '"') {
        char *end;
        value = unquote(value, &end);
        if (!end)
            return adl_fail(reader->err, ADL_ERR_INPUT, "%s:%d: %s: a closing quote is missing",
                            reader->path, reader->line, line);
        strip(end);
        if (*end)
            return fail_line(reader, end);
    } else {
        strip(value);
    }
    return reader->fn(line, value, reader->line, reader->arg, reader->err);
}

enum adl_status adl_flat_read(const char *path, adl_flat_fn *fn, void *arg, struct adl_err *err)
{
    struct reader reader = {path, fn, arg, err, 0};
    char *text;
    size_t n;
    ADL_TRY(adl_text_read(path, &text, &n, err));
    enum adl_status status = ADL_OK;
    for (char *line = text; line && status == ADL_OK;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        reader.line++;
        status = read_line(&reader, line);
        line = end ? end + 1 : NULL;
    }
    free(text);
    return status;
}

/* What YAML takes for the same text without quotes: numbers, number lists, simple words. */
static bool is_plain(const char *value)
{
    static const char word[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789./_+-";
    size_t n = strlen(value);
    if (*value == '[')
        return value[n - 1] == ']' && strspn(value + 1, "0123456789.e+-, ") == n - 2;
    return strcmp(value, "null") != 0 && strspn(value, word) == n && strcmp(value, "-") != 0 &&
           strncmp(value, "---", 3) != 0 && strncmp(value, "...", 3) != 0;
}

void adl_flat_write(FILE *out, const char *key, const char *value, const char *origin)
{
    fprintf(out, "%s: ", key);
    if (is_plain(value)) {
        fputs(value, out);
    } else {
        putc('"', out);
        for (const char *c = value; *c; c++) {
            if (*c == '"' || *c == '\\')
                putc('\\', out);
            putc(*c, out);
        }
        putc('"', out);
    }
    fprintf(out, "  # %s\n", origin);
}
