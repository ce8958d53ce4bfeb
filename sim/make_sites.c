/* SPDX-License-Identifier: Apache-2.0 */
/* A wide-area link never carries what it is rented for: protocols take their share (efficiency),
 * and one TCP flow is held by its window (flow_cap), so that several are used at once. The file
 * gets what remains, min(flows x flow_cap, bandwidth x efficiency), for all that is sent. */
#include "sim/make_sites.h"

#include "sim/make_tree.h"

enum topology { MESH, RING };

struct sites {
    struct adl_make_nodes nodes;
    struct adl_make_tree tree;
    int64_t sites, flows;
    double wan, wan_latency, efficiency, flow_cap;
    int topology;
};

#define AT(field) .offset = offsetof(struct sites, field)

static const struct adl_field options[] = {
    ADL_MAKE_NODE_ROWS(8),
    ADL_MAKE_TREE_ROWS(struct sites),
    {"sites", ADL_TYPE_INT, NULL, "2", 2, 64, NULL,
     "Data centers; each gets an equal part of the nodes.", AT(sites)},
    {"wan", ADL_TYPE_REAL, "B/s", "10Gbit/s", 1, INFINITY, NULL,
     "Bandwidth of a link between two data centers, each direction.", AT(wan)},
    {"wan_latency", ADL_TYPE_REAL, "s", "20ms", 0, 10, NULL,
     "Latency of a link between two data centers, one way.", AT(wan_latency)},
    {"wan_topology", ADL_TYPE_CHOICE, NULL, "mesh", 0, 0, "mesh|ring",
     "Whether each pair of data centers has a link, or only neighbours in a ring, which pass on.",
     AT(topology)},
    {"wan_efficiency", ADL_TYPE_REAL, NULL, "1", 0.001, 1, NULL,
     "Part of the bandwidth that protocols leave.", AT(efficiency)},
    {"wan_flows", ADL_TYPE_INT, NULL, "1", 1, 65536, NULL,
     "Flows that a transfer between data centers is spread over.", AT(flows)},
    {"wan_flow_cap", ADL_TYPE_REAL, "B/s", "", 1, INFINITY, NULL,
     "What one flow reaches, as TCP's window over the round trip; unset: no limit.", AT(flow_cap)},
    {.key = NULL}};

static double effective(const struct sites *c)
{
    double left = c->wan * c->efficiency, flows = (double)c->flows * c->flow_cap;
    return flows < left ? flows : left; /* false for NAN */
}

static bool linked(const struct sites *c, int64_t a, int64_t b)
{
    return c->topology == MESH || b == a + 1 || (a == 0 && b == c->sites - 1);
}

static struct adl_make_tree_part part_of(const struct sites *c, const struct adl_make *m,
                                         int64_t site, char spine[64])
{
    int64_t nodes = m->n_nodes / c->sites;
    snprintf(spine, 64, "site%lld_spine", (long long)site);
    return (struct adl_make_tree_part){.first = site * nodes,
                                       .end = (site + 1) * nodes,
                                       .first_pod = site * adl_make_tree_pods(&c->tree, nodes),
                                       .spine = spine,
                                       .has_port = true};
}

static void links(const struct sites *c, struct adl_make *m)
{
    char spine[64], id[64];
    adl_make_links_begin(m);
    for (int64_t s = 0; s < c->sites; s++) {
        struct adl_make_tree_part part = part_of(c, m, s, spine);
        adl_make_tree_links(m, &c->tree, &part);
    }
    for (int64_t a = 0; a < c->sites; a++)
        for (int64_t b = a + 1; b < c->sites; b++)
            if (linked(c, a, b)) {
                snprintf(id, sizeof id, "wan%lld_%lld", (long long)a, (long long)b);
                adl_make_link(m, id, effective(c), c->wan_latency, ADL_MAKE_DUPLEX);
            }
    adl_make_links_end(m);
}

static enum adl_status site(const struct sites *c, struct adl_make *m, int64_t s,
                            struct adl_err *err)
{
    char spine[64], id[64];
    struct adl_make_tree_part part = part_of(c, m, s, spine);
    snprintf(id, sizeof id, "site%lld", (long long)s);
    adl_make_zone(m, id, "Floyd");
    adl_make_line(m, "<prop id=\"site\" value=\"%s\"/>", id);
    ADL_TRY(adl_make_tree_zones(m, &c->tree, &part, err));
    adl_make_close(m);
    return ADL_OK;
}

static void routes(const struct sites *c, const struct adl_make *m)
{
    for (long long a = 0; a < c->sites; a++)
        for (long long b = a + 1; b < c->sites; b++)
            if (linked(c, a, b))
                adl_make_line(m,
                              "<zoneRoute src=\"site%lld\" dst=\"site%lld\" "
                              "gw_src=\"site%lld_spine_port\" gw_dst=\"site%lld_spine_port\">"
                              "<link_ctn id=\"wan%lld_%lld\" direction=\"UP\"/></zoneRoute>",
                              a, b, a, b, a, b);
}

static enum adl_status make(const void *config, FILE *out, struct adl_err *err)
{
    struct sites c = *(const struct sites *)config;
    struct adl_make m;
    ADL_TRY(adl_make_tree_check(&c.tree, &c.nodes, err));
    ADL_TRY(adl_make_open(&c.nodes, out, &m, err));
    if (m.n_nodes % c.sites != 0)
        return adl_fail(err, ADL_ERR_INPUT, "sites: %lld does not divide the %lld nodes",
                        (long long)c.sites, (long long)m.n_nodes);
    char about[200];
    snprintf(about, sizeof about,
             "%lld data centers, %s: %g Gbit/s, of which %g remain (efficiency %g, %lld flows).",
             (long long)c.sites, c.topology == MESH ? "each linked to each" : "in a ring",
             c.wan * 8e-9, effective(&c) * 8e-9, c.efficiency, (long long)c.flows);
    adl_make_head(&m, "sites", about, "Floyd");
    links(&c, &m);
    for (int64_t s = 0; s < c.sites; s++)
        ADL_TRY(site(&c, &m, s, err));
    routes(&c, &m);
    return adl_make_end(&m, err);
}

const struct adl_platform_maker adl_make_sites = {
    "sites", "Fat trees in several data centers, over wide-area links.", options,
    sizeof(struct sites), make};
