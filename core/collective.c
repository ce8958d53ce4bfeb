/* SPDX-License-Identifier: Apache-2.0 */
#include "core/collective.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const adl_link_class_names[ADL_N_LINK_CLASSES] = {"intra_node", "inter_node", "wan"};

static int node_of(const struct adl_layout *layout, int device)
{
    return device / layout->devices_per_node;
}

static int site_of(const struct adl_layout *layout, int device)
{
    return node_of(layout, device) / layout->nodes_per_site;
}

enum adl_link_class adl_layout_link(const struct adl_layout *layout, int a, int b)
{
    if (node_of(layout, a) == node_of(layout, b))
        return ADL_LINK_INTRA_NODE;
    return site_of(layout, a) == site_of(layout, b) ? ADL_LINK_INTER_NODE : ADL_LINK_WAN;
}

static int ascending(const void *a, const void *b)
{
    const int *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

int adl_sort_distinct(int *devices, int n)
{
    qsort(devices, (size_t)n, sizeof *devices, ascending);
    int kept = 0;
    for (int i = 0; i < n; i++)
        if (kept == 0 || devices[kept - 1] != devices[i])
            devices[kept++] = devices[i];
    return kept;
}

/* How a group lies on the nodes: how many it touches and its smallest and largest share of one. */
struct spread {
    int nodes, smallest, largest;
};

static struct spread spread_of(const struct adl_layout *layout, const int *devices, int n)
{
    struct spread s = {0, n, 0};
    for (int i = 0; i < n;) {
        int j = i;
        while (j < n && node_of(layout, devices[j]) == node_of(layout, devices[i]))
            j++;
        s.nodes++;
        if (j - i < s.smallest)
            s.smallest = j - i;
        if (j - i > s.largest)
            s.largest = j - i;
        i = j;
    }
    return s;
}

enum adl_collective adl_collective_resolve(enum adl_collective collective,
                                           const struct adl_layout *layout, const int *devices,
                                           int n)
{
    struct spread s = spread_of(layout, devices, n);
    if (s.nodes < 2 || s.largest < 2)
        return ADL_COLL_RING;
    if (collective != ADL_COLL_AUTO)
        return collective;
    return layout->nics_per_node >= layout->devices_per_node ? ADL_COLL_MULTI_RING
                                                             : ADL_COLL_HIERARCHICAL;
}

static void add_edge(const struct adl_layout *layout, int from, int to, double messages,
                     double bytes, struct adl_traffic *out)
{
    enum adl_link_class class = adl_layout_link(layout, from, to);
    out->messages[class] += messages;
    out->bytes[class] += bytes;
}

static void ring_traffic(const struct adl_layout *layout, const int *devices, int n, double bytes,
                         struct adl_traffic *out)
{
    for (int i = 0; i < n; i++)
        add_edge(layout, devices[i], devices[(i + 1) % n], 2.0 * (n - 1), 2.0 * (n - 1) / n * bytes,
                 out);
}

static void two_level_traffic(const struct adl_layout *layout, const int *devices, int n,
                              double bytes, struct adl_traffic *out)
{
    struct spread s = spread_of(layout, devices, n);
    double rings = s.smallest, nodes = s.nodes;
    for (int i = 0; i < n;) {
        int j = i;
        while (j < n && node_of(layout, devices[j]) == node_of(layout, devices[i]))
            j++;
        double k = j - i;
        out->messages[ADL_LINK_INTRA_NODE] += 2.0 * k * (k - 1.0);
        out->bytes[ADL_LINK_INTRA_NODE] += 2.0 * (k - 1.0) * bytes;
        add_edge(layout, devices[i], devices[j % n], rings * 2.0 * (nodes - 1.0),
                 2.0 * (nodes - 1.0) / nodes * bytes, out);
        i = j;
    }
}

void adl_collective_traffic(enum adl_collective collective, const struct adl_layout *layout,
                            const int *devices, int n, double bytes, struct adl_traffic *out)
{
    memset(out, 0, sizeof *out);
    if (n < 2)
        return;
    switch (adl_collective_resolve(collective, layout, devices, n)) {
    case ADL_COLL_HIERARCHICAL:
    case ADL_COLL_MULTI_RING:
        two_level_traffic(layout, devices, n, bytes, out);
        break;
    default:
        ring_traffic(layout, devices, n, bytes, out);
        break;
    }
}

void adl_chain_traffic(const struct adl_layout *layout, int from, const int *to, int n_to,
                       double bytes, struct adl_traffic *out)
{
    memset(out, 0, sizeof *out);
    for (int i = 0; i < n_to; i++) {
        if (to[i] == from)
            continue;
        add_edge(layout, from, to[i], 1.0, bytes, out);
        from = to[i];
    }
}

struct adl_coll_cost adl_cost_ring(double P, double S, double a, double b)
{
    return (struct adl_coll_cost){2 * (P - 1) * a + 2 * (P - 1) / P * S * b, 2 * P * (P - 1),
                                  2 * (P - 1) * S};
}

static double lg(double P)
{
    return ceil(log2(P));
}

struct adl_coll_cost adl_cost_recursive_doubling(double P, double S, double a, double b)
{
    double k = lg(P);
    return (struct adl_coll_cost){k * (a + S * b), P * k, P * k * S};
}

struct adl_coll_cost adl_cost_rabenseifner(double P, double S, double a, double b)
{
    double k = lg(P);
    return (struct adl_coll_cost){2 * k * a + 2 * (P - 1) / P * S * b, 2 * P * k, 2 * (P - 1) * S};
}

struct adl_coll_cost adl_cost_tree(double P, double S, double a, double b)
{
    return (struct adl_coll_cost){2 * lg(P) * (a + S * b), 2 * (P - 1), 2 * (P - 1) * S};
}

struct adl_coll_cost adl_cost_star(double P, double S, double a, double b)
{
    return (struct adl_coll_cost){2 * (P - 1) * (a + S * b), 2 * (P - 1), 2 * (P - 1) * S};
}

static struct adl_coll_cost two_level(double G, double n, double S, double inside_s,
                                      double between_s, double latency_s, bool pipelined)
{
    double stages_s = pipelined ? fmax(inside_s, between_s) : inside_s + between_s;
    return (struct adl_coll_cost){stages_s + latency_s, G * 2 * n * (n - 1) + n * 2 * G * (G - 1),
                                  2 * G * (n - 1) * S + 2 * (G - 1) * S};
}

struct adl_coll_cost adl_cost_hierarchical(double G, double n, double S, double a1, double b1,
                                           double a2, double b2)
{
    return two_level(G, n, S, 2 * (n - 1) / n * S * b1, 2 * (G - 1) / G * (S / n) * b2,
                     2 * (n - 1) * a1 + 2 * (G - 1) * a2, false);
}

struct adl_coll_cost adl_cost_multi_ring(double G, double n, double S, double a1, double b1,
                                         double a2, double b2)
{
    return two_level(G, n, S, 2 * (n - 1) / n * S * b1, 2 * (G - 1) / G * (S / n) * b2,
                     2 * (n - 1) * a1 + 2 * (G - 1) * a2, true);
}
