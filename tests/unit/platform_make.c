/* SPDX-License-Identifier: Apache-2.0 */
/* Makers of platforms: what they make is what was asked for, in each detail, and platforms that
 * are named by how they are made. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/platform_maker.h"
#include "sim/platform.h"
#include "sim/probe.h"

static char dir[] = "/tmp/adl-make-XXXXXX";

static void make_dir(void)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    cr_assert(mkdtemp(dir) != NULL);
    setenv("XDG_CACHE_HOME", dir, 1);
}

static void remove_dir(void)
{
    if (!adl_engine())
        return;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    cr_assert(system(command) == 0);
}

TestSuite(platform_make, .init = make_dir, .fini = remove_dir);

static char *path_of(const char *platform)
{
    char *path;
    struct adl_err err = {0};
    cr_assert(adl_platform_made_path(adl_registry(), platform, &path, &err) == ADL_OK, "%s: %s",
              platform, err.message);
    return path;
}

static struct adl_platform_facts facts_of(const char *platform)
{
    struct adl_platform_facts facts;
    struct adl_err err = {0};
    char *path = path_of(platform);
    cr_assert(adl_sim_platform_reader.read(path, &facts, &err) == ADL_OK, "%s: %s", platform,
              err.message);
    free(path);
    return facts;
}

static void expect_shape(const char *platform, int devices, int per_node, int per_site, int nics)
{
    struct adl_platform_facts f = facts_of(platform);
    cr_assert(f.n_devices == devices && f.devices_per_node == per_node &&
                  f.nodes_per_site == per_site && f.nics_per_node == nics,
              "%s: %d %d %d %d", platform, f.n_devices, f.devices_per_node, f.nodes_per_site,
              f.nics_per_node);
    free(f.speeds);
}

/* Which devices send to which, all at once. */
struct exchange {
    int n, to_add; /* devices 0..n-1, each to the one to_add further */
    double bytes;
};
static struct exchange exchange; /* for the child of a probe */

struct flows {
    const struct adl_engine_ops *engine;
    const struct adl_sim_platform *platform;
    double slowest_s;
};

static void send_all(void *arg)
{
    struct flows *f = arg;
    struct adl_activity **flow = calloc((size_t)exchange.n, sizeof(struct adl_activity *));
    for (int d = 0; d < exchange.n; d++) {
        int to = (d + exchange.to_add) % f->platform->n_devices;
        flow[d] = f->engine->flow(f->platform->devices[d].host,
                                  adl_sim_platform_end(f->platform, d, to), exchange.bytes);
    }
    for (int d = 0; d < exchange.n; d++) {
        double finish_s;
        struct adl_err err = {0};
        int to = (d + exchange.to_add) % f->platform->n_devices;
        f->engine->wait(flow[d], &finish_s, &err);
        /* the engine moves bytes only: latencies are the caller's to add */
        finish_s += adl_sim_platform_path(f->engine, f->platform, d, to).latency_s;
        f->slowest_s = fmax(f->slowest_s, finish_s);
    }
    free(flow);
}

static enum adl_status time_exchange(const char *path, FILE *out, struct adl_err *err)
{
    struct adl_sim_platform platform;
    struct flows flows = {adl_engine(), &platform, 0};
    ADL_TRY(adl_sim_platform_open(flows.engine, path, &platform, err));
    struct adl_engine_actor actor = {send_all, &flows};
    flows.engine->spawn(platform.devices[0].host, &actor);
    enum adl_status status = flows.engine->run(err);
    fwrite(&flows.slowest_s, sizeof flows.slowest_s, 1, out);
    adl_sim_platform_free(&platform);
    return status;
}

/* Seconds until all of the exchange has arrived. */
static double exchange_s(const char *platform, int n, int to_add, double bytes)
{
    exchange = (struct exchange){n, to_add, bytes};
    char *told, *path = path_of(platform);
    size_t size;
    struct adl_err err = {0};
    enum adl_status status = adl_sim_probe(path, time_exchange, &told, &size, &err);
    cr_assert(status == ADL_OK, "%s: %s", platform, err.message);
    cr_assert(size == sizeof(double));
    double seconds;
    memcpy(&seconds, told, sizeof seconds);
    free(told);
    free(path);
    return seconds;
}

static void expect_near(double value, double expected, double relative, const char *what)
{
    cr_assert(fabs(value - expected) <= relative * expected, "%s: %.12g, not %.12g", what, value,
              expected);
}

Test(platform_make, shapes)
{
    expect_shape("fat_tree(gpus=8)", 8, 8, 1, 1);
    expect_shape("fat_tree(gpus=72, pod=4)", 72, 8, 9, 8);
    expect_shape("fat_tree(gpus=72, pod=4, detail=gpu)", 72, 8, 9, 8);
    expect_shape("fat_tree(gpus=72, pod=4, detail=node)", 72, 8, 9, 8);
    expect_shape("fat_tree(gpus=12, node_size=4, nics=2, detail=gpu)", 12, 4, 3, 2);
    expect_shape("fat_tree(gpus=96, nics=1, pod=5)", 96, 8, 12, 1);
    expect_shape("fat_tree(gpus=9, node_size=1, pod=2)", 9, 1, 9, 1);
    expect_shape("fat_tree(gpus=64, pod=3, rail=true)", 64, 8, 8, 8);
    expect_shape("dragonfly(gpus=8)", 8, 8, 1, 1);
    expect_shape("dragonfly(gpus=328, group_routers=3)", 328, 8, 41, 8);
    expect_shape("dragonfly(gpus=328, group_routers=3, detail=gpu)", 328, 8, 41, 8);
    expect_shape("dragonfly(gpus=328, router_nodes=2, detail=node)", 328, 8, 41, 8);
    expect_shape("sites(gpus=96, sites=3, pod=2)", 96, 8, 4, 8);
    expect_shape("sites(gpus=96, sites=3, pod=2, detail=gpu)", 96, 8, 4, 8);
    expect_shape("sites(gpus=96, sites=3, pod=2, detail=node)", 96, 8, 4, 8);
    expect_shape("node()", 8, 8, 1, 1);
    expect_shape("node(gpus=1, gpu=l40s)", 1, 1, 1, 1);
    expect_shape("fat_tree(gpus=16384)", 16384, 8, 2048, 8);
    expect_shape("fat_tree(gpus=65536)", 65536, 8, 8192, 8);
}

/* The same paths whatever the detail, and those that the options say. */
Test(platform_make, paths)
{
    static const char *const details[] = {"full", "gpu", "node"};
    for (int i = 0; i < 3; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "sites(gpus=128, sites=2, detail=%s, nvlink=300GB/s, nvlink_latency=2us, "
                 "nic=25GB/s, nic_latency=6us, wan=100Gbit/s, wan_latency=5ms)",
                 details[i]);
        struct adl_platform_facts f = facts_of(text);
        expect_near(f.paths[ADL_LINK_INTRA_NODE].bandwidth, 300e9, 1e-12, details[i]);
        expect_near(f.paths[ADL_LINK_INTRA_NODE].latency_s, 2e-6, 1e-9, details[i]);
        expect_near(f.paths[ADL_LINK_INTER_NODE].bandwidth, 25e9, 1e-12, details[i]);
        expect_near(f.paths[ADL_LINK_INTER_NODE].latency_s, 6e-6, 1e-9, details[i]);
        expect_near(f.paths[ADL_LINK_WAN].bandwidth, 12.5e9, 1e-12, details[i]);
        expect_near(f.paths[ADL_LINK_WAN].latency_s, 5e-3 + 6e-6 + 2e-6, 1e-9, details[i]);
        free(f.speeds);
    }
}

Test(platform_make, presets)
{
    static const struct {
        const char *name;
        double speed, peak, memory, memory_bandwidth, link;
    } expected[] = {{"h100", 400e12, 989e12, 80e9, 3.35e12, 450e9},
                    {"h200", 400e12, 989e12, 141e9, 4.8e12, 450e9},
                    {"a100", 150e12, 312e12, 80e9, 2.039e12, 300e9},
                    {"mi300x", 340e12, 1307.4e12, 192e9, 5.3e12, 448e9},
                    {"l40s", 145e12, 362.05e12, 48e9, 864e9, 32e9}};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        char text[64];
        snprintf(text, sizeof text, "node(gpu=%s)", expected[i].name);
        struct adl_platform_facts f = facts_of(text);
        cr_assert(f.speed_flops == expected[i].speed && f.memory_bytes == expected[i].memory);
        expect_near(f.memory_bandwidth, expected[i].memory_bandwidth, 1e-12, text);
        expect_near(f.peak_flops, expected[i].peak, 1e-12, text);
        expect_near(f.paths[ADL_LINK_INTRA_NODE].bandwidth, expected[i].link, 1e-12, text);
        free(f.speeds);
    }
}

Test(platform_make, mixed_generations)
{
    static const char *const texts[] = {
        "fat_tree(gpus=64, gpu=h100:48,a100:16, pod=2)",
        "fat_tree(gpus=64, gpu=h100:48,a100:16, pod=2, detail=gpu)",
        "fat_tree(gpus=64, gpu=h100:48,a100:16, pod=2, detail=node)",
        "sites(gpus=64, sites=4, gpu=h100:48,a100:16)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct adl_platform_facts f = facts_of(texts[i]);
        for (int d = 0; d < 64; d++)
            cr_assert(f.speeds[d] == (d < 48 ? 1 : 0.375), "%s: %d", texts[i], d);
        cr_assert(f.peak_flops == 989e12 && f.memory_bytes == 80e9);
        free(f.speeds);
    }
}

/* Half of the devices send to the other half: the uplinks carry 1/factor of what interfaces
 * could. 16 nodes in 4 pods; 1 GB a device at 50 GB/s. */
Test(platform_make, oversubscription_slows_a_bisection_by_its_factor)
{
    static const char *const details[] = {"full", "gpu", "node", "gpu, rail=true"};
    for (int i = 0; i < 4; i++)
        for (int factor = 1; factor <= 4; factor *= 2) {
            char text[128];
            snprintf(text, sizeof text, "fat_tree(gpus=128, pod=4, oversubscription=%d, detail=%s)",
                     factor, details[i]);
            expect_near(exchange_s(text, 64, 64, 1e9), factor * 0.02 + 6e-6, 1e-9, text);
        }
}

/* A pod that is not full has an uplink for the nodes it has. */
Test(platform_make, part_of_a_pod)
{
    static const char *const details[] = {"full", "gpu", "node"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        /* node 8 is alone in its pod, whose uplink is 400/4 GB/s for its 8 devices */
        snprintf(text, sizeof text, "fat_tree(gpus=72, pod=8, oversubscription=4, detail=%s)",
                 details[i]);
        expect_near(exchange_s(text, 8, 64, 1e9), 8e9 / 100e9 + 6e-6, 1e-9, text);
    }
}

/* A node's flows: one is held by one interface, all together by all. */
Test(platform_make, interfaces)
{
    static const char *const details[] = {"full", "gpu", "node"};
    for (int i = 0; i < 3; i++) {
        char text[128];
        snprintf(text, sizeof text, "fat_tree(gpus=32, detail=%s)", details[i]);
        expect_near(exchange_s(text, 1, 8, 1e9), 0.02 + 4e-6, 1e-9, text);
        expect_near(exchange_s(text, 8, 8, 1e9), 0.02 + 4e-6, 1e-9, text);
        expect_near(exchange_s(text, 8, 16, 1e9), 0.02 + 4e-6, 1e-9, text);
        expect_near(exchange_s(text, 7, 1, 450e9), 1 + 1e-6, 1e-9, text);
        snprintf(text, sizeof text, "fat_tree(gpus=32, nics=2, detail=%s)", details[i]);
        expect_near(exchange_s(text, 1, 8, 1e9), 0.02 + 4e-6, 1e-9, text);
        expect_near(exchange_s(text, 8, 8, 1e9), 0.08 + 4e-6, 1e-9, text);
    }
}

/* On its rail a flow stays under the leaf; between rails it takes two uplinks. */
Test(platform_make, rails)
{
    const char *thin = "fat_tree(gpus=64, rail=true, oversubscription=4)";
    expect_near(exchange_s(thin, 8, 8, 1e9), 0.02 + 4e-6, 1e-9, "same rail");
    expect_near(exchange_s(thin, 8, 9, 1e9), 0.02 + 6e-6, 1e-9, "one node over a free uplink");
    expect_near(exchange_s(thin, 64, 9, 1e9), 0.08 + 6e-6, 1e-9, "all nodes over the uplinks");
}

Test(platform_make, dragonfly_routes)
{
    static const char *const details[] = {"full", "gpu", "node"};
    for (int i = 0; i < 3; i++) {
        char text[256];
        /* 2 nodes a router, 2 routers a group, 4 groups; links to groups by port: 0 on the first
         * router, 1 on the second, 2 on the first again */
        snprintf(text, sizeof text,
                 "dragonfly(gpus=128, router_nodes=2, group_routers=2, local_latency=10us, "
                 "global_latency=100us, detail=%s)",
                 details[i]);
        double byte_s = 1 / 50e9;
        expect_near(exchange_s(text, 1, 8, 1), byte_s + 4e-6, 1e-9, "same router");
        expect_near(exchange_s(text, 1, 16, 1), byte_s + 14e-6, 1e-9, "same group");
        expect_near(exchange_s(text, 1, 32, 1), byte_s + 104e-6, 1e-9, "group 1, its first router");
        expect_near(exchange_s(text, 1, 48, 1), byte_s + 114e-6, 1e-9, "group 1, its second");
        expect_near(exchange_s(text, 1, 64, 1), byte_s + 114e-6, 1e-9, "group 2, over the second");
        expect_near(exchange_s(text, 1, 80, 1), byte_s + 124e-6, 1e-9,
                    "group 2, local, global, local");
    }
}

/* min(flows x flow_cap, bandwidth x efficiency) */
Test(platform_make, wide_area)
{
    static const struct {
        const char *options;
        double bandwidth;
    } cases[] = {{"wan=80Gbit/s", 10e9},
                 {"wan=80Gbit/s, wan_efficiency=0.5", 5e9},
                 {"wan=80Gbit/s, wan_efficiency=0.5, wan_flow_cap=1GB/s", 1e9},
                 {"wan=80Gbit/s, wan_efficiency=0.5, wan_flow_cap=1GB/s, wan_flows=4", 4e9},
                 {"wan=80Gbit/s, wan_efficiency=0.5, wan_flow_cap=1GB/s, wan_flows=8", 5e9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "sites(gpus=32, %s)", cases[i].options);
        struct adl_platform_facts f = facts_of(text);
        expect_near(f.paths[ADL_LINK_WAN].bandwidth, cases[i].bandwidth, 1e-12, text);
        free(f.speeds);
    }
}

/* In a ring of 4, what goes to the opposite site passes through another. */
Test(platform_make, ring_of_sites)
{
    const char *ring = "sites(gpus=32, sites=4, wan_topology=ring)",
               *mesh = "sites(gpus=32, sites=4)";
    expect_near(exchange_s(ring, 1, 8, 1), 20e-3 + 6e-6, 1e-6, "ring, next");
    expect_near(exchange_s(ring, 1, 16, 1), 40e-3 + 6e-6, 1e-6, "ring, opposite");
    expect_near(exchange_s(ring, 1, 24, 1), 20e-3 + 6e-6, 1e-6, "ring, previous");
    expect_near(exchange_s(mesh, 1, 16, 1), 20e-3 + 6e-6, 1e-6, "mesh");
}

/* Less of anything never speeds an exchange up. */
Test(platform_make, monotonic)
{
    static const struct {
        const char *kind, *less;
    } cases[] = {
        {"fat_tree(gpus=64, pod=2, detail=full", "nic=25GB/s"},
        {"fat_tree(gpus=64, pod=2, detail=full", "nvlink=225GB/s"},
        {"fat_tree(gpus=64, pod=2, detail=gpu", "nvlink=225GB/s"},
        {"fat_tree(gpus=64, pod=2, detail=node", "nvlink=225GB/s"},
        {"fat_tree(gpus=64, pod=2, detail=gpu", "nics=4"},
        {"fat_tree(gpus=64, pod=2, detail=node", "nics=4"},
        {"fat_tree(gpus=64, pod=2, detail=node", "switch_latency=4us"},
        {"fat_tree(gpus=64, pod=2", "oversubscription=2"},
        {"fat_tree(gpus=64, pod=2, rail=true", "oversubscription=2"},
        {"dragonfly(gpus=64, router_nodes=1, group_routers=2", "local=10GB/s"},
        {"dragonfly(gpus=64, router_nodes=1, group_routers=2", "global=10GB/s"},
        {"dragonfly(gpus=64, router_nodes=1, group_routers=2", "oversubscription=2"},
        {"sites(gpus=64, sites=2", "wan=1GB/s"},
        {"sites(gpus=64, sites=2", "wan_efficiency=0.5"},
        {"sites(gpus=64, sites=4", "wan_topology=ring"},
    };
    static const struct {
        int n, to_add;
    } sent[] = {{7, 1}, {64, 9}, {64, 32}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool slower = false;
        for (size_t k = 0; k < sizeof sent / sizeof *sent; k++) {
            char base[128], less[256];
            snprintf(base, sizeof base, "%s)", cases[i].kind);
            snprintf(less, sizeof less, "%s, %s)", cases[i].kind, cases[i].less);
            double before_s = exchange_s(base, sent[k].n, sent[k].to_add, 1e9);
            double after_s = exchange_s(less, sent[k].n, sent[k].to_add, 1e9);
            cr_assert(after_s >= before_s * (1 - 1e-12), "%s: %g s before, %g after", less,
                      before_s, after_s);
            slower = slower || after_s > before_s;
        }
        cr_assert(slower, "%s, %s changes nothing", cases[i].kind, cases[i].less);
    }
}

static void refuse(const char *platform, const char *message)
{
    char *path = NULL;
    struct adl_err err = {0};
    cr_assert(adl_platform_made_path(adl_registry(), platform, &path, &err) == ADL_ERR_INPUT, "%s",
              platform);
    cr_assert(path == NULL);
    cr_expect(strncmp(err.message, message, strlen(message)) == 0, "%s: '%s' is not '%s'", platform,
              err.message, message);
}

Test(platform_make, refuses)
{
    refuse("fat_tree(gpus=12)", "gpus: 12 is not a multiple of node_size 8");
    refuse("fat_tree(gpus=16, nics=3)", "nics: 3 does not divide node_size 8");
    refuse("fat_tree(gpus=131072)", "cluster.platform: gpus: '131072' is not an integer (8..65536");
    refuse("fat_tree(gpus=16, nic=0)", "cluster.platform: nic: '0' is not");
    refuse("fat_tree(gpus=16, nic_latency=-1us)", "cluster.platform: nic_latency: '-1us' is not");
    refuse("fat_tree(gpus=16, gpu=h10)", "gpu: 'h10' is not one of h100, h200, a100, mi300x, l40s");
    refuse("fat_tree(gpus=16, gpu=h100:8)", "gpu: 8 devices in all, but gpus is 16");
    refuse("fat_tree(gpus=16, gpu=h100:8,a100)", "gpu: 'a100' is not KIND:NUMBER");
    refuse("fat_tree(gpus=16, gpu=h100:12,a100:4)", "gpu: 'h100:12': the devices of a node are of");
    refuse("fat_tree(gpus=16, gpu=h100:8,a100:8, detail=node)",
           "gpu: pod0 holds h100 and a100: detail node needs one kind under a switch");
    refuse("fat_tree(gpus=16, rail=true, detail=full)", "rail: detail full has no rails");
    refuse("sites(gpus=40, sites=2)", "sites: 2 does not divide the 5 nodes");
    refuse("node(gpu=h100:4,a100:4)", "gpu: 'h100:4': the devices of a node are of one kind");
    refuse("fat_tree()", "cluster.platform: gpus is needed: Devices of the cluster");
    refuse("fat_tree(gpus=16", "cluster.platform: 'fat_tree(gpus=16' does not end in ')'");
    refuse("fat_tree(16)", "cluster.platform: fat_tree: '16' is not KEY=VALUE");
    refuse("fat_tree(gpus=16, nisc=2)",
           "cluster.platform: fat_tree: 'nisc' is none of its options; "
           "did you mean 'nics'?");
    refuse("fat_tre(gpus=16)", "platform: 'fat_tre' is no kind; there are: fat_tree, dragonfly");
}

Test(platform_make, names)
{
    cr_assert(adl_platform_is_made("fat_tree(gpus=8)") && adl_platform_is_made("node ()"));
    cr_assert(!adl_platform_is_made("h100-64") && !adl_platform_is_made("./a(b).xml") &&
              !adl_platform_is_made("(gpus=8)") && !adl_platform_is_made("a/b(c)"));
}

/* Equal platforms share a file, among the caches; a damaged one is made again. */
Test(platform_make, cache)
{
    char *a = path_of("fat_tree(gpus=64, nics=4)"), *b = path_of("fat_tree( nics = 4,gpus=64 ) ");
    char *c = path_of("fat_tree(gpus=64, nics=8)");
    cr_assert_str_eq(a, b);
    cr_assert(strcmp(a, c) != 0);
    cr_assert(strncmp(a, dir, strlen(dir)) == 0 && strstr(a, "/adloco/") != NULL, "%s", a);
    struct stat before, after;
    cr_assert(stat(a, &before) == 0);
    cr_assert(truncate(a, before.st_size / 2) == 0);
    free(path_of("fat_tree(gpus=64, nics=4)"));
    cr_assert(stat(a, &after) == 0 && after.st_size == before.st_size);
    struct timespec untouched = after.st_mtim;
    ino_t same = after.st_ino;
    free(path_of("fat_tree(gpus=64, nics=4)"));
    cr_assert(stat(a, &after) == 0 && after.st_ino == same &&
              after.st_mtim.tv_nsec == untouched.tv_nsec);
    free(a);
    free(b);
    free(c);
}

/* Without a cache folder of one's own: the temporary folder's, unless it is someone's trap. */
Test(platform_make, cache_elsewhere)
{
    char temp[64], trap[128];
    snprintf(temp, sizeof temp, "%s/temp", dir);
    cr_assert(mkdir(temp, 0700) == 0);
    setenv("XDG_CACHE_HOME", "/proc/none", 1);
    setenv("HOME", "/proc/none", 1);
    setenv("TMPDIR", temp, 1);
    char *path = path_of("node()");
    cr_assert(strncmp(path, temp, strlen(temp)) == 0, "%s", path);
    free(path);
    snprintf(trap, sizeof trap, "%s/adloco-%lu", temp, (unsigned long)geteuid());
    cr_assert(chmod(trap, 0777) == 0);
    struct adl_err err = {0};
    cr_assert(adl_platform_made_path(adl_registry(), "node()", &path, &err) == ADL_ERR_IO);
    cr_assert(strstr(err.message, trap) != NULL, "%s", err.message);
}
