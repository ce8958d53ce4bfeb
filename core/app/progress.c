/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/progress.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "analysis/human.h"

void adl_progress_open(struct adl_progress_line *line, FILE *out)
{
    *line = (struct adl_progress_line){.out = out, .terminal = isatty(fileno(out))};
}

void adl_progress_show(struct adl_progress_line *line, const struct adl_progress *progress)
{
    int64_t tenths = progress->rounds > 0 ? progress->round * 10 / progress->rounds : 0;
    if (!line->terminal && tenths == line->tenths)
        return;
    line->tenths = tenths;
    char loss[32] = "-", time[32], share[32], exchanges[32], bytes[32];
    if (!isnan(progress->loss))
        snprintf(loss, sizeof loss, "%.4g", progress->loss);
    fprintf(line->out,
            "%sround %" PRId64 "/%" PRId64 "  loss %s  trainers %d  batch %.0f  time %s  sync %s  "
            "exchanges %s  wire %s%s",
            line->terminal ? "\r" : "", progress->round, progress->rounds, loss, progress->trainers,
            progress->request, adl_human_seconds(progress->time_s, time, sizeof time),
            adl_human_share(progress->sync_share, share, sizeof share),
            adl_human_count(progress->exchanges, exchanges, sizeof exchanges),
            adl_human_bytes(progress->wire_bytes, bytes, sizeof bytes),
            line->terminal ? "\033[K" : "\n");
    fflush(line->out);
    line->open = line->terminal;
}

void adl_progress_close(struct adl_progress_line *line)
{
    if (line->open)
        putc('\n', line->out);
    line->open = false;
}
