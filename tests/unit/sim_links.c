/* SPDX-License-Identifier: Apache-2.0 */
/* What links carried, what holds a run up, and that less bandwidth or more bytes never help. */
#include "tests/unit/sim_world.h"

#include "sim/fidelity.h"

static struct adl_links links_of(struct world *w)
{
    struct adl_links links;
    cr_assert(adl_transport_sim.links(w->t, adl_transport_sim.now_s(w->t), &links, &w->err) ==
              ADL_OK);
    cr_assert(links.known);
    return links;
}

static struct adl_links after_one(const char *platform, int workers, enum adl_collective collective,
                                  enum adl_fidelity fidelity)
{
    struct world w = {.settings.collective = collective,
                      .options = {AS_PLATFORM, .fidelity = fidelity, .message_devices = 256}};
    world_open(&w, platform, workers, 1);
    struct script s = {.rounds = 2, .bytes = 5e8};
    world_run_one(&w, &s);
    struct adl_links links = links_of(&w);
    world_close(&w, NULL);
    return links;
}

/* Two all-reduces of 0.5 GB in 1 s and four latencies: each direction carries 1 GB. */
static void one_wire(enum adl_fidelity fidelity)
{
    struct adl_links l = after_one("two_hosts", 2, ADL_COLL_RING, fidelity);
    double time_s = 1 + 4 * 100e-6;
    cr_assert_eq(l.n_top, 2);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(strncmp(l.top[i].name, "wire_", 5), 0, "%s", l.top[i].name);
        cr_assert_eq(l.top[i].class, ADL_LINK_INTER_NODE);
        near(l.top[i].bytes, 1e9, 1e-12, "bytes");
        near(l.top[i].bandwidth, 1e9, 1e-12, "bandwidth");
        near(l.top[i].mean, 1 / time_s, 1e-9, "mean");
        near(l.top[i].peak, 1, 1e-9, "peak");
    }
    near(l.mean[ADL_LINK_INTER_NODE], 1 / time_s, 1e-9, "mean of the class");
    cr_assert(isnan(l.mean[ADL_LINK_INTRA_NODE]) && isnan(l.peak[ADL_LINK_WAN]), "none");
    near(l.latency_s, 4 * 100e-6, 1e-9, "latencies");
    near(l.moving_s, 1, 1e-9, "moving");
}

Test(sim_links, flow)
{
    one_wire(ADL_FIDELITY_FLOW);
}

Test(sim_links, analytic)
{
    one_wire(ADL_FIDELITY_ANALYTIC);
}

Test(sim_links, message)
{
    one_wire(ADL_FIDELITY_MESSAGE);
}

/* A ring over two data centers: its thinnest link is full, the others far from it. */
Test(sim_links, classes)
{
    struct adl_links l = after_one("two-dc", 64, ADL_COLL_RING, ADL_FIDELITY_FLOW);
    cr_assert_eq(strncmp(l.top[0].name, "wan_", 4), 0, "%s", l.top[0].name);
    cr_assert_eq(l.top[0].class, ADL_LINK_WAN);
    cr_assert_eq(l.top[2].class, ADL_LINK_INTER_NODE, "%s", l.top[2].name);
    near(l.peak[ADL_LINK_WAN], 1, 1e-9, "the wide area");
    cr_assert(l.peak[ADL_LINK_INTER_NODE] < 0.1 && l.peak[ADL_LINK_INTRA_NODE] < 0.1);
    cr_assert(l.mean[ADL_LINK_WAN] > 0.1 && l.mean[ADL_LINK_INTER_NODE] < 0.1);
}

/* Two trainers on every device: of the equal components few are simulated, and all are known to
 * have been full. */
Test(sim_links, peaks_of_what_is_not_simulated)
{
    struct world w = {.settings.collective = ADL_COLL_MULTI_RING, .options = {AS_PLATFORM}};
    world_open(&w, "h100-64", 128, 2);
    struct script a = {.world = &w, .rounds = 1, .bytes = 1e9}, b = a;
    world_run_two(&w, world_task(&a, 0, 0, 2, 64), world_task(&b, 1, 1, 2, 64));
    struct adl_links l = links_of(&w);
    near(l.peak[ADL_LINK_INTER_NODE], 1, 1e-6, "interfaces");
    for (int i = 0; i < l.n_top; i++) {
        near(l.top[i].peak, 1, 1e-6, l.top[i].name);
        near(l.top[i].bytes, 2 * 2 * 7.0 / 8 * 1e9 / 8, 1e-9, "of both");
    }
    world_close(&w, NULL);
}

/* ---- what holds a run up ---- */

static void expect_bottleneck(struct adl_book_totals times, const struct adl_links *links,
                              const char *want)
{
    char got[96];
    adl_bottleneck(&times, links, got, sizeof got);
    cr_expect_str_eq(got, want);
}

Test(bottleneck, by_where_time_goes)
{
    struct adl_links links = {.known = true,
                              .n_top = 1,
                              .top = {{.name = "nic3_UP", .class = ADL_LINK_INTER_NODE}},
                              .moving_s = 2,
                              .latency_s = 1},
                     slow = links, unknown = {.known = false};
    slow.latency_s = 3;
    struct adl_book_totals transfer = {.by_time_s = {[ADL_TIME_TRANSFER] = 2, [ADL_TIME_WAIT] = 1}};
    expect_bottleneck(transfer, &links, "link nic3_UP (inter_node)");
    expect_bottleneck(transfer, &slow, "latency");
    expect_bottleneck(transfer, &unknown, "transfer");
    expect_bottleneck((struct adl_book_totals){.by_time_s = {[ADL_TIME_COMPUTE] = 1}}, &links,
                      "compute");
    expect_bottleneck((struct adl_book_totals){.by_time_s = {[ADL_TIME_WAIT] = 1}}, &links,
                      "slower workers");
    expect_bottleneck((struct adl_book_totals){.by_time_s = {[ADL_TIME_IDLE] = 1}}, &links,
                      "idle devices");
    expect_bottleneck((struct adl_book_totals){.by_time_s = {[ADL_TIME_OUTER] = 1}}, &links,
                      "outer steps");
}

/* ---- monotonicity ---- */

enum { NODES = 4, DEVICES = 8, LINKS = DEVICES + NODES + 2 };

struct variation {
    int halved; /* link number; -1: none */
    double bytes;
    enum adl_collective collective;
    enum adl_fidelity fidelity;
};

/* Four nodes of two devices with an interface each, two under each of two switches, whose uplinks
 * all share. */
static void write_tree(const char *path, int halved)
{
    FILE *out = fopen(path, "w");
    double bandwidth[LINKS];
    for (int i = 0; i < LINKS; i++)
        bandwidth[i] = (i < DEVICES           ? 40e9
                        : i < DEVICES + NODES ? 5e9
                                              : 4e9) /
                       (i == halved ? 2 : 1);
    fputs("<?xml version=\"1.0\"?>\n"
          "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
          "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">"
          "<prop id=\"nics\" value=\"1\"/>\n",
          out);
    for (int d = 0; d < DEVICES; d++)
        fprintf(out, "<host id=\"g%d\" speed=\"1Gf\"><prop id=\"node\" value=\"n%d\"/></host>\n", d,
                d / 2);
    for (int i = 0; i < LINKS; i++)
        fprintf(out,
                "<link id=\"l%d\" bandwidth=\"%.0fBps\" latency=\"2us\" "
                "sharing_policy=\"SPLITDUPLEX\"/>\n",
                i, bandwidth[i]);
    for (int a = 0; a < DEVICES; a++)
        for (int b = a + 1; b < DEVICES; b++) {
            fprintf(out, "<route src=\"g%d\" dst=\"g%d\"><link_ctn id=\"l%d\" direction=\"UP\"/>",
                    a, b, a);
            if (a / 2 != b / 2)
                fprintf(out, "<link_ctn id=\"l%d\" direction=\"UP\"/>", DEVICES + a / 2);
            if (a / 4 != b / 4)
                fprintf(out,
                        "<link_ctn id=\"l%d\" direction=\"UP\"/>"
                        "<link_ctn id=\"l%d\" direction=\"DOWN\"/>",
                        DEVICES + NODES + a / 4, DEVICES + NODES + b / 4);
            if (a / 2 != b / 2)
                fprintf(out, "<link_ctn id=\"l%d\" direction=\"DOWN\"/>", DEVICES + b / 2);
            fprintf(out, "<link_ctn id=\"l%d\" direction=\"DOWN\"/></route>\n", b);
        }
    fputs("</zone></platform>\n", out);
    fclose(out);
}

/* When both trainers, one on the even and one on the odd devices, are done. */
static void both_done(const void *arg, double *out)
{
    const struct variation *v = arg;
    static struct world w;
    w = (struct world){.settings.collective = v->collective,
                       .options = {.overhead_s = 0.01,
                                   .half_samples = NAN,
                                   .fidelity = v->fidelity,
                                   .message_devices = 8}};
    snprintf(w.path, sizeof w.path, "/tmp/adl-tree-%d.xml", getpid());
    write_tree(w.path, v->halved);
    world_open(&w, NULL, DEVICES, 1);
    remove(w.path);
    static struct script s[2];
    s[0] = s[1] = (struct script){.world = &w, .rounds = 3, .bytes = v->bytes};
    s[1].work = (struct adl_work){.steps = 1, .micro_batches = 1};
    world_run_two(&w, world_task(&s[0], 0, 0, 2, 4), world_task(&s[1], 1, 1, 2, 4));
    out[0] = adl_transport_sim.now_s(w.t);
}

static double done_s(struct variation v)
{
    double s;
    in_child(both_done, &v, &s, 1);
    return s;
}

static void never_faster(enum adl_fidelity fidelity)
{
    static const enum adl_collective kinds[] = {
        ADL_COLL_RING,       ADL_COLL_HALVING_DOUBLING, ADL_COLL_TREE,
        ADL_COLL_MULTI_RING, ADL_COLL_HIERARCHICAL,     ADL_COLL_STAR};
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct variation v = {-1, 1e9, kinds[k], fidelity};
        double base_s = done_s(v);
        bool slower = false;
        for (v.halved = 0; v.halved < LINKS; v.halved++) {
            double s = done_s(v);
            cr_assert(s >= base_s * (1 - 1e-12), "half of link %d: %.17g s, not %.17g", v.halved, s,
                      base_s);
            slower |= s > base_s * 1.2;
        }
        cr_assert(slower, "some link matters");
        v.halved = -1;
        v.bytes = 2e9;
        cr_assert(done_s(v) > base_s, "twice the bytes");
        v.bytes = 1e9;
        cr_assert_eq(done_s(v), base_s, "the same bits again");
    }
}

Test(sim_monotony, flow)
{
    never_faster(ADL_FIDELITY_FLOW);
}

Test(sim_monotony, analytic)
{
    never_faster(ADL_FIDELITY_ANALYTIC);
}

Test(sim_monotony, message)
{
    never_faster(ADL_FIDELITY_MESSAGE);
}
