/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/claims_draw.h"
#include "analysis/gnuplot.h"

static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#b8a800"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

void adl_claims_quoted(const char *text, FILE *script)
{
    fputc('"', script);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', script);
        if ((unsigned char)*text >= ' ')
            fputc(*text, script);
    }
    fputc('"', script);
}

/* The label of a tic, on lines that leave half of the picture: gnuplot takes % there for a
 * format. */
static void label(const struct adl_claim_ask *ask, FILE *script)
{
    enum { WIDTH = 52 };
    char text[300];
    size_t at = 0;
    snprintf(text, sizeof text, "%s: %s", ask->regime, ask->measure->name);
    fputc('"', script);
    for (const char *c = text; *c; c++, at++) {
        const bool breaks = *c == ' ' && at + 1 + strcspn(c + 1, " ") > WIDTH;
        if (breaks)
            at = 0;
        if (*c == '%' || *c == '"' || *c == '\\')
            fputc(*c == '%' ? '%' : '\\', script);
        if (breaks)
            fputs("\\n", script);
        else if ((unsigned char)*c >= ' ')
            fputc(*c, script);
    }
    fputc('"', script);
}

void adl_claims_frame(const char *path, double width, double height, FILE *script)
{
    fprintf(script,
            "reset\nset terminal svg size %.0f,%.0f noenhanced font 'DejaVu Sans,12' background "
            "'#ffffff'\nset output ",
            width, height);
    adl_claims_quoted(path, script);
    fputs("\nset border 3 linecolor '#666666'\nset tics nomirror textcolor '#333333'\n"
          "set grid xtics linecolor '#dddddd' linewidth 1\n",
          script);
}

static void frame(const char *path, const char *title, double height, FILE *script)
{
    adl_claims_frame(path, 900, height, script);
    fputs("set title ", script);
    adl_claims_quoted(title, script);
    fputc('\n', script);
}

enum adl_status adl_claims_finish(FILE *script, const char *path, const char *part,
                                  struct adl_err *err)
{
    enum adl_status status = adl_gnuplot_run(script, err);
    if (status == ADL_OK && rename(part, path) != 0)
        status = adl_fail(err, ADL_ERR_IO, "%s: %s", part, strerror(errno));
    if (status != ADL_OK)
        unlink(part);
    return status;
}

/* ---- the answers: one line each, as a multiple of what was asked */

static bool drawable(const struct adl_claim_answer *answer)
{
    const struct adl_estimate *e = &answer->estimate;
    return answer->n > 0 && answer->short_of == 0 && answer->unmeasured == 0 &&
           !answer->ask->measure->difference && e->low > 0 && isfinite(e->high);
}

/* Left of 1 is what the claim asks for. */
static double scaled(const struct adl_claim_ask *ask, double v)
{
    return ask->below ? v / ask->threshold : ask->threshold / v;
}

static size_t write_answers(const struct adl_claim_result *result, const char *part, FILE *script)
{
    const struct adl_claim *claim = result->claim;
    size_t n = 0, at = 0;
    for (size_t i = 0; i < claim->n; i++)
        n += drawable(&result->answers[i]);
    if (n == 0)
        return 0;
    char title[400];
    snprintf(title, sizeof title, "%s: %s", claim->id, claim->title);
    frame(part, title, 130 + 36 * (double)n, script);
    fprintf(script,
            "set lmargin at screen 0.45\nset rmargin 3\nset logscale x\n"
            "set xlabel 'multiple of what was asked: the claim holds left of 1'\n"
            "set yrange [-0.7:%zu.7]\nunset key\nset arrow from 1,graph 0 to 1,graph 1 nohead "
            "linecolor '#999999' dashtype 2\nset ytics (",
            n - 1);
    for (size_t i = 0; i < claim->n; i++) {
        const struct adl_claim_answer *answer = &result->answers[i];
        if (!drawable(answer))
            continue;
        label(answer->ask, script);
        fprintf(script, " %zu%s", n - 1 - at, at + 1 < n ? ", " : ")\n$d << END\n");
        at++;
    }
    at = 0;
    for (size_t i = 0; i < claim->n; i++) {
        const struct adl_claim_answer *answer = &result->answers[i];
        if (!drawable(answer))
            continue;
        const double a = scaled(answer->ask, answer->estimate.low);
        const double b = scaled(answer->ask, answer->estimate.high);
        fprintf(script, "%.6g %zu %.6g %.6g %d\n", scaled(answer->ask, answer->estimate.value),
                n - 1 - at, fmin(a, b), fmax(a, b), answer->holds ? 0x009e73 : 0xd55e00);
        at++;
    }
    fputs("END\nplot $d using 1:2:3:4:5 with xerrorbars pointtype 7 pointsize 0.8 linewidth 2 "
          "linecolor rgb variable\n",
          script);
    return n;
}

/* ---- curves over samples, of the first seed */

static bool in_list(const struct adl_tree *list, const char *text, size_t *at)
{
    for (*at = 0; *at < list->n; ++*at)
        if (!strcmp(list->children[*at].text, text))
            return true;
    return false;
}

/* Writes a curve's points as a data block, and extends the range [2] by them; how many there are.
 */
static size_t write_points(const struct adl_curve *curve, bool loss, size_t at, double *range,
                           FILE *script)
{
    size_t n = 0;
    for (size_t i = 0; i < curve->n; i++) {
        const double x = curve->v[i].x[ADL_AXIS_SAMPLES];
        const double y = loss ? curve->v[i].loss : curve->v[i].x[ADL_AXIS_EXCHANGES];
        if (!(x > 0) || !(y > 0) || !isfinite(y))
            continue;
        if (n++ == 0)
            fprintf(script, "$c%zu << END\n", at);
        fprintf(script, "%.6g %.6g\n", x, y);
        range[0] = fmin(range[0], y);
        range[1] = fmax(range[1], y);
    }
    if (n > 0)
        fputs("END\n", script);
    return n;
}

/* The data blocks, and the range [2] of all; has [of->n] says which variants have one. */
static enum adl_status write_curves(const struct adl_claim *claim,
                                    const struct adl_results *results, const char *sweep, bool *has,
                                    double *range, FILE *script, struct adl_err *err)
{
    const struct adl_claim_curve *c = &claim->curve;
    for (size_t i = 0; i < results->n_rows; i++) {
        char path[PATH_MAX];
        size_t at;
        struct adl_curve curve;
        if (!results->rows[i].present ||
            !in_list(c->of, adl_result_text(results, i, "variant"), &at) || has[at] ||
            !adl_claim_at(c->at, adl_result_text(results, i, "point")))
            continue;
        snprintf(path, sizeof path, "%s/runs/%s/records.jsonl", sweep,
                 adl_result_text(results, i, "run_id"));
        if (access(path, F_OK) != 0)
            continue;
        ADL_TRY(adl_curve_load(path, &curve, err));
        has[at] = write_points(&curve, !strcmp(c->y, "loss"), at, range, script) > 0;
        adl_curve_free(&curve);
    }
    return ADL_OK;
}

static size_t write_plot(const struct adl_claim *claim, const bool *has, const double *range,
                         const char *part, FILE *script)
{
    const bool decades = !strcmp(claim->curve.y, "loss") && range[1] > 10 * range[0];
    const struct adl_tree *of = claim->curve.of;
    char title[400];
    size_t n = 0;
    snprintf(title, sizeof title, "%s: %s over samples", claim->id, claim->curve.y);
    frame(part, title, 480, script);
    fprintf(script,
            "set logscale x\n%sset xlabel 'samples'\nset ylabel '%s'\nset format x '%%.0e'\n"
            "set key outside right top vertical Left reverse samplen 2\n",
            decades ? "set logscale y\nset format y '%.0e'\n" : "", claim->curve.y);
    for (size_t i = 0; i < of->n; i++) {
        if (!has[i])
            continue;
        fprintf(script, "%s$c%zu with lines linewidth 2 linecolor '%s' dashtype %d title ",
                n++ ? ", " : "plot ", i, colours[i % N_COLOURS], i / N_COLOURS % 2 ? 2 : 1);
        adl_claims_quoted(of->children[i].text, script);
    }
    fputc('\n', script);
    return n;
}

static enum adl_status draw_curves(struct adl_claim_result *result,
                                   const struct adl_results *results, const char *sweep,
                                   const char *path, const char *part, FILE *script,
                                   struct adl_err *err)
{
    const struct adl_claim *claim = result->claim;
    double range[2] = {INFINITY, -INFINITY};
    bool *has = calloc(claim->curve.of->n, sizeof *has);
    if (!has)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for curves");
    enum adl_status status = write_curves(claim, results, sweep, has, range, script, err);
    if (status == ADL_OK && write_plot(claim, has, range, part, script) > 0) {
        status = adl_claims_finish(script, path, part, err);
        result->has_curve = status == ADL_OK;
    }
    free(has);
    return status;
}

static enum adl_status draw_answers(struct adl_claim_result *result, const char *path,
                                    const char *part, FILE *script, struct adl_err *err)
{
    if (write_answers(result, part, script) == 0)
        return ADL_OK;
    ADL_TRY(adl_claims_finish(script, path, part, err));
    result->drawn = true;
    return ADL_OK;
}

static enum adl_status draw_laws(struct adl_claim_result *result, const struct adl_results *results,
                                 const char *sweep, const char *path, const char *part,
                                 FILE *script, struct adl_err *err)
{
    size_t n;
    ADL_TRY(adl_claims_write_laws(result, results, sweep, part, script, &n, err));
    if (n == 0)
        return ADL_OK;
    ADL_TRY(adl_claims_finish(script, path, part, err));
    result->has_laws = true;
    return ADL_OK;
}

enum adl_status adl_claims_draw(struct adl_claim_result *result, const char *sweep, const char *dir,
                                struct adl_err *err)
{
    static const char *const endings[] = {"", "-curve", "-laws"};
    struct adl_results *results;
    enum adl_status status = ADL_OK;
    ADL_TRY(adl_results_load(sweep, &results, err));
    for (int kind = 0; kind < 3 && status == ADL_OK; kind++) {
        char path[PATH_MAX], part[PATH_MAX + 8];
        FILE *script = tmpfile();
        if (!script) {
            status = adl_fail(err, ADL_ERR_IO, "gnuplot's script: %s", strerror(errno));
            break;
        }
        snprintf(path, sizeof path, "%s/%s%s.svg", dir, result->claim->id, endings[kind]);
        snprintf(part, sizeof part, "%s.part", path);
        if (kind == 0)
            status = draw_answers(result, path, part, script, err);
        else if (kind == 2)
            status = draw_laws(result, results, sweep, path, part, script, err);
        else if (result->claim->curve.y)
            status = draw_curves(result, results, sweep, path, part, script, err);
        fclose(script);
    }
    adl_results_free(results);
    return status;
}
