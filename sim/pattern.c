/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pattern.h"

#include <stdlib.h>

void adl_pattern_free(struct adl_pattern *pattern)
{
    free(pattern->edges);
    *pattern = (struct adl_pattern){0};
}

static enum adl_status reserve(struct adl_pattern *pattern, int cap, struct adl_err *err)
{
    *pattern = (struct adl_pattern){.cap = cap};
    if (cap == 0)
        return ADL_OK;
    pattern->edges = calloc((size_t)cap, sizeof *pattern->edges);
    return pattern->edges ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for %d edges", cap);
}

static void add(struct adl_pattern *pattern, struct adl_edge edge)
{
    pattern->edges[pattern->n++] = edge;
    if (edge.phase >= pattern->n_phases)
        pattern->n_phases = edge.phase + 1;
    if (edge.stage >= pattern->n_stages)
        pattern->n_stages = edge.stage + 1;
}

/* A ring over the devices; like: what its edges have in common. */
static void add_ring(struct adl_pattern *pattern, const int *devices, int n, struct adl_edge like)
{
    for (int i = 0; i < n && n > 1; i++) {
        like.from = devices[i];
        like.to = devices[(i + 1) % n];
        add(pattern, like);
    }
}

/* Where each node's share of the group begins; begins[*n_nodes] = n. */
static int *find_nodes(const struct adl_layout *layout, const int *devices, int n, int *n_nodes,
                       int *smallest)
{
    int *begins = malloc(((size_t)n + 1) * sizeof *begins);
    if (!begins)
        return NULL;
    int nodes = 0;
    for (int i = 0; i < n; i++)
        if (i == 0 ||
            devices[i] / layout->devices_per_node != devices[i - 1] / layout->devices_per_node)
            begins[nodes++] = i;
    begins[nodes] = n;
    *smallest = n;
    for (int k = 0; k < nodes; k++)
        if (begins[k + 1] - begins[k] < *smallest)
            *smallest = begins[k + 1] - begins[k];
    *n_nodes = nodes;
    return begins;
}

/* A ring in each node, `passes` of its n - 1 rounds: 2 all-reduce, 1 reduce-scatter. */
static void add_inside(struct adl_pattern *pattern, const int *devices, const int *begins,
                       int n_nodes, int phase, int passes)
{
    for (int k = 0; k < n_nodes; k++) {
        int n = begins[k + 1] - begins[k];
        add_ring(pattern, devices + begins[k], n,
                 (struct adl_edge){.phase = phase,
                                   .volume = passes * (n - 1.0) / n,
                                   .rounds = passes * (n - 1.0)});
    }
}

/* One ring for each of the first `rings` devices of the nodes, each reducing 1/rings. */
static void add_between(struct adl_pattern *pattern, const int *devices, const int *begins,
                        int n_nodes, int rings, int phase, int stage)
{
    for (int r = 0; r < rings; r++)
        for (int k = 0; k < n_nodes; k++)
            add(pattern, (struct adl_edge){.from = devices[begins[k] + r],
                                           .to = devices[begins[(k + 1) % n_nodes] + r],
                                           .phase = phase,
                                           .stage = stage,
                                           .volume = 2 * (n_nodes - 1.0) / n_nodes / rings,
                                           .rounds = 2 * (n_nodes - 1.0)});
}

static enum adl_status two_level(enum adl_collective collective, const struct adl_layout *layout,
                                 const int *devices, int n, struct adl_pattern *out,
                                 struct adl_err *err)
{
    int n_nodes, rings;
    int *begins = find_nodes(layout, devices, n, &n_nodes, &rings);
    if (!begins)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a group of %d devices", n);
    enum adl_status status = reserve(out, 2 * n + n_nodes * rings, err);
    if (status == ADL_OK && collective == ADL_COLL_MULTI_RING) {
        add_inside(out, devices, begins, n_nodes, 0, 2);
        add_between(out, devices, begins, n_nodes, rings, 0, 1);
    } else if (status == ADL_OK) {
        add_inside(out, devices, begins, n_nodes, 0, 1);
        add_between(out, devices, begins, n_nodes, rings, 1, 0);
        add_inside(out, devices, begins, n_nodes, 2, 1);
    }
    free(begins);
    return status;
}

enum adl_status adl_pattern_allreduce(enum adl_collective collective,
                                      const struct adl_layout *layout, const int *devices, int n,
                                      struct adl_pattern *out, struct adl_err *err)
{
    collective = adl_collective_resolve(collective, layout, devices, n);
    if (collective != ADL_COLL_RING)
        return two_level(collective, layout, devices, n, out, err);
    ADL_TRY(reserve(out, n, err));
    add_ring(out, devices, n,
             (struct adl_edge){.volume = 2 * (n - 1.0) / n, .rounds = 2 * (n - 1.0)});
    return ADL_OK;
}

enum adl_status adl_pattern_chain(const int *devices, int n, struct adl_pattern *out,
                                  struct adl_err *err)
{
    ADL_TRY(reserve(out, n - 1, err));
    for (int i = 0; i + 1 < n; i++)
        add(out,
            (struct adl_edge){
                .from = devices[i], .to = devices[i + 1], .stage = i, .volume = 1, .rounds = 1});
    return ADL_OK;
}
