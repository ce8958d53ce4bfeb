/* SPDX-License-Identifier: Apache-2.0 */
/* Files of tokens: finding, checking and reading them. */
#ifndef ADL_KERNELS_TOKEN_FILES_H
#define ADL_KERNELS_TOKEN_FILES_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct adl_token_file {
    char *path;
    uint64_t n_tokens;
    uint64_t start;  /* byte of the first token */
    int token_bytes; /* 1 or 2 */
    int vocabulary;
};

struct adl_token_files {
    struct adl_token_file *v; /* [n] in the order given, a pattern's matches by name */
    size_t n;
};

/* data as in struct adl_tokens_source. Whatever was opened before a failure is closed by
 * adl_token_files_close too. */
enum adl_status adl_token_files_open(struct adl_token_files *files, const char *data,
                                     const char *base_dir, int vocabulary, struct adl_err *err);
void adl_token_files_close(struct adl_token_files *files);

/* out [n] = tokens at, at + 1, ... of a file. Thread-safe. Files are not kept open: there may be
 * more of them than a process may open. */
enum adl_status adl_token_file_read(const struct adl_token_file *file, uint64_t at, size_t n,
                                    int32_t *out, struct adl_err *err);

#endif
