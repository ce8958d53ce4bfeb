/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices send how much to which in a collective: one edge for all the messages from one
 * device to another. The formulas are those of core/collective.h. */
#ifndef ADL_SIM_PATTERN_H
#define ADL_SIM_PATTERN_H

#include "core/collective.h"
#include "core/status.h"

struct adl_pattern {
    struct adl_coll_edge *edges; /* [n] in the order of their phases */
    int n, cap, n_phases, n_stages;
};
void adl_pattern_free(struct adl_pattern *pattern);

/* All-reduce among devices [n], ascending and distinct, in a resolved algorithm. One device: no
 * edges. */
enum adl_status adl_pattern_allreduce(enum adl_collective collective,
                                      const struct adl_layout *layout, const int *devices, int n,
                                      struct adl_pattern *out, struct adl_err *err);
/* A pipelined broadcast along the chain devices[0], devices[1], ...; all distinct. */
enum adl_status adl_pattern_chain(const int *devices, int n, struct adl_pattern *out,
                                  struct adl_err *err);
/* Turns the edges between devices of `gpus` each into edges between their GPUs: GPU i of one sends
 * its shard, 1/gpus of the bytes, to GPU i of the other. GPU i of device d has number d gpus + i.
 */
enum adl_status adl_pattern_shard(struct adl_pattern *pattern, int gpus, struct adl_err *err);

#endif
