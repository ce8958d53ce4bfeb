/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives cost: closed forms against golden numbers of an independent implementation,
 * traffic against closed forms and against counting message by message. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "core/collective.h"

enum { MOST = 64 };

static void near(double got, double want, const char *what)
{
    cr_expect_float_eq(got, want, 1e-12 * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

static void expect_cost(struct adl_coll_cost got, double time_s, double messages, double bytes,
                        const char *what)
{
    near(got.time_s, time_s, what);
    near(got.messages, messages, what);
    near(got.bytes, bytes, what);
}

Test(cost, golden_numbers)
{
    double P = 8, S = 1e8, a = 5e-5, b = 8e-10;
    expect_cost(adl_cost_ring(P, S, a, b), 0.1407, 112, 1.4e9, "ring");
    expect_cost(adl_cost_recursive_doubling(P, S, a, b), 0.24015, 24, 2.4e9, "recursive doubling");
    expect_cost(adl_cost_rabenseifner(P, S, a, b), 0.1403, 48, 1.4e9, "Rabenseifner");
    expect_cost(adl_cost_tree(P, S, a, b), 0.4803, 14, 1.4e9, "tree");
    expect_cost(adl_cost_star(P, S, a, b), 1.1207, 14, 1.4e9, "star");
    expect_cost(adl_cost_hierarchical(4, 8, S, 5e-6, 2e-11, 1e-3, 8e-10), 0.02457, 640, 6.2e9,
                "hierarchical");
}

/* Among P that is not a power of two: the largest one below, and the others' vectors there and
 * back. By hand for 6 = 4 + 2 and 13 = 8 + 5. */
Test(cost, ranks_beyond_a_power_of_two)
{
    double S = 1e8, a = 5e-5, b = 8e-10, step = 2 * (a + S * b);
    expect_cost(adl_cost_recursive_doubling(6, S, a, b), 2 * (a + S * b) + step, 8 + 4,
                8 * S + 4 * S, "recursive doubling");
    expect_cost(adl_cost_rabenseifner(13, S, a, b), 6 * a + 2 * 7.0 / 8 * S * b + step, 48 + 10,
                14 * S + 10 * S, "Rabenseifner");
    expect_cost(adl_cost_tree(13, S, a, b), 8 * (a + S * b), 24, 24 * S, "tree");
}

/* Two nodes of four: stages 2 x 3/4 S b1 and 2 x 1/2 S/4 b2; the slower one counts, both
 * latencies do. */
Test(cost, multi_ring_is_its_slower_stage)
{
    near(adl_cost_multi_ring(2, 4, 8e9, 1e-6, 1e-10, 1e-5, 1e-10).time_s, 1.2 + 6e-6 + 2e-5,
         "bound inside");
    near(adl_cost_multi_ring(2, 4, 8e9, 1e-6, 1e-12, 1e-5, 1e-9).time_s, 2.0 + 6e-6 + 2e-5,
         "bound between");
}

static double total(const double by_class[ADL_N_LINK_CLASSES])
{
    return by_class[ADL_LINK_INTRA_NODE] + by_class[ADL_LINK_INTER_NODE] + by_class[ADL_LINK_WAN];
}

static void devices_from(int first, int stride, int n, int *devices)
{
    for (int i = 0; i < n; i++)
        devices[i] = first + i * stride;
}

Test(layout, classes_of_links)
{
    struct adl_layout layout = {.devices_per_node = 2, .nodes_per_site = 2, .nics_per_node = 1};
    cr_expect_eq(adl_layout_link(&layout, 0, 1), ADL_LINK_INTRA_NODE);
    cr_expect_eq(adl_layout_link(&layout, 1, 2), ADL_LINK_INTER_NODE);
    cr_expect_eq(adl_layout_link(&layout, 3, 0), ADL_LINK_INTER_NODE);
    cr_expect_eq(adl_layout_link(&layout, 3, 4), ADL_LINK_WAN);
}

/* Every rank sends 2(n-1) chunks of S/n to its successor, counted one by one. */
static struct adl_traffic ring_message_by_message(const struct adl_layout *layout,
                                                  const int *devices, int n, double bytes)
{
    struct adl_traffic t = {{0}, {0}};
    for (int rank = 0; rank < n; rank++)
        for (int step = 0; step < 2 * (n - 1); step++) {
            enum adl_link_class link =
                adl_layout_link(layout, devices[rank], devices[(rank + 1) % n]);
            t.messages[link] += 1;
            t.bytes[link] += bytes / n;
        }
    return t;
}

Test(traffic, ring_equals_its_messages)
{
    static const struct adl_layout layouts[] = {{1, 1, 1}, {4, 2, 1}, {8, 1, 8}, {3, 5, 1}};
    for (size_t l = 0; l < sizeof layouts / sizeof layouts[0]; l++)
        for (int n = 1; n <= 40; n++) {
            int devices[MOST];
            struct adl_traffic got;
            devices_from((int)l, 1 + n % 3, n, devices);
            adl_collective_traffic(ADL_COLL_RING, &layouts[l], devices, n, 1e6, &got);
            struct adl_traffic want = ring_message_by_message(&layouts[l], devices, n, 1e6);
            for (int c = 0; c < ADL_N_LINK_CLASSES; c++) {
                near(got.messages[c], want.messages[c], "messages");
                cr_expect_float_eq(got.bytes[c], want.bytes[c], 1e-9 * want.bytes[c]);
            }
            near(total(got.messages), 2.0 * n * (n - 1), "closed form");
            cr_expect_float_eq(total(got.bytes), 2e6 * (n - 1), 1e-6);
        }
}

Test(traffic, two_levels_equal_the_closed_form)
{
    static const enum adl_collective kinds[] = {ADL_COLL_HIERARCHICAL, ADL_COLL_MULTI_RING};
    for (int G = 2; G <= 8; G++)
        for (int n = 2; n <= 8; n++)
            for (int k = 0; k < 2; k++) {
                struct adl_layout layout = {n, MOST, 1};
                int devices[MOST];
                struct adl_traffic got;
                devices_from(0, 1, G * n, devices);
                adl_collective_traffic(kinds[k], &layout, devices, G * n, 1e6, &got);
                struct adl_coll_cost want = adl_cost_hierarchical(G, n, 1e6, 0, 0, 0, 0);
                near(total(got.messages), want.messages, "messages");
                near(total(got.bytes), want.bytes, "bytes");
                near(got.messages[ADL_LINK_INTER_NODE], 2.0 * n * G * (G - 1), "between nodes");
                near(got.bytes[ADL_LINK_INTER_NODE], 2e6 * (G - 1), "bytes between nodes");
                cr_expect_eq(got.messages[ADL_LINK_WAN], 0);
            }
}

/* Three devices of one node, one of the next: one ring between the nodes. */
Test(traffic, unequal_nodes)
{
    struct adl_layout layout = {4, 1, 4};
    struct adl_traffic t;
    adl_collective_traffic(ADL_COLL_HIERARCHICAL, &layout, (int[]){0, 1, 2, 5}, 4, 100, &t);
    near(t.messages[ADL_LINK_INTRA_NODE], 12, "inside: 2 x 3 x 2");
    near(t.bytes[ADL_LINK_INTRA_NODE], 400, "inside: 2 x 2 x S");
    near(t.messages[ADL_LINK_WAN], 4, "between: 2 x 1 x 2 x 1");
    near(t.bytes[ADL_LINK_WAN], 200, "between: 2 x 1 x S");
    cr_expect_eq(t.messages[ADL_LINK_INTER_NODE], 0, "a node a site");
}

/* What each device of a group holds while the edges are carried out phase by phase: the set of
 * devices whose vectors are summed in each of 64 pieces. Only whole vectors are moved here. */
struct holdings {
    uint64_t has[MOST], next[MOST];
    int phase;
    double volume[MOST][MOST]; /* bytes a device sent and got */
};

static void settle(struct holdings *h)
{
    for (int i = 0; i < MOST; i++)
        h->has[i] |= h->next[i];
}

static void carry(const struct adl_coll_edge *e, void *arg)
{
    struct holdings *h = arg;
    cr_assert(e->phase >= h->phase, "phases come in order");
    if (e->phase > h->phase)
        settle(h);
    h->phase = e->phase;
    h->next[e->to] |= h->has[e->from];
    cr_assert_neq(e->from, e->to);
    cr_assert(e->volume > 0 && e->rounds >= 1);
}

static uint64_t everyone(int n)
{
    return n < 64 ? (1ull << n) - 1 : ~0ull;
}

/* Every device ends with everyone's vector, and the traffic is that of the closed form. */
static void reaches_everyone(enum adl_collective kind, int n, struct adl_coll_cost want)
{
    struct adl_layout layout = {4, 2, 4};
    struct holdings h = {.phase = 0};
    int devices[MOST] = {0};
    devices_from(0, 1, n, devices);
    for (int i = 0; i < n; i++)
        h.has[i] = 1ull << i;
    adl_collective_edges(kind, &layout, devices, n, carry, &h);
    settle(&h);
    for (int i = 0; i < n; i++)
        cr_assert_eq(h.has[i], everyone(n), "%d of %d misses some", i, n);
    struct adl_traffic got;
    adl_collective_traffic(kind, &layout, devices, n, 1e6, &got);
    near(total(got.messages), want.messages, "messages");
    near(total(got.bytes), want.bytes, "bytes");
}

Test(traffic, steps_reach_everyone_at_the_closed_form)
{
    for (int n = 2; n <= MOST; n++) {
        reaches_everyone(ADL_COLL_RECURSIVE_DOUBLING, n, adl_cost_recursive_doubling(n, 1e6, 0, 0));
        reaches_everyone(ADL_COLL_HALVING_DOUBLING, n, adl_cost_rabenseifner(n, 1e6, 0, 0));
        reaches_everyone(ADL_COLL_TREE, n, adl_cost_tree(n, 1e6, 0, 0));
        reaches_everyone(ADL_COLL_STAR, n, adl_cost_star(n, 1e6, 0, 0));
    }
}

/* Halving: each device receives as much as it sends, halves of what it holds: 1/2, 1/4, 1/8. */
static void note_volume(const struct adl_coll_edge *e, void *arg)
{
    struct holdings *h = arg;
    h->volume[e->from][e->to] += e->volume;
}

Test(traffic, halving_is_largest_among_neighbours)
{
    struct adl_layout layout = {8, 1, 8};
    static struct holdings h;
    int devices[8];
    devices_from(0, 1, 8, devices);
    adl_collective_edges(ADL_COLL_HALVING_DOUBLING, &layout, devices, 8, note_volume, &h);
    for (int i = 0; i < 8; i++) {
        near(h.volume[i][i ^ 1], 1.0, "there and back: 2 x 1/2");
        near(h.volume[i][i ^ 2], 0.5, "2 x 1/4");
        near(h.volume[i][i ^ 4], 0.25, "2 x 1/8");
    }
}

Test(traffic, one_device_sends_nothing)
{
    struct adl_layout layout = {4, 1, 4};
    struct adl_traffic t;
    adl_collective_traffic(ADL_COLL_AUTO, &layout, (int[]){3}, 1, 100, &t);
    cr_expect_eq(total(t.messages), 0);
    cr_expect_eq(total(t.bytes), 0);
}

#define LARGE 1e6

Test(resolve, auto_by_layout)
{
    struct adl_layout nics = {4, 1, 4}, one_nic = {4, 1, 1};
    int node[] = {0, 1, 2, 3}, two[] = {0, 1, 4, 5}, thin[] = {0, 4, 8};
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, node, 4, LARGE), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, two, 4, LARGE), ADL_COLL_MULTI_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &one_nic, two, 4, LARGE),
                 ADL_COLL_HIERARCHICAL);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, thin, 3, LARGE), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_RING, &nics, two, 4, LARGE), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_HIERARCHICAL, &nics, two, 4, LARGE),
                 ADL_COLL_HIERARCHICAL);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_MULTI_RING, &nics, node, 4, LARGE), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_HIERARCHICAL, &nics, thin, 3, LARGE),
                 ADL_COLL_RING);
}

Test(resolve, auto_by_size)
{
    struct adl_layout nics = {4, 1, 4};
    int two[] = {0, 1, 4, 5};
    static const struct {
        double bytes;
        enum adl_collective want;
    } cases[] = {{0, ADL_COLL_RECURSIVE_DOUBLING},
                 {16384, ADL_COLL_RECURSIVE_DOUBLING},
                 {16385, ADL_COLL_HALVING_DOUBLING},
                 {262144, ADL_COLL_HALVING_DOUBLING},
                 {262145, ADL_COLL_MULTI_RING}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, two, 4, cases[i].bytes),
                     cases[i].want, "%g bytes", cases[i].bytes);
        cr_expect_eq(adl_collective_resolve(ADL_COLL_TREE, &nics, two, 4, cases[i].bytes),
                     ADL_COLL_TREE, "as asked for");
    }
}

/* From 0 along 1, 2, 3, 4: two links inside, one between nodes, one between sites. */
Test(traffic, chain)
{
    struct adl_layout layout = {2, 2, 1};
    struct adl_traffic t;
    adl_chain_traffic(&layout, 0, (int[]){1, 2, 3, 4}, 4, 10, &t);
    for (int c = 0; c < ADL_N_LINK_CLASSES; c++) {
        int links = c == ADL_LINK_INTRA_NODE ? 2 : 1;
        cr_expect_eq(t.messages[c], links, "%s", adl_link_class_names[c]);
        cr_expect_eq(t.bytes[c], 10 * links, "%s", adl_link_class_names[c]);
    }
    adl_chain_traffic(&layout, 0, (int[]){0}, 1, 10, &t);
    cr_expect_eq(total(t.messages), 0, "to itself");
}
