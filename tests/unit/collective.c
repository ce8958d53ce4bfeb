/* SPDX-License-Identifier: Apache-2.0 */
/* What collectives cost: closed forms against golden numbers of an independent implementation,
 * traffic against closed forms and against counting message by message. */
#include <criterion/criterion.h>
#include <math.h>

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

Test(traffic, one_device_sends_nothing)
{
    struct adl_layout layout = {4, 1, 4};
    struct adl_traffic t;
    adl_collective_traffic(ADL_COLL_AUTO, &layout, (int[]){3}, 1, 100, &t);
    cr_expect_eq(total(t.messages), 0);
    cr_expect_eq(total(t.bytes), 0);
}

Test(resolve, auto_by_layout)
{
    struct adl_layout nics = {4, 1, 4}, one_nic = {4, 1, 1};
    int node[] = {0, 1, 2, 3}, two[] = {0, 1, 4, 5}, thin[] = {0, 4, 8};
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, node, 4), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, two, 4), ADL_COLL_MULTI_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &one_nic, two, 4), ADL_COLL_HIERARCHICAL);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_AUTO, &nics, thin, 3), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_RING, &nics, two, 4), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_HIERARCHICAL, &nics, two, 4),
                 ADL_COLL_HIERARCHICAL);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_MULTI_RING, &nics, node, 4), ADL_COLL_RING);
    cr_expect_eq(adl_collective_resolve(ADL_COLL_HIERARCHICAL, &nics, thin, 3), ADL_COLL_RING);
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
