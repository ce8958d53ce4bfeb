/* SPDX-License-Identifier: Apache-2.0 */
/* A platform as a drawing (SVG): sites below each other, in each the groups of nodes that are near
 * each other, in each nodes with their devices, the paler the slower. Bars say what one flow finds.
 * Of many equal things the first few are drawn. */
#include <stdlib.h>

#include "core/collective.h"
#include "sim/platform.h"

enum { MAX_SITES = 6, MAX_GROUPS = 6, MAX_NODES = 5, MAX_DEVICES = 64 };
enum { SQUARE = 14, ROW = 8, PAD = 10, TEXT = 18, BAR = 26 };

struct picture {
    const struct adl_engine_ops *engine;
    const struct adl_sim_platform *p;
    FILE *out;
    double top_speed;
    int *group_begins; /* [n_groups + 1] first nodes of groups */
    int n_groups;
    int node_width, node_height, group_width, group_height, site_width, site_height;
};

static double hop_s(const struct picture *d, int node)
{
    int from = node * d->p->devices_per_node, to = from + d->p->devices_per_node;
    return adl_sim_platform_path(d->engine, d->p, from, to).latency_s;
}

/* A group ends where the way to the next node is longer than the shortest such way, and at the end
 * of its site. */
static enum adl_status find_groups(struct picture *d, struct adl_err *err)
{
    int per_site = d->p->nodes_per_site, nodes = d->p->n_devices / d->p->devices_per_node;
    d->group_begins = malloc(((size_t)nodes + 1) * sizeof *d->group_begins);
    if (!d->group_begins)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to draw %d nodes", nodes);
    double nearest_s = -1;
    for (int k = 0; k + 1 < nodes; k++)
        if ((k + 1) % per_site != 0 && (nearest_s < 0 || hop_s(d, k) < nearest_s))
            nearest_s = hop_s(d, k);
    for (int k = 0; k < nodes; k++)
        if (k % per_site == 0 || hop_s(d, k - 1) > nearest_s * (1 + 1e-9))
            d->group_begins[d->n_groups++] = k;
    d->group_begins[d->n_groups] = nodes;
    return ADL_OK;
}

static const char *quantity(double bandwidth, char *buf, size_t size)
{
    static const char *const prefixes[] = {"", "k", "M", "G", "T", "P"};
    int i = 0;
    for (; bandwidth >= 1000 && i < 5; i++)
        bandwidth /= 1000;
    snprintf(buf, size, "%.4g %sB/s", bandwidth, prefixes[i]);
    return buf;
}

static void box(const struct picture *d, int x, int y, int width, int height, const char *fill)
{
    fprintf(d->out,
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\" fill=\"%s\" "
            "stroke=\"#888\"/>\n",
            x, y, width, height, fill);
}

static void text(const struct picture *d, int x, int y, const char *what)
{
    fprintf(d->out, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y, what);
}

static void line(const struct picture *d, int x1, int y1, int x2, int y2)
{
    fprintf(d->out,
            "<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" stroke=\"#555\" stroke-width=\"2\"/>\n",
            x1, y1, x2, y2);
}

static void bar(const struct picture *d, int x, int y, int width, const char *name, int from,
                int to)
{
    char label[160], bandwidth[32];
    struct adl_path_facts path = adl_sim_platform_path(d->engine, d->p, from, to);
    bool long_way = path.latency_s >= 1e-3;
    snprintf(label, sizeof label, "%s: %s, %.4g %s", name,
             quantity(path.bandwidth, bandwidth, sizeof bandwidth),
             path.latency_s * (long_way ? 1e3 : 1e6), long_way ? "ms" : "us");
    box(d, x, y, width, BAR, "#e4ecd4");
    text(d, x + PAD / 2, y + TEXT, label);
}

static void draw_node(const struct picture *d, int node, int x, int y)
{
    char label[64];
    int n = d->p->devices_per_node;
    snprintf(label, sizeof label, "node %d", node);
    box(d, x, y, d->node_width, d->node_height, "#fff");
    text(d, x + PAD / 2, y + TEXT - 3, label);
    for (int i = 0; i < n && i < MAX_DEVICES; i++)
        fprintf(d->out,
                "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#2a6f97\" "
                "fill-opacity=\"%.2f\"/>\n",
                x + PAD / 2 + i % ROW * SQUARE, y + TEXT + 2 + i / ROW * SQUARE, SQUARE - 3,
                SQUARE - 3, d->p->devices[node * n + i].speed_flops / d->top_speed);
}

static void draw_group(const struct picture *d, int group, int x, int y)
{
    int first = d->group_begins[group], n = d->group_begins[group + 1] - first;
    int devices = d->p->devices_per_node;
    char more[64];
    box(d, x, y, d->group_width, d->group_height, "#f4f4f4");
    if (n > 1)
        bar(d, x + PAD, y + PAD, d->group_width - 2 * PAD, "switch", first * devices,
            (first + 1) * devices);
    for (int k = 0; k < n && k < MAX_NODES; k++)
        draw_node(d, first + k, x + PAD, y + 2 * PAD + BAR + k * (d->node_height + PAD));
    snprintf(more, sizeof more, "and %d nodes more", n - MAX_NODES);
    if (n > MAX_NODES)
        text(d, x + PAD, y + d->group_height - PAD / 2, more);
}

/* groups [first, end) */
static void draw_site(const struct picture *d, int site, int first, int end, int x, int y)
{
    int devices = d->p->devices_per_node;
    char label[64];
    snprintf(label, sizeof label, "site %d: %d nodes", site, d->p->nodes_per_site);
    box(d, x, y, d->site_width, d->site_height, "#fafafa");
    text(d, x + PAD, y + TEXT, label);
    if (end - first > 1)
        bar(d, x + PAD, y + TEXT + PAD, d->site_width - 2 * PAD, "between switches",
            d->group_begins[first] * devices, d->group_begins[first + 1] * devices);
    int top = y + TEXT + 2 * PAD + BAR + TEXT;
    for (int g = first; g < end && g - first < MAX_GROUPS; g++) {
        int left = x + PAD + (g - first) * (d->group_width + PAD);
        if (end - first > 1)
            line(d, left + d->group_width / 2, top, left + d->group_width / 2, top - TEXT - PAD);
        draw_group(d, g, left, top);
    }
    snprintf(label, sizeof label, "and %d groups more", end - first - MAX_GROUPS);
    if (end - first > MAX_GROUPS)
        text(d, x + PAD, y + d->site_height - PAD / 2, label);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most_nodes(const struct picture *d)
{
    int most = 0;
    for (int g = 0; g < d->n_groups; g++)
        if (d->group_begins[g + 1] - d->group_begins[g] > most)
            most = d->group_begins[g + 1] - d->group_begins[g];
    return most;
}

/* Sites are alike: the first one's groups give the width. */
static void measure(struct picture *d)
{
    int devices = least(d->p->devices_per_node, MAX_DEVICES), nodes = most_nodes(d), groups = 0;
    while (groups < d->n_groups && d->group_begins[groups] < d->p->nodes_per_site)
        groups++;
    d->node_width = 230;
    d->node_height = TEXT + PAD + (devices + ROW - 1) / ROW * SQUARE;
    d->group_width = d->node_width + 2 * PAD;
    d->group_height = 2 * PAD + BAR + least(nodes, MAX_NODES) * (d->node_height + PAD) +
                      (nodes > MAX_NODES ? TEXT : 0);
    d->site_width = PAD + least(groups, MAX_GROUPS) * (d->group_width + PAD);
    d->site_height = 2 * TEXT + 3 * PAD + BAR + d->group_height + (groups > MAX_GROUPS ? TEXT : 0);
}

static void draw(struct picture *d)
{
    int nodes = d->p->n_devices / d->p->devices_per_node, sites = nodes / d->p->nodes_per_site;
    int drawn = least(sites, MAX_SITES), left = sites > 1 ? 5 * PAD : PAD,
        wan = sites > 1 ? BAR : 0;
    int height = 2 * PAD + wan + drawn * (d->site_height + PAD) + (sites > MAX_SITES ? TEXT : 0);
    char label[96];
    fprintf(d->out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\"/>\n",
            left + d->site_width + PAD, height);
    if (sites > 1)
        bar(d, PAD, PAD, left + d->site_width - PAD, "between sites", 0,
            d->p->nodes_per_site * d->p->devices_per_node);
    for (int s = 0, g = 0; s < drawn; s++) {
        int first = g, y = 2 * PAD + wan + s * (d->site_height + PAD);
        while (g < d->n_groups && d->group_begins[g] < (s + 1) * d->p->nodes_per_site)
            g++;
        if (sites > 1) {
            line(d, 2 * PAD, PAD + BAR, 2 * PAD, y + d->site_height / 2);
            line(d, 2 * PAD, y + d->site_height / 2, left, y + d->site_height / 2);
        }
        draw_site(d, s, first, g, left, y);
    }
    snprintf(label, sizeof label, "and %d sites more", sites - MAX_SITES);
    if (sites > MAX_SITES)
        text(d, left, height - PAD / 2, label);
    fputs("</svg>\n", d->out);
}

enum adl_status adl_sim_platform_draw(const struct adl_engine_ops *engine,
                                      const struct adl_sim_platform *platform, FILE *out,
                                      struct adl_err *err)
{
    struct picture d = {.engine = engine, .p = platform, .out = out};
    ADL_TRY(find_groups(&d, err));
    for (int i = 0; i < platform->n_devices; i++)
        if (platform->devices[i].speed_flops > d.top_speed)
            d.top_speed = platform->devices[i].speed_flops;
    measure(&d);
    draw(&d);
    free(d.group_begins);
    return ADL_OK;
}
