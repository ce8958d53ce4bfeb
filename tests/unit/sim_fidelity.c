/* SPDX-License-Identifier: Apache-2.0 */
/* The three fidelities against each other and against closed forms. */
#include "tests/unit/sim_world.h"

#include "core/collective.h"
#include "core/platform_maker.h"
#include "core/registry.h"
#include "sim/fidelity.h"

enum { MANY = 16 };

/* Trainers of `size` devices each: number k has devices first, first + stride, ..., then those
 * `apart` further. */
struct setting {
    const char *platform; /* shipped, or how it is made */
    enum adl_collective collective;
    enum adl_fidelity fidelity;
    double bytes, stagger_s;
    int n_trainers, first, stride, size, apart;
    const int *order; /* [n_trainers x size] takes precedence */
};

static void open_world(struct world *w, const struct setting *s)
{
    *w = (struct world){
        .settings.collective = s->collective,
        .options = {
            .overhead_s = 1, .half_samples = NAN, .fidelity = s->fidelity, .message_devices = 256}};
    if (strchr(s->platform, '(')) {
        char *path;
        cr_assert(adl_platform_made_path(adl_registry(), s->platform, &path, &w->err) == ADL_OK);
        snprintf(w->path, sizeof w->path, "%s", path);
        free(path);
    } else {
        world_platform(w, s->platform);
    }
    struct adl_platform_facts facts;
    cr_assert(adl_sim_platform_reader.read(w->path, &facts, &w->err) == ADL_OK, "%s",
              w->err.message);
    free(facts.speeds);
    world_open(w, NULL, facts.n_devices, 1);
}

static void choose_workers(const struct setting *s, int k, int *workers)
{
    for (int i = 0; i < s->size; i++)
        workers[i] = s->order ? s->order[k * s->size + i] : s->first + k * s->apart + i * s->stride;
    adl_sort_distinct(workers, s->size);
}

/* Steps of 1 s in a round: the first trainer computes longest where stagger is negative. */
static double steps_of(const struct setting *s, int k)
{
    return s->stagger_s < 0 ? (k - s->n_trainers + 1) * s->stagger_s : k * s->stagger_s;
}

/* When each trainer's second all-reduce ends; then messages and bytes sent. */
static void simulate(const void *arg, double *out)
{
    const struct setting *s = arg;
    static struct world w;
    static struct script scripts[MANY];
    struct adl_task *tasks[MANY];
    open_world(&w, s);
    for (int k = 0; k < s->n_trainers; k++) {
        scripts[k] = (struct script){.world = &w, .rounds = 2, .bytes = s->bytes};
        scripts[k].work = (struct adl_work){.steps = steps_of(s, k), .micro_batches = 1};
        tasks[k] = world_task(&scripts[k], k, 0, 1, s->size);
        choose_workers(s, k, (int *)tasks[k]->workers);
    }
    cr_assert(adl_transport_sim.run(w.t, tasks, s->n_trainers, world_body, NULL, &w.err) == ADL_OK,
              "%s", w.err.message);
    for (int k = 0; k < s->n_trainers; k++)
        out[k] = scripts[k].end_s[1];
    adl_transport_sim.sent(w.t, &out[s->n_trainers], &out[s->n_trainers + 1]);
}

static void run(struct setting s, enum adl_fidelity fidelity, double *out)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    s.fidelity = fidelity;
    in_child(simulate, &s, out, s.n_trainers + 2);
}

static const char *const names[] = {"auto",      "ring",    "hierarchical", "multi_ring",
                                    "recursive", "halving", "tree",         "star"};

/* ---- uncontended: all fidelities are the closed form ---- */

static struct adl_coll_cost cost_of(enum adl_collective kind, double P, double S, double a,
                                    double b)
{
    switch (kind) {
    case ADL_COLL_RECURSIVE_DOUBLING:
        return adl_cost_recursive_doubling(P, S, a, b);
    case ADL_COLL_HALVING_DOUBLING:
        return adl_cost_rabenseifner(P, S, a, b);
    case ADL_COLL_TREE:
        return adl_cost_tree(P, S, a, b);
    case ADL_COLL_STAR:
        return adl_cost_star(P, S, a, b);
    default:
        return adl_cost_ring(P, S, a, b);
    }
}

static void is_closed_form(enum adl_fidelity fidelity)
{
    static const enum adl_collective kinds[] = {ADL_COLL_RING, ADL_COLL_RECURSIVE_DOUBLING,
                                                ADL_COLL_HALVING_DOUBLING, ADL_COLL_TREE,
                                                ADL_COLL_STAR};
    for (int n = 2; n <= 8; n++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            struct setting s = {"nvswitch-8",    kinds[k],    .bytes = 8.4e8,
                                .n_trainers = 1, .stride = 1, .size = n};
            double got[3];
            run(s, fidelity, got);
            struct adl_coll_cost want = cost_of(kinds[k], n, s.bytes, 1e-6, 1 / 450e9);
            near(got[0], 2 * want.time_s, 1e-9, names[kinds[k]]);
            if (fidelity != ADL_FIDELITY_MESSAGE) {
                cr_assert(isnan(got[1]) && isnan(got[2]), "nothing is known to be sent");
                continue;
            }
            near(got[1], 2 * want.messages, 1e-12, "messages sent");
            near(got[2], 2 * want.bytes, 1e-12, "bytes sent");
        }
}

Test(sim_fidelity, flow_is_the_closed_form)
{
    is_closed_form(ADL_FIDELITY_FLOW);
}

Test(sim_fidelity, analytic_is_the_closed_form)
{
    is_closed_form(ADL_FIDELITY_ANALYTIC);
}

Test(sim_fidelity, message_is_the_closed_form)
{
    is_closed_form(ADL_FIDELITY_MESSAGE);
}

/* ---- one trainer: flow against message ---- */

struct group {
    int first, stride, size;
};

static void agree_alone(const char *platform, enum adl_collective kind, struct group g,
                        double below, double above)
{
    struct setting s = {
        platform,           kind,          .bytes = 1.024e9, .n_trainers = 1, .first = g.first,
        .stride = g.stride, .size = g.size};
    double flow[3], analytic[3], message[3];
    run(s, ADL_FIDELITY_FLOW, flow);
    run(s, ADL_FIDELITY_ANALYTIC, analytic);
    run(s, ADL_FIDELITY_MESSAGE, message);
    double deviation = flow[0] / message[0] - 1;
    cr_assert(deviation >= -below && deviation <= above,
              "%s on %s, %d devices from %d: flow %.9g, message %.9g: %+.3g", names[kind], platform,
              g.size, g.first, flow[0], message[0], deviation);
    near(analytic[0], flow[0], 1e-4, "analytic");
}

/* Rings of equal latencies, a device a node, and of unequal ones, which wait for the slowest. */
Test(sim_fidelity, rings)
{
    agree_alone("h100-64-eth", ADL_COLL_RING, (struct group){0, 8, 8}, 1e-6, 1e-6);
    agree_alone("h100-64", ADL_COLL_RING, (struct group){0, 1, 8}, 1e-6, 1e-6);
    agree_alone("h100-64", ADL_COLL_RING, (struct group){0, 1, 64}, 1e-6, 1e-6);
    agree_alone("two-dc", ADL_COLL_RING, (struct group){1, 3, 20}, 1e-6, 1e-6);
}

/* Groups that fill nodes, and those that do not, in nodes of unequal shares. */
Test(sim_fidelity, hierarchical)
{
    static const char *const platforms[] = {"h100-64", "h100-64-eth", "two-dc"};
    static const struct group groups[] = {{0, 1, 64}, {5, 1, 5}, {3, 1, 13}, {6, 1, 50}};
    for (int p = 0; p < 3; p++)
        for (int g = 0; g < 4; g++)
            agree_alone(platforms[p], ADL_COLL_HIERARCHICAL, groups[g], 1e-6, 1e-6);
}

/* Flow adds both stages' latencies, where messages of the shorter stage hide: up to twice 14 us. */
Test(sim_fidelity, multi_ring)
{
    agree_alone("h100-64", ADL_COLL_MULTI_RING, (struct group){0, 1, 64}, 0, 0.004);
    agree_alone("h100-64-eth", ADL_COLL_MULTI_RING, (struct group){6, 1, 50}, 0, 2e-5);
}

/* Exchanges in pairs: equal where a step is the same for all. Where some pairs are in one node and
 * some are not, devices run ahead of others, which flow does not see: it is up to 11% slower. */
Test(sim_fidelity, halving_doubling)
{
    agree_alone("h100-64", ADL_COLL_HALVING_DOUBLING, (struct group){0, 1, 64}, 1e-6, 1e-6);
    agree_alone("h100-64-eth", ADL_COLL_HALVING_DOUBLING, (struct group){0, 1, 64}, 1e-6, 1e-6);
    agree_alone("two-dc", ADL_COLL_HALVING_DOUBLING, (struct group){0, 1, 24}, 1e-6, 1e-6);
    agree_alone("h100-64-eth", ADL_COLL_HALVING_DOUBLING, (struct group){6, 1, 50}, 0, 0.11);
    agree_alone("h100-64-eth", ADL_COLL_HALVING_DOUBLING, (struct group){1, 3, 20}, 0, 0.11);
}

/* The same for whole vectors: up to 28%. */
Test(sim_fidelity, recursive_doubling_and_tree)
{
    agree_alone("h100-64", ADL_COLL_RECURSIVE_DOUBLING, (struct group){0, 1, 64}, 1e-6, 1e-6);
    agree_alone("h100-64", ADL_COLL_RECURSIVE_DOUBLING, (struct group){3, 1, 13}, 0, 0.28);
    agree_alone("h100-64", ADL_COLL_TREE, (struct group){0, 1, 64}, 1e-6, 1e-6);
    agree_alone("two-dc", ADL_COLL_TREE, (struct group){1, 3, 20}, 0, 0.01);
}

/* ---- four trainers on a 4:1 spine ---- */

static const char spine[] = "fat_tree(gpus=128, pod=4, oversubscription=4)";
static const enum adl_collective four_kinds[] = {ADL_COLL_RING, ADL_COLL_HIERARCHICAL,
                                                 ADL_COLL_MULTI_RING, ADL_COLL_HALVING_DOUBLING};

static void agree_together(const int *order, double stagger_s, double bound)
{
    for (int i = 0; i < 4; i++) {
        struct setting s = {
            spine,           four_kinds[i], .bytes = 4.096e9, .stagger_s = stagger_s,
            .n_trainers = 4, .size = 32,    .order = order};
        double flow[6], message[6];
        run(s, ADL_FIDELITY_FLOW, flow);
        run(s, ADL_FIDELITY_MESSAGE, message);
        for (int k = 0; k < 4; k++)
            cr_assert(fabs(flow[k] / message[k] - 1) <= bound,
                      "%s, trainer %d: flow %.9g, message %.9g", names[four_kinds[i]], k, flow[k],
                      message[k]);
    }
}

/* Every fourth node is one trainer's: all share the pods' uplinks. At once and one after the
 * other: within 1%. */
static void align(int *order)
{
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 32; i++)
            order[32 * k + i] = ((i / 8) * 4 + k) * 8 + i % 8;
}

Test(sim_fidelity, four_trainers_on_nodes_of_their_own)
{
    int order[128];
    align(order);
    agree_together(order, 0, 0.01);
    agree_together(order, 0.02, 0.01);
}

/* Devices drawn at random: pairs of halving-doubling cross the spine in every step, and who runs
 * ahead meets others than flow assumes: within 5%. */
Test(sim_fidelity, four_trainers_on_random_devices)
{
    int order[128];
    uint32_t state = 1;
    for (int i = 0; i < 128; i++)
        order[i] = i;
    for (int i = 127; i > 0; i--) {
        state = state * 1664525u + 1013904223u;
        int j = (int)(state >> 8) % (i + 1), x = order[i];
        order[i] = order[j];
        order[j] = x;
    }
    agree_together(order, 0, 0.05);
    agree_together(order, 0.02, 0.05);
}

/* Analytic knows nobody else: as fast as alone, and at its own time, whoever was worked out before.
 */
Test(sim_fidelity, analytic_is_uncontended)
{
    int order[128];
    align(order);
    struct setting s = {
        spine,      ADL_COLL_HIERARCHICAL, .bytes = 4.096e9, .stagger_s = -0.5, .n_trainers = 4,
        .size = 32, .order = order};
    double together[6], alone[3];
    run(s, ADL_FIDELITY_ANALYTIC, together);
    s.n_trainers = 1;
    run(s, ADL_FIDELITY_FLOW, alone);
    for (int k = 0; k < 4; k++)
        near(together[k], alone[0] + 2 * 0.5 * (3 - k), 1e-12, "as alone");
}

/* ---- refusals ---- */

static void refused(struct adl_sim_options options, const char *platform, int workers,
                    const char *because)
{
    struct world w = {.settings.collective = ADL_COLL_RING, .options = options};
    world_platform(&w, platform);
    struct adl_platform_facts facts;
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    cr_assert(adl_sim_platform_reader.read(w.path, &facts, &w.err) == ADL_OK);
    free(facts.speeds);
    w.settings.cluster.workers = workers;
    w.settings.cluster.workers_per_device = 1;
    w.settings.cluster.devices_per_node = facts.devices_per_node;
    w.settings.cluster.nodes_per_site = facts.nodes_per_site;
    w.settings.cluster.nics_per_node = facts.nics_per_node;
    cr_assert(world_try(&w) == ADL_ERR_INPUT);
    cr_assert(strstr(w.err.message, because) != NULL, "%s", w.err.message);
}

Test(sim_fidelity, too_many_messages)
{
    refused((struct adl_sim_options){AS_PLATFORM, .fidelity = ADL_FIDELITY_MESSAGE,
                                     .message_devices = 63},
            "h100-64", 64, "sim.message_devices allows 63");
}

Test(sim_fidelity, analytic_with_links_that_change)
{
    refused((struct adl_sim_options){AS_PLATFORM, .fidelity = ADL_FIDELITY_ANALYTIC,
                                     .background = "[{from: host0, to: host1, share: 0.5}]"},
            "two_hosts", 2, "analytic knows no links that change");
}
