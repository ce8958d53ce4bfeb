/* SPDX-License-Identifier: Apache-2.0 */
/* What a collective costs by formula: messages and bytes by link class, and closed-form times
 * (theory.md, "Wall clock"). Counting by formula is what makes every transport count alike;
 * the simulator's flows are held against the times. */
#ifndef ADL_CORE_COLLECTIVE_H
#define ADL_CORE_COLLECTIVE_H

#include "core/settings.h"

enum adl_link_class { ADL_LINK_INTRA_NODE, ADL_LINK_INTER_NODE, ADL_LINK_WAN, ADL_N_LINK_CLASSES };
extern const char *const adl_link_class_names[ADL_N_LINK_CLASSES];

/* Device d is in node d / devices_per_node, node k in site k / nodes_per_site. */
struct adl_layout {
    int devices_per_node, nodes_per_site, nics_per_node; /* all >= 1 */
};
enum adl_link_class adl_layout_link(const struct adl_layout *layout, int device_a, int device_b);

/* Sorts devices [n] ascending and drops repetitions; returns how many are left. */
int adl_sort_distinct(int *devices, int n);

struct adl_traffic {
    double messages[ADL_N_LINK_CLASSES];
    double bytes[ADL_N_LINK_CLASSES]; /* on the wire, all senders together */
};

/* Payloads up to which `auto` takes an algorithm for its few steps. MPI libraries switch at such
 * sizes; on 50 GB/s and 5 us both choices cost about the same there. */
#define ADL_COLL_TINY_BYTES  16384.0
#define ADL_COLL_SHORT_BYTES 262144.0

/* What is run for this group and payload. `auto`: recursive_doubling up to ADL_COLL_TINY_BYTES,
 * halving_doubling up to ADL_COLL_SHORT_BYTES; above, multi_ring where the group spans several
 * nodes that have a NIC per device, hierarchical where it spans nodes with fewer NICs than devices
 * and holds several devices of one node, else ring. Others are returned as they are, except that
 * hierarchical and multi_ring on one node, or with one device per node, are a ring. */
enum adl_collective adl_collective_resolve(enum adl_collective collective,
                                           const struct adl_layout *layout, const int *devices,
                                           int n, double bytes);

/* All messages from one device to another that follow each other, as one edge. */
struct adl_coll_edge {
    int from, to;  /* devices */
    int phase;     /* phases follow each other; edges come in their order */
    int stage;     /* stages of a phase run side by side, their latencies add up */
    double volume; /* bytes sent for each byte reduced */
    double rounds; /* messages, one after the other, of equal size */
};
typedef void adl_coll_edge_fn(const struct adl_coll_edge *edge, void *arg);

/* Calls fn for every edge of one all-reduce among devices [n], ascending, distinct, in the
 * resolved algorithm; n < 2: none. The one description that counts and times come from.
 *
 * ring: each rank sends 2(n-1) messages of 1/n. hierarchical: reduce-scatter rings inside nodes,
 * rings between nodes, all-gather rings inside; multi_ring: the same side by side, as a pipeline.
 * With nodes of unequal shares of the group, the smallest share is the number of rings between
 * nodes. recursive_doubling: in step k ranks at distance 2^k exchange all; halving_doubling: they
 * exchange halves of what they hold, then gather backwards. Both run among a power of two: the
 * others first hand their vector to a neighbour and get the sum back at the end. tree: binomial,
 * to the first device and back. star: every device to the first one after the other, and back. */
void adl_collective_edges(enum adl_collective collective, const struct adl_layout *layout,
                          const int *devices, int n, adl_coll_edge_fn *fn, void *arg);

/* Traffic of one all-reduce of `bytes` among devices [n], ascending, distinct: its edges added
 * up. Equals the messages and bytes of the closed forms below. */
void adl_collective_traffic(enum adl_collective collective, const struct adl_layout *layout,
                            const int *devices, int n, double bytes, struct adl_traffic *out);
/* A point-to-point move or a pipelined broadcast along a chain from device `from` to devices
 * `to` (distinct from each other; equal to `from`: nothing). */
void adl_chain_traffic(const struct adl_layout *layout, int from, const int *to, int n_to,
                       double bytes, struct adl_traffic *out);

/* Closed forms: P ranks, S bytes, a s, b s/byte. Recursive doubling and Rabenseifner (halving-
 * doubling) of P that is not a power of two: that of the largest power of two below, and for each
 * of the others two messages of S, 2(a + S b) in all. */
struct adl_coll_cost {
    double time_s, messages, bytes;
};
struct adl_coll_cost adl_cost_ring(double P, double S, double a, double b);
struct adl_coll_cost adl_cost_recursive_doubling(double P, double S, double a, double b);
struct adl_coll_cost adl_cost_rabenseifner(double P, double S, double a, double b);
struct adl_coll_cost adl_cost_tree(double P, double S, double a, double b);
struct adl_coll_cost adl_cost_star(double P, double S, double a, double b);
/* G groups of n; a1, b1 inside, a2, b2 between. */
struct adl_coll_cost adl_cost_hierarchical(double G, double n, double S, double a1, double b1,
                                           double a2, double b2);
/* design 9: max of the pipelined stages, and both stages' latencies. */
struct adl_coll_cost adl_cost_multi_ring(double G, double n, double S, double a1, double b1,
                                         double a2, double b2);

#endif
