/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/make_common.h"

#include <stdarg.h>

#include "core/units.h"

enum adl_status adl_make_open(const struct adl_make_nodes *c, FILE *out, struct adl_make *make,
                              struct adl_err *err)
{
    *make = (struct adl_make){.out = out, .c = *c};
    if (c->gpus % c->node_size != 0)
        return adl_fail(err, ADL_ERR_INPUT, "gpus: %lld is not a multiple of node_size %lld",
                        (long long)c->gpus, (long long)c->node_size);
    if (c->nics == ADL_UNSET_INT)
        make->c.nics = c->node_size;
    if (c->node_size % make->c.nics != 0)
        return adl_fail(err, ADL_ERR_INPUT, "nics: %lld does not divide node_size %lld",
                        (long long)c->nics, (long long)c->node_size);
    if (c->detail == ADL_DETAIL_AUTO)
        make->c.detail = c->gpus <= ADL_MAKE_MAX_FULL  ? ADL_DETAIL_FULL
                         : c->gpus <= ADL_MAKE_MAX_GPU ? ADL_DETAIL_GPU
                                                       : ADL_DETAIL_NODE;
    make->n_nodes = c->gpus / c->node_size;
    return adl_gpu_runs_parse(c->gpu, c->gpus, c->node_size, make->runs, &make->n_runs, err);
}

void adl_make_line(const struct adl_make *make, const char *fmt, ...)
{
    va_list args;
    fprintf(make->out, "%*s", 2 * make->depth, "");
    va_start(args, fmt);
    vfprintf(make->out, fmt, args);
    va_end(args);
    fputc('\n', make->out);
}

void adl_make_zone(struct adl_make *make, const char *id, const char *routing)
{
    adl_make_line(make, "<zone id=\"%s\" routing=\"%s\">", id, routing);
    make->depth++;
}

void adl_make_close(struct adl_make *make)
{
    make->depth--;
    adl_make_line(make, "</zone>");
}

void adl_make_switch(struct adl_make *make, const char *id)
{
    adl_make_line(make, "<zone id=\"%s\" routing=\"Full\"><router id=\"%s_port\"/></zone>", id, id);
}

static void put_property(const struct adl_make *make, const char *key, const char *value)
{
    adl_make_line(make, "<prop id=\"%s\" value=\"%s\"/>", key, value);
}

static void put_number(const struct adl_make *make, const char *key, int64_t value)
{
    adl_make_line(make, "<prop id=\"%s\" value=\"%lld\"/>", key, (long long)value);
}

static void put_gpu(const struct adl_make *make, const struct adl_gpu_preset *gpu)
{
    put_property(make, "peak", gpu->peak);
    put_property(make, "memory", gpu->memory);
    put_property(make, "memory_bandwidth", gpu->memory_bandwidth);
}

static void put_sources(const struct adl_make *make)
{
    for (int i = 0; i < make->n_runs; i++) {
        bool told = false;
        for (int k = 0; k < i; k++)
            told = told || make->runs[k].gpu == make->runs[i].gpu;
        if (!told)
            fprintf(make->out, "     %s.\n", make->runs[i].gpu->source);
    }
}

void adl_make_head(struct adl_make *make, const char *kind, const char *about, const char *routing)
{
    const struct adl_make_nodes *c = &make->c;
    fprintf(make->out,
            "<?xml version=\"1.0\"?>\n"
            "<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
            "<!-- Made by `adloco platform make %s`: %lld devices (%s), %lld to a node with %lld "
            "network interfaces.\n     %s\n",
            kind, (long long)c->gpus, c->gpu, (long long)c->node_size, (long long)c->nics, about);
    put_sources(make);
    fprintf(make->out,
            "     Assumed: latencies; overhead (launches of a micro-batch); half_samples (512 "
            "tokens of\n     2048). -->\n<platform version=\"4.1\">\n");
    adl_make_zone(make, "cluster", routing);
    put_number(make, "nics", c->nics);
    if (c->detail == ADL_DETAIL_GPU)
        put_number(make, "node_size", c->node_size);
    if (c->detail == ADL_DETAIL_NODE)
        put_number(make, "devices", c->node_size);
    if (make->n_runs == 1)
        put_gpu(make, make->runs[0].gpu);
    put_property(make, "overhead", "1ms");
    put_property(make, "half_samples", "0.25");
}

enum adl_status adl_make_end(struct adl_make *make, struct adl_err *err)
{
    adl_make_close(make);
    fputs("</platform>\n", make->out);
    return ferror(make->out) ? adl_fail(err, ADL_ERR_IO, "the platform could not be written")
                             : ADL_OK;
}

static const char *giga(double bandwidth, char buf[32])
{
    return adl_units_print(bandwidth / 1e9, buf, 32);
}

static const char *micro(double latency_s, char buf[32])
{
    return adl_units_print(latency_s * 1e6, buf, 32);
}

void adl_make_link(const struct adl_make *make, const char *id, double bandwidth, double latency_s,
                   enum adl_make_sharing sharing)
{
    static const char *const policies[] = {[ADL_MAKE_SHARED] = "SHARED",
                                           [ADL_MAKE_DUPLEX] = "SPLITDUPLEX",
                                           [ADL_MAKE_UNSHARED] = "FATPIPE"};
    char a[32], b[32];
    adl_make_line(make,
                  "<link id=\"%s\" bandwidth=\"%sGBps\" latency=\"%sus\" sharing_policy=\"%s\"/>",
                  id, giga(bandwidth, a), micro(latency_s, b), policies[sharing]);
}

static const struct adl_gpu_preset *gpu_of(const struct adl_make *make, int64_t node)
{
    int i = 0;
    for (; node >= make->runs[i].n_nodes; i++)
        node -= make->runs[i].n_nodes;
    return make->runs[i].gpu;
}

static double nvlink_of(const struct adl_make *make, int64_t node)
{
    return isnan(make->c.nvlink) ? gpu_of(make, node)->link : make->c.nvlink;
}

double adl_make_node_bandwidth(const struct adl_make *make)
{
    return (double)make->c.nics * make->c.nic;
}

/* Which of all interfaces device g sends through. */
static long long nic_of(const struct adl_make *make, int64_t g)
{
    const struct adl_make_nodes *c = &make->c;
    return (long long)(g / c->node_size * c->nics + g % c->node_size / (c->node_size / c->nics));
}

void adl_make_links_begin(struct adl_make *make)
{
    const struct adl_make_nodes *c = &make->c;
    bool full = c->detail == ADL_DETAIL_FULL;
    char id[64];
    adl_make_zone(make, "links", "Full");
    if (c->detail == ADL_DETAIL_NODE)
        return;
    for (int64_t g = 0; g < c->gpus && c->node_size > 1; g++) {
        snprintf(id, sizeof id, "nvlink%lld", (long long)g);
        adl_make_link(make, id, nvlink_of(make, g / c->node_size),
                      full ? c->nvlink_latency / 2 : c->nvlink_latency,
                      full ? ADL_MAKE_DUPLEX : ADL_MAKE_SHARED);
    }
    for (int64_t n = 0; n < make->n_nodes * c->nics; n++) {
        snprintf(id, sizeof id, "nic%lld", (long long)n);
        adl_make_link(make, id, c->nic, full ? c->nic_latency / 4 : c->nic_latency / 2,
                      ADL_MAKE_DUPLEX);
    }
}

void adl_make_links_end(struct adl_make *make)
{
    adl_make_close(make);
}

/* In full detail the switch's own latency, twice on a route: in and out. */
void adl_make_group_link(const struct adl_make *make, const char *id)
{
    char leaf[80];
    if (make->c.detail != ADL_DETAIL_FULL)
        return;
    snprintf(leaf, sizeof leaf, "%s_leaf", id);
    adl_make_link(make, leaf, adl_make_node_bandwidth(make), make->c.nic_latency / 4,
                  ADL_MAKE_UNSHARED);
}

/* Routes are found by the engine: over the NVSwitch between two devices, over the interfaces to the
 * outside. From device to device both ways are two links; the router that comes first, the NVSwitch,
 * is the one taken. Writing out a route for each pair would take the engine twice as long. */
static void put_node(struct adl_make *make, int64_t k)
{
    const struct adl_gpu_preset *gpu = gpu_of(make, k);
    long long first = (long long)(k * make->c.node_size), end = first + make->c.node_size;
    char id[64];
    snprintf(id, sizeof id, "node%lld", (long long)k);
    adl_make_zone(make, id, "Floyd");
    if (make->n_runs > 1)
        put_gpu(make, gpu);
    for (long long g = first; g < end; g++)
        adl_make_line(make, "<host id=\"gpu%lld\" speed=\"%s\"/>", g, gpu->sustained);
    adl_make_line(make, "<router id=\"%s_nvswitch\"/>", id);
    adl_make_line(make, "<router id=\"%s_nics\"/>", id);
    for (long long g = first; g < end && make->c.node_size > 1; g++)
        adl_make_line(make,
                      "<route src=\"gpu%lld\" dst=\"%s_nvswitch\">"
                      "<link_ctn id=\"nvlink%lld\" direction=\"UP\"/></route>",
                      g, id, g);
    for (long long g = first; g < end; g++)
        adl_make_line(make,
                      "<route src=\"gpu%lld\" dst=\"%s_nics\">"
                      "<link_ctn id=\"nic%lld\" direction=\"UP\"/></route>",
                      g, id, nic_of(make, g));
    adl_make_close(make);
}

static void put_group_full(struct adl_make *make, const struct adl_make_group *group)
{
    adl_make_zone(make, group->id, "Floyd");
    char inner[80];
    snprintf(inner, sizeof inner, "%s_switch", group->id);
    adl_make_line(make, "<zone id=\"%s\" routing=\"Full\"><router id=\"%s_port\"/></zone>", inner,
                  group->id);
    for (int64_t k = group->first; k < group->end; k++)
        put_node(make, k);
    for (int64_t k = group->first; k < group->end; k++)
        adl_make_line(make,
                      "<zoneRoute src=\"node%lld\" dst=\"%s\" gw_src=\"node%lld_nics\" "
                      "gw_dst=\"%s_port\"><link_ctn id=\"%s_leaf\"/></zoneRoute>",
                      (long long)k, inner, (long long)k, group->id, group->id);
    adl_make_close(make);
}

static bool on_rail(const struct adl_make *make, const struct adl_make_group *group, int64_t g)
{
    return group->rail < 0 || nic_of(make, g) % make->c.nics == group->rail;
}

static void put_host(struct adl_make *make, int64_t g)
{
    const struct adl_gpu_preset *gpu = gpu_of(make, g / make->c.node_size);
    if (make->n_runs == 1) {
        adl_make_line(make, "<host id=\"gpu%lld\" speed=\"%s\"/>", (long long)g, gpu->sustained);
        return;
    }
    adl_make_line(make, "<host id=\"gpu%lld\" speed=\"%s\">", (long long)g, gpu->sustained);
    make->depth++;
    put_gpu(make, gpu);
    make->depth--;
    adl_make_line(make, "</host>");
}

static void put_group_gpu(struct adl_make *make, const struct adl_make_group *group)
{
    int64_t first = group->first * make->c.node_size, end = group->end * make->c.node_size;
    adl_make_zone(make, group->id, "Cluster");
    for (int64_t g = first; g < end; g++)
        if (on_rail(make, group, g))
            put_host(make, g);
    adl_make_line(make, "<router id=\"%s_port\"/>", group->id);
    for (int64_t g = first; g < end; g++)
        if (on_rail(make, group, g))
            adl_make_line(make,
                          "<host_link id=\"gpu%lld\" up=\"nic%lld_UP\" down=\"nic%lld_DOWN\"/>",
                          (long long)g, nic_of(make, g), nic_of(make, g));
    for (int64_t g = first; g < end && make->c.node_size > 1; g++)
        if (on_rail(make, group, g))
            adl_make_line(make,
                          "<route src=\"gpu%lld\" dst=\"gpu%lld\" symmetrical=\"NO\">"
                          "<link_ctn id=\"nvlink%lld\"/></route>",
                          (long long)g, (long long)g, (long long)g);
    adl_make_close(make);
}

/* A star whose center holds each flow to one interface. */
static enum adl_status put_group_node(struct adl_make *make, const struct adl_make_group *group,
                                      struct adl_err *err)
{
    const struct adl_make_nodes *c = &make->c;
    const struct adl_gpu_preset *gpu = gpu_of(make, group->first);
    for (int64_t k = group->first; k < group->end; k++)
        if (gpu_of(make, k) != gpu)
            return adl_fail(err, ADL_ERR_INPUT,
                            "gpu: %s holds %s and %s: detail node needs one kind under a switch",
                            group->id, gpu->name, gpu_of(make, k)->name);
    char a[32], b[32], d[32], e[32], f[32];
    adl_make_line(make,
                  "<cluster id=\"%s\" prefix=\"node\" suffix=\"\" radical=\"%lld-%lld\" "
                  "speed=\"%s\" bw=\"%sGBps\" lat=\"%sus\" sharing_policy=\"SPLITDUPLEX\" "
                  "bb_bw=\"%sGBps\" bb_lat=\"0us\" bb_sharing_policy=\"FATPIPE\" "
                  "loopback_bw=\"%sGBps\" loopback_lat=\"%sus\" router_id=\"%s_port\"%s",
                  group->id, (long long)group->first, (long long)group->end - 1, gpu->sustained,
                  giga(adl_make_node_bandwidth(make), a), micro(c->nic_latency / 2, b),
                  giga(c->nic, d), giga(nvlink_of(make, group->first), e),
                  micro(c->nvlink_latency, f), group->id, make->n_runs > 1 ? ">" : "/>");
    if (make->n_runs > 1) {
        make->depth++;
        put_gpu(make, gpu);
        make->depth--;
        adl_make_line(make, "</cluster>");
    }
    return ADL_OK;
}

enum adl_status adl_make_group(struct adl_make *make, const struct adl_make_group *group,
                               struct adl_err *err)
{
    if (make->c.detail == ADL_DETAIL_NODE)
        return put_group_node(make, group, err);
    if (make->c.detail == ADL_DETAIL_GPU)
        put_group_gpu(make, group);
    else
        put_group_full(make, group);
    return ADL_OK;
}
