/* SPDX-License-Identifier: Apache-2.0 */
/* Closed-form times of collectives. */
#include <math.h>

#include "core/collective.h"

struct adl_coll_cost adl_cost_ring(double P, double S, double a, double b)
{
    return (struct adl_coll_cost){2 * (P - 1) * a + 2 * (P - 1) / P * S * b, 2 * P * (P - 1),
                                  2 * (P - 1) * S};
}

/* What the ranks beyond the largest power of two add: their vector to a neighbour, and back. */
static struct adl_coll_cost with_extra(struct adl_coll_cost core, double extra, double S, double a,
                                       double b)
{
    if (extra > 0)
        core.time_s += 2 * (a + S * b);
    core.messages += 2 * extra;
    core.bytes += 2 * extra * S;
    return core;
}

struct adl_coll_cost adl_cost_recursive_doubling(double P, double S, double a, double b)
{
    double k = floor(log2(P)), power = exp2(k);
    return with_extra((struct adl_coll_cost){k * (a + S * b), power * k, power * k * S}, P - power,
                      S, a, b);
}

struct adl_coll_cost adl_cost_rabenseifner(double P, double S, double a, double b)
{
    double k = floor(log2(P)), power = exp2(k);
    return with_extra((struct adl_coll_cost){2 * k * a + 2 * (power - 1) / power * S * b,
                                             2 * power * k, 2 * (power - 1) * S},
                      P - power, S, a, b);
}

struct adl_coll_cost adl_cost_tree(double P, double S, double a, double b)
{
    double steps = 2 * ceil(log2(P));
    return (struct adl_coll_cost){steps * (a + S * b), 2 * (P - 1), 2 * (P - 1) * S};
}

struct adl_coll_cost adl_cost_star(double P, double S, double a, double b)
{
    return (struct adl_coll_cost){2 * (P - 1) * (a + S * b), 2 * (P - 1), 2 * (P - 1) * S};
}

static struct adl_coll_cost two_level(double G, double n, double S, double inside_s,
                                      double between_s, double latency_s, bool pipelined)
{
    double stages_s = pipelined ? fmax(inside_s, between_s) : inside_s + between_s;
    return (struct adl_coll_cost){stages_s + latency_s, G * 2 * n * (n - 1) + n * 2 * G * (G - 1),
                                  2 * G * (n - 1) * S + 2 * (G - 1) * S};
}

struct adl_coll_cost adl_cost_hierarchical(double G, double n, double S, double a1, double b1,
                                           double a2, double b2)
{
    return two_level(G, n, S, 2 * (n - 1) / n * S * b1, 2 * (G - 1) / G * (S / n) * b2,
                     2 * (n - 1) * a1 + 2 * (G - 1) * a2, false);
}

struct adl_coll_cost adl_cost_multi_ring(double G, double n, double S, double a1, double b1,
                                         double a2, double b2)
{
    return two_level(G, n, S, 2 * (n - 1) / n * S * b1, 2 * (G - 1) / G * (S / n) * b2,
                     2 * (n - 1) * a1 + 2 * (G - 1) * a2, true);
}
