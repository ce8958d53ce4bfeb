/* SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/curves.h"
#include "analysis/gnuplot.h"
#include "analysis/groups.h"
#include "analysis/report.h"

static const struct {
    const char *name, *label;
} axes[ADL_N_AXES] = {
    [ADL_AXIS_TIME] = {"time", "time (s)"},
    [ADL_AXIS_SAMPLES] = {"samples", "samples"},
    [ADL_AXIS_EXCHANGES] = {"exchanges", "exchanges"},
};

/* Eight colours that the colour-blind can tell apart (Okabe, Ito 2008; yellow darkened), then
 * again with dashes. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                      "#56b4e9", "#e69f00", "#000000", "#b8a800"};
enum { N_COLOURS = sizeof colours / sizeof *colours };

/* Relative distance on a logarithmic axis below which points coincide on the picture. */
static const double close_by = 0.004;

/* The curves [n] of one platform. */
struct plot {
    const struct adl_group *groups;
    struct adl_curve *curves;
    size_t n;
    const char *experiment;
};

static bool drawable(double x)
{
    return isfinite(x) && x > 0;
}

static size_t count_drawable(const struct adl_curve *curve, enum adl_axis axis)
{
    size_t n = 0;
    for (size_t i = 0; i < curve->n; i++)
        n += drawable(curve->v[i].x[axis]) && drawable(curve->v[i].loss);
    return n;
}

static void write_points(const struct adl_curve *curve, enum adl_axis axis, FILE *script)
{
    double last_x = 0, last_loss = 0;
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < curve->n; i++)
        if (drawable(curve->v[i].x[axis]) && drawable(curve->v[i].loss))
            last = i;
    for (size_t i = 0; i < curve->n; i++) {
        double x = curve->v[i].x[axis], loss = curve->v[i].loss;
        if (!drawable(x) || !drawable(loss))
            continue;
        if (i != last && last_x > 0 && fabs(log(x / last_x)) < close_by &&
            fabs(log(loss / last_loss)) < close_by)
            continue;
        fprintf(script, "%.6g %.6g\n", x, loss);
        last_x = x;
        last_loss = loss;
    }
}

/* Text within gnuplot's double quotes. */
static void write_quoted(const char *text, FILE *script)
{
    fputc('"', script);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', script);
        if (!iscntrl((unsigned char)*text))
            fputc(*text, script);
    }
    fputc('"', script);
}

static void write_title(const struct adl_group *g, FILE *script)
{
    char title[512];
    snprintf(title, sizeof title, "%s%s%s", g->variant, *g->variant && *g->point ? "  " : "",
             *g->point || *g->variant ? g->point : "loss");
    write_quoted(title, script);
}

static void write_frame(const struct plot *plot, enum adl_axis axis, const char *path, FILE *script)
{
    char title[512];
    snprintf(title, sizeof title, "%s%s%s: loss against %s", plot->experiment,
             *plot->groups->platform ? " on " : "", plot->groups->platform, axes[axis].name);
    fputs("reset\n"
          "set terminal svg size 900,560 noenhanced font 'DejaVu Sans,13' background '#ffffff'\n"
          "set output ",
          script);
    write_quoted(path, script);
    fputs("\nset title ", script);
    write_quoted(title, script);
    fprintf(script,
            "\nset logscale xy\nset xlabel '%s'\nset ylabel 'loss'\n"
            "set format y '%%.0e'\nset format x '%%g'\n"
            "set border 3 linecolor '#666666'\nset tics nomirror textcolor '#333333'\n"
            "set grid linecolor '#dddddd' linewidth 1\n"
            "set key outside right top vertical Left reverse samplen 2 spacing 1.15\n",
            axes[axis].label);
}

/* One picture: the data inline, then one plot command over it. */
static size_t write_picture(const struct plot *plot, enum adl_axis axis, const char *path,
                            FILE *script)
{
    size_t n = 0;
    for (size_t i = 0; i < plot->n; i++)
        n += count_drawable(&plot->curves[i], axis) > 0;
    if (n == 0)
        return 0;
    write_frame(plot, axis, path, script);
    for (size_t i = 0; i < plot->n; i++)
        if (count_drawable(&plot->curves[i], axis) > 0) {
            fprintf(script, "$c%zu << END\n", i);
            write_points(&plot->curves[i], axis, script);
            fputs("END\n", script);
        }
    fputs("plot ", script);
    if (drawable(plot->groups->target_loss))
        fprintf(script,
                "%.6g with lines linecolor '#999999' dashtype 3 linewidth 1 title 'target', ",
                plot->groups->target_loss);
    for (size_t i = 0, done = 0; i < plot->n; i++) {
        if (count_drawable(&plot->curves[i], axis) == 0)
            continue;
        fprintf(script, "$c%zu with lines linecolor '%s' dashtype %d linewidth 2 title ", i,
                colours[i % N_COLOURS], i / N_COLOURS % 2 ? 2 : 1);
        write_title(&plot->groups[i], script);
        fputs(++done < n ? ", " : "\n", script);
    }
    return n;
}

/* A platform's name or path as the end of a file name: "-h100-64"; "" without a platform. */
static void make_slug(const char *platform, char *out, size_t size)
{
    size_t n = strlen(platform);
    if (n > 4 && strcmp(platform + n - 4, ".xml") == 0)
        n -= 4;
    size_t skip = strspn(platform, "./");
    snprintf(out, size, "%s%.*s", n > skip ? "-" : "", (int)(n > skip ? n - skip : 0),
             platform + skip);
    for (char *c = out; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_.", *c))
            *c = '-';
}

/* Files to be drawn: PATH.part, renamed to PATH once gnuplot is done. */
struct pictures {
    char (*paths)[PATH_MAX];
    size_t n;
};

static void part_path(const char *path, char *out)
{
    snprintf(out, PATH_MAX + 8, "%s.part", path);
}

/* One platform's pictures into the script. */
static enum adl_status write_platform(const struct plot *plot, const char *dir, FILE *script,
                                      struct pictures *pictures, struct adl_err *err)
{
    char(*paths)[PATH_MAX] = realloc(pictures->paths, (pictures->n + ADL_N_AXES) * sizeof *paths);
    if (!paths)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for pictures");
    pictures->paths = paths;
    char slug[128], part[PATH_MAX + 8];
    make_slug(plot->groups->platform, slug, sizeof slug);
    for (int axis = 0; axis < ADL_N_AXES; axis++) {
        snprintf(paths[pictures->n], PATH_MAX, "%s/loss-%s%s.svg", dir, axes[axis].name, slug);
        part_path(paths[pictures->n], part);
        if (write_picture(plot, axis, part, script) > 0)
            pictures->n++;
    }
    return ADL_OK;
}

static enum adl_status load_curves(const struct adl_results *results, const char *dir,
                                   struct plot *plot, struct adl_err *err)
{
    for (size_t i = 0; i < plot->n; i++) {
        char path[PATH_MAX];
        size_t row = adl_group_median_row(results, &plot->groups[i]);
        snprintf(path, sizeof path, "%s/runs/%s/records.jsonl", dir,
                 adl_result_text(results, row, "run_id"));
        if (access(path, F_OK) == 0)
            ADL_TRY(adl_curve_load(path, &plot->curves[i], err));
    }
    return ADL_OK;
}

static enum adl_status write_script(const struct adl_results *results,
                                    const struct adl_groups *groups, const char *dir, FILE *script,
                                    struct pictures *pictures, struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    for (size_t i = 0, end; i < groups->n && status == ADL_OK; i = end) {
        for (end = i + 1;
             end < groups->n && strcmp(groups->v[end].platform, groups->v[i].platform) == 0;)
            end++;
        struct plot plot = {.groups = &groups->v[i], .n = end - i, .experiment = results->name};
        plot.curves = calloc(plot.n, sizeof *plot.curves);
        if (!plot.curves)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for curves");
        status = load_curves(results, dir, &plot, err);
        if (status == ADL_OK)
            status = write_platform(&plot, dir, script, pictures, err);
        for (size_t k = 0; k < plot.n; k++)
            adl_curve_free(&plot.curves[k]);
        free(plot.curves);
    }
    return status;
}

static enum adl_status finish(const struct pictures *pictures, bool drawn, FILE *out,
                              struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    for (size_t i = 0; i < pictures->n; i++) {
        char part[PATH_MAX + 8];
        part_path(pictures->paths[i], part);
        if (!drawn)
            unlink(part);
        else if (rename(part, pictures->paths[i]) != 0)
            status = adl_fail(err, ADL_ERR_IO, "%s: %s", part, strerror(errno));
        else
            fprintf(out, "%s\n", pictures->paths[i]);
    }
    return status;
}

static enum adl_status draw(const struct adl_results *results, const struct adl_groups *groups,
                            const char *dir, FILE *out, struct adl_err *err)
{
    struct pictures pictures = {0};
    FILE *script = tmpfile();
    if (!script)
        return adl_fail(err, ADL_ERR_IO, "gnuplot's script: %s", strerror(errno));
    enum adl_status status = write_script(results, groups, dir, script, &pictures, err);
    if (status == ADL_OK && pictures.n == 0)
        fputs("no pictures: no run has a loss above zero to draw\n", out);
    else if (status == ADL_OK)
        status = adl_gnuplot_run(script, err);
    fclose(script);
    enum adl_status finished = finish(&pictures, status == ADL_OK, out, err);
    free(pictures.paths);
    return status != ADL_OK ? status : finished;
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    struct adl_groups groups;
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = adl_groups_make(results, &groups, err);
    if (status == ADL_OK) {
        adl_groups_choose(&groups);
        status = draw(results, &groups, dir, out, err);
        adl_groups_free(&groups);
    }
    adl_results_free(results);
    return status;
}

const struct adl_report_ops adl_report_plots = {
    .name = "plots",
    .doc = "loss against time, samples and exchanges as SVG, through gnuplot",
    .make = make,
};
