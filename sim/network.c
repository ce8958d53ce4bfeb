/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fidelity.h"

/* A simulated group, which may stand for equal ones. */
struct simulated {
    uint64_t signature;
    int first; /* in the order of groups */
};

struct solver {
    struct adl_routes routes;
    const bool *changes; /* [n_links] or NULL */
    bool apart;
    struct simulated *seen; /* [n_seen] */
    int n_seen;
    struct adl_course *courses;
    struct adl_err *err;
};

/* Whether the formula holds for edges first..end of a group: one party's equal flows. */
static bool follows_formula(const struct solver *s, int first, int end)
{
    const struct adl_routed *a = adl_routes_at(&s->routes, first);
    if (s->apart)
        return true;
    if (a->group < s->routes.n_edges)
        return false;
    for (int i = first + 1; i < end; i++)
        if (adl_routes_at(&s->routes, i)->edge->volume != a->edge->volume)
            return false;
    return true;
}

static struct adl_phase *phase_of(const struct solver *s, const struct adl_routed *e)
{
    return &s->courses[e->party].phases[e->edge->phase];
}

/* Room for one more of n elements, in an array that is full at powers of two. NULL: no memory. */
static void *grown(void *array, int n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return array;
    return realloc(array, (n ? 2 * (size_t)n : 1) * size);
}

static enum adl_status add_load(struct solver *s, int party, struct adl_load load)
{
    struct adl_course *course = &s->courses[party];
    struct adl_load *more = grown(course->loads, course->n_loads, sizeof *more);
    if (!more)
        return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for the loads of %d links",
                        course->n_loads);
    course->loads = more;
    course->loads[course->n_loads++] = load;
    return ADL_OK;
}

/* Puts on every link of a group's edges what it must move: r->load, by link. */
static void add_up(struct adl_routes *r, int first, int end)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = first; i < end; i++) {
            const struct adl_routed *e = adl_routes_at(r, i);
            for (int k = 0; k < e->n_links; k++) {
                double *load = &r->load[adl_routed_link(r, e, k)];
                if (pass == 0)
                    *load = 0;
                else if (r->links[adl_routed_link(r, e, k)].shared)
                    *load += e->edge->volume;
                else if (e->edge->volume > *load) /* every flow has the link to itself */
                    *load = e->edge->volume;
            }
        }
}

/* The group ends when its fullest link has moved its load. */
static enum adl_status apply_formula(struct solver *s, int first, int end)
{
    struct adl_routes *r = &s->routes;
    const struct adl_routed *a = adl_routes_at(r, first);
    struct adl_phase *phase = phase_of(s, a);
    double slowest = 0;
    add_up(r, first, end);
    for (int i = first; i < end; i++)
        for (int k = 0; k < adl_routes_at(r, i)->n_links; k++) {
            int link = adl_routed_link(r, adl_routes_at(r, i), k);
            double s_per_byte = r->load[link] / r->links[link].bandwidth;
            slowest = s_per_byte > slowest ? s_per_byte : slowest;
        }
    if (slowest > phase->s_per_byte)
        phase->s_per_byte = slowest;
    for (int i = first; i < end; i++)
        for (int k = 0; k < adl_routes_at(r, i)->n_links; k++) {
            const struct adl_routed *e = adl_routes_at(r, i);
            int link = adl_routed_link(r, e, k);
            double peak = r->load[link] / r->links[link].bandwidth; /* of the phase: below */
            ADL_TRY(add_load(s, e->party,
                             (struct adl_load){link, link, e->edge->phase, e->edge->volume, peak}));
        }
    return ADL_OK;
}

static uint64_t mix(uint64_t hash, const void *data, size_t n)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

/* Equal for groups that are equal in everything that decides their course: whose edges, how much,
 * over which links of their own, of which kind. */
static uint64_t signature(struct solver *s, int first, int end)
{
    struct adl_routes *r = &s->routes;
    uint64_t hash = 0xcbf29ce484222325u;
    int fresh = 0;
    for (int i = first; i < end; i++)
        for (int k = 0; k < adl_routes_at(r, i)->n_links; k++)
            r->mark[adl_routed_link(r, adl_routes_at(r, i), k)] = -1;
    for (int i = first; i < end; i++) {
        const struct adl_routed *e = adl_routes_at(r, i);
        int whose[] = {e->party, e->edge->phase, e->edge->stage, e->n_links};
        hash = mix(hash, whose, sizeof whose);
        hash = mix(hash, &e->edge->volume, sizeof e->edge->volume);
        for (int k = 0; k < e->n_links; k++) {
            int link = adl_routed_link(r, e, k);
            const struct adl_engine_link *l = &r->links[link];
            if (r->mark[link] < 0)
                r->mark[link] = fresh++;
            double kind[] = {r->mark[link], l->bandwidth, l->shared};
            hash = mix(hash, kind, sizeof kind);
        }
    }
    return hash;
}

/* A group with a changing link is like no other. */
static bool holds_change(const struct solver *s, int first, int end)
{
    for (int i = first; s->changes && i < end; i++) {
        const struct adl_routed *e = adl_routes_at(&s->routes, i);
        for (int k = 0; k < e->n_links; k++)
            if (s->changes[adl_routed_link(&s->routes, e, k)])
                return true;
    }
    return false;
}

/* Where the first of the groups that are equal to this one begins: first, if it is new. */
static int stand_in(struct solver *s, int first, int end)
{
    if (holds_change(s, first, end))
        return first;
    uint64_t own = signature(s, first, end);
    for (int i = 0; i < s->n_seen; i++)
        if (s->seen[i].signature == own)
            return s->seen[i].first;
    s->seen[s->n_seen++] = (struct simulated){own, first};
    return first;
}

static enum adl_status add_stream(struct solver *s, const struct adl_routed *e)
{
    struct adl_phase *phase = phase_of(s, e);
    struct adl_stream *more = grown(phase->streams, phase->n_streams, sizeof *more);
    if (!more)
        return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for %d flows", phase->n_streams);
    const struct adl_sim_platform *platform = s->routes.platform;
    phase->streams = more;
    phase->streams[phase->n_streams++] = (struct adl_stream){
        platform->devices[e->edge->from].host,
        adl_sim_platform_end(platform, e->edge->from, e->edge->to), e->edge->volume};
    return ADL_OK;
}

/* Simulates a group, or leaves that to an equal one. */
static enum adl_status simulate(struct solver *s, int first, int end)
{
    const struct adl_routes *r = &s->routes;
    int twin = stand_in(s, first, end);
    for (int i = first; i < end; i++) {
        const struct adl_routed *e = adl_routes_at(r, i), *t = adl_routes_at(r, twin + i - first);
        if (twin == first)
            ADL_TRY(add_stream(s, e));
        for (int k = 0; k < e->n_links; k++) {
            int watched = adl_routed_link(r, t, k);
            r->engine->watch(watched);
            ADL_TRY(add_load(s, e->party,
                             (struct adl_load){adl_routed_link(r, e, k), watched, e->edge->phase,
                                               e->edge->volume, 0}));
        }
    }
    return ADL_OK;
}

static enum adl_status solve_groups(struct solver *s)
{
    int n = s->routes.n_edges;
    for (int first = 0, end; first < n; first = end) {
        int group = adl_routes_at(&s->routes, first)->group;
        for (end = first + 1; end < n && adl_routes_at(&s->routes, end)->group == group;)
            end++;
        ADL_TRY(follows_formula(s, first, end) ? apply_formula(s, first, end)
                                               : simulate(s, first, end));
    }
    return ADL_OK;
}

/* A phase's latency: the slowest edge of each stage, summed over its stages. */
static enum adl_status add_latencies(struct solver *s, const struct adl_pattern *patterns)
{
    const struct adl_routes *r = &s->routes;
    for (int first = 0, end; first < r->n_edges; first = end) {
        int party = r->edges[first].party;
        const struct adl_pattern *pattern = &patterns[party];
        size_t cells = (size_t)pattern->n_phases * (size_t)pattern->n_stages;
        double *slowest = calloc(cells, sizeof *slowest);
        if (!slowest)
            return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for %d stages", pattern->n_stages);
        for (end = first; end < r->n_edges && r->edges[end].party == party; end++) {
            const struct adl_routed *e = &r->edges[end];
            double *cell = &slowest[e->edge->phase * pattern->n_stages + e->edge->stage];
            double latency_s = e->edge->rounds * e->latency_s;
            *cell = latency_s > *cell ? latency_s : *cell;
        }
        for (size_t i = 0; i < cells; i++)
            s->courses[party].phases[i / (size_t)pattern->n_stages].latency_s += slowest[i];
        free(slowest);
    }
    return ADL_OK;
}

static enum adl_status make_phases(struct solver *s, const struct adl_pattern *patterns, int n)
{
    for (int p = 0; p < n; p++) {
        struct adl_course *course = &s->courses[p];
        if (patterns[p].n_phases == 0)
            continue;
        course->phases = calloc((size_t)patterns[p].n_phases, sizeof *course->phases);
        if (!course->phases)
            return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for %d phases", patterns[p].n_phases);
        course->n_phases = patterns[p].n_phases;
    }
    return ADL_OK;
}

/* From the loads' own times to shares of their phases: all of a phase's edges go at the pace of the
 * slowest, since each step of a collective waits for the one before. */
static void scale_peaks(struct adl_course *course)
{
    for (int i = 0; i < course->n_loads; i++)
        if (course->loads[i].peak > 0)
            course->loads[i].peak /= course->phases[course->loads[i].phase].s_per_byte;
}

/* Phases that follow each other by the formula are one. */
static void join_phases(struct adl_course *course)
{
    int kept = 0;
    for (int i = 0; i < course->n_phases; i++) {
        struct adl_phase *phase = &course->phases[i], *last = &course->phases[kept - (kept > 0)];
        if (kept > 0 && phase->n_streams == 0 && last->n_streams == 0) {
            last->s_per_byte += phase->s_per_byte;
            last->latency_s += phase->latency_s;
        } else {
            course->phases[kept++] = *phase;
        }
    }
    course->n_phases = kept;
}

static enum adl_status solve(struct solver *s, const struct adl_pattern *patterns, int n)
{
    s->seen = calloc((size_t)s->routes.n_edges + 1, sizeof *s->seen);
    if (!s->seen)
        return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for %d edges", s->routes.n_edges);
    ADL_TRY(make_phases(s, patterns, n));
    ADL_TRY(adl_routes_group(&s->routes, s->changes, s->apart, s->err));
    ADL_TRY(solve_groups(s));
    ADL_TRY(add_latencies(s, patterns));
    for (int p = 0; p < n; p++) {
        scale_peaks(&s->courses[p]);
        join_phases(&s->courses[p]);
    }
    return ADL_OK;
}

enum adl_status adl_network_solve(const struct adl_engine_ops *engine,
                                  const struct adl_sim_platform *platform,
                                  const struct adl_pattern *patterns, int n, const bool *changes,
                                  bool apart, struct adl_course **out, struct adl_err *err)
{
    struct solver s = {.changes = changes, .apart = apart, .err = err};
    *out = NULL;
    s.courses = calloc((size_t)n + 1, sizeof *s.courses);
    if (!s.courses)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d collectives", n);
    enum adl_status status = adl_routes_find(&s.routes, engine, platform, patterns, n, err);
    if (status == ADL_OK)
        status = solve(&s, patterns, n);
    adl_routes_free(&s.routes);
    free(s.seen);
    if (status == ADL_OK)
        *out = s.courses;
    else
        adl_courses_free(s.courses, n);
    return status;
}

void adl_courses_free(struct adl_course *courses, int n)
{
    for (int p = 0; courses && p < n; p++) {
        for (int i = 0; i < courses[p].n_phases; i++)
            free(courses[p].phases[i].streams);
        free(courses[p].phases);
        free(courses[p].loads);
        adl_script_free(courses[p].script);
    }
    free(courses);
}
