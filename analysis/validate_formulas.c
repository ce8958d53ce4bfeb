/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "analysis/validate.h"
#include "core/collective.h"

enum { BUCKETS = 128 };
static const double backward = 2.0 / 3.0; /* of a step */

static double volume_bits(const struct adl_streaming *s)
{
    return 2.0 * (1.0 - 1.0 / s->sites) * s->params * s->bits;
}

static double streaming_bandwidth(const struct adl_streaming *s, double utilization)
{
    const double stall_s = s->inner_steps * s->step_s * (1.0 / utilization - 1.0);
    return volume_bits(s) / (stall_s + backward * s->step_s * (1.0 - 1.0 / BUCKETS));
}

/* The step that synchronizes, bucket by bucket. The queue is empty when it starts, because compute
 * waited for the last one. */
static double streaming_queue(const struct adl_streaming *s, double bit_per_s)
{
    const double send_s = volume_bits(s) / BUCKETS / bit_per_s;
    double free_s = 0.0;
    for (int i = 1; i <= BUCKETS; i++) {
        const double released_s = s->step_s * (1.0 - backward + backward * i / BUCKETS);
        free_s = fmax(free_s, released_s) + send_s;
    }
    const double late_s = fmax(0.0, free_s - s->step_s), compute_s = s->inner_steps * s->step_s;
    return compute_s / (compute_s + late_s);
}

/* In the terms of theory section 3, T(N) = C (H t0 + T_coll) + (N/M) t1 with rings of R/M chips in
 * every inner step and rings of R at every outer one; a chip's share of the vector goes with it. */
static double outer_s(const struct adl_scaling_law *law)
{
    const double ring_s = adl_cost_ring(law->chips, law->params, 0.0, 1.0 / law->outer_rate).time_s;
    return law->steps / law->inner_steps * (ring_s + law->outer_s);
}

static double wall_clock_s(const struct adl_scaling_law *law)
{
    const double inside = law->chips / law->replicas;
    const double ring_s = adl_cost_ring(inside, law->params, 0.0, 1.0 / law->inner_rate).time_s;
    const double compute_s = 6.0 * law->params * law->tokens / (law->chips * law->flops);
    return compute_s + law->steps * (ring_s + law->inner_s) + outer_s(law);
}

static double ring_s(double P, double S, double a, double b)
{
    return adl_cost_ring(P, S, a, b).time_s;
}

static double multi_ring_s(double G, double n, double S, double a1, double b1, double a2, double b2)
{
    return adl_cost_multi_ring(G, n, S, a1, b1, a2, b2).time_s;
}

static double utilization(double compute_s, double sync_s)
{
    return compute_s / (compute_s + sync_s);
}

const struct adl_formulas adl_formulas = {
    .streaming_bandwidth = streaming_bandwidth,
    .streaming_queue = streaming_queue,
    .wall_clock_s = wall_clock_s,
    .outer_s = outer_s,
    .ring_s = ring_s,
    .multi_ring_s = multi_ring_s,
    .utilization = utilization,
};
