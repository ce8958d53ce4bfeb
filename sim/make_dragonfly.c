/* SPDX-License-Identifier: Apache-2.0 */
/* After Kim, Dally, Scott, Abts 2008: nodes on routers; the routers of a group linked each to
 * each; the groups linked each to each, link by link from router to router in turn. Routes are
 * minimal: to the router that has the link, over it, to the destination's router. The defaults
 * balance the network as the paper does (a = 2p = 2h): the local links of a router carry twice
 * what its nodes send, the global links of a group what its nodes send. */
#include "sim/make_dragonfly.h"

#include "sim/make_common.h"

struct dragonfly {
    struct adl_make_nodes nodes;
    int64_t router_nodes, group_routers;
    double local, local_latency, global, global_latency, oversubscription;
};

#define AT(field) .offset = offsetof(struct dragonfly, field)

static const struct adl_field options[] = {
    ADL_MAKE_NODE_ROWS(8),
    {"router_nodes", ADL_TYPE_INT, NULL, "", 1, 1024, NULL,
     "Nodes of a router; unset: 4, or 16 in detail node, where few routers load faster.",
     AT(router_nodes)},
    {"group_routers", ADL_TYPE_INT, NULL, "8", 1, 256, NULL, "Routers of a group.",
     AT(group_routers)},
    {"local", ADL_TYPE_REAL, "B/s", "", 1, INFINITY, NULL,
     "Bandwidth between two routers of a group, each direction; unset: twice what a router's nodes "
     "send, over its local links.",
     AT(local)},
    {"local_latency", ADL_TYPE_REAL, "s", "1us", 0, 1, NULL,
     "Latency between two routers of a group.", AT(local_latency)},
    {"global", ADL_TYPE_REAL, "B/s", "", 1, INFINITY, NULL,
     "Bandwidth between two groups, each direction; unset: what a group's nodes send over its "
     "global links and the over-subscription.",
     AT(global)},
    {"global_latency", ADL_TYPE_REAL, "s", "1us", 0, 1, NULL, "Latency between two groups.",
     AT(global_latency)},
    {"oversubscription", ADL_TYPE_REAL, NULL, "1", 1, 64, NULL,
     "What a group's nodes can send over what its global links carry together.",
     AT(oversubscription)},
    {.key = NULL}};

/* The network that is being made. */
struct fabric {
    struct dragonfly c;
    struct adl_make m;
    int64_t n_routers, n_groups;
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Routers of group g: the last one may have fewer. */
static int64_t routers_of(const struct fabric *f, int64_t g)
{
    int64_t left = f->n_routers - g * f->c.group_routers;
    return left < f->c.group_routers ? left : f->c.group_routers;
}

/* The router of group g that holds its link to group `to`. */
static long long gateway(const struct fabric *f, int64_t g, int64_t to)
{
    int64_t port = to < g ? to : to - 1;
    return (long long)(g * f->c.group_routers + port % routers_of(f, g));
}

static double local_bandwidth(const struct fabric *f)
{
    double sent = (double)f->c.router_nodes * adl_make_node_bandwidth(&f->m);
    return isnan(f->c.local) ? 2 * sent / (double)(f->c.group_routers - 1) : f->c.local;
}

static double global_bandwidth(const struct fabric *f)
{
    double sent = (double)(f->c.router_nodes * f->c.group_routers) * adl_make_node_bandwidth(&f->m);
    return isnan(f->c.global) ? sent / (double)(f->n_groups - 1) / f->c.oversubscription
                              : f->c.global;
}

static void links(struct fabric *f)
{
    char id[64];
    adl_make_links_begin(&f->m);
    for (int64_t r = 0; r < f->n_routers; r++) {
        snprintf(id, sizeof id, "router%lld", (long long)r);
        adl_make_group_link(&f->m, id);
        int64_t end = (r / f->c.group_routers + 1) * f->c.group_routers;
        for (int64_t to = r + 1; to < end && to < f->n_routers; to++) {
            snprintf(id, sizeof id, "local%lld_%lld", (long long)r, (long long)to);
            adl_make_link(&f->m, id, local_bandwidth(f), f->c.local_latency, ADL_MAKE_DUPLEX);
        }
    }
    for (int64_t a = 0; a < f->n_groups; a++)
        for (int64_t b = a + 1; b < f->n_groups; b++) {
            snprintf(id, sizeof id, "global%lld_%lld", (long long)a, (long long)b);
            adl_make_link(&f->m, id, global_bandwidth(f), f->c.global_latency, ADL_MAKE_DUPLEX);
        }
    adl_make_links_end(&f->m);
}

static void route(const struct adl_make *m, const char *kind, const char *switches, long long a,
                  long long b, long long from, long long to)
{
    adl_make_line(m,
                  "<zoneRoute src=\"%s%lld\" dst=\"%s%lld\" gw_src=\"router%lld_port\" "
                  "gw_dst=\"router%lld_port\"><link_ctn id=\"%s%lld_%lld\" direction=\"UP\"/>"
                  "</zoneRoute>",
                  switches, a, switches, b, from, to, kind, a, b);
}

static enum adl_status group(struct fabric *f, int64_t g, struct adl_err *err)
{
    char id[64];
    snprintf(id, sizeof id, "group%lld", (long long)g);
    adl_make_zone(&f->m, id, "Full");
    int64_t first = g * f->c.group_routers, end = first + routers_of(f, g);
    for (int64_t r = first; r < end; r++) {
        int64_t nodes = f->c.router_nodes, last = (r + 1) * nodes;
        snprintf(id, sizeof id, "router%lld", (long long)r);
        ADL_TRY(adl_make_group(
            &f->m,
            &(struct adl_make_group){id, r * nodes, last < f->m.n_nodes ? last : f->m.n_nodes, -1},
            err));
    }
    for (int64_t a = first; a < end; a++)
        for (int64_t b = a + 1; b < end; b++)
            route(&f->m, "local", "router", a, b, a, b);
    adl_make_close(&f->m);
    return ADL_OK;
}

static enum adl_status make(const void *config, FILE *out, struct adl_err *err)
{
    struct fabric f = {.c = *(const struct dragonfly *)config};
    ADL_TRY(adl_make_open(&f.c.nodes, out, &f.m, err));
    if (f.c.router_nodes == ADL_UNSET_INT)
        f.c.router_nodes = f.m.c.detail == ADL_DETAIL_NODE ? 16 : 4;
    f.n_routers = divide_up(f.m.n_nodes, f.c.router_nodes);
    f.n_groups = divide_up(f.n_routers, f.c.group_routers);
    char about[160];
    snprintf(about, sizeof about,
             "%lld groups of at most %lld routers with at most %lld nodes; minimal routes.",
             (long long)f.n_groups, (long long)f.c.group_routers, (long long)f.c.router_nodes);
    adl_make_head(&f.m, "dragonfly", about, "Full");
    links(&f);
    for (int64_t g = 0; g < f.n_groups; g++)
        ADL_TRY(group(&f, g, err));
    for (int64_t a = 0; a < f.n_groups; a++)
        for (int64_t b = a + 1; b < f.n_groups; b++)
            route(&f.m, "global", "group", a, b, gateway(&f, a, b), gateway(&f, b, a));
    return adl_make_end(&f.m, err);
}

const struct adl_platform_maker adl_make_dragonfly = {
    "dragonfly", "NVSwitch nodes on routers in groups, each linked to each.", options,
    sizeof(struct dragonfly), make};
