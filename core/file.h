/* SPDX-License-Identifier: Apache-2.0 */
/* Reading text that people wrote, checked before any parser sees it; and writing files whole. */
#ifndef ADL_CORE_FILE_H
#define ADL_CORE_FILE_H

#include <stddef.h>
#include <stdio.h>

#include "core/status.h"

/* Whether text [n] is UTF-8 without control bytes but tab, line feed and carriage return;
 * ADL_ERR_INPUT "name:line:column: cause" where not. (libfyaml hangs on some invalid UTF-8.) */
enum adl_status adl_text_check(const char *name, const char *text, size_t n, struct adl_err *err);

/* A regular file's checked text, terminated, malloc'ed. ADL_ERR_INPUT for a missing or unreadable
 * file, a directory, or more than 64 MiB. */
enum adl_status adl_text_read(const char *path, char **out, size_t *n, struct adl_err *err);

/* path [n characters], or base_dir/path where it is relative; malloc'ed, NULL: no memory. base_dir
 * may end in a slash; "": the path as it is. */
char *adl_path_from(const char *base_dir, const char *path, size_t n);

/* A file with what write(arg, out, err) puts into out: beside it (".part") and renamed, so that
 * nobody ever sees half of one. What fails leaves the former file as it was. The writer's failure,
 * or ADL_ERR_IO "PATH: cannot be written: cause". */
typedef enum adl_status adl_file_writer(const void *arg, FILE *out, struct adl_err *err);
enum adl_status adl_file_write(const char *path, adl_file_writer *write, const void *arg,
                               struct adl_err *err);

#endif
