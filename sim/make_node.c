/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of one node: a group without others. */
#include "sim/make_node.h"

#include "sim/make_common.h"

struct node {
    int64_t gpus;
    double nvlink, nvlink_latency;
    const char *gpu;
};

#define AT(field) .offset = offsetof(struct node, field)

static const struct adl_field options[] = {
    {"gpus", ADL_TYPE_INT, NULL, "8", 1, 64, NULL, "Devices of the node.", AT(gpus)},
    {"nvlink", ADL_TYPE_REAL, "B/s", "", 1, INFINITY, NULL,
     "Bandwidth of a device to the others, each direction; unset: what the GPU has.", AT(nvlink)},
    {"nvlink_latency", ADL_TYPE_REAL, "s", "1us", 0, 1, NULL, "Latency between two devices.",
     AT(nvlink_latency)},
    {"gpu", ADL_TYPE_TEXT, NULL, "h100", 0, 0, NULL,
     "What the devices are: h100, h200, a100, mi300x or l40s.", AT(gpu)},
    {.key = NULL}};

/* Its interfaces are never used; the format asks for one. */
static enum adl_status make(const void *config, FILE *out, struct adl_err *err)
{
    const struct node *c = config;
    struct adl_make_nodes nodes = {.gpus = c->gpus,
                                   .node_size = c->gpus,
                                   .nics = 1,
                                   .nvlink = c->nvlink,
                                   .nvlink_latency = c->nvlink_latency,
                                   .nic = 50e9,
                                   .nic_latency = 4e-6,
                                   .gpu = c->gpu,
                                   .detail = ADL_DETAIL_FULL};
    struct adl_make m;
    ADL_TRY(adl_make_open(&nodes, out, &m, err));
    adl_make_head(&m, "node", "One node.", "Full");
    adl_make_links_begin(&m);
    adl_make_group_link(&m, "machine");
    adl_make_links_end(&m);
    ADL_TRY(adl_make_group(&m, &(struct adl_make_group){"machine", 0, 1, -1}, err));
    return adl_make_end(&m, err);
}

const struct adl_platform_maker adl_make_node = {"node", "One node of GPUs behind an NVSwitch.",
                                                 options, sizeof(struct node), make};
