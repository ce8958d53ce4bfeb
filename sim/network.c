/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/network.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ROUTE = 64 };

/* An edge with its route. */
struct routed {
    const struct adl_coll_edge *edge;
    int party;               /* whose */
    int first_link, n_links; /* in the pool */
    double latency_s;
    int component; /* by all links, over all parties */
    bool several;  /* at a component's first edge: parties meet in it */
    int group;     /* what is solved together: the component, or one party's phase of it */
};

struct solver {
    const struct adl_engine_ops *engine;
    const struct adl_sim_platform *platform;
    struct routed *edges; /* [n_edges] */
    int n_edges;
    int *pool; /* [n_pool] links of all routes */
    int n_pool, cap_pool;
    struct adl_engine_link *links; /* [n_links] */
    int *mark;                     /* [n_links] scratch */
    int n_links;
    int *parent;    /* [n_edges] scratch: union-find */
    int *order;     /* [n_edges] edges by group */
    uint64_t *seen; /* [n_seen] signatures of the simulated groups */
    int n_seen;
};

static bool allocate(struct solver *s, int n_edges)
{
    s->n_links = s->engine->n_links();
    s->cap_pool = 8 * n_edges + MAX_ROUTE;
    size_t n = (size_t)n_edges + 1, links = (size_t)s->n_links + 1;
    s->edges = calloc(n, sizeof *s->edges);
    s->pool = malloc((size_t)s->cap_pool * sizeof *s->pool);
    s->links = calloc(links, sizeof *s->links);
    s->mark = calloc(links, sizeof *s->mark);
    s->parent = calloc(n, sizeof *s->parent);
    s->order = calloc(n, sizeof *s->order);
    s->seen = calloc(n, sizeof *s->seen);
    return s->edges && s->pool && s->links && s->mark && s->parent && s->order && s->seen;
}

static void release(struct solver *s)
{
    free(s->edges);
    free(s->pool);
    free(s->links);
    free(s->mark);
    free(s->parent);
    free(s->order);
    free(s->seen);
}

static enum adl_status route_edge(struct solver *s, int party, const struct adl_coll_edge *edge,
                                  struct adl_err *err)
{
    if (s->cap_pool - s->n_pool < MAX_ROUTE) {
        int *more = realloc(s->pool, 2 * (size_t)s->cap_pool * sizeof *more);
        if (!more)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for the routes of a collective");
        s->pool = more;
        s->cap_pool *= 2;
    }
    int from = s->platform->devices[edge->from].host;
    int to = adl_sim_platform_end(s->platform, edge->from, edge->to);
    int n = s->engine->route(from, to, s->pool + s->n_pool, MAX_ROUTE);
    if (n <= 0)
        return adl_fail(err, ADL_ERR_INPUT, "platform: no route from host '%s' to host '%s'",
                        s->engine->host_name(from), s->engine->host_name(to));
    struct routed *e = &s->edges[s->n_edges++];
    *e = (struct routed){.edge = edge, .party = party, .first_link = s->n_pool, .n_links = n};
    for (int i = 0; i < n; i++) {
        struct adl_engine_link *link = &s->links[s->pool[s->n_pool + i]];
        if (!link->name)
            *link = s->engine->link(s->pool[s->n_pool + i]);
        e->latency_s += link->latency_s;
    }
    s->n_pool += n;
    return ADL_OK;
}

static int find(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Unites the edges of one kind that share links: all edges (phase < 0), or those of a phase. The
 * smaller index stays the root, so that roots do not depend on the order of unions. */
static void unite(struct solver *s, int phase)
{
    for (int l = 0; l < s->n_links; l++)
        s->mark[l] = -1;
    for (int i = 0; i < s->n_edges; i++) {
        const struct routed *e = &s->edges[i];
        if (phase >= 0 && e->edge->phase != phase)
            continue;
        for (int k = 0; k < e->n_links; k++) {
            int link = s->pool[e->first_link + k];
            if (!s->links[link].shared)
                continue;
            if (s->mark[link] >= 0) {
                int a = find(s->parent, i), b = find(s->parent, s->mark[link]);
                s->parent[a > b ? a : b] = a > b ? b : a;
            }
            s->mark[link] = i;
        }
    }
}

static void find_groups(struct solver *s, int n_phases)
{
    int n = s->n_edges;
    for (int i = 0; i < n; i++)
        s->parent[i] = i;
    unite(s, -1);
    for (int i = 0; i < n; i++) {
        int root = s->edges[i].component = find(s->parent, i);
        if (s->edges[i].party != s->edges[root].party)
            s->edges[root].several = true;
    }
    for (int i = 0; i < n; i++)
        s->parent[i] = i;
    for (int phase = 0; phase < n_phases; phase++)
        unite(s, phase);
    for (int i = 0; i < n; i++) {
        struct routed *e = &s->edges[i];
        e->group = s->edges[e->component].several ? e->component : n + find(s->parent, i);
    }
}

/* Edges by group; counting sort over its two ranges keeps their order within a group. */
static enum adl_status sort_by_group(struct solver *s, struct adl_err *err)
{
    int n = s->n_edges;
    int *begin = calloc(2 * (size_t)n + 1, sizeof *begin);
    if (!begin)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d edges", n);
    for (int i = 0; i < n; i++)
        begin[s->edges[i].group + 1]++;
    for (int g = 0; g < 2 * n; g++)
        begin[g + 1] += begin[g];
    for (int i = 0; i < n; i++)
        s->order[begin[s->edges[i].group]++] = i;
    free(begin);
    return ADL_OK;
}

static const struct routed *member(const struct solver *s, int i)
{
    return &s->edges[s->order[i]];
}

/* Whether the formula holds for edges order[first..end): one party's, and either alone or equal
 * flows that start moving together. */
static bool follows_formula(const struct solver *s, int first, int end)
{
    const struct routed *a = member(s, first);
    if (a->group < s->n_edges)
        return false;
    for (int i = first + 1; i < end; i++) {
        const struct routed *b = member(s, i);
        if (b->edge->volume != a->edge->volume || b->latency_s != a->latency_s)
            return false;
    }
    return true;
}

/* Seconds a byte until the group's fullest link has moved its load. */
static double formula(struct solver *s, int first, int end)
{
    double slowest = 0;
    for (int pass = 0; pass < 3; pass++) /* clear, count, compare */
        for (int i = first; i < end; i++) {
            const struct routed *e = member(s, i);
            for (int k = 0; k < e->n_links; k++) {
                int link = s->pool[e->first_link + k];
                if (pass == 0)
                    s->mark[link] = 0;
                else if (pass == 1)
                    s->mark[link]++;
                else {
                    int load = s->links[link].shared ? s->mark[link] : 1;
                    double s_per_byte = load * e->edge->volume / s->links[link].bandwidth;
                    slowest = s_per_byte > slowest ? s_per_byte : slowest;
                }
            }
        }
    return slowest;
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
    uint64_t hash = 0xcbf29ce484222325u;
    int fresh = 0;
    for (int i = first; i < end; i++)
        for (int k = 0; k < member(s, i)->n_links; k++)
            s->mark[s->pool[member(s, i)->first_link + k]] = -1;
    for (int i = first; i < end; i++) {
        const struct routed *e = member(s, i);
        int whose[] = {e->party, e->edge->phase, e->edge->stage, e->n_links};
        hash = mix(hash, whose, sizeof whose);
        hash = mix(hash, &e->edge->volume, sizeof e->edge->volume);
        for (int k = 0; k < e->n_links; k++) {
            int link = s->pool[e->first_link + k];
            const struct adl_engine_link *l = &s->links[link];
            if (s->mark[link] < 0)
                s->mark[link] = fresh++;
            double kind[] = {s->mark[link], l->bandwidth, l->latency_s, l->shared};
            hash = mix(hash, kind, sizeof kind);
        }
    }
    return hash;
}

static bool seen_before(struct solver *s, uint64_t signature)
{
    for (int i = 0; i < s->n_seen; i++)
        if (s->seen[i] == signature)
            return true;
    s->seen[s->n_seen++] = signature;
    return false;
}

static enum adl_status add_streams(struct solver *s, int first, int end, struct adl_course *courses,
                                   struct adl_err *err)
{
    for (int i = first; i < end; i++) {
        const struct routed *e = member(s, i);
        struct adl_phase *phase = &courses[e->party].phases[e->edge->phase];
        int n = phase->n_streams;
        if ((n & (n - 1)) == 0) { /* full at powers of two */
            size_t cap = n ? 2 * (size_t)n : 1;
            struct adl_stream *more = realloc(phase->streams, cap * sizeof *more);
            if (!more)
                return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d flows", n);
            phase->streams = more;
        }
        phase->streams[phase->n_streams++] = (struct adl_stream){
            s->platform->devices[e->edge->from].host,
            adl_sim_platform_end(s->platform, e->edge->from, e->edge->to), e->edge->volume,
            e->latency_s};
    }
    return ADL_OK;
}

static enum adl_status solve_groups(struct solver *s, struct adl_course *courses,
                                    struct adl_err *err)
{
    for (int first = 0, end; first < s->n_edges; first = end) {
        const struct routed *e = member(s, first);
        for (end = first + 1; end < s->n_edges && member(s, end)->group == e->group;)
            end++;
        if (follows_formula(s, first, end)) {
            struct adl_phase *phase = &courses[e->party].phases[e->edge->phase];
            double s_per_byte = formula(s, first, end);
            if (s_per_byte > phase->s_per_byte)
                phase->s_per_byte = s_per_byte;
        } else if (!seen_before(s, signature(s, first, end))) {
            ADL_TRY(add_streams(s, first, end, courses, err));
        }
    }
    return ADL_OK;
}

/* A phase's latency: the slowest ring of each stage, summed over its stages. */
static enum adl_status add_latencies(const struct solver *s, const struct adl_pattern *patterns,
                                     struct adl_course *courses, struct adl_err *err)
{
    for (int first = 0, end; first < s->n_edges; first = end) {
        int party = s->edges[first].party;
        const struct adl_pattern *pattern = &patterns[party];
        size_t cells = (size_t)pattern->n_phases * (size_t)pattern->n_stages;
        double *slowest = calloc(cells, sizeof *slowest);
        if (!slowest)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d stages", pattern->n_stages);
        for (end = first; end < s->n_edges && s->edges[end].party == party; end++) {
            const struct routed *e = &s->edges[end];
            double *cell = &slowest[e->edge->phase * pattern->n_stages + e->edge->stage];
            double latency_s = e->edge->rounds * e->latency_s;
            *cell = latency_s > *cell ? latency_s : *cell;
        }
        for (size_t i = 0; i < cells; i++)
            courses[party].phases[i / (size_t)pattern->n_stages].latency_s += slowest[i];
        free(slowest);
    }
    return ADL_OK;
}

static enum adl_status make_phases(const struct adl_pattern *patterns, int n,
                                   struct adl_course *courses, struct adl_err *err)
{
    for (int p = 0; p < n; p++) {
        if (patterns[p].n_phases == 0)
            continue;
        courses[p].phases = calloc((size_t)patterns[p].n_phases, sizeof *courses[p].phases);
        if (!courses[p].phases)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d phases", patterns[p].n_phases);
        courses[p].n_phases = patterns[p].n_phases;
    }
    return ADL_OK;
}

static enum adl_status solve(struct solver *s, const struct adl_pattern *patterns, int n,
                             struct adl_course *courses, struct adl_err *err)
{
    ADL_TRY(make_phases(patterns, n, courses, err));
    int n_phases = 0;
    for (int p = 0; p < n; p++) {
        for (int i = 0; i < patterns[p].n; i++)
            ADL_TRY(route_edge(s, p, &patterns[p].edges[i], err));
        n_phases = patterns[p].n_phases > n_phases ? patterns[p].n_phases : n_phases;
    }
    find_groups(s, n_phases);
    ADL_TRY(sort_by_group(s, err));
    ADL_TRY(solve_groups(s, courses, err));
    return add_latencies(s, patterns, courses, err);
}

enum adl_status adl_network_solve(const struct adl_engine_ops *engine,
                                  const struct adl_sim_platform *platform,
                                  const struct adl_pattern *patterns, int n,
                                  struct adl_course **out, struct adl_err *err)
{
    struct solver s = {.engine = engine, .platform = platform};
    int n_edges = 0;
    for (int p = 0; p < n; p++)
        n_edges += patterns[p].n;
    struct adl_course *courses = calloc((size_t)n + 1, sizeof *courses);
    enum adl_status status = courses && allocate(&s, n_edges)
                                 ? solve(&s, patterns, n, courses, err)
                                 : adl_fail(err, ADL_ERR_NOMEM, "no memory for %d edges", n_edges);
    release(&s);
    if (status != ADL_OK) {
        adl_courses_free(courses, n);
        courses = NULL;
    }
    *out = courses;
    return status;
}

void adl_courses_free(struct adl_course *courses, int n)
{
    for (int p = 0; courses && p < n; p++) {
        for (int i = 0; i < courses[p].n_phases; i++)
            free(courses[p].phases[i].streams);
        free(courses[p].phases);
    }
    free(courses);
}
