/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of several trainers' collectives with the links that they take, in groups of those
 * that share links. */
#ifndef ADL_SIM_ROUTES_H
#define ADL_SIM_ROUTES_H

#include "sim/pattern.h"
#include "sim/platform.h"

struct adl_routed {
    const struct adl_coll_edge *edge;
    int party;               /* whose: index of the pattern */
    int first_link, n_links; /* in the pool */
    double latency_s;
    int component; /* edges that share links, directly or through others */
    int group;     /* what is worked out together */
};

struct adl_routes {
    const struct adl_engine_ops *engine;
    const struct adl_sim_platform *platform;
    struct adl_routed *edges; /* [n_edges] by party, then in the pattern's order */
    int n_edges;
    int *pool; /* [n_pool] links of all routes */
    int n_pool, cap_pool;
    struct adl_engine_link *links; /* [n_links] those in use */
    int n_links;
    int *order;    /* [n_edges] edges by group */
    int *mark;     /* [n_links] scratch */
    double *load;  /* [n_links] scratch */
    int *parent;   /* [n_edges] scratch */
    bool *several; /* [n_edges] of a component: must be looked at as one */
};

/* Routes the edges of patterns [n]. Between devices without a route: ADL_ERR_INPUT. To be freed
 * after failures too. */
enum adl_status adl_routes_find(struct adl_routes *routes, const struct adl_engine_ops *engine,
                                const struct adl_sim_platform *platform,
                                const struct adl_pattern *patterns, int n, struct adl_err *err);
void adl_routes_free(struct adl_routes *routes);

/* Groups and orders the edges. What may meet is a group: a component in which several parties
 * meet, or that holds a link that changes (bool [n_links]; NULL: none do); its number is below
 * n_edges. Else edges of one party and phase that share links. With `apart`, parties never meet. */
enum adl_status adl_routes_group(struct adl_routes *routes, const bool *changes, bool apart,
                                 struct adl_err *err);

/* Link k of an edge's route. */
static inline int adl_routed_link(const struct adl_routes *routes, const struct adl_routed *e,
                                  int k)
{
    return routes->pool[e->first_link + k];
}
/* Edge i in the order of groups. */
static inline const struct adl_routed *adl_routes_at(const struct adl_routes *routes, int i)
{
    return &routes->edges[routes->order[i]];
}

#endif
