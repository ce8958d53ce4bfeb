/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/pattern.h"

#include <stdlib.h>

void adl_pattern_free(struct adl_pattern *pattern)
{
    free(pattern->edges);
    *pattern = (struct adl_pattern){0};
}

static void measure(const struct adl_coll_edge *edge, void *arg)
{
    (void)edge;
    ++*(int *)arg;
}

static void add(const struct adl_coll_edge *edge, void *arg)
{
    struct adl_pattern *pattern = arg;
    pattern->edges[pattern->n++] = *edge;
    if (edge->phase >= pattern->n_phases)
        pattern->n_phases = edge->phase + 1;
    if (edge->stage >= pattern->n_stages)
        pattern->n_stages = edge->stage + 1;
}

static enum adl_status reserve(struct adl_pattern *pattern, int cap, struct adl_err *err)
{
    *pattern = (struct adl_pattern){.cap = cap};
    if (cap <= 0)
        return ADL_OK;
    pattern->edges = malloc((size_t)cap * sizeof *pattern->edges);
    return pattern->edges ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for %d edges", cap);
}

enum adl_status adl_pattern_allreduce(enum adl_collective collective,
                                      const struct adl_layout *layout, const int *devices, int n,
                                      struct adl_pattern *out, struct adl_err *err)
{
    int n_edges = 0;
    adl_collective_edges(collective, layout, devices, n, measure, &n_edges);
    ADL_TRY(reserve(out, n_edges, err));
    adl_collective_edges(collective, layout, devices, n, add, out);
    return ADL_OK;
}

enum adl_status adl_pattern_chain(const int *devices, int n, struct adl_pattern *out,
                                  struct adl_err *err)
{
    ADL_TRY(reserve(out, n - 1, err));
    for (int i = 0; i + 1 < n; i++)
        add(
            &(struct adl_coll_edge){
                .from = devices[i], .to = devices[i + 1], .stage = i, .volume = 1, .rounds = 1},
            out);
    return ADL_OK;
}

enum adl_status adl_pattern_shard(struct adl_pattern *pattern, int gpus, struct adl_err *err)
{
    if (gpus <= 1)
        return ADL_OK;
    struct adl_pattern sharded;
    ADL_TRY(reserve(&sharded, pattern->n * gpus, err));
    for (int k = 0; k < pattern->n; k++)
        for (int i = 0; i < gpus; i++) {
            struct adl_coll_edge edge = pattern->edges[k];
            edge.from = edge.from * gpus + i;
            edge.to = edge.to * gpus + i;
            edge.volume /= gpus;
            add(&edge, &sharded);
        }
    adl_pattern_free(pattern);
    *pattern = sharded;
    return ADL_OK;
}
