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

/* What `auto` means for this group and size: multi_ring where the group spans several nodes
 * that have a NIC per device; hierarchical where it spans nodes with fewer NICs than devices and
 * holds several devices of one node; else ring. Others are returned as they are, except that
 * hierarchical and multi_ring on one node, or with one device per node, are a ring. */
enum adl_collective adl_collective_resolve(enum adl_collective collective,
                                           const struct adl_layout *layout, const int *devices,
                                           int n);

/* Traffic of one all-reduce of `bytes` among devices [n], ascending, distinct. n < 2: none.
 * ring: 2(n-1) messages an edge, 2(n-1)/n bytes an edge. hierarchical and multi_ring, G nodes of
 * n devices: 2Gn(n-1) + 2nG(G-1) messages, 2G(n-1)S + 2(G-1)S bytes. With nodes of unequal
 * shares of the group, r = the smallest share is the number of inter-node rings, and a node of k
 * devices moves 2(k-1)S inside in 2k(k-1) messages. */
void adl_collective_traffic(enum adl_collective collective, const struct adl_layout *layout,
                            const int *devices, int n, double bytes, struct adl_traffic *out);
/* A point-to-point move or a pipelined broadcast along a chain from device `from` to devices
 * `to` (distinct from each other; equal to `from`: nothing). */
void adl_chain_traffic(const struct adl_layout *layout, int from, const int *to, int n_to,
                       double bytes, struct adl_traffic *out);

/* Closed forms: P ranks (the powers of two where lg P occurs), S bytes, a s, b s/byte. */
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
