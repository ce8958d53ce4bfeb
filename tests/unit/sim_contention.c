/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that meet on a link, and collectives that do not. */
#include "tests/unit/sim_world.h"

#include <unistd.h>

/* Node 0 and 1 of the Ethernet cluster: trainer A on their first devices, B on their second. Both
 * use the nodes' only interfaces, each direction once. */
static void on_shared_interface(double a_steps, double *a_s, double *b_s)
{
    struct world w = {.options = {.overhead_s = 1, .half_samples = NAN}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct script a = {.world = &w, .rounds = 1, .bytes = 1e9}, b = a;
    a.work = (struct adl_work){.steps = a_steps, .micro_batches = 1};
    world_run_two(&w, world_task(&a, 0, 0, 8, 2), world_task(&b, 1, 1, 8, 2));
    *a_s = a.end_s[0];
    *b_s = b.end_s[0];
    world_close(&w, NULL);
}

Test(sim_contention, two_trainers_halve_an_interface)
{
    double a_s, b_s;
    on_shared_interface(0, &a_s, &b_s);
    near(a_s, 2 * 100e-6 + 1e9 / (1.25e9 / 2), 1e-6, "first");
    near(b_s, a_s, 1e-6, "second");
}

/* B starts alone; A joins after 0.5 s of computing, when B has 0.3 s left alone: 0.6 s shared. */
Test(sim_contention, a_late_trainer_slows_the_rest)
{
    double a_s, b_s;
    on_shared_interface(0.5, &a_s, &b_s);
    near(b_s, 0.5 + 2 * 0.3, 1e-3, "early");
    near(a_s, 0.5 + 2 * 0.3 + 0.5, 1e-3, "late");
}

/* The same groups one node apart share nothing. */
Test(sim_contention, trainers_apart_do_not_meet)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct script a = {.world = &w, .rounds = 1, .bytes = 1e9}, b = a;
    world_run_two(&w, world_task(&a, 0, 0, 8, 2), world_task(&b, 1, 16, 8, 2));
    near(a.end_s[0], 2 * 100e-6 + 1e9 / 1.25e9, 1e-9, "first");
    near(b.end_s[0], a.end_s[0], 1e-12, "second");
    /* and meet in the next epoch */
    double start_s = adl_transport_sim.now_s(w.t);
    world_run_two(&w, world_task(&a, 0, 0, 8, 2), world_task(&b, 1, 1, 8, 2));
    near(a.end_s[0] - start_s, 2 * 100e-6 + 2 * 1e9 / 1.25e9, 1e-6, "next epoch");
    world_close(&w, NULL);
}

/* Two pairs of trainers, each pair on two nodes of its own: components that differ only in whose
 * edges they hold are all simulated. */
Test(sim_contention, two_pairs)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct script s[4];
    struct adl_task *tasks[4];
    for (int k = 0; k < 4; k++) {
        s[k] = (struct script){.world = &w, .rounds = 1, .bytes = 1e9};
        tasks[k] = world_task(&s[k], k, 16 * (k / 2) + k % 2, 8, 2);
    }
    cr_assert(adl_transport_sim.run(w.t, tasks, 4, world_body, NULL, &w.err) == ADL_OK);
    for (int k = 0; k < 4; k++) {
        near(s[k].end_s[0], 2 * 100e-6 + 2 * 1e9 / 1.25e9, 1e-6, "each");
        world_task_free(tasks[k]);
    }
    world_close(&w, NULL);
}

/* A's ring over four nodes meets B on two of them and C on the others: of 1.5 and 1 GB sharing an
 * interface the smaller takes twice as long as alone, the larger ends after all 2.5 GB. */
Test(sim_contention, three_trainers)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct script s[3] = {{.world = &w, .rounds = 1, .bytes = 1e9}};
    s[1] = s[2] = s[0];
    struct adl_task *tasks[] = {world_task(&s[0], 0, 0, 8, 4), world_task(&s[1], 1, 1, 8, 2),
                                world_task(&s[2], 2, 17, 8, 2)};
    cr_assert(adl_transport_sim.run(w.t, tasks, 3, world_body, NULL, &w.err) == ADL_OK);
    near(s[0].end_s[0], 6 * 100e-6 + 2.5e9 / 1.25e9, 1e-6, "four nodes");
    near(s[1].end_s[0], 2 * 100e-6 + 2e9 / 1.25e9, 1e-6, "two nodes");
    near(s[2].end_s[0], s[1].end_s[0], 1e-6, "the other two");
    for (int k = 0; k < 3; k++)
        world_task_free(tasks[k]);
    world_close(&w, NULL);
}

/* Two nodes whose devices have one link for both stages of a multi-ring: 1 GB inside and 0.5 GB
 * between the nodes, side by side. Flows of unequal size have no formula. */
Test(sim_contention, stages_share_a_link)
{
    struct world w = {.settings.collective = ADL_COLL_MULTI_RING, .options = {AS_PLATFORM}};
    snprintf(w.path, sizeof w.path, "/tmp/adl-stages-%d.xml", getpid());
    FILE *out = fopen(w.path, "w");
    fputs("<?xml version=\"1.0\"?>\n"
          "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
          "<prop id=\"nics\" value=\"2\"/>"
          "<cluster id=\"a\" prefix=\"g\" suffix=\"\" radical=\"0-1\" speed=\"1Gf\" bw=\"1GBps\""
          " lat=\"1us\" router_id=\"ra\"/>"
          "<cluster id=\"b\" prefix=\"g\" suffix=\"\" radical=\"2-3\" speed=\"1Gf\" bw=\"1GBps\""
          " lat=\"1us\" router_id=\"rb\"/>"
          "<link id=\"l\" bandwidth=\"1000GBps\" latency=\"2us\" sharing_policy=\"SPLITDUPLEX\"/>"
          "<zoneRoute src=\"a\" dst=\"b\" gw_src=\"ra\" gw_dst=\"rb\">"
          "<link_ctn id=\"l\" direction=\"UP\"/></zoneRoute></zone></platform>\n",
          out);
    fclose(out);
    world_open(&w, NULL, 4, 1);
    remove(w.path);
    struct script s = {.rounds = 1, .bytes = 1e9};
    world_run_one(&w, &s);
    near(s.end_s[0], 1.5 + 2 * 2e-6 + 2 * 4e-6, 1e-5, "both");
    world_close(&w, NULL);
}

/* Both trainers on every device: every link is shared by both, so each takes twice as long. Of
 * the equal components (8 rails, 8 nodes) few are simulated, all count. */
Test(sim_contention, multi_instance_shares_every_link)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64", 128, 2);
    struct script a = {.world = &w, .rounds = 3, .bytes = 1e9}, b = a;
    world_run_two(&w, world_task(&a, 0, 0, 2, 64), world_task(&b, 1, 1, 2, 64));
    double alone_s = 2 * 7.0 / 8 * 1e9 / 8 / 50e9, latency_s = 14e-6 + 14 * 4e-6;
    near(a.end_s[0], 2 * alone_s + latency_s, 1e-6, "first");
    near(b.end_s[0], a.end_s[0], 1e-6, "second");
    world_close(&w, NULL);
}

/* Nodes of unequal shares: the ring of 3 is slower than that of 2, and no formula of equal flows
 * covers both; r = 2 rings between the nodes. */
Test(sim_contention, unequal_nodes)
{
    struct world w = {.settings.collective = ADL_COLL_HIERARCHICAL, .options = {AS_PLATFORM}};
    world_open(&w, "h100-64", 64, 1);
    struct script s = {.world = &w, .rounds = 1, .bytes = 1e9};
    struct adl_task *task = world_task(&s, 0, 5, 1, 5); /* devices 5, 6, 7 and 8, 9 */
    cr_assert(adl_transport_sim.run(w.t, &task, 1, world_body, NULL, &w.err) == ADL_OK);
    double inside_s = 2 * (2.0 / 3 * 1e9 / 450e9 + 2 * 1e-6);
    near(s.end_s[0], inside_s + 1e9 / 2 / 50e9 + 2 * 4e-6, 1e-9, "phases");
    world_task_free(task);
    world_close(&w, NULL);
}
