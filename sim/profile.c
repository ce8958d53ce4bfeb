/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/profile.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct line {
    int device; /* -1: all */
    int number;
    double time_s, factor;
};

struct adl_profiles {
    struct adl_profile *v; /* [n] by device */
    int n;
    struct line *lines; /* [n_lines] by device, then time */
    int n_lines;
    double *numbers; /* [2 n_lines] times and factors of v */
};

void adl_profiles_free(struct adl_profiles *profiles)
{
    if (!profiles)
        return;
    free(profiles->v);
    free(profiles->lines);
    free(profiles->numbers);
    free(profiles);
}

/* ---- reading ---- */

/* Up to three numbers of a line; their count, -1 where something else stands there. */
static int read_numbers(const char *text, double numbers[3])
{
    int n = 0;
    for (;;) {
        text += strspn(text, " \t\r");
        if (!*text)
            return n;
        char *end;
        double number = strtod(text, &end);
        if (end == text || n == 3)
            return -1;
        numbers[n++] = number;
        text = end;
    }
}

/* One line; *is_empty where nothing but a comment stands in it. */
static enum adl_status parse(const char *path, int number, char *text, struct line *out,
                             bool *is_empty, struct adl_err *err)
{
    text[strcspn(text, "#\n")] = '\0';
    double numbers[3] = {0, 0, -1};
    int n = read_numbers(text, numbers);
    *is_empty = n == 0;
    if (*is_empty)
        return ADL_OK;
    if (n != 2 && n != 3)
        return adl_fail(err, ADL_ERR_INPUT,
                        "%s:%d: '%.60s' is not 'time factor' or 'time factor device'", path, number,
                        text);
    double device = numbers[2];
    if (n == 3 && !(device >= 0 && device < 1e9 && device == floor(device)))
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d: device %g is not a number from 0", path, number,
                        device);
    *out = (struct line){(int)device, number, numbers[0], numbers[1]};
    if (!(out->time_s >= 0 && out->time_s < 1e300))
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d: time %g is not a number of seconds from 0",
                        path, number, out->time_s);
    if (!(out->factor >= 1e-6 && out->factor <= 1e6))
        return adl_fail(err, ADL_ERR_INPUT, "%s:%d: factor %g is not within 1e-6..1e6", path,
                        number, out->factor);
    return ADL_OK;
}

static enum adl_status read_lines(const char *path, FILE *in, struct adl_profiles *profiles,
                                  struct adl_err *err)
{
    char text[256];
    for (int number = 1; fgets(text, sizeof text, in); number++) {
        int n = profiles->n_lines;
        if ((n & (n - 1)) == 0) { /* full at powers of two */
            struct line *more = realloc(profiles->lines, (n ? 2 * (size_t)n : 1) * sizeof *more);
            if (!more)
                return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", path);
            profiles->lines = more;
        }
        bool is_empty;
        ADL_TRY(parse(path, number, text, &profiles->lines[n], &is_empty, err));
        profiles->n_lines += !is_empty;
    }
    if (ferror(in))
        return adl_fail(err, ADL_ERR_IO, "%s: cannot read it", path);
    return profiles->n_lines > 0
               ? ADL_OK
               : adl_fail(err, ADL_ERR_INPUT, "%s: holds no line 'time factor'", path);
}

static int by_device_and_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->device != y->device)
        return (x->device > y->device) - (x->device < y->device);
    return (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

static enum adl_status index_lines(const char *path, struct adl_profiles *p, struct adl_err *err)
{
    size_t n = (size_t)p->n_lines;
    qsort(p->lines, n, sizeof *p->lines, by_device_and_time);
    p->v = calloc(n, sizeof *p->v);
    p->numbers = malloc(2 * n * sizeof *p->numbers);
    if (!p->v || !p->numbers)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: out of memory", path);
    for (size_t i = 0; i < n; i++) {
        const struct line *line = &p->lines[i];
        p->numbers[i] = line->time_s;
        p->numbers[n + i] = line->factor;
        if (i > 0 && line->device == line[-1].device) {
            if (line->time_s == line[-1].time_s)
                return adl_fail(err, ADL_ERR_INPUT, "%s:%d: time %g stands twice", path,
                                line->number > line[-1].number ? line->number : line[-1].number,
                                line->time_s);
            p->v[p->n - 1].n++;
            continue;
        }
        p->v[p->n++] = (struct adl_profile){line->device, 1, p->numbers + i, p->numbers + n + i};
    }
    return ADL_OK;
}

enum adl_status adl_profiles_read(const char *path, const char *base_dir, struct adl_profiles **out,
                                  struct adl_err *err)
{
    char full[4096];
    snprintf(full, sizeof full, "%s%s", base_dir && *path != '/' ? base_dir : "", path);
    FILE *in = fopen(full, "r");
    if (!in)
        return adl_fail(err, ADL_ERR_INPUT, "device.profile: %s: %s", full, strerror(errno));
    struct adl_profiles *profiles = calloc(1, sizeof *profiles);
    enum adl_status status =
        profiles ? read_lines(full, in, profiles, err)
                 : adl_fail(err, ADL_ERR_NOMEM, "device.profile: %s: out of memory", full);
    fclose(in);
    if (status == ADL_OK)
        status = index_lines(full, profiles, err);
    if (status != ADL_OK) {
        adl_profiles_free(profiles);
        profiles = NULL;
    }
    *out = profiles;
    return status;
}

/* ---- using ---- */

const struct adl_profile *adl_profiles_of(const struct adl_profiles *profiles, int device)
{
    const struct adl_profile *common = NULL;
    for (int i = 0; profiles && i < profiles->n; i++) {
        if (profiles->v[i].device == device)
            return &profiles->v[i];
        if (profiles->v[i].device < 0)
            common = &profiles->v[i];
    }
    return common;
}

double adl_profile_finish(const struct adl_profile *profile, double start_s, double work_s)
{
    double factor = 1;
    int next = 0;
    for (; profile && next < profile->n && profile->times_s[next] <= start_s; next++)
        factor = profile->factors[next];
    for (; profile && next < profile->n; next++) {
        double span_s = profile->times_s[next] - start_s;
        if (work_s <= span_s * factor)
            break;
        work_s -= span_s * factor;
        start_s = profile->times_s[next];
        factor = profile->factors[next];
    }
    return start_s + work_s / factor;
}

double adl_profile_work(const struct adl_profile *profile, double start_s, double end_s)
{
    double factor = 1, work_s = 0;
    for (int i = 0; profile && i < profile->n && profile->times_s[i] < end_s; i++) {
        if (profile->times_s[i] > start_s) {
            work_s += (profile->times_s[i] - start_s) * factor;
            start_s = profile->times_s[i];
        }
        factor = profile->factors[i];
    }
    return work_s + (end_s - start_s) * factor;
}
