/* SPDX-License-Identifier: Apache-2.0 */
/* Files that can be made again, kept among the user's caches: in $XDG_CACHE_HOME/adloco, else
 * ~/.cache/adloco, else $TMPDIR/adloco-UID.
 *
 * A file's name follows from what is in it, or from all that it was worked out of, so that nobody
 * ever needs another one under that name, and whoever asks for it, at the same time too, gets the
 * same. What nobody has asked for in 30 days is deleted when another file is kept, and so are those
 * unused the longest while all together have more than 256 MB; never what was used within the
 * hour. */
#ifndef ADL_CORE_CACHE_H
#define ADL_CORE_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

enum { ADL_CACHE_NAME = 32 };

/* Prints the name of what `hash` stands for: 16 digits and a suffix of at most 8 characters. */
void adl_cache_name(uint64_t hash, const char *suffix, char name[ADL_CACHE_NAME]);

/* Keeps data [n], unless a file of that name and size is there. *path is malloc'ed; NULL on
 * failure: ADL_ERR_IO "WHAT: cause". path may be NULL. */
enum adl_status adl_cache_keep(const char *what, const char *name, const void *data, size_t n,
                               char **path, struct adl_err *err);
/* What was kept, malloc'ed, *n bytes and a NUL; NULL: nothing, or it cannot be read. */
char *adl_cache_find(const char *name, size_t *n);
/* Deletes what was found to be damaged, so that it is kept anew. */
void adl_cache_forget(const char *name);

#endif
