/* SPDX-License-Identifier: Apache-2.0 */
/* The progress of one run: a line that is rewritten on a terminal; elsewhere a line a round, but
 * of quick rounds only one a second, and one each tenth. */
#ifndef ADL_APP_PROGRESS_H
#define ADL_APP_PROGRESS_H

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "core/run.h"

struct adl_progress_line {
    FILE *out;
    bool terminal;
    int64_t tenths;          /* of the rounds already told */
    struct timespec start;   /* when the line was opened, then when the first round was done */
    double told_s;           /* since then: the last line */
    int64_t first_round;     /* that round; 0: none yet */
    double tokens, tokens_s; /* at the last line, for the rate */
    bool open;               /* a line without its end stands on the terminal */
};

void adl_progress_open(struct adl_progress_line *line, FILE *out);
void adl_progress_show(struct adl_progress_line *line, const struct adl_progress *progress);
/* Ends an open line; call before anything else is written. */
void adl_progress_close(struct adl_progress_line *line);

#endif
