/* SPDX-License-Identifier: Apache-2.0 */
/* `adloco platform show`: what is in a platform, as text. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/collective.h"
#include "sim/platform.h"

enum { MAX_ROUTE = 64 };

static const struct {
    double scale;
    const char *prefix;
} prefixes[] = {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}};

static void print_quantity(FILE *out, const char *name, double value, const char *unit)
{
    size_t i = 0;
    while (prefixes[i].scale > 1 && value < prefixes[i].scale)
        i++;
    fprintf(out, "%s %.4g %s%s", name, value / prefixes[i].scale, prefixes[i].prefix, unit);
}

static void print_time(FILE *out, double s)
{
    if (s < 1e-3)
        fprintf(out, ", latency %.4g us", s * 1e6);
    else
        fprintf(out, ", latency %.4g ms", s * 1e3);
}

static void print_device(FILE *out, const struct adl_sim_device *d)
{
    print_quantity(out, "device: sustained", d->speed_flops, "flop/s");
    if (d->peak_flops > 0)
        print_quantity(out, ", peak", d->peak_flops, "flop/s");
    if (d->memory_bytes > 0)
        print_quantity(out, ", memory", d->memory_bytes, "B");
    if (d->memory_bandwidth > 0)
        print_quantity(out, " at", d->memory_bandwidth, "B/s");
    fprintf(out, "\n        %.4g ms a micro-batch, half speed at %.4g samples\n",
            d->overhead_s * 1e3, d->half_samples);
}

static void print_speeds(FILE *out, const struct adl_sim_platform *p)
{
    double low = p->devices[0].speed_flops, high = low;
    for (int d = 1; d < p->n_devices; d++) {
        double speed = p->devices[d].speed_flops;
        low = speed < low ? speed : low;
        high = speed > high ? speed : high;
    }
    if (low != high) {
        print_quantity(out, "speeds: from", low, "flop/s");
        print_quantity(out, " to", high, "flop/s");
        fputc('\n', out);
    }
}

/* What one flow finds between two devices. */
static void print_path(const struct adl_engine_ops *engine, const struct adl_sim_platform *p,
                       enum adl_link_class class, int from, int to, FILE *out)
{
    int n = adl_sim_platform_route(engine, p, from, to, NULL, 0);
    struct adl_path_facts path = adl_sim_platform_path(engine, p, from, to);
    fprintf(out, "%s: ", adl_link_class_names[class]);
    print_quantity(out, "bandwidth", path.bandwidth, "B/s");
    print_time(out, path.latency_s);
    fprintf(out, " (%s to %s, %d links)\n", engine->host_name(p->devices[from].host),
            engine->host_name(p->devices[to].host), n);
}

/* Rate at which the devices of the first half can all send to those of the second half at once:
 * equal flows, held by the fullest link. */
static void print_bisection(const struct adl_engine_ops *engine, const struct adl_sim_platform *p,
                            FILE *out)
{
    int half = p->n_devices / 2, links[MAX_ROUTE];
    int *load = calloc((size_t)engine->n_links(), sizeof *load);
    if (half == 0 || !load) {
        free(load);
        return;
    }
    double rate = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int d = 0; d < half; d++) {
            int n = adl_sim_platform_route(engine, p, d, d + half, links, MAX_ROUTE);
            for (int i = 0; i < n && i < MAX_ROUTE; i++) {
                struct adl_engine_link link = engine->link(links[i]);
                if (pass == 0) {
                    load[links[i]]++;
                    continue;
                }
                double share = link.bandwidth / (link.shared ? load[links[i]] : 1);
                if (rate == 0 || share < rate)
                    rate = share;
            }
        }
    print_quantity(out, "bisection: the first half sends", rate * half, "B/s");
    fprintf(out, " to the second half\n");
    free(load);
}

/* Links that are alike: the same name but for its numbers, bandwidth, latency and sharing. The two
 * directions of a link count once. */
struct kind {
    char name[48];
    struct adl_engine_link link;
    int n;
};

static void name_kind(const char *link, char *name, size_t size)
{
    size_t n = 0, end = strlen(link);
    if (end > 3 && strcmp(link + end - 3, "_UP") == 0)
        end -= 3;
    for (size_t i = 0; i < end && n + 1 < size; i++) {
        bool digit = isdigit((unsigned char)link[i]);
        if (!digit || n == 0 || name[n - 1] != '#')
            name[n++] = digit ? '#' : link[i];
    }
    name[n] = '\0';
}

static bool is_of_kind(const struct kind *kind, const char *name,
                       const struct adl_engine_link *link)
{
    return strcmp(kind->name, name) == 0 && kind->link.bandwidth == link->bandwidth &&
           kind->link.latency_s == link->latency_s && kind->link.shared == link->shared;
}

/* kinds [cap], those beyond are not told apart; the number found. */
static int find_kinds(const struct adl_engine_ops *engine, struct kind *kinds, int cap)
{
    int n = 0;
    for (int i = 0; i < engine->n_links(); i++) {
        struct adl_engine_link link = engine->link(i);
        size_t length = strlen(link.name);
        char name[sizeof kinds->name];
        if ((length > 5 && strcmp(link.name + length - 5, "_DOWN") == 0) ||
            strcmp(link.name, "__loopback__") == 0)
            continue;
        name_kind(link.name, name, sizeof name);
        int k = 0;
        while (k < n && !is_of_kind(&kinds[k], name, &link))
            k++;
        if (k == cap)
            continue;
        if (k == n) {
            kinds[n].link = link;
            snprintf(kinds[n++].name, sizeof name, "%s", name);
        }
        kinds[k].n++;
    }
    return n;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct kind *)a)->name, ((const struct kind *)b)->name);
}

static void print_links(const struct adl_engine_ops *engine, FILE *out)
{
    enum { MAX_KINDS = 24 };
    struct kind kinds[MAX_KINDS] = {{{0}, {0}, 0}};
    int n = find_kinds(engine, kinds, MAX_KINDS);
    qsort(kinds, (size_t)n, sizeof *kinds, by_name);
    fprintf(out, "links:\n");
    for (int i = 0; i < n; i++) {
        fprintf(out, "  %-24s %7d x", kinds[i].name, kinds[i].n);
        print_quantity(out, "", kinds[i].link.bandwidth, "B/s");
        print_time(out, kinds[i].link.latency_s);
        fputs(kinds[i].link.shared ? "\n" : ", not shared\n", out);
    }
    if (n == MAX_KINDS)
        fprintf(out, "  and possibly more kinds\n");
}

void adl_sim_platform_print(const struct adl_engine_ops *engine, const char *path,
                            const struct adl_sim_platform *p, FILE *out)
{
    int nodes = p->n_devices / p->devices_per_node, sites = nodes / p->nodes_per_site;
    fprintf(out, "platform: %s\n", path);
    fprintf(out, "devices: %d, nodes: %d of %d", p->n_devices, nodes, p->devices_per_node);
    fprintf(out, ", sites: %d of %d nodes", sites, p->nodes_per_site);
    if (nodes > 1)
        fprintf(out, ", network interfaces of a node: %d", p->nics_per_node);
    fputc('\n', out);
    print_device(out, &p->devices[0]);
    print_speeds(out, p);
    if (p->devices_per_node > 1)
        print_path(engine, p, ADL_LINK_INTRA_NODE, 0, 1, out);
    if (p->nodes_per_site > 1)
        print_path(engine, p, ADL_LINK_INTER_NODE, 0, p->devices_per_node, out);
    if (sites > 1)
        print_path(engine, p, ADL_LINK_WAN, 0, p->devices_per_node * p->nodes_per_site, out);
    print_links(engine, out);
    print_bisection(engine, p, out);
    fprintf(out, "checked: %s\n",
            p->n_devices <= 256 ? "every pair of devices has a route"
                                : "every device has routes within its node and to the next one");
}
