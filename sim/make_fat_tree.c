/* SPDX-License-Identifier: Apache-2.0 */
/* The file follows sim/platform.h. Its shape is chosen for the engine: a node is a zone whose
 * routes are written out, so that two GPUs of it meet on NVLink and never on their NICs; a switch
 * is a zone of its own, since a zone that holds zones must not hold its gateway; all links stand
 * in the outermost zone, where looking one up does not visit every zone (4096 GPUs load in 0.2 s
 * instead of 0.8 s). */
#include <math.h>
#include <stdlib.h>

#include "core/units.h"
#include "sim/make_fat_tree.h"

enum gpu { GPU_H100, GPU_H200, GPU_A100 };

struct fat_tree {
    int64_t gpus, node_size, nics, pod;
    double nvlink, nvlink_latency, nic, nic_latency, switch_latency, oversubscription;
    int gpu;
};

#define AT(field) offsetof(struct fat_tree, field)

static const struct adl_field options[] = {
    {"gpus", ADL_TYPE_INT, NULL, NULL, 8, 65536, NULL,
     "Devices of the cluster, a multiple of node_size.", AT(gpus)},
    {"node_size", ADL_TYPE_INT, NULL, "8", 1, 64, NULL, "Devices of a node.", AT(node_size)},
    {"nics", ADL_TYPE_INT, NULL, "", 1, 64, NULL,
     "Network interfaces of a node, a divisor of node_size; unset: one for each device.", AT(nics)},
    {"nvlink", ADL_TYPE_REAL, "B/s", "450GB/s", 1, INFINITY, NULL,
     "Bandwidth of a device within its node, each direction.", AT(nvlink)},
    {"nvlink_latency", ADL_TYPE_REAL, "s", "1us", 0, 1, NULL,
     "Latency between two devices of a node.", AT(nvlink_latency)},
    {"nic", ADL_TYPE_REAL, "B/s", "50GB/s", 1, INFINITY, NULL,
     "Bandwidth of a network interface, each direction.", AT(nic)},
    {"nic_latency", ADL_TYPE_REAL, "s", "4us", 0, 1, NULL, "Latency between two nodes of a pod.",
     AT(nic_latency)},
    {"pod", ADL_TYPE_INT, NULL, "32", 1, 8192, NULL, "Nodes of a pod (under one leaf switch).",
     AT(pod)},
    {"switch_latency", ADL_TYPE_REAL, "s", "2us", 0, 1, NULL,
     "Latency that crossing the spine adds.", AT(switch_latency)},
    {"oversubscription", ADL_TYPE_REAL, NULL, "1", 1, 64, NULL,
     "Bandwidth of a pod's interfaces over that of its uplink to the spine.", AT(oversubscription)},
    {"gpu", ADL_TYPE_CHOICE, NULL, "h100", 0, 0, "h100|h200|a100", "What the devices are.",
     AT(gpu)},
    {.key = NULL}};

struct gpu_facts {
    const char *speed, *properties[5][2], *source;
};

static const struct gpu_facts facts[] = {
    [GPU_H100] = {"400Tf",
                  {{"peak", "989Tflop/s"}, {"memory", "80GB"}, {"memory_bandwidth", "3.35TB/s"}},
                  "H100 SXM, NVIDIA data sheet: 989 Tflop/s dense bf16, 80 GB at 3.35 TB/s, NVLink "
                  "900 GB/s\n"
                  "     both directions together. Sustained 400 Tflop/s: Llama 3 (arXiv "
                  "2407.21783, table 4)"},
    [GPU_H200] = {"400Tf",
                  {{"peak", "989Tflop/s"}, {"memory", "141GB"}, {"memory_bandwidth", "4.8TB/s"}},
                  "H200 SXM, NVIDIA data sheet: 989 Tflop/s dense bf16, 141 GB at 4.8 TB/s, NVLink "
                  "900 GB/s\n"
                  "     both directions together. Sustained as the H100 of Llama 3 (arXiv "
                  "2407.21783, table 4)"},
    [GPU_A100] = {"150Tf",
                  {{"peak", "312Tflop/s"}, {"memory", "80GB"}, {"memory_bandwidth", "2.039TB/s"}},
                  "A100 SXM, NVIDIA data sheet: 312 Tflop/s dense bf16, 80 GB at 2,039 GB/s, "
                  "NVLink 600 GB/s\n"
                  "     both directions together. Sustained about half of peak: Megatron-LM (arXiv "
                  "2104.04473, table 1)"},
};

static void head(const struct fat_tree *c, FILE *out)
{
    const struct gpu_facts *gpu = &facts[c->gpu];
    fprintf(
        out,
        "<?xml version=\"1.0\"?>\n"
        "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<!-- Made by `adloco platform make fat_tree`: %lld devices, %lld to a node with %lld "
        "network interfaces.\n     %s.\n"
        "     Assumed: latencies; overhead (launches of a micro-batch); half_samples (512 tokens "
        "of\n     2048). -->\n"
        "<platform version=\"4.1\">\n<zone id=\"cluster\" routing=\"Floyd\">\n"
        "  <prop id=\"nics\" value=\"%lld\"/>\n",
        (long long)c->gpus, (long long)c->node_size, (long long)c->nics, gpu->source,
        (long long)c->nics);
    for (int i = 0; gpu->properties[i][0]; i++)
        fprintf(out, "  <prop id=\"%s\" value=\"%s\"/>\n", gpu->properties[i][0],
                gpu->properties[i][1]);
    fprintf(out, "  <prop id=\"overhead\" value=\"1ms\"/>\n"
                 "  <prop id=\"half_samples\" value=\"0.25\"/>\n");
}

static void put_link(FILE *out, const char *name, long long number, double bandwidth,
                     double latency_s, const char *policy)
{
    char giga[32], micro[32];
    fprintf(out,
            "  <link id=\"%s%lld\" bandwidth=\"%sGBps\" latency=\"%sus\" sharing_policy=\"%s\"/>\n",
            name, number, adl_units_print(bandwidth / 1e9, giga, sizeof giga),
            adl_units_print(latency_s * 1e6, micro, sizeof micro), policy);
}

/* A route is two NVLinks; or NIC, leaf, leaf, NIC; and between pods two uplinks more. */
static void links(const struct fat_tree *c, int64_t pods, FILE *out)
{
    int64_t nodes = c->gpus / c->node_size;
    double node_bandwidth = (double)c->nics * c->nic;
    for (int64_t p = 0; p < pods; p++) {
        int64_t in_pod = nodes - p * c->pod < c->pod ? nodes - p * c->pod : c->pod;
        put_link(out, "leaf", p, node_bandwidth, c->nic_latency / 4, "FATPIPE");
        if (pods > 1)
            put_link(out, "up", p, (double)in_pod * node_bandwidth / c->oversubscription,
                     c->switch_latency / 2, "SPLITDUPLEX");
    }
    for (int64_t g = 0; g < c->gpus && c->node_size > 1; g++)
        put_link(out, "nvlink", g, c->nvlink, c->nvlink_latency / 2, "SPLITDUPLEX");
    for (int64_t n = 0; n < nodes * c->nics; n++)
        put_link(out, "nic", n, c->nic, c->nic_latency / 4, "SPLITDUPLEX");
}

static void node(const struct fat_tree *c, int64_t k, FILE *out)
{
    long long first = (long long)(k * c->node_size), n = c->node_size;
    fprintf(out, "    <zone id=\"node%lld\" routing=\"Full\">\n", (long long)k);
    for (long long g = first; g < first + n; g++)
        fprintf(out, "      <host id=\"gpu%lld\" speed=\"%s\"/>\n", g, facts[c->gpu].speed);
    fprintf(out, "      <router id=\"node%lld_nics\"/>\n", (long long)k);
    for (long long a = first; a < first + n; a++)
        for (long long b = a + 1; b < first + n; b++)
            fprintf(out,
                    "      <route src=\"gpu%lld\" dst=\"gpu%lld\">"
                    "<link_ctn id=\"nvlink%lld\" direction=\"UP\"/>"
                    "<link_ctn id=\"nvlink%lld\" direction=\"DOWN\"/></route>\n",
                    a, b, a, b);
    for (long long g = 0; g < n; g++)
        fprintf(out,
                "      <route src=\"gpu%lld\" dst=\"node%lld_nics\">"
                "<link_ctn id=\"nic%lld\" direction=\"UP\"/></route>\n",
                first + g, (long long)k, (long long)(k * c->nics + g / (c->node_size / c->nics)));
    fprintf(out, "    </zone>\n");
}

static void switch_zone(FILE *out, const char *name)
{
    fprintf(out, "  <zone id=\"%s\" routing=\"Full\"><router id=\"%s_port\"/></zone>\n", name,
            name);
}

static void pod(const struct fat_tree *c, int64_t p, FILE *out)
{
    char leaf[32];
    int64_t end = (p + 1) * c->pod;
    if (end > c->gpus / c->node_size)
        end = c->gpus / c->node_size;
    fprintf(out, "  <zone id=\"pod%lld\" routing=\"Floyd\">\n  ", (long long)p);
    snprintf(leaf, sizeof leaf, "switch%lld", (long long)p);
    switch_zone(out, leaf);
    for (int64_t k = p * c->pod; k < end; k++)
        node(c, k, out);
    for (int64_t k = p * c->pod; k < end; k++)
        fprintf(out,
                "    <zoneRoute src=\"node%lld\" dst=\"%s\" gw_src=\"node%lld_nics\" "
                "gw_dst=\"%s_port\"><link_ctn id=\"leaf%lld\"/></zoneRoute>\n",
                (long long)k, leaf, (long long)k, leaf, (long long)p);
    fprintf(out, "  </zone>\n");
}

static enum adl_status make(const void *config, FILE *out, struct adl_err *err)
{
    struct fat_tree c = *(const struct fat_tree *)config;
    if (c.nics == ADL_UNSET_INT)
        c.nics = c.node_size;
    if (c.gpus % c.node_size != 0)
        return adl_fail(err, ADL_ERR_INPUT, "gpus: %lld is not a multiple of node_size %lld",
                        (long long)c.gpus, (long long)c.node_size);
    if (c.node_size % c.nics != 0)
        return adl_fail(err, ADL_ERR_INPUT, "nics: %lld does not divide node_size %lld",
                        (long long)c.nics, (long long)c.node_size);
    int64_t pods = (c.gpus / c.node_size + c.pod - 1) / c.pod;
    head(&c, out);
    switch_zone(out, "spine"); /* also where one pod is all: links cannot come first */
    links(&c, pods, out);
    for (int64_t p = 0; p < pods; p++)
        pod(&c, p, out);
    for (int64_t p = 0; p < pods && pods > 1; p++)
        fprintf(out,
                "  <zoneRoute src=\"pod%lld\" dst=\"spine\" gw_src=\"switch%lld_port\" "
                "gw_dst=\"spine_port\"><link_ctn id=\"up%lld\" direction=\"UP\"/></zoneRoute>\n",
                (long long)p, (long long)p, (long long)p);
    fprintf(out, "</zone>\n</platform>\n");
    return ferror(out) ? adl_fail(err, ADL_ERR_IO, "the platform could not be written") : ADL_OK;
}

const struct adl_platform_maker adl_make_fat_tree = {
    "fat_tree", "NVSwitch nodes with network interfaces, in pods under a spine.", options,
    sizeof(struct fat_tree), make};
