/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/token_files.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"

enum {
    MAGIC = 20240520, /* of llm.c */
    VERSION = 1,
    HEADER_WORDS = 256,
    CHECK_TOKENS = 1 << 16 /* at a time */
};

/* ---- reading */

/* Reads exactly `bytes` at `offset`; short files are an error like any other. */
static enum adl_status read_at(int fd, const char *path, uint64_t offset, void *to, size_t bytes,
                               struct adl_err *err)
{
    char *at = to;
    while (bytes > 0) {
        const ssize_t n = pread(fd, at, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return adl_fail(err, ADL_ERR_IO, "%s: cannot be read at byte %llu: %s", path,
                            (unsigned long long)offset,
                            n < 0 ? strerror(errno) : "it ends there, it has been cut");
        at += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return ADL_OK;
}

/* The place and value of the first token beyond the vocabulary. */
static enum adl_status check(const struct adl_token_file *file, uint64_t at, const int32_t *tokens,
                             size_t n, struct adl_err *err)
{
    for (size_t i = 0; i < n; i++)
        if (tokens[i] >= file->vocabulary)
            return adl_fail(
                err, ADL_ERR_INPUT, "%s: token %llu (byte %llu) is %d; model.vocab allows 0..%d",
                file->path, (unsigned long long)(at + i),
                (unsigned long long)(file->start + (at + i) * (uint64_t)file->token_bytes),
                tokens[i], file->vocabulary - 1);
    return ADL_OK;
}

static enum adl_status read_tokens(int fd, const struct adl_token_file *file, uint64_t at, size_t n,
                                   int32_t *out, struct adl_err *err)
{
    const size_t width = (size_t)file->token_bytes;
    /* narrow tokens at the end of the space, widened from its front */
    unsigned char *raw = (unsigned char *)out + n * (sizeof *out - width);
    ADL_TRY(read_at(fd, file->path, file->start + at * width, raw, n * width, err));
    for (size_t i = 0; i < n; i++) {
        const unsigned char *token = raw + i * width;
        out[i] = width == 1 ? token[0] : token[0] | token[1] << 8;
    }
    return check(file, at, out, n, err);
}

static enum adl_status open_file(const char *path, int *fd, struct adl_err *err)
{
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe without a writer: no waiting */
    if (*fd < 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path,
                        errno == ENOENT ? "no such file" : strerror(errno));
    return ADL_OK;
}

enum adl_status adl_token_file_read(const struct adl_token_file *file, uint64_t at, size_t n,
                                    int32_t *out, struct adl_err *err)
{
    int fd;
    ADL_TRY(open_file(file->path, &fd, err));
    const enum adl_status status = read_tokens(fd, file, at, n, out, err);
    close(fd);
    return status;
}

/* ---- checking */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int32_t word(const unsigned char *header, int i)
{
    const unsigned char *b = header + 4 * i;
    return (int32_t)((uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
                     (uint32_t)b[3] << 24);
}

static enum adl_status read_header(int fd, uint64_t size, struct adl_token_file *file,
                                   struct adl_err *err)
{
    unsigned char header[4 * HEADER_WORDS];
    if (size < sizeof header)
        return adl_fail(err, ADL_ERR_INPUT, "%s: has %llu bytes; a token file's header has %zu",
                        file->path, (unsigned long long)size, sizeof header);
    ADL_TRY(read_at(fd, file->path, 0, header, sizeof header, err));
    if (word(header, 0) != MAGIC)
        return adl_fail(err, ADL_ERR_INPUT, "%s: byte 0: magic number %d, %d is wanted", file->path,
                        word(header, 0), MAGIC);
    if (word(header, 1) != VERSION)
        return adl_fail(err, ADL_ERR_INPUT, "%s: byte 4: version %d, %d is wanted", file->path,
                        word(header, 1), VERSION);
    file->start = sizeof header;
    file->token_bytes = 2;
    const uint64_t bytes = size - sizeof header, count = (uint32_t)word(header, 2);
    if (bytes % 2 != 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s: has %llu bytes after its header; tokens have two each", file->path,
                        (unsigned long long)bytes);
    if (count != bytes / 2)
        return adl_fail(err, ADL_ERR_INPUT, "%s: byte 8: says %llu tokens, %llu follow the header",
                        file->path, (unsigned long long)count, (unsigned long long)bytes / 2);
    file->n_tokens = count;
    return ADL_OK;
}

/* Reads all of it once, for its tokens' sake. */
static enum adl_status check_tokens(int fd, const struct adl_token_file *file, struct adl_err *err)
{
    int32_t *tokens = malloc(CHECK_TOKENS * sizeof *tokens);
    if (!tokens)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory to read it", file->path);
    enum adl_status status = ADL_OK;
    for (uint64_t at = 0; status == ADL_OK && at < file->n_tokens; at += CHECK_TOKENS) {
        const uint64_t left = file->n_tokens - at;
        status = read_tokens(fd, file, at, left < CHECK_TOKENS ? (size_t)left : CHECK_TOKENS,
                             tokens, err);
    }
    free(tokens);
    return status;
}

static enum adl_status examine(int fd, struct adl_token_file *file, struct adl_err *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", file->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", file->path,
                        S_ISDIR(st.st_mode) ? "is a directory, a file is needed"
                                            : "is not a regular file");
    file->token_bytes = 1;
    file->n_tokens = (uint64_t)st.st_size;
    if (ends_with(file->path, ".bin"))
        ADL_TRY(read_header(fd, (uint64_t)st.st_size, file, err));
    /* every token that is possible is allowed: nothing to look for */
    if (file->vocabulary >= 1 << (8 * file->token_bytes))
        return ADL_OK;
    return check_tokens(fd, file, err);
}

/* ---- finding */

static enum adl_status add_file(struct adl_token_files *files, const char *path, int vocabulary,
                                struct adl_err *err)
{
    struct adl_token_file *grown = realloc(files->v, (files->n + 1) * sizeof *grown);
    if (!grown)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a list of files");
    files->v = grown;
    struct adl_token_file *file = &files->v[files->n];
    *file = (struct adl_token_file){.path = strdup(path), .vocabulary = vocabulary};
    if (!file->path)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    files->n++;
    int fd;
    ADL_TRY(open_file(path, &fd, err));
    const enum adl_status status = examine(fd, file, err);
    close(fd);
    return status;
}

static enum adl_status add_pattern(struct adl_token_files *files, const char *base_dir,
                                   const char *pattern, size_t n, int vocabulary,
                                   struct adl_err *err)
{
    char *path = adl_path_from(base_dir, pattern, n);
    if (!path)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    glob_t found;
    enum adl_status status = ADL_OK;
    const int missing = glob(path, GLOB_NOCHECK, NULL, &found);
    if (missing)
        status = adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for its matches", path);
    for (size_t i = 0; status == ADL_OK && i < found.gl_pathc; i++)
        status = add_file(files, found.gl_pathv[i], vocabulary, err);
    if (!missing)
        globfree(&found);
    free(path);
    return status;
}

enum adl_status adl_token_files_open(struct adl_token_files *files, const char *data,
                                     const char *base_dir, int vocabulary, struct adl_err *err)
{
    const bool list = data[0] == '[' && ends_with(data, "]");
    const char *end = data + strlen(data) - list;
    for (const char *at = data + list; at < end;) {
        at += strspn(at, " ");
        const char *comma = list ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        size_t n = (size_t)(stop - at);
        while (n > 0 && at[n - 1] == ' ')
            n--;
        if (n > 0)
            ADL_TRY(add_pattern(files, base_dir, at, n, vocabulary, err));
        at = stop + 1;
    }
    if (files->n == 0)
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.data: '%s' names no file; a path, a pattern, a list of them, or "
                        "synthetic is allowed",
                        data);
    return ADL_OK;
}

void adl_token_files_close(struct adl_token_files *files)
{
    for (size_t i = 0; i < files->n; i++)
        free(files->v[i].path);
    free(files->v);
}
