/* SPDX-License-Identifier: Apache-2.0 */
/* The output directory of a sweep: DIR/plan.json says which experiment it holds, DIR/runs/ID
 * are the runs; see analysis/report.h for the reader's side. */
#ifndef ADL_APP_SWEEP_DIR_H
#define ADL_APP_SWEEP_DIR_H

#include <stdbool.h>

#include "core/plan.h"

/* Makes or reopens a directory for a plan and locks it, so that no two sweeps write into one.
 * ADL_ERR_INPUT: it is no directory, cannot be written, is at work in another process, holds an
 * experiment and resume is not set, or holds another experiment. *lock: a descriptor to close. */
enum adl_status adl_sweep_dir_open(const char *dir, const struct adl_plan *plan, bool resume,
                                   int *lock, struct adl_err *err);

/* DIR/runs/ID, malloc'ed; NULL: no memory. */
char *adl_sweep_dir_run(const char *dir, const struct adl_planned *run);
/* Whether the run's summary is there and is this run's. */
bool adl_sweep_dir_complete(const char *dir, const struct adl_planned *run);

/* Records why a run has no summary, in a summary's keys; forget removes the record. */
enum adl_status adl_sweep_dir_fail(const char *dir, const struct adl_planned *run,
                                   const char *message, struct adl_err *err);
void adl_sweep_dir_forget(const char *dir, const struct adl_planned *run);

#endif
