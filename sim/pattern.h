/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices send how much to which in a collective: one edge for all the messages from one
 * device to another. The formulas are those of core/collective.h. */
#ifndef ADL_SIM_PATTERN_H
#define ADL_SIM_PATTERN_H

#include "core/collective.h"
#include "core/status.h"

struct adl_edge {
    int from, to;  /* devices */
    int phase;     /* phases follow each other */
    int stage;     /* stages of a phase run at once; their latencies add up */
    double volume; /* bytes sent for each byte reduced */
    double rounds; /* sequential messages, for the latency */
};

struct adl_pattern {
    struct adl_edge *edges; /* [n] */
    int n, cap, n_phases, n_stages;
};
void adl_pattern_free(struct adl_pattern *pattern);

/* All-reduce among devices [n], ascending and distinct. One device: no edges. */
enum adl_status adl_pattern_allreduce(enum adl_collective collective,
                                      const struct adl_layout *layout, const int *devices, int n,
                                      struct adl_pattern *out, struct adl_err *err);
/* A pipelined broadcast along the chain devices[0], devices[1], ...; all distinct. */
enum adl_status adl_pattern_chain(const int *devices, int n, struct adl_pattern *out,
                                  struct adl_err *err);

#endif
