/* SPDX-License-Identifier: Apache-2.0 */
/* Reading JSON as a flat list of its leaves, which is all that tables and curves need; it does
 * without libfyaml, so that reports work in every build. */
#ifndef ADL_ANALYSIS_LEAVES_H
#define ADL_ANALYSIS_LEAVES_H

#include "core/status.h"

/* One leaf. path: members joined by dots, list elements by number ("sync_delay_s.mean",
 * "runs.12.seed"). text: a string's contents or a literal as written; NULL for null. Both live
 * for the call only. */
typedef enum adl_status adl_leaf_fn(void *arg, const char *path, const char *text,
                                    struct adl_err *err);

/* Calls fn for each leaf of one JSON text in order; stops at fn's first failure. name stands in
 * messages for the text's place. Broken JSON: ADL_ERR_INPUT with name and column. */
enum adl_status adl_leaves_parse(const char *name, const char *text, adl_leaf_fn *fn, void *arg,
                                 struct adl_err *err);
/* The same for a file holding one JSON text. */
enum adl_status adl_leaves_load(const char *path, adl_leaf_fn *fn, void *arg, struct adl_err *err);

#endif
