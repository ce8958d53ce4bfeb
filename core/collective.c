/* SPDX-License-Identifier: Apache-2.0 */
#include "core/collective.h"

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

/* The devices of a collective; a rank is an index into them. */
struct group {
    const struct adl_layout *layout;
    const int *devices;
    int n;
};

/* The first rank after `rank` that is in another node; n: none. */
static int node_end(const struct group *g, int rank)
{
    int node = node_of(g->layout, g->devices[rank]), end = rank + 1;
    while (end < g->n && node_of(g->layout, g->devices[end]) == node)
        end++;
    return end;
}

/* How a group lies on the nodes: how many it touches and its smallest and largest share of one. */
struct spread {
    int nodes, smallest, largest;
};

static struct spread spread_of(const struct group *g)
{
    struct spread s = {0, g->n, 0};
    for (int i = 0, end; i < g->n; i = end) {
        end = node_end(g, i);
        s.nodes++;
        if (end - i < s.smallest)
            s.smallest = end - i;
        if (end - i > s.largest)
            s.largest = end - i;
    }
    return s;
}

enum adl_collective adl_collective_resolve(enum adl_collective collective,
                                           const struct adl_layout *layout, const int *devices,
                                           int n, double bytes)
{
    bool automatic = collective == ADL_COLL_AUTO;
    if (automatic && bytes <= ADL_COLL_TINY_BYTES)
        return ADL_COLL_RECURSIVE_DOUBLING;
    if (automatic && bytes <= ADL_COLL_SHORT_BYTES)
        return ADL_COLL_HALVING_DOUBLING;
    if (!automatic && collective != ADL_COLL_HIERARCHICAL && collective != ADL_COLL_MULTI_RING)
        return collective;
    struct spread s = spread_of(&(struct group){layout, devices, n});
    if (s.nodes < 2 || s.largest < 2)
        return ADL_COLL_RING;
    if (!automatic)
        return collective;
    return layout->nics_per_node >= layout->devices_per_node ? ADL_COLL_MULTI_RING
                                                             : ADL_COLL_HIERARCHICAL;
}

/* ---- edges ---- */

struct visit {
    struct group group;
    adl_coll_edge_fn *fn;
    void *arg;
};

static void edge(const struct visit *v, int from, int to, int phase, int stage, double volume,
                 double rounds)
{
    struct adl_coll_edge e = {.from = v->group.devices[from],
                              .to = v->group.devices[to],
                              .phase = phase,
                              .stage = stage,
                              .volume = volume,
                              .rounds = rounds};
    v->fn(&e, v->arg);
}

/* A ring over ranks first..end, `passes` of its n - 1 rounds: 2 all-reduce, 1 half of it. */
static void ring(const struct visit *v, int first, int end, int phase, int passes)
{
    double n = end - first;
    for (int i = first; i < end && n > 1; i++)
        edge(v, i, i + 1 < end ? i + 1 : first, phase, 0, passes * (n - 1) / n, passes * (n - 1));
}

static void rings_inside(const struct visit *v, int phase, int passes)
{
    for (int i = 0, end; i < v->group.n; i = end) {
        end = node_end(&v->group, i);
        ring(v, i, end, phase, passes);
    }
}

/* One ring for each of the first ranks of the nodes, each reducing its part. */
static void rings_between(const struct visit *v, int phase, int stage)
{
    struct spread s = spread_of(&v->group);
    double rounds = 2.0 * (s.nodes - 1), volume = rounds / s.nodes / s.smallest;
    for (int r = 0; r < s.smallest; r++)
        for (int i = 0, end; i < v->group.n; i = end) {
            end = node_end(&v->group, i);
            edge(v, i + r, (end < v->group.n ? end : 0) + r, phase, stage, volume, rounds);
        }
}

/* The largest power of two up to n. */
static int power_below(int n)
{
    int power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* n = power + extra: the first 2 extra ranks are pairs of which the odd one stands for both. */
static int rank_of(int core, int extra)
{
    return core < extra ? 2 * core + 1 : core + extra;
}

static int fold(const struct visit *v, int extra, int phase, bool back)
{
    for (int i = 0; i < extra; i++)
        edge(v, back ? 2 * i + 1 : 2 * i, back ? 2 * i : 2 * i + 1, phase, 0, 1, 1);
    return extra > 0 ? phase + 1 : phase;
}

static int exchange_at(const struct visit *v, int power, int distance, int phase, double volume)
{
    int extra = v->group.n - power;
    for (int i = 0; i < power; i++)
        edge(v, rank_of(i, extra), rank_of(i ^ distance, extra), phase, 0, volume, 1);
    return phase + 1;
}

static void doubling(const struct visit *v, bool halving)
{
    int power = power_below(v->group.n), extra = v->group.n - power;
    int phase = fold(v, extra, 0, false);
    for (int distance = 1; distance < power; distance *= 2)
        phase = exchange_at(v, power, distance, phase, halving ? 0.5 / distance : 1);
    for (int distance = power / 2; halving && distance >= 1; distance /= 2)
        phase = exchange_at(v, power, distance, phase, 0.5 / distance);
    fold(v, extra, phase, true);
}

static void tree(const struct visit *v)
{
    int n = v->group.n, phase = 0, distance = 1;
    for (; distance < n; distance *= 2, phase++)
        for (int i = distance; i < n; i += 2 * distance)
            edge(v, i, i - distance, phase, 0, 1, 1);
    for (distance /= 2; distance >= 1; distance /= 2, phase++)
        for (int i = distance; i < n; i += 2 * distance)
            edge(v, i - distance, i, phase, 0, 1, 1);
}

static void star(const struct visit *v)
{
    int n = v->group.n;
    for (int i = 1; i < n; i++)
        edge(v, i, 0, i - 1, 0, 1, 1);
    for (int i = 1; i < n; i++)
        edge(v, 0, i, n - 2 + i, 0, 1, 1);
}

static void visit(const struct visit *v, enum adl_collective collective)
{
    switch (collective) {
    case ADL_COLL_HIERARCHICAL:
        rings_inside(v, 0, 1);
        rings_between(v, 1, 0);
        rings_inside(v, 2, 1);
        break;
    case ADL_COLL_MULTI_RING:
        rings_inside(v, 0, 2);
        rings_between(v, 0, 1);
        break;
    case ADL_COLL_RECURSIVE_DOUBLING:
        doubling(v, false);
        break;
    case ADL_COLL_HALVING_DOUBLING:
        doubling(v, true);
        break;
    case ADL_COLL_TREE:
        tree(v);
        break;
    case ADL_COLL_STAR:
        star(v);
        break;
    default:
        ring(v, 0, v->group.n, 0, 2);
        break;
    }
}

void adl_collective_edges(enum adl_collective collective, const struct adl_layout *layout,
                          const int *devices, int n, adl_coll_edge_fn *fn, void *arg)
{
    struct visit v = {{layout, devices, n}, fn, arg};
    if (n >= 2)
        visit(&v, collective);
}

/* ---- traffic ---- */

struct count {
    const struct adl_layout *layout;
    double bytes;
    struct adl_traffic *out;
};

static void count_edge(const struct adl_coll_edge *e, void *arg)
{
    struct count *count = arg;
    enum adl_link_class class = adl_layout_link(count->layout, e->from, e->to);
    count->out->messages[class] += e->rounds;
    count->out->bytes[class] += e->volume * count->bytes;
}

void adl_collective_traffic(enum adl_collective collective, const struct adl_layout *layout,
                            const int *devices, int n, double bytes, struct adl_traffic *out)
{
    memset(out, 0, sizeof *out);
    struct count count = {layout, bytes, out};
    collective = adl_collective_resolve(collective, layout, devices, n, bytes);
    adl_collective_edges(collective, layout, devices, n, count_edge, &count);
}

void adl_chain_traffic(const struct adl_layout *layout, int from, const int *to, int n_to,
                       double bytes, struct adl_traffic *out)
{
    memset(out, 0, sizeof *out);
    struct count count = {layout, bytes, out};
    for (int i = 0; i < n_to; i++) {
        if (to[i] == from)
            continue;
        struct adl_coll_edge e = {.from = from, .to = to[i], .volume = 1, .rounds = 1};
        count_edge(&e, &count);
        from = to[i];
    }
}
