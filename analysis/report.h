/* SPDX-License-Identifier: Apache-2.0 */
/* What a finished sweep becomes for people. Every report reads the sweep's directory and asks
 * no run:
 *   DIR/plan.json                      what was planned (written by `adloco sweep`)
 *   DIR/runs/RUN_ID/experiment.yaml    the run, resolved
 *   DIR/runs/RUN_ID/records.jsonl      its rows
 *   DIR/runs/RUN_ID/summary.json       its numbers; there once the run is complete
 *   DIR/runs/RUN_ID/failed.json        instead: why there are none
 *
 * Adding one: a file here that defines a struct adl_report_ops, a line here, a row in
 * core/app/registry.c. */
#ifndef ADL_ANALYSIS_REPORT_H
#define ADL_ANALYSIS_REPORT_H

#include "core/registry.h"

extern const struct adl_report_ops adl_report_results;  /* DIR/results.csv, a line a run */
extern const struct adl_report_ops adl_report_database; /* DIR/results.db, through SQLite */
extern const struct adl_report_ops adl_report_table;    /* a printed comparison of variants */
extern const struct adl_report_ops adl_report_effects;  /* swept keys that changed nothing */
extern const struct adl_report_ops adl_report_plots;    /* DIR/loss-*.svg, through gnuplot */

#endif
