/* SPDX-License-Identifier: Apache-2.0 */
/* The progress line of a sweep: rewritten in place on a terminal; elsewhere a line at each tenth
 * of the runs, and every 30 seconds. */
#ifndef ADL_APP_SWEEP_LINE_H
#define ADL_APP_SWEEP_LINE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/app/sweep_jobs.h"

struct adl_line {
    FILE *out; /* NULL: quiet */
    bool terminal;
    double shown_s;      /* when the last one was shown */
    size_t shown_tenths; /* how far it was then */
    bool open;           /* the cursor stands behind a line */
};

struct adl_line adl_line_open(FILE *out);
void adl_line_show(struct adl_line *line, const struct adl_standing *standing);
/* Leaves the line on a terminal, so that other text can follow. */
void adl_line_break(struct adl_line *line);
/* "12/60 runs, 2 at work, 0:12, about 0:48 left", what it shows. Returns out [size]. */
const char *adl_line_text(const struct adl_standing *standing, char *out, size_t size);

#endif
