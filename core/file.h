/* SPDX-License-Identifier: Apache-2.0 */
/* Reading text that people wrote: checked before any parser sees it. */
#ifndef ADL_CORE_FILE_H
#define ADL_CORE_FILE_H

#include <stddef.h>

#include "core/status.h"

/* Whether text [n] is UTF-8 without control bytes but tab, line feed and carriage return;
 * ADL_ERR_INPUT "name:line:column: cause" where not. (libfyaml hangs on some invalid UTF-8.) */
enum adl_status adl_text_check(const char *name, const char *text, size_t n, struct adl_err *err);

/* A regular file's checked text, terminated, malloc'ed. ADL_ERR_INPUT for a missing or unreadable
 * file, a directory, or more than 64 MiB. */
enum adl_status adl_text_read(const char *path, char **out, size_t *n, struct adl_err *err);

#endif
