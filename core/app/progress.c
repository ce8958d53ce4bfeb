/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/progress.h"

#include <inttypes.h>
#include <math.h>
#include <unistd.h>

#include "analysis/human.h"

void adl_progress_open(struct adl_progress_line *line, FILE *out)
{
    *line = (struct adl_progress_line){.out = out, .terminal = isatty(fileno(out))};
    clock_gettime(CLOCK_MONOTONIC, &line->start);
}

static double elapsed_s(const struct adl_progress_line *line)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - line->start.tv_sec) +
           1e-9 * (double)(now.tv_nsec - line->start.tv_nsec);
}

static bool due(struct adl_progress_line *line, const struct adl_progress *progress, double now_s)
{
    int64_t tenths = progress->rounds > 0 ? progress->round * 10 / progress->rounds : 0;
    if (!line->terminal && tenths == line->tenths && now_s - line->told_s < 1)
        return false;
    line->tenths = tenths;
    line->told_s = now_s;
    return true;
}

/* "loss 2.31", and of a model whose loss is not exact "loss 2.31 (held-out 2.40, perplexity 11)" */
static void print_loss(FILE *out, const struct adl_progress *p)
{
    bool held_out = !p->exact && !isnan(p->train_loss);
    fprintf(out, "  loss %.4g", held_out ? p->train_loss : p->loss);
    if (held_out)
        fprintf(out, " (held-out %.4g, perplexity %.4g)", p->loss, exp(p->loss));
}

/* Of the time since the last line, in the run's clock. */
static double tokens_per_s(struct adl_progress_line *line, const struct adl_progress *p)
{
    double rate = (p->tokens - line->tokens) / (p->time_s - line->tokens_s);
    line->tokens = p->tokens;
    line->tokens_s = p->time_s;
    return rate;
}

/* At the pace of the rounds since the first. */
static double left_s(const struct adl_progress_line *line, const struct adl_progress *p,
                     double now_s)
{
    double done = (double)(p->round - line->first_round);
    return done > 0 ? now_s / done * (double)(p->rounds - p->round) : NAN;
}

static void print_numbers(struct adl_progress_line *line, const struct adl_progress *p,
                          double now_s)
{
    char time[32], share[32], sync[32], exchanges[32], bytes[32], rate[32], left[32];
    fprintf(line->out,
            "  trainers %d  batch %.0f x %" PRId64 "  tokens/s %s  sync %s (%s)  exchanges %s  "
            "wire %s  time %s  left %s",
            p->trainers, p->request, p->accumulation_max,
            adl_human_count(tokens_per_s(line, p), rate, sizeof rate),
            adl_human_seconds(p->sync_s, sync, sizeof sync),
            adl_human_share(p->sync_share, share, sizeof share),
            adl_human_count(p->exchanges, exchanges, sizeof exchanges),
            adl_human_bytes(p->wire_bytes, bytes, sizeof bytes),
            adl_human_seconds(p->time_s, time, sizeof time),
            adl_human_seconds(left_s(line, p, now_s), left, sizeof left));
}

void adl_progress_show(struct adl_progress_line *line, const struct adl_progress *progress)
{
    if (line->first_round == 0) {
        line->first_round = progress->round;
        clock_gettime(CLOCK_MONOTONIC, &line->start);
        line->told_s = -1;
    }
    double now_s = elapsed_s(line);
    if (!due(line, progress, now_s))
        return;
    fprintf(line->out, "%sround %" PRId64 "/%" PRId64, line->terminal ? "\r" : "", progress->round,
            progress->rounds);
    print_loss(line->out, progress);
    print_numbers(line, progress, now_s);
    fputs(line->terminal ? "\033[K" : "\n", line->out);
    fflush(line->out);
    line->open = line->terminal;
}

void adl_progress_close(struct adl_progress_line *line)
{
    if (line->open)
        putc('\n', line->out);
    line->open = false;
}
