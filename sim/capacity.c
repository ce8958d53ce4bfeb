/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/capacity.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/entries.h"
#include "core/units.h"

enum { MAX_ROUTE = 64, MAX_NAME = 128 };

/* ---- what the options say ---- */

struct traffic { /* an entry of sim.background */
    const char *from, *to;
    double rate, share, start_s, end_s;
    int links[MAX_ROUTE], n_links;
};

#define AT(field) .offset = offsetof(struct traffic, field)
static const struct adl_field traffic_fields[] = {
    {"from", ADL_TYPE_TEXT, NULL, NULL, 0, 0, NULL, "Host that sends.", AT(from)},
    {"to", ADL_TYPE_TEXT, NULL, NULL, 0, 0, NULL, "Host that receives.", AT(to)},
    {"bandwidth", ADL_TYPE_REAL, "B/s", "", 0, INFINITY, NULL, "Its rate.", AT(rate)},
    {"share", ADL_TYPE_REAL, NULL, "", 0, 1, NULL, "Or a share of the thinnest link.", AT(share)},
    {"start", ADL_TYPE_REAL, "s", "0", 0, INFINITY, NULL, "From when.", AT(start_s)},
    {"end", ADL_TYPE_REAL, "s", "", 0, INFINITY, NULL, "To when; unset: for ever.", AT(end_s)},
    {.key = NULL}};

struct line { /* of a profile */
    double time_s, factor;
    char name[MAX_NAME];
    int number;
    bool used;
};

struct reading {
    const struct adl_engine_ops *engine;
    struct traffic *traffic;
    size_t n_traffic;
    struct line *lines; /* [n_lines] by time */
    size_t n_lines;
    double *times; /* [2 n_traffic + n_lines] scratch */
    struct adl_err *err;
};

/* ---- what comes of it ---- */

struct change {
    double time_s;
    int link;
    double bandwidth;
};

struct adl_capacity {
    const struct adl_engine_ops *engine;
    bool *changes;    /* [links of the platform] */
    struct change *v; /* [n] by time */
    int n, next;      /* next: the first that is still to come */
    struct adl_engine_actor servant;
};

void adl_capacity_free(struct adl_capacity *c)
{
    if (!c)
        return;
    free(c->changes);
    free(c->v);
    free(c);
}

const bool *adl_capacity_changes(const struct adl_capacity *c)
{
    return c ? c->changes : NULL;
}

/* ---- background ---- */

static int host_by_name(const struct adl_engine_ops *engine, const char *name)
{
    for (int h = 0; h < engine->n_hosts(); h++)
        if (strcmp(engine->host_name(h), name) == 0)
            return h;
    return -1;
}

static enum adl_status route_traffic(const struct reading *r, struct traffic *t, size_t number)
{
    const char *names[] = {t->from, t->to};
    int hosts[2];
    for (int i = 0; i < 2; i++) {
        hosts[i] = host_by_name(r->engine, names[i]);
        if (hosts[i] < 0)
            return adl_fail(r->err, ADL_ERR_INPUT,
                            "sim.background: entry %zu: '%.60s' is not a host of the platform",
                            number, names[i]);
    }
    if (isnan(t->rate) == isnan(t->share))
        return adl_fail(r->err, ADL_ERR_INPUT,
                        "sim.background: entry %zu: needs either bandwidth or share", number);
    if (!isnan(t->end_s) && t->end_s <= t->start_s)
        return adl_fail(r->err, ADL_ERR_INPUT,
                        "sim.background: entry %zu: end %g s is not after start %g s", number,
                        t->end_s, t->start_s);
    t->n_links = r->engine->route(hosts[0], hosts[1], t->links, MAX_ROUTE);
    if (t->n_links <= 0)
        return adl_fail(r->err, ADL_ERR_INPUT, "sim.background: entry %zu: no route from %s to %s",
                        number, t->from, t->to);
    double thinnest = INFINITY;
    for (int i = 0; i < t->n_links; i++)
        thinnest = fmin(thinnest, r->engine->link(t->links[i]).bandwidth);
    if (isnan(t->rate))
        t->rate = t->share * thinnest;
    if (isnan(t->end_s))
        t->end_s = INFINITY;
    return ADL_OK;
}

static enum adl_status read_background(struct reading *r, const char *text)
{
    void *entries;
    ADL_TRY(adl_entries_parse("sim.background", text, traffic_fields, sizeof *r->traffic, &entries,
                              &r->n_traffic, r->err));
    r->traffic = entries;
    for (size_t i = 0; i < r->n_traffic; i++)
        ADL_TRY(route_traffic(r, &r->traffic[i], i + 1));
    return ADL_OK;
}

static bool uses(const struct traffic *t, int link)
{
    for (int i = 0; i < t->n_links; i++)
        if (t->links[i] == link)
            return true;
    return false;
}

/* ---- profile ---- */

static enum adl_status read_line(struct reading *r, const char *path, int number, char *text)
{
    text[strcspn(text, "#\n")] = '\0';
    char time[64], name[MAX_NAME], factor[64], rest[2];
    int n = sscanf(text, "%63s %127s %63s %1s", time, name, factor, rest);
    if (n <= 0)
        return ADL_OK;
    struct line line = {.number = number};
    if (n != 3 || !adl_units_real(time, strlen(time), "s", &line.time_s) || line.time_s < 0 ||
        !adl_units_real(factor, strlen(factor), NULL, &line.factor) ||
        !(line.factor > 0 && line.factor <= 1))
        return adl_fail(r->err, ADL_ERR_INPUT,
                        "%s:%d: '%.60s' is not 'time link factor', with a factor above 0 and at "
                        "most 1",
                        path, number, text);
    snprintf(line.name, sizeof line.name, "%s", name);
    struct line *more = realloc(r->lines, (r->n_lines + 1) * sizeof *more);
    if (!more)
        return adl_fail(r->err, ADL_ERR_NOMEM, "%s: no memory", path);
    r->lines = more;
    r->lines[r->n_lines++] = line;
    return ADL_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct line *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static enum adl_status read_profile(struct reading *r, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return adl_fail(r->err, ADL_ERR_INPUT, "sim.profile: %s: %s", path, strerror(errno));
    char *text = NULL;
    size_t cap = 0;
    enum adl_status status = ADL_OK;
    for (int number = 1; status == ADL_OK && getline(&text, &cap, file) > 0; number++)
        status = read_line(r, path, number, text);
    if (status == ADL_OK && ferror(file))
        status = adl_fail(r->err, ADL_ERR_INPUT, "sim.profile: %s: %s", path, strerror(errno));
    free(text);
    fclose(file);
    if (r->n_lines > 0)
        qsort(r->lines, r->n_lines, sizeof *r->lines, by_time);
    return status;
}

/* A link of two directions is two: NAME_UP and NAME_DOWN. */
static bool matches(const char *pattern, const char *name)
{
    char both[MAX_NAME];
    snprintf(both, sizeof both, "%s", name);
    char *end = strrchr(both, '_');
    if (fnmatch(pattern, name, 0) == 0)
        return true;
    if (!end || (strcmp(end, "_UP") != 0 && strcmp(end, "_DOWN") != 0))
        return false;
    *end = '\0';
    return fnmatch(pattern, both, 0) == 0;
}

static enum adl_status check_lines(const struct reading *r, const char *path)
{
    for (size_t i = 0; i < r->n_lines; i++)
        if (!r->lines[i].used)
            return adl_fail(r->err, ADL_ERR_INPUT, "%s:%d: no link of the platform is called '%s'",
                            path, r->lines[i].number, r->lines[i].name);
    return ADL_OK;
}

/* ---- changes of one link ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The times at which a link may change, in order. */
static size_t collect_times(struct reading *r, int link, const char *name)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_traffic; i++) {
        const struct traffic *t = &r->traffic[i];
        if (!uses(t, link))
            continue;
        r->times[n++] = t->start_s;
        if (isfinite(t->end_s))
            r->times[n++] = t->end_s;
    }
    for (size_t i = 0; i < r->n_lines; i++)
        if (matches(r->lines[i].name, name)) {
            r->lines[i].used = true;
            r->times[n++] = r->lines[i].time_s;
        }
    if (n > 0)
        qsort(r->times, n, sizeof *r->times, by_value);
    return n;
}

static double bandwidth_at(const struct reading *r, int link, const struct adl_engine_link *l,
                           double time_s)
{
    double factor = 1, taken = 0;
    for (size_t i = 0; i < r->n_lines && r->lines[i].time_s <= time_s; i++)
        if (matches(r->lines[i].name, l->name))
            factor = r->lines[i].factor;
    for (size_t i = 0; i < r->n_traffic; i++)
        if (uses(&r->traffic[i], link) && r->traffic[i].start_s <= time_s &&
            time_s < r->traffic[i].end_s)
            taken += r->traffic[i].rate;
    return l->bandwidth * factor - taken;
}

static enum adl_status add_change(struct adl_capacity *c, struct change change, struct adl_err *err)
{
    struct change *more = realloc(c->v, ((size_t)c->n + 1) * sizeof *more);
    if (!more)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for links that change");
    c->v = more;
    c->v[c->n++] = change;
    return ADL_OK;
}

static enum adl_status add_link(struct reading *r, struct adl_capacity *c, int link)
{
    struct adl_engine_link l = r->engine->link(link);
    size_t n = collect_times(r, link, l.name);
    if (n == 0)
        return ADL_OK;
    c->changes[link] = true;
    for (size_t i = 0; i < n; i++) {
        double bandwidth = bandwidth_at(r, link, &l, r->times[i]);
        if (!(bandwidth > 0))
            return adl_fail(r->err, ADL_ERR_INPUT,
                            "sim.background: traffic takes all of link '%s' at %g s, %g B/s",
                            l.name, r->times[i], l.bandwidth);
        ADL_TRY(add_change(c, (struct change){r->times[i], link, bandwidth}, r->err));
    }
    return ADL_OK;
}

static int in_order(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    if (x->time_s != y->time_s)
        return x->time_s < y->time_s ? -1 : 1;
    return (x->link > y->link) - (x->link < y->link);
}

static enum adl_status add_links(struct reading *r, struct adl_capacity *c)
{
    int n = r->engine->n_links();
    c->changes = calloc((size_t)n + 1, sizeof *c->changes);
    r->times = calloc(2 * r->n_traffic + r->n_lines + 1, sizeof *r->times);
    if (!c->changes || !r->times)
        return adl_fail(r->err, ADL_ERR_NOMEM, "no memory for %d links", n);
    for (int link = 0; link < n; link++)
        ADL_TRY(add_link(r, c, link));
    if (c->n > 0)
        qsort(c->v, (size_t)c->n, sizeof *c->v, in_order);
    return ADL_OK;
}

static enum adl_status read_all(struct reading *r, const struct adl_sim_options *options,
                                const char *path, struct adl_capacity *c)
{
    ADL_TRY(read_background(r, options->background ? options->background : ""));
    if (path)
        ADL_TRY(read_profile(r, path));
    ADL_TRY(add_links(r, c));
    return path ? check_lines(r, path) : ADL_OK;
}

enum adl_status adl_capacity_open(const struct adl_engine_ops *engine,
                                  const struct adl_sim_options *options, const char *base_dir,
                                  struct adl_capacity **out, struct adl_err *err)
{
    const char *background = options->background, *profile = options->link_profile;
    *out = NULL;
    if (!(background && *background) && !(profile && *profile))
        return ADL_OK;
    struct adl_capacity *c = calloc(1, sizeof *c);
    char *path = NULL;
    bool named = profile && *profile;
    if (!c || (named && asprintf(&path, "%s%s", *profile == '/' || !base_dir ? "" : base_dir,
                                 profile) < 0)) {
        free(c);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for links that change");
    }
    c->engine = engine;
    struct reading r = {.engine = engine, .err = err};
    enum adl_status status = read_all(&r, options, path, c);
    adl_entries_free(traffic_fields, sizeof *r.traffic, r.traffic, r.n_traffic);
    free(r.lines);
    free(r.times);
    free(path);
    if (status == ADL_OK)
        *out = c;
    else
        adl_capacity_free(c);
    return status;
}

/* ---- while the engine runs ---- */

static void serve(void *arg)
{
    struct adl_capacity *c = arg;
    for (; c->next < c->n; c->next++) {
        double left_s = c->v[c->next].time_s - c->engine->clock_s();
        if (left_s > 0)
            c->engine->sleep(left_s);
        c->engine->set_bandwidth(c->v[c->next].link, c->v[c->next].bandwidth);
    }
}

void adl_capacity_follow(struct adl_capacity *c)
{
    if (!c || c->next == c->n)
        return;
    c->servant = (struct adl_engine_actor){serve, c};
    c->engine->spawn_servant(0, &c->servant);
}
