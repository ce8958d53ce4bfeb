/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoint files: bytes in one fixed order, with a head that says which run they belong to and
 * a checksum of everything at the end. Written beside, forced to disk, then renamed: a file under
 * its final name is whole, and reading checks that it still is.
 *
 * One function describes the contents for both directions (core/controller_state.c), since
 * writing and reading take the same calls. */
#ifndef ADL_CORE_CHECKPOINT_H
#define ADL_CORE_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct adl_checkpoint; /* a file being written or read */

/* Starts DIR/checkpoint-ROUND.adl. records_bytes: length of the run's records at this moment. */
enum adl_status adl_checkpoint_create(const char *dir, const char run_id[17], int64_t round,
                                      int64_t records_bytes, struct adl_checkpoint **out,
                                      struct adl_err *err);
/* Completes it, gives it its name and removes all but the `keep` newest. Frees it, also where
 * that fails; then nothing of it is left. */
enum adl_status adl_checkpoint_commit(struct adl_checkpoint *file, int64_t keep,
                                      struct adl_err *err);

/* The newest whole checkpoint of DIR; *out is NULL where there is none at all. Broken ones, and
 * those for which there are not enough records (records_bytes), are skipped: refused(arg, line)
 * is told the name and why. ADL_ERR_INPUT where the newest belongs to another run, or where all
 * are refused. */
enum adl_status adl_checkpoint_open(const char *dir, const char run_id[17], int64_t records_bytes,
                                    void (*refused)(void *arg, const char *line), void *arg,
                                    struct adl_checkpoint **out, struct adl_err *err);

/* Reads or writes the next bytes. */
enum adl_status adl_checkpoint_bytes(struct adl_checkpoint *file, void *data, size_t bytes,
                                     struct adl_err *err);
int64_t adl_checkpoint_round(const struct adl_checkpoint *file);
int64_t adl_checkpoint_records_bytes(const struct adl_checkpoint *file);
/* Closes a file that was read, or drops one that was being written. NULL is fine. */
void adl_checkpoint_close(struct adl_checkpoint *file);

bool adl_checkpoint_exists(const char *dir); /* any, whole or not */
void adl_checkpoint_remove_all(const char *dir);

#endif
