/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/claims_draw.h"

enum { COLUMNS = 3, PANEL_WIDTH = 400, PANEL_HEIGHT = 320 };

/* A question, and where its law's points are. */
struct panel {
    const struct adl_claim_answer *answer;
    enum adl_law law;
    double a, b; /* of the law, fitted to the first seed */
    double from_N, to_N, to_C;
};

struct drawing {
    const struct adl_results *results;
    const char *sweep;
    struct panel *panels; /* [n] */
    size_t n;
    FILE *script;
    struct adl_err *err;
};

static bool find_run(const struct drawing *d, const struct adl_claim_ask *ask, size_t *row)
{
    for (*row = 0; *row < d->results->n_rows; ++*row)
        if (d->results->rows[*row].present &&
            !strcmp(adl_result_text(d->results, *row, "variant"), ask->of) &&
            adl_claim_at(ask->at, adl_result_text(d->results, *row, "point")))
            return true;
    return false;
}

/* Data blocks $a of all points and $w of those in the window. */
static void write_points(const struct drawing *d, struct panel *panel,
                         const struct adl_curve *curve)
{
    const struct adl_claim_ask *ask = panel->answer->ask;
    for (int window = 0; window < 2; window++) {
        fprintf(d->script, "$%c%zu << END\n", "aw"[window], d -> n);
        for (size_t i = 0; i < curve->n; i++) {
            const double N = curve->v[i].x[ADL_AXIS_SAMPLES];
            const double C = curve->v[i].x[ADL_AXIS_EXCHANGES];
            if (!(N > 0 && C > 0) || (window && !(C >= ask->from && C <= ask->to)))
                continue;
            fprintf(d->script, "%.6g %.6g\n", N, C);
            panel->from_N = fmin(panel->from_N, N);
            panel->to_N = fmax(panel->to_N, N);
            panel->to_C = fmax(panel->to_C, C);
        }
        fputs("END\n", d->script);
    }
}

static enum adl_status add_panel(struct drawing *d, const struct adl_claim_answer *answer)
{
    enum adl_status status = ADL_OK;
    struct adl_claim_run run = {.results = d->results,
                                .dir = d->sweep,
                                .from = answer->ask->from,
                                .to = answer->ask->to,
                                .status = &status,
                                .err = d->err};
    struct panel *panel = &d->panels[d->n];
    struct adl_curve curve = {0};
    struct adl_laws laws;
    *panel = (struct panel){.answer = answer, .from_N = INFINITY};
    if (answer->n == 0 || !adl_claim_law(answer->ask->measure, &panel->law) ||
        !find_run(d, answer->ask, &run.row) || !adl_claim_load_curve(&run, &curve))
        return status;
    if (adl_claim_fit(&run, &curve, &laws)) {
        const bool power = panel->law == ADL_LAW_POWER;
        panel->a = power ? laws.exponent_a : laws.fits[panel->law].a;
        panel->b = power ? laws.exponent : laws.fits[panel->law].b;
        write_points(d, panel, &curve);
        d->n++;
    }
    adl_curve_free(&curve);
    return status;
}

static void write_title(const struct panel *panel, FILE *script)
{
    static const char *const laws[ADL_N_LAWS] = {"a + b ln N", "a N^b", "a + b N"};
    const struct adl_claim_ask *ask = panel->answer->ask;
    char title[256];
    snprintf(title, sizeof title, "%.60s: C = %s, %s %.5g", ask->of, laws[panel->law],
             panel->law == ADL_LAW_POWER ? "exponent" : "R²", panel->answer->estimate.value);
    fputs("set title ", script);
    adl_claims_quoted(title, script);
    fputc('\n', script);
}

static void write_panel(const struct panel *panel, size_t at, FILE *script)
{
    static const char *const logscales[ADL_N_LAWS] = {"x", "xy", NULL};
    static const char *const formulas[ADL_N_LAWS] = {"a + b * log(x)", "a * x ** b", "a + b * x"};
    const bool power = panel->law == ADL_LAW_POWER;
    write_title(panel, script);
    fputs("unset logscale\n", script);
    if (logscales[panel->law])
        fprintf(script, "set logscale %s\n", logscales[panel->law]);
    fprintf(script, "set xrange [%.6g:%.6g]\nset yrange [%g:%.6g]\na = %.9g\nb = %.9g\n",
            panel->law == ADL_LAW_LINEAR ? 0 : panel->from_N, panel->to_N, power ? 0.8 : 0.0,
            1.1 * panel->to_C, panel->a, panel->b);
    fprintf(script,
            "plot $a%zu with lines linewidth 4 linecolor '#bbbbbb' notitle, $w%zu with lines "
            "linewidth 4 linecolor '#0072b2' notitle, %s with lines linewidth 1.5 "
            "dashtype 2 linecolor '#d55e00' notitle\n",
            at, at, formulas[panel->law]);
}

static void write_panels(const struct drawing *d, const struct adl_claim *claim, const char *part)
{
    const size_t rows = (d->n + COLUMNS - 1) / COLUMNS;
    const size_t columns = d->n < COLUMNS ? d->n : COLUMNS;
    const double height = (double)rows * PANEL_HEIGHT + 60;
    adl_claims_frame(part, (double)columns * PANEL_WIDTH, height, d->script);
    fprintf(d->script,
            "set samples 300\nset xlabel 'samples N'\nset ylabel 'exchanges C'\n"
            "set format x '%%.0e'\nset xtics rotate by -30\nset rmargin 5\n"
            "set multiplot layout %zu,%zu title \"%s: a run (grey), its points in the window "
            "(blue), the law (dashed); numbers: medians over seeds\"\n",
            rows, columns, claim->id);
    for (size_t i = 0; i < d->n; i++)
        write_panel(&d->panels[i], i, d->script);
    fputs("unset multiplot\n", d->script);
}

enum adl_status adl_claims_write_laws(const struct adl_claim_result *result,
                                      const struct adl_results *results, const char *sweep,
                                      const char *part, FILE *script, size_t *n,
                                      struct adl_err *err)
{
    struct drawing d = {.results = results, .sweep = sweep, .script = script, .err = err};
    d.panels = calloc(result->claim->n, sizeof *d.panels);
    enum adl_status status =
        d.panels ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for pictures of laws");
    for (size_t i = 0; i < result->claim->n && status == ADL_OK; i++)
        status = add_panel(&d, &result->answers[i]);
    if (status == ADL_OK && d.n > 0)
        write_panels(&d, result->claim, part);
    *n = d.n;
    free(d.panels);
    return status;
}
