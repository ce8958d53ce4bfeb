/* SPDX-License-Identifier: Apache-2.0 */
/* Times of collectives on shipped platforms against closed forms and published figures. */
#include "tests/unit/sim_world.h"

#include "core/collective.h"

/* Time of the first all-reduce on a fresh simulation of all devices. */
static double allreduce_s(const char *platform, int workers, enum adl_collective collective,
                          double bytes)
{
    struct world w = {.settings.collective = collective, .options = {AS_PLATFORM}};
    world_open(&w, platform, workers, 1);
    struct script s = {.rounds = 2, .bytes = bytes};
    world_run_one(&w, &s);
    near(s.end_s[1], 2 * s.end_s[0], 1e-12, "the second all-reduce takes as long as the first");
    near(s.total, workers * (workers - 1) / 2.0, 0, "sum");
    world_close(&w, NULL);
    return s.end_s[0];
}

Test(sim_collectives, two_hosts)
{
    near(allreduce_s("two_hosts", 2, ADL_COLL_AUTO, 1e8), 2 * 100e-6 + 1e8 / 1e9, 1e-9, "by hand");
}

Test(sim_collectives, one_nvswitch_node)
{
    near(allreduce_s("nvswitch-8", 8, ADL_COLL_AUTO, 1e9), 14 * 1e-6 + 14.0 / 8 * 1e9 / 450e9, 1e-9,
         "by hand");
}

Test(sim_collectives, nothing_to_send_costs_latency)
{
    near(allreduce_s("nvswitch-8", 8, ADL_COLL_RING, 0), 14 * 1e-6, 1e-9, "ring");
}

/* `auto` by size: lg 8 exchanges of all, or of halves there and back. */
Test(sim_collectives, tiny_payloads_double)
{
    near(allreduce_s("nvswitch-8", 8, ADL_COLL_AUTO, 16384),
         adl_cost_recursive_doubling(8, 16384, 1e-6, 1 / 450e9).time_s, 1e-9, "16 KiB");
}

Test(sim_collectives, short_payloads_halve)
{
    near(allreduce_s("nvswitch-8", 8, ADL_COLL_AUTO, 65536),
         adl_cost_rabenseifner(8, 65536, 1e-6, 1 / 450e9).time_s, 1e-9, "64 KiB");
}

Test(sim_collectives, multi_ring)
{
    near(allreduce_s("h100-64", 64, ADL_COLL_AUTO, 1e9),
         adl_cost_multi_ring(8, 8, 1e9, 1e-6, 1 / 450e9, 4e-6, 1 / 50e9).time_s, 1e-9,
         "closed form");
}

Test(sim_collectives, hierarchical)
{
    near(allreduce_s("h100-64", 64, ADL_COLL_HIERARCHICAL, 1e9),
         adl_cost_hierarchical(8, 8, 1e9, 1e-6, 1 / 450e9, 4e-6, 1 / 50e9).time_s, 1e-9,
         "closed form");
}

/* All 8 rings between nodes share one interface: each gets an eighth. */
Test(sim_collectives, hierarchical_on_a_shared_interface)
{
    near(allreduce_s("h100-64-eth", 64, ADL_COLL_AUTO, 1e9),
         adl_cost_hierarchical(8, 8, 1e9, 1e-6, 1 / 450e9, 100e-6, 8 / 1.25e9).time_s, 1e-9,
         "closed form");
}

/* One ring over 64 devices crosses each interface once. Every step waits for the slowest edge. */
Test(sim_collectives, ring_on_ethernet)
{
    near(allreduce_s("h100-64-eth", 64, ADL_COLL_RING, 1e9),
         adl_cost_ring(64, 1e9, 100e-6, 1 / 1.25e9).time_s, 1e-9, "closed form");
}

Test(sim_collectives, ring_over_two_data_centers)
{
    near(allreduce_s("two-dc", 64, ADL_COLL_RING, 1e9),
         adl_cost_ring(64, 1e9, 20e-3 + 4e-6, 1 / 1.25e9).time_s, 1e-9, "closed form");
}

/* NCCL 2.27.5 all-reduce on 2 nodes of 8 H200 with RoCE, published sample logs: bus bandwidth,
 * 2 (P - 1) / P bytes / time. */
static void published(double bytes, double bus_bandwidth)
{
    double time_s = allreduce_s("h200-16", 16, ADL_COLL_AUTO, bytes);
    near(2 * 15.0 / 16 * bytes / time_s, bus_bandwidth, 0.10, "published bus bandwidth");
}

Test(sim_collectives, published_1_gib)
{
    published(0x1p30, 457.9e9);
}

Test(sim_collectives, published_4_gib)
{
    published(0x1p32, 480.6e9);
}

Test(sim_collectives, published_16_gib)
{
    published(0x1p34, 486.5e9);
}

/* Theta from device 0 along a chain over nodes and devices: the slowest edge, and all latencies. */
Test(sim_collectives, move_along_a_chain)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64", 64, 1);
    struct script s = {.rounds = 1, .bytes = 0};
    world_run_one(&w, &s);
    double from[2] = {3, 4}, into[2] = {0, 0};
    int to[] = {1, 9, 10};
    struct adl_move move = {.src = 0,
                            .dst = to,
                            .n_dst = 3,
                            .data = from,
                            .into = into,
                            .bytes = sizeof from,
                            .charged_bytes = 1e9};
    cr_assert(adl_transport_sim.move(w.t, &move, 1, &w.err) == ADL_OK);
    cr_assert(into[0] == 3 && into[1] == 4);
    near(adl_transport_sim.now_s(w.t) - s.end_s[0], 1e9 / 50e9 + 1e-6 + 4e-6 + 1e-6, 1e-9, "move");
    double before_s = adl_transport_sim.now_s(w.t), rows[2] = {1, 2};
    int leaders[] = {0, 8};
    cr_assert(adl_transport_sim.gather(w.t, rows, 2, 1, leaders, 1e6, &w.err) == ADL_OK);
    near(adl_transport_sim.now_s(w.t) - before_s, 1e6 / 50e9 + 2 * 4e-6, 1e-9, "gather");
    world_close(&w, NULL);
}
