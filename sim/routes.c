/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/routes.h"

#include <stdlib.h>

enum { MAX_ROUTE = 64 };

static enum adl_status allocate(struct adl_routes *r, int n_edges, struct adl_err *err)
{
    r->n_links = r->engine->n_links();
    r->cap_pool = 8 * n_edges + MAX_ROUTE;
    size_t n = (size_t)n_edges + 1, links = (size_t)r->n_links + 1;
    r->edges = calloc(n, sizeof *r->edges);
    r->pool = malloc((size_t)r->cap_pool * sizeof *r->pool);
    r->links = calloc(links, sizeof *r->links);
    r->order = calloc(n, sizeof *r->order);
    r->mark = calloc(links, sizeof *r->mark);
    r->load = calloc(links, sizeof *r->load);
    r->parent = calloc(n, sizeof *r->parent);
    r->several = calloc(n, sizeof *r->several);
    if (!r->edges || !r->pool || !r->links || !r->order || !r->mark || !r->load || !r->parent ||
        !r->several)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the routes of %d edges", n_edges);
    return ADL_OK;
}

void adl_routes_free(struct adl_routes *r)
{
    free(r->edges);
    free(r->pool);
    free(r->links);
    free(r->order);
    free(r->mark);
    free(r->load);
    free(r->parent);
    free(r->several);
    *r = (struct adl_routes){0};
}

static enum adl_status route_edge(struct adl_routes *r, int party, const struct adl_coll_edge *edge,
                                  struct adl_err *err)
{
    if (r->cap_pool - r->n_pool < MAX_ROUTE) {
        int *more = realloc(r->pool, 2 * (size_t)r->cap_pool * sizeof *more);
        if (!more)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for the routes of a collective");
        r->pool = more;
        r->cap_pool *= 2;
    }
    int n = adl_sim_platform_route(r->engine, r->platform, edge->from, edge->to,
                                   r->pool + r->n_pool, MAX_ROUTE);
    if (n <= 0)
        return adl_fail(err, ADL_ERR_INPUT, "platform: no route from host '%s' to host '%s'",
                        r->engine->host_name(r->platform->devices[edge->from].host),
                        r->engine->host_name(r->platform->devices[edge->to].host));
    struct adl_routed *e = &r->edges[r->n_edges++];
    *e = (struct adl_routed){.edge = edge, .party = party, .first_link = r->n_pool, .n_links = n};
    for (int i = 0; i < n; i++) {
        struct adl_engine_link *link = &r->links[r->pool[r->n_pool + i]];
        if (!link->name)
            *link = r->engine->link(r->pool[r->n_pool + i]);
        e->latency_s += link->latency_s;
    }
    r->n_pool += n;
    return ADL_OK;
}

enum adl_status adl_routes_find(struct adl_routes *r, const struct adl_engine_ops *engine,
                                const struct adl_sim_platform *platform,
                                const struct adl_pattern *patterns, int n, struct adl_err *err)
{
    *r = (struct adl_routes){.engine = engine, .platform = platform};
    int n_edges = 0;
    for (int p = 0; p < n; p++)
        n_edges += patterns[p].n;
    ADL_TRY(allocate(r, n_edges, err));
    for (int p = 0; p < n; p++)
        for (int i = 0; i < patterns[p].n; i++)
            ADL_TRY(route_edge(r, p, &patterns[p].edges[i], err));
    return ADL_OK;
}

static int find(int *parent, int i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

/* Whether edge b may be in another group than a for all they share: another phase of a party
 * (whose edges come by phase), or another party, if they never meet. */
static bool apart_by(const struct adl_routed *a, const struct adl_routed *b, bool phases,
                     bool parties)
{
    return ((phases || parties) && a->party != b->party) ||
           (phases && a->edge->phase != b->edge->phase);
}

/* Unites edges that share links, within a phase or party if these are apart. The smaller index
 * stays the root, so that roots do not depend on the order of unions. */
static void unite(struct adl_routes *r, bool phases, bool parties)
{
    for (int i = 0; i < r->n_edges; i++)
        r->parent[i] = i;
    for (int l = 0; l < r->n_links; l++)
        r->mark[l] = -1;
    for (int i = 0; i < r->n_edges; i++) {
        const struct adl_routed *e = &r->edges[i];
        for (int k = 0; k < e->n_links; k++) {
            int link = adl_routed_link(r, e, k), last = r->mark[link];
            if (!r->links[link].shared)
                continue;
            if (last >= 0 && !apart_by(&r->edges[last], e, phases, parties)) {
                int a = find(r->parent, i), b = find(r->parent, last);
                r->parent[a > b ? a : b] = a > b ? b : a;
            }
            r->mark[link] = i;
        }
    }
}

static bool changing(const struct adl_routes *r, const struct adl_routed *e, const bool *changes)
{
    for (int k = 0; changes && k < e->n_links; k++)
        if (changes[adl_routed_link(r, e, k)])
            return true;
    return false;
}

static void find_groups(struct adl_routes *r, const bool *changes, bool apart)
{
    unite(r, false, apart);
    for (int i = 0; i < r->n_edges; i++) {
        struct adl_routed *e = &r->edges[i];
        int root = e->component = find(r->parent, i);
        if (e->party != r->edges[root].party || changing(r, e, changes))
            r->several[root] = true;
    }
    unite(r, true, apart);
    for (int i = 0; i < r->n_edges; i++) {
        struct adl_routed *e = &r->edges[i];
        e->group = r->several[e->component] ? e->component : r->n_edges + find(r->parent, i);
    }
}

/* Counting sort over the two ranges of groups keeps the order of edges within a group. */
static enum adl_status sort_by_group(struct adl_routes *r, struct adl_err *err)
{
    int n = r->n_edges;
    int *begin = calloc(2 * (size_t)n + 2, sizeof *begin);
    if (!begin)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d edges", n);
    for (int i = 0; i < n; i++)
        begin[r->edges[i].group + 1]++;
    for (int g = 0; g < 2 * n; g++)
        begin[g + 1] += begin[g];
    for (int i = 0; i < n; i++)
        r->order[begin[r->edges[i].group]++] = i;
    free(begin);
    return ADL_OK;
}

enum adl_status adl_routes_group(struct adl_routes *r, const bool *changes, bool apart,
                                 struct adl_err *err)
{
    find_groups(r, changes, apart);
    return sort_by_group(r, err);
}
