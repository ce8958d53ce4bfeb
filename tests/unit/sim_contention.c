/* SPDX-License-Identifier: Apache-2.0 */
/* Trainers that meet on a link, and collectives that do not. */
#include "tests/unit/sim_world.h"

#include "sim/fidelity.h"
#include "sim/network.h"

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

/* Flows of one trainer that share links: by the formula if they are equal, else by simulation,
 * since long ones may be held up on one link while another, which they need later, idles. */
Test(sim_contention, unequal_flows_are_simulated)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    char path[64];
    snprintf(path, sizeof path, "/tmp/adl-unequal-%d.xml", getpid());
    FILE *out = fopen(path, "w");
    fputs(
        "<?xml version=\"1.0\"?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\"><prop id=\"nics\" value=\"1\"/>"
        "<prop id=\"node\" value=\"n\"/>",
        out);
    for (int h = 0; h < 4; h++)
        fprintf(out, "<host id=\"g%d\" speed=\"1Gf\"/>", h);
    for (char l = 'a'; l <= 'c'; l++)
        fprintf(out, "<link id=\"%c\" bandwidth=\"1GBps\" latency=\"1us\"/>", l);
    static const char *const routes[4][4] = {
        {0, "a", "ab", "a"}, {0, 0, "c", "a"}, {0, 0, 0, "bc"}, {0}};
    for (int i = 0; i < 4; i++)
        for (int k = i + 1; k < 4; k++) {
            fprintf(out, "<route src=\"g%d\" dst=\"g%d\">", i, k);
            for (const char *l = routes[i][k]; *l; l++)
                fprintf(out, "<link_ctn id=\"%c\"/>", *l);
            fputs("</route>", out);
        }
    fputs("</zone></platform>\n", out);
    fclose(out);
    struct adl_sim_platform platform;
    struct adl_err err = {0};
    cr_assert(adl_sim_platform_open(adl_engine(), path, &platform, &err) == ADL_OK, "%s",
              err.message);
    remove(path);
    struct adl_coll_edge edges[] = {{.from = 0, .to = 2, .volume = 1, .rounds = 1},
                                    {.from = 2, .to = 3, .volume = 1, .rounds = 1},
                                    {.from = 0, .to = 1, .volume = 0.25, .rounds = 1},
                                    {.from = 1, .to = 2, .volume = 0.25, .rounds = 1}};
    struct adl_pattern pattern = {.edges = edges, .n = 4, .n_phases = 1, .n_stages = 1};
    for (int equal = 0; equal < 2; equal++) {
        struct adl_course *course;
        edges[2].volume = edges[3].volume = equal ? 1 : 0.25;
        cr_assert(adl_network_solve(adl_engine(), &platform, &pattern, 1, NULL, false, &course,
                                    &err) == ADL_OK);
        cr_assert_eq(course->phases[0].n_streams, equal ? 0 : 4);
        near(course->phases[0].s_per_byte, equal ? 2e-9 : 0, 1e-12, "the fullest link");
        adl_courses_free(course, 1);
    }
    adl_sim_platform_free(&platform);
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

/* ---- links that change ---- */

/* When two hosts have exchanged 0.1 s worth of bytes. */
static double exchange_s(struct adl_sim_options options)
{
    struct world w = {.settings.collective = ADL_COLL_RING, .options = options};
    world_open(&w, "two_hosts", 2, 1);
    struct script s = {.rounds = 1, .bytes = 1e8};
    world_run_one(&w, &s);
    world_close(&w, NULL);
    return s.end_s[0];
}

/* Half of the wire from 50 to 140 ms: 50 MB before, 45 MB in between, and, as a flow gets faster
 * with its links, 5 MB in 5 ms after. */
Test(sim_contention, background_comes_and_goes)
{
    struct adl_sim_options options = {
        AS_PLATFORM,
        .background = "[{from: host0, to: host1, bandwidth: 0.5GB/s, start: 50ms, end: 140ms}]"};
    near(exchange_s(options), 0.145 + 2 * 100e-6, 1e-6, "by hand");
}

Test(sim_contention, background_as_a_share)
{
    struct adl_sim_options options = {AS_PLATFORM,
                                      .background = "[{from: host1, to: host0, share: 0.75}]"};
    near(exchange_s(options), 0.4 + 2 * 100e-6, 1e-6, "a quarter is left");
}

/* It comes when all is over: the same as without, though the link is simulated. */
Test(sim_contention, background_after_the_end)
{
    struct adl_sim_options options = {
        AS_PLATFORM, .background = "[{from: host0, to: host1, share: 0.5, start: 1s}]"};
    near(exchange_s(options), 0.1 + 2 * 100e-6, 1e-9, "alone");
}

/* Two at once leave a quarter. */
Test(sim_contention, backgrounds_add_up)
{
    struct adl_sim_options options = {
        AS_PLATFORM, .background = "[{from: host0, to: host1, share: 0.5}, "
                                   "{from: host0, to: host1, bandwidth: 250MB/s}]"};
    near(exchange_s(options), 0.4 + 2 * 100e-6, 1e-6, "a quarter is left");
}

/* One rail of eight equal ones is half taken: it is simulated for itself. */
Test(sim_contention, background_on_one_of_equal_components)
{
    struct world w = {
        .settings.collective = ADL_COLL_MULTI_RING,
        .options = {AS_PLATFORM, .background = "[{from: gpu1, to: gpu9, share: 0.5}]"}};
    world_open(&w, "h100-64", 128, 2);
    struct script a = {.world = &w, .rounds = 1, .bytes = 1e9}, b = a;
    world_run_two(&w, world_task(&a, 0, 0, 2, 64), world_task(&b, 1, 1, 2, 64));
    double alone_s = 2 * 7.0 / 8 * 1e9 / 8 / 50e9, latency_s = 14e-6 + 14 * 4e-6;
    near(a.end_s[0], 4 * alone_s + latency_s, 1e-6, "two on half of an interface");
    world_close(&w, NULL);
}

static const char *profile_file(const char *text)
{
    static char path[64];
    snprintf(path, sizeof path, "/tmp/adl-profile-%d.txt", getpid());
    FILE *out = fopen(path, "w");
    fputs(text, out);
    fclose(out);
    return path;
}

/* Half speed up to 50 ms moves 25 MB, full speed the other 75 MB. */
Test(sim_contention, profile)
{
    struct adl_sim_options options = {
        AS_PLATFORM,
        .link_profile = profile_file("# time link factor\n0 wire 0.5\n50ms wi* 1 # both ways\n")};
    near(exchange_s(options), 0.05 + 0.075 + 2 * 100e-6, 1e-6, "by hand");
    remove(options.link_profile);
}

/* Message by message, 50 MB each: the first at half speed for 50 ms, then at full speed for the
 * other 25 MB; the second at full speed. */
Test(sim_contention, background_in_messages)
{
    struct adl_sim_options options = {
        AS_PLATFORM, .fidelity = ADL_FIDELITY_MESSAGE, .message_devices = 2,
        .background = "[{from: host0, to: host1, share: 0.5, end: 50ms}]"};
    near(exchange_s(options), 0.0751 + 0.0501, 1e-6, "by hand");
}

static void refused(struct adl_sim_options options, const char *because)
{
    struct world w = {.settings.collective = ADL_COLL_RING, .options = options};
    world_platform(&w, "two_hosts");
    w.settings.cluster.workers = 2;
    w.settings.cluster.workers_per_device = 1;
    w.settings.cluster.devices_per_node = w.settings.cluster.nodes_per_site = 1;
    w.settings.cluster.nics_per_node = 1;
    cr_assert(world_try(&w) == ADL_ERR_INPUT);
    cr_assert(strstr(w.err.message, because) != NULL, "%s", w.err.message);
    if (options.link_profile)
        remove(options.link_profile);
}

#define REFUSED_BACKGROUND(name, text, because)                                                    \
    Test(sim_contention, name)                                                                     \
    {                                                                                              \
        refused((struct adl_sim_options){AS_PLATFORM, .background = text}, because);               \
    }
#define REFUSED_PROFILE(name, text, because)                                                       \
    Test(sim_contention, name)                                                                     \
    {                                                                                              \
        refused((struct adl_sim_options){AS_PLATFORM, .link_profile = profile_file(text)},         \
                because);                                                                          \
    }

REFUSED_BACKGROUND(no_such_host, "[{from: host7, to: host1, share: 0.5}]",
                   "sim.background: entry 1: 'host7' is not a host of the platform")
REFUSED_BACKGROUND(neither_rate_nor_share, "[{from: host0, to: host1}]",
                   "entry 1: needs either bandwidth or share")
REFUSED_BACKGROUND(all_of_a_link,
                   "[{from: host0, to: host1, share: 0.6}, "
                   "{from: host0, to: host1, share: 0.4, start: 3s}]",
                   "traffic takes all of link 'wire_UP' at 3 s")
REFUSED_BACKGROUND(ends_before_it_starts,
                   "[{from: host0, to: host1, share: 0.5, start: 2s, end: 1s}]",
                   "end 1 s is not after start 2 s")
REFUSED_PROFILE(no_factor, "0 wire\n", ":1: '0 wire' is not 'time link factor'")
REFUSED_PROFILE(factor_above_one, "\n0 wire 1.5\n", ":2: '0 wire 1.5' is not 'time link factor'")
REFUSED_PROFILE(no_such_link, "0 fire 0.5\n", ":1: no link of the platform is called 'fire'")

Test(sim_contention, no_such_profile)
{
    refused((struct adl_sim_options){AS_PLATFORM, .link_profile = "/nowhere/profile.txt"},
            "sim.profile: /nowhere/profile.txt: No such file");
}

/* ---- what goes on while a task computes ---- */

struct overlap {
    struct world *world;
    double compute_s, end_s;
};

/* Starts a sum, computes, waits for the sum. */
static enum adl_status overlap_body(struct adl_task *task, void *arg)
{
    (void)arg;
    struct overlap *o = task->user;
    struct adl_transport *t = o->world->t;
    static double value;
    static const void *in[WORLD_MAX];
    static struct adl_work work[WORLD_MAX];
    double sum;
    for (int i = 0; i < task->n_local; i++) {
        in[i] = &value;
        work[i] = (struct adl_work){.steps = o->compute_s, .micro_batches = 1};
    }
    struct adl_reduction r = {.in = in,
                              .out = &sum,
                              .count = 1,
                              .dtype = ADL_F64,
                              .charged_bytes = 1e9,
                              .cause = ADL_CAUSE_OUTER};
    struct adl_pending *pending;
    ADL_TRY(adl_transport_sim.allreduce_start(t, task, &r, &pending));
    ADL_TRY(adl_transport_sim.for_each(t, task, world_nothing, NULL, work, NULL));
    ADL_TRY(adl_transport_sim.allreduce_wait(t, task, pending));
    o->end_s = adl_transport_sim.now_s(t);
    return ADL_OK;
}

/* Two hierarchical sums of two phases and more, on shared interfaces: 10 s of computing hide all of
 * them, in every fidelity. */
static void all_phases_overlap(enum adl_fidelity fidelity)
{
    struct world w = {
        .settings.collective = ADL_COLL_HIERARCHICAL,
        .options = {
            .overhead_s = 1, .half_samples = NAN, .fidelity = fidelity, .message_devices = 64}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct overlap a = {.world = &w, .compute_s = 10}, b = a;
    struct adl_task *tasks[] = {world_task(NULL, 0, 0, 1, 16), world_task(NULL, 1, 0, 1, 16)};
    tasks[0]->user = &a;
    tasks[1]->user = &b;
    for (int i = 0; i < 16; i++) {
        ((int *)tasks[0]->workers)[i] = i / 4 * 8 + i % 4;
        ((int *)tasks[1]->workers)[i] = i / 4 * 8 + i % 4 + 4;
    }
    cr_assert(adl_transport_sim.run(w.t, tasks, 2, overlap_body, NULL, &w.err) == ADL_OK, "%s",
              w.err.message);
    near(a.end_s, 10, 1e-9, "first");
    near(b.end_s, 10, 1e-9, "second");
    world_task_free(tasks[0]);
    world_task_free(tasks[1]);
    world_close(&w, NULL);
}

Test(sim_contention, all_phases_overlap_in_flow)
{
    all_phases_overlap(ADL_FIDELITY_FLOW);
}

Test(sim_contention, all_phases_overlap_in_messages)
{
    all_phases_overlap(ADL_FIDELITY_MESSAGE);
}

static enum adl_status leave_early(struct adl_task *task, void *arg)
{
    struct script *s = task->user;
    if (s->rounds > 0)
        return world_body(task, arg);
    static double value;
    static const void *in[] = {&value, &value};
    static double sum;
    struct adl_reduction r = {.in = in,
                              .out = &sum,
                              .count = 1,
                              .dtype = ADL_F64,
                              .charged_bytes = 1e9,
                              .cause = ADL_CAUSE_OUTER};
    struct adl_pending *pending;
    ADL_TRY(adl_transport_sim.allreduce_start(s->world->t, task, &r, &pending));
    adl_engine()->sleep(1e-3); /* the other one has started, too */
    return adl_fail(&task->err, ADL_ERR_RUNTIME, "leaves early");
}

/* What tasks had started when they failed is over before the next run: its sums take as long as
 * ever, in every fidelity. */
static void nothing_is_left_behind(enum adl_fidelity fidelity)
{
    struct world w = {
        .options = {
            .overhead_s = 1, .half_samples = NAN, .fidelity = fidelity, .message_devices = 64}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct script a = {.world = &w, .bytes = 1e9}, b = a;
    struct adl_task *tasks[] = {world_task(&a, 0, 0, 8, 2), world_task(&b, 1, 1, 8, 2)};
    cr_assert(adl_transport_sim.run(w.t, tasks, 2, leave_early, NULL, &w.err) == ADL_ERR_RUNTIME);
    cr_assert(adl_engine()->clock_s() >= 1.6, "their flows went to their end");
    double start_s = adl_transport_sim.now_s(w.t);
    w.err = tasks[0]->err = tasks[1]->err = (struct adl_err){0};
    a.rounds = b.rounds = 1;
    cr_assert(adl_transport_sim.run(w.t, tasks, 2, leave_early, NULL, &w.err) == ADL_OK, "%s",
              w.err.message);
    near(a.end_s[0] - start_s, 2 * 100e-6 + 2 * 1e9 / 1.25e9, 1e-6, "two share an interface");
    near(b.end_s[0], a.end_s[0], 1e-6, "second");
    world_task_free(tasks[0]);
    world_task_free(tasks[1]);
    world_close(&w, NULL);
}

Test(sim_contention, nothing_is_left_behind_in_flow)
{
    nothing_is_left_behind(ADL_FIDELITY_FLOW);
}

Test(sim_contention, nothing_is_left_behind_in_messages)
{
    nothing_is_left_behind(ADL_FIDELITY_MESSAGE);
}
