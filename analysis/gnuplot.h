/* SPDX-License-Identifier: Apache-2.0 */
/* Runs gnuplot on a script. */
#ifndef ADL_ANALYSIS_GNUPLOT_H
#define ADL_ANALYSIS_GNUPLOT_H

#include <stdio.h>

#include "core/status.h"

/* script: a temporary file, written; it is read from its start as gnuplot's standard input.
 * gnuplot is not installed: ADL_ERR_UNSUPPORTED; it refuses the script: ADL_ERR_RUNTIME with
 * its own first words. */
enum adl_status adl_gnuplot_run(FILE *script, struct adl_err *err);

#endif
