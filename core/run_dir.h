/* SPDX-License-Identifier: Apache-2.0 */
/* A run's output directory: experiment.yaml (resolved), records.jsonl and, last, summary.json.
 * Each is written beside (".part") and renamed; a run is complete only when its summary exists,
 * and nothing is ever half-written under its final name. */
#ifndef ADL_CORE_RUN_DIR_H
#define ADL_CORE_RUN_DIR_H

#include <stdio.h>

#include "core/checkpoint.h"
#include "core/plan.h"
#include "core/run.h"

struct adl_run_dir;

/* Creates path (and parents) and writes experiment.yaml. ADL_ERR_INPUT where path is no
 * directory, cannot be written, holds another run, holds this one complete or, for a new one,
 * checkpoints (unless overwritten, which removes the old files first). observer: for notices, may
 * be NULL. */
enum adl_status adl_run_dir_open(const char *path, const struct adl_planned *planned,
                                 enum adl_run_mode mode, const struct adl_run_observer *observer,
                                 struct adl_run_dir **out, struct adl_err *err);
FILE *adl_run_dir_records(struct adl_run_dir *dir); /* borrowed */
/* The checkpoint to go on from, whose records are in place; NULL: start. Borrowed. */
struct adl_checkpoint *adl_run_dir_checkpoint(struct adl_run_dir *dir);
/* Puts records and summary in place, or, with summary NULL, removes the unfinished records unless
 * a checkpoint needs them. Frees dir. Returns `status`, or the first failure to write if that is
 * ADL_OK. */
enum adl_status adl_run_dir_close(struct adl_run_dir *dir, const struct adl_summary *summary,
                                  enum adl_status status, struct adl_err *err);

#endif
