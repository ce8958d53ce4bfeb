/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "analysis/claims.h"

/* Three significant digits: "0.412", "5.34e+06"; of an R^2 near 1, where only the distance from it
 * tells, more: "0.99921". */
static const char *digits(const struct adl_claim_ask *ask, double v, char *out, size_t size)
{
    enum adl_law law;
    const bool is_fit = adl_claim_law(ask->measure, &law) && v > 0.995 && v < 1;
    if (isnan(v))
        snprintf(out, size, "-");
    else
        snprintf(out, size, is_fit ? "%.5f" : "%.3g", v);
    return out;
}

/* Text in a cell of a table. */
static void cell(const char *text, FILE *out)
{
    for (; *text; text++) {
        if (*text == '|')
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static const char *verdict(const struct adl_claim_answer *answer)
{
    return answer->n == 0 ? "not run" : answer->holds ? "**holds**" : "does not hold";
}

/* What was asked: "below 0.4", "between 0.35 and 0.45". */
static const char *asked(const struct adl_claim_ask *ask, char *out, size_t size)
{
    if (isfinite(ask->upper))
        snprintf(out, size, "between %.6g and %.6g", ask->threshold, ask->upper);
    else
        snprintf(out, size, "%s %.6g", ask->below ? "below" : "above", ask->threshold);
    return out;
}

/* Why there is no number. */
static const char *why_none(const struct adl_claim_answer *answer, char *out, size_t size)
{
    if (answer->short_of > 0)
        snprintf(out, size, "%zu of %zu runs fell short", answer->short_of, answer->n);
    else
        snprintf(out, size, "%zu of %zu pairs have no value", answer->unmeasured, answer->n);
    return out;
}

static bool has_number(const struct adl_claim_answer *answer)
{
    return answer->n > 0 && answer->short_of == 0 && answer->unmeasured == 0;
}

/* "0.31 (0.29 to 0.34)", or why there is no number. */
static void value(const struct adl_claim_answer *answer, FILE *out)
{
    char v[32], low[32], high[32], why[80];
    const struct adl_estimate *e = &answer->estimate;
    if (answer->n == 0)
        fputs("-", out);
    else if (!has_number(answer))
        fputs(why_none(answer, why, sizeof why), out);
    else
        fprintf(out, "%s (%s to %s)", digits(answer->ask, e->value, v, sizeof v),
                digits(answer->ask, e->low, low, sizeof low),
                digits(answer->ask, e->high, high, sizeof high));
}

/* "adloco over diloco", "adloco". */
static void compared(const struct adl_claim_ask *ask, FILE *out)
{
    fprintf(out, "%s%s%s", ask->of, *ask->over ? " over " : "", ask->over);
}

/* ---- the table at the top */

static void summary_row(const struct adl_claim_result *result, FILE *out)
{
    const struct adl_claim *claim = result->claim;
    const struct adl_claim_answer *first = &result->answers[0];
    char what[64];
    size_t held = 0, n = 0;
    for (size_t i = 1; i < claim->n; i++) {
        n += result->answers[i].n > 0;
        held += result->answers[i].holds;
    }
    fprintf(out, "| [%s](#", claim->id);
    for (const char *c = claim->id; *c; c++)
        fputc(tolower((unsigned char)*c), out);
    fputs(") | ", out);
    cell(claim->title, out);
    fputs(" | ", out);
    cell(first->ask->regime, out);
    fprintf(out, " | %s, ", first->ask->measure->what);
    compared(first->ask, out);
    fprintf(out, " | %s | ", asked(first->ask, what, sizeof what));
    value(first, out);
    fprintf(out, " | %s | ", verdict(first));
    if (n)
        fprintf(out, "%zu of %zu", held, n);
    else
        fputs("-", out);
    fputs(" |\n", out);
}

/* Before a median of costs that some runs had not stopped paying. */
static const char *at_least(const struct adl_claim_answer *answer)
{
    const bool spent = answer->ask->measure->kind == ADL_CLAIM_TO_TARGET;
    return spent && answer->short_over > 0 ? "at least " : "";
}

/* ---- a claim */

static void answer_row(const struct adl_claim_answer *answer, bool primary, FILE *out)
{
    const struct adl_claim_ask *ask = answer->ask;
    char of[32], over[32], what[64];
    fprintf(out, "| %s", primary ? "**" : "");
    cell(ask->regime, out);
    fprintf(out, "%s | %s, ", primary ? "**" : "", ask->measure->what);
    compared(ask, out);
    fprintf(out, " | %s", digits(ask, answer->of, of, sizeof of));
    if (*ask->over)
        fprintf(out, " / %s%s", at_least(answer), digits(ask, answer->over, over, sizeof over));
    fputs(" | ", out);
    value(answer, out);
    fprintf(out, " | %s | ", asked(ask, what, sizeof what));
    if (!has_number(answer))
        fputs("-", out);
    else
        fprintf(out, "%.2g", answer->adjusted);
    fprintf(out, " | %s |\n", verdict(answer));
}

static void table(const struct adl_claim_result *result, FILE *out)
{
    fputs("| regime | measure | medians | value (95%) | asked | p | verdict |\n"
          "|---|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < result->claim->n; i++)
        answer_row(&result->answers[i], i == 0, out);
    fputc('\n', out);
}

/* Whether the interval lies wholly on the side that the claim does not ask for. */
static bool refuted(const struct adl_claim_answer *answer)
{
    const struct adl_estimate *e = &answer->estimate;
    const struct adl_claim_ask *ask = answer->ask;
    return ask->below ? e->low > ask->threshold : e->high < ask->threshold || e->low > ask->upper;
}

static void primary_words(const struct adl_claim_answer *answer, FILE *out)
{
    const struct adl_claim_ask *ask = answer->ask;
    char of[64], over[32], v[32], low[32], high[32], what[64];
    if (answer->n == 0) {
        fputs("The primary question was not run.", out);
        return;
    }
    fprintf(out, "In the primary regime (%s), ", ask->regime);
    if (!has_number(answer)) {
        fprintf(out, "%s of what is measured, so the claim does not hold.",
                why_none(answer, of, sizeof of));
        return;
    }
    const struct adl_estimate *e = &answer->estimate;
    fprintf(out, "the median of %zu %s of %s is %s for %s", answer->n,
            *ask->over ? "paired seeds" : "seeds", ask->measure->what,
            digits(ask, *ask->over ? answer->of : e->value, of, sizeof of), ask->of);
    if (*ask->over)
        fprintf(out, " and %s%s for %s; the ratio is %s", at_least(answer),
                digits(ask, answer->over, over, sizeof over), ask->over,
                digits(ask, e->value, v, sizeof v));
    fprintf(out, " (95%% from %s to %s, %s), and %s was asked: the claim %s.",
            digits(ask, e->low, low, sizeof low), digits(ask, e->high, high, sizeof high),
            e->method, asked(ask, what, sizeof what),
            answer->holds     ? "holds"
            : refuted(answer) ? "does not hold"
                              : "does not hold on this evidence (the interval has both sides)");
}

/* The secondary questions of this outcome, with their values. */
static void list(const struct adl_claim_result *result, bool holds, FILE *out)
{
    bool first = true;
    for (size_t i = 1; i < result->claim->n; i++) {
        const struct adl_claim_answer *answer = &result->answers[i];
        if (answer->n == 0 || answer->holds != holds)
            continue;
        char v[64];
        fprintf(out, "%s%s (%s", first ? " " : "; ", answer->ask->regime,
                answer->ask->measure->name);
        if (!has_number(answer))
            fprintf(out, ": %s)", why_none(answer, v, sizeof v));
        else
            fprintf(out, " %s)", digits(answer->ask, answer->estimate.value, v, sizeof v));
        first = false;
    }
    fputc('.', out);
}

static void words(const struct adl_claim_result *result, FILE *out)
{
    size_t held = 0, n = 0;
    for (size_t i = 1; i < result->claim->n; i++) {
        n += result->answers[i].n > 0;
        held += result->answers[i].holds;
    }
    primary_words(&result->answers[0], out);
    if (held > 0) {
        fprintf(out, " Of %zu secondary questions it holds in %zu:", n, held);
        list(result, true, out);
    }
    if (held < n) {
        fprintf(out, " %s %zu of %zu secondary questions:",
                held ? "It does not in" : "It does not hold in", n - held, n);
        list(result, false, out);
    }
    fputs("\n\n", out);
}

static void section(const struct adl_claim_result *result, FILE *out)
{
    const struct adl_claim *claim = result->claim;
    fprintf(out, "## %s\n\n**%s.** %s\n\nRegime: %s\n\nTuning: %s\n\n", claim->id, claim->title,
            claim->says, claim->regime, claim->tuning);
    table(result, out);
    words(result, out);
    if (result->drawn)
        fprintf(out, "![%s](claims/%s.svg)\n\n", claim->id, claim->id);
    if (result->has_curve)
        fprintf(out, "![%s, curves](claims/%s-curve.svg)\n\n", claim->id, claim->id);
    if (result->has_laws)
        fprintf(out, "![%s, fitted laws](claims/%s-laws.svg)\n\n", claim->id, claim->id);
}

void adl_claims_write(const struct adl_claim_result *results, size_t n, bool quick, FILE *out)
{
    fputs("<!-- Written by `adloco claims`; do not edit. -->\n"
          "# The claims of AdLoCo, put to the test\n\n",
          out);
    if (quick)
        fputs("**A quick look**: only the primary questions, on a few seeds. `adloco claims` "
              "without `--quick` asks all of them.\n\n",
              out);
    fputs("Each claim is an experiment of `experiments/claims/`, which says before any run in "
          "which regime it is asked and what has to come out; the first question decides. "
          "Values are medians over seeds of the ratio between two variants that met the same "
          "noise, with 95% intervals (BCa bootstrap; Student's t on logarithms, of which the "
          "value is the geometric mean, for fewer than 10 seeds). A question holds where the "
          "one-sided p-value against its threshold is below "
          "0.025; those of the secondary questions of a claim are corrected by Holm's method. A "
          "run of the claim's variant that falls short of the target makes the question not hold; "
          "a baseline that falls short counts with what it had spent. Variants are tuned at "
          "equal budget on other seeds, or the claim says why not. All clocks and devices here are "
          "simulated. The model is the noisy quadratic one, which stands for a large one in time "
          "and bytes; in claims named `-text` it is a small language model, really trained, which "
          "stands for a large one in the same way.\n\n"
          "| | claim | primary regime | measure | asked | value (95%) | verdict | secondary that "
          "hold |\n|---|---|---|---|---|---|---|---|\n",
          out);
    for (size_t i = 0; i < n; i++)
        summary_row(&results[i], out);
    fputc('\n', out);
    for (size_t i = 0; i < n; i++)
        section(&results[i], out);
}
