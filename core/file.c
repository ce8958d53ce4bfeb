/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_FILE_BYTES = 64 << 20 };

/* Length of the UTF-8 sequence at s [n], 0 where it is invalid (RFC 3629). */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || length > n)
        return 0;
    unsigned code = s[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        code = code << 6 | (s[i] & 0x3fu);
    }
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    return code < least[length] || code > 0x10ffff || surrogate ? 0 : length;
}

static bool is_control(unsigned char c)
{
    return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

enum adl_status adl_text_check(const char *name, const char *text, size_t n, struct adl_err *err)
{
    const unsigned char *s = (const unsigned char *)text;
    int line = 1, column = 1;
    for (size_t i = 0; i < n;) {
        size_t length = utf8_length(s + i, n - i);
        if (length == 0)
            return adl_fail(err, ADL_ERR_INPUT, "%s:%d:%d: byte 0x%02x is not valid UTF-8", name,
                            line, column, s[i]);
        if (is_control(s[i]))
            return adl_fail(err, ADL_ERR_INPUT, "%s:%d:%d: control byte 0x%02x is not allowed",
                            name, line, column, s[i]);
        if (s[i] == '\n') {
            line++;
            column = 0;
        }
        column++;
        i += length;
    }
    return ADL_OK;
}

static enum adl_status read_all(FILE *in, const char *path, size_t size, char **out, size_t *n,
                                struct adl_err *err)
{
    char *text = malloc(size + 1);
    if (!text)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for %zu bytes", path, size);
    *n = fread(text, 1, size, in);
    text[*n] = '\0';
    enum adl_status status =
        ferror(in) ? adl_fail(err, ADL_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno))
                   : adl_text_check(path, text, *n, err);
    if (status == ADL_OK)
        *out = text;
    else
        free(text);
    return status;
}

enum adl_status adl_text_read(const char *path, char **out, size_t *n, struct adl_err *err)
{
    struct stat info;
    if (stat(path, &info) != 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path,
                        errno == ENOENT ? "no such file" : strerror(errno));
    if (!S_ISREG(info.st_mode))
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path,
                        S_ISDIR(info.st_mode) ? "is a directory, a file is needed"
                                              : "is not a regular file");
    if (info.st_size > MAX_FILE_BYTES)
        return adl_fail(err, ADL_ERR_INPUT, "%s: has %lld bytes, at most %d are allowed", path,
                        (long long)info.st_size, MAX_FILE_BYTES);
    FILE *in = fopen(path, "r");
    if (!in)
        return adl_fail(err, ADL_ERR_INPUT, "%s: cannot be read: %s", path, strerror(errno));
    enum adl_status status = read_all(in, path, (size_t)info.st_size, out, n, err);
    fclose(in);
    return status;
}

char *adl_path_from(const char *base_dir, const char *path, size_t n)
{
    const size_t base = path[0] == '/' ? 0 : strlen(base_dir);
    const char *slash = base > 0 && base_dir[base - 1] != '/' ? "/" : "";
    char *out;
    return asprintf(&out, "%.*s%s%.*s", (int)base, base_dir, slash, (int)n, path) < 0 ? NULL : out;
}

static enum adl_status fail_write(const char *path, struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

enum adl_status adl_file_write(const char *path, adl_file_writer *write, const void *arg,
                               struct adl_err *err)
{
    char *part;
    if (asprintf(&part, "%s.part", path) < 0)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    FILE *out = fopen(part, "w");
    enum adl_status status = out ? write(arg, out, err) : fail_write(path, err);
    if (status == ADL_OK && ferror(out))
        status = fail_write(path, err);
    if (out && fclose(out) != 0 && status == ADL_OK)
        status = fail_write(path, err);
    if (status == ADL_OK && rename(part, path) != 0)
        status = fail_write(path, err);
    if (out && status != ADL_OK)
        unlink(part);
    free(part);
    return status;
}
