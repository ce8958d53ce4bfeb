/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/sweep_line.h"

#include <math.h>
#include <unistd.h>

static const double terminal_period_s = 0.2, other_period_s = 30;

static const char *clock_text(double s, char *out, size_t size)
{
    long whole = lround(s);
    if (whole < 3600)
        snprintf(out, size, "%ld:%02ld", whole / 60, whole % 60);
    else
        snprintf(out, size, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
    return out;
}

const char *adl_line_text(const struct adl_standing *s, char *out, size_t size)
{
    char failed[32] = "", left[48] = "", elapsed[32], text[32];
    if (s->failed > 0)
        snprintf(failed, sizeof failed, ", %zu failed", s->failed);
    if (s->complete < s->total && !isnan(s->left_s))
        snprintf(left, sizeof left, ", about %s left", clock_text(s->left_s, text, sizeof text));
    snprintf(out, size, "%zu/%zu runs, %zu at work%s, %s%s", s->complete, s->total, s->running,
             failed, clock_text(s->elapsed_s, elapsed, sizeof elapsed), left);
    return out;
}

struct adl_line adl_line_open(FILE *out)
{
    return (struct adl_line){
        .out = out, .terminal = out && isatty(fileno(out)), .shown_s = -terminal_period_s};
}

void adl_line_show(struct adl_line *line, const struct adl_standing *standing)
{
    if (!line->out)
        return;
    size_t tenths = 10 * standing->complete / standing->total;
    double period_s = line->terminal ? terminal_period_s : other_period_s;
    bool last = standing->complete == standing->total;
    if (standing->elapsed_s - line->shown_s < period_s && !last &&
        (line->terminal || tenths == line->shown_tenths))
        return;
    line->shown_s = standing->elapsed_s;
    line->shown_tenths = tenths;
    char text[160];
    adl_line_text(standing, text, sizeof text);
    fprintf(line->out, line->terminal ? "\r%s\033[K" : "%s\n", text);
    fflush(line->out);
    line->open = line->terminal;
}

void adl_line_break(struct adl_line *line)
{
    if (line->open)
        fputc('\n', line->out);
    line->open = false;
}
