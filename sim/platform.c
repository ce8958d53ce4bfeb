/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/platform.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/field.h"

/* What the file is, while it is being read. */
struct reading {
    const struct adl_engine_ops *engine;
    const char *path;
    struct adl_sim_platform *platform;
    struct adl_err *err;
    bool checked; /* its links and routes, before */
};

#define ROW(key, unit, field, doc)                                                                 \
    {                                                                                              \
        key, ADL_TYPE_REAL, unit, "0", 0, INFINITY, NULL, doc,                                     \
            .offset = offsetof(struct adl_sim_device, field)                                       \
    }

static const struct adl_field device_properties[] = {
    ROW("memory", "B", memory_bytes, "Memory of a device."),
    ROW("memory_bandwidth", "B/s", memory_bandwidth, "Memory bandwidth of a device."),
    ROW("peak", "flop/s", peak_flops, "Peak speed of a device, for mfu."),
    ROW("overhead", "s", overhead_s, "Fixed time of a micro-batch."),
    ROW("half_samples", NULL, half_samples, "Samples at which a device is half as fast.")};
enum { N_DEVICE_PROPERTIES = sizeof device_properties / sizeof *device_properties };

static const struct adl_field nics_property = {
    "nics", ADL_TYPE_INT, NULL, "", 1, 4096, NULL, "Network interfaces of a node.", .offset = 0};
static const struct adl_field node_size_property = {
    "node_size", ADL_TYPE_INT, NULL, "", 1, 4096, NULL, "Devices of a node.", .offset = 0};
static const struct adl_field devices_property = {
    "devices",  ADL_TYPE_INT, NULL, "", 1, 4096, NULL, "Devices that a host stands for.",
    .offset = 0};

/* "path:line" of the element with this id, or "path" where a cluster made it: the engine does not
 * keep lines. The two directions of a link are called ID_UP and ID_DOWN. */
static const char *place(const struct reading *r, const char *id, char *buf, size_t size)
{
    char wanted[2][160], *line = NULL;
    snprintf(wanted[0], sizeof wanted[0], "id=\"%s\"", id);
    const char *end = strrchr(id, '_');
    snprintf(wanted[1], sizeof wanted[1], "id=\"%.*s\"", end ? (int)(end - id) : 0, id);
    snprintf(buf, size, "%s", r->path);
    FILE *file = fopen(r->path, "r");
    size_t cap = 0;
    for (int number = 1; file && getline(&line, &cap, file) > 0; number++)
        if (strstr(line, wanted[0]) || strstr(line, wanted[1])) {
            snprintf(buf, size, "%s:%d", r->path, number);
            break;
        }
    free(line);
    if (file)
        fclose(file);
    return buf;
}

static enum adl_status fail(const struct reading *r, const char *id, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static enum adl_status fail(const struct reading *r, const char *id, const char *fmt, ...)
{
    char where[600], what[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return adl_fail(r->err, ADL_ERR_INPUT, "%s: %s", place(r, id, where, sizeof where), what);
}

static enum adl_status no_memory(const struct reading *r)
{
    return adl_fail(r->err, ADL_ERR_NOMEM, "%s: no memory to read it", r->path);
}

static const char *name_of(const struct reading *r, int host)
{
    return r->engine->host_name(host);
}

/* Order of devices: the number that ends a host's name. */
struct named {
    long number;
    int host;
};

static int by_number(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static enum adl_status order_hosts(const struct reading *r, struct named *hosts, int n)
{
    for (int i = 0; i < n; i++) {
        const char *name = name_of(r, i);
        const char *digits = name + strlen(name);
        while (digits > name && isdigit((unsigned char)digits[-1]))
            digits--;
        if (!*digits || strlen(digits) > 9)
            return fail(r, name, "host '%s': its name must end in the number of the device", name);
        hosts[i] = (struct named){strtol(digits, NULL, 10), i};
    }
    qsort(hosts, (size_t)n, sizeof *hosts, by_number);
    for (int i = 1; i < n; i++)
        if (hosts[i].number == hosts[i - 1].number)
            return fail(r, name_of(r, hosts[i].host),
                        "hosts '%s' and '%s' have the same device number %ld",
                        name_of(r, hosts[i - 1].host), name_of(r, hosts[i].host), hosts[i].number);
    return ADL_OK;
}

static enum adl_status read_property(const struct reading *r, const struct adl_field *field,
                                     int host, const char *text, void *out)
{
    char where[800];
    snprintf(where, sizeof where, "%s: host '%s': property ", r->path, name_of(r, host));
    return adl_field_parse(field, text, NULL, where, out, r->err);
}

/* Most devices inherit the text of the one before, which needs no reading again. */
static enum adl_status read_device(const struct reading *r, int host, struct adl_sim_device *device,
                                   const struct adl_sim_device *before,
                                   const char *texts[N_DEVICE_PROPERTIES])
{
    device->host = host;
    device->speed_flops = r->engine->host_speed(host);
    if (!(device->speed_flops > 0) || isinf(device->speed_flops))
        return fail(r, name_of(r, host), "host '%s': speed %g is not %s", name_of(r, host),
                    device->speed_flops, isinf(device->speed_flops) ? "finite" : "above 0");
    for (int i = 0; i < N_DEVICE_PROPERTIES; i++) {
        const struct adl_field *f = &device_properties[i];
        const char *text = r->engine->property(host, f->key);
        char *value = (char *)device + f->offset;
        if (text && text == texts[i])
            memcpy(value, (const char *)before + f->offset, sizeof(double));
        else if (text)
            ADL_TRY(read_property(r, f, host, text, value));
        texts[i] = text;
    }
    return ADL_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Numbers groups (nodes, sites) of items [n] by runs of equal labels; *per_group is their common
 * size. A label that comes back after others, or unequal sizes, are errors. */
static enum adl_status group(const struct reading *r, const char *what, const char *of,
                             const char *const *labels, int n, int *groups, int *per_group)
{
    const char **seen = malloc((size_t)n * sizeof *seen);
    if (!seen)
        return no_memory(r);
    int count = 0, size = 0;
    enum adl_status status = ADL_OK;
    for (int i = 0, first = 0; i < n && status == ADL_OK; i++) {
        if (i == 0 || strcmp(labels[i], labels[i - 1]) != 0) {
            seen[count++] = labels[i];
            first = i;
        }
        groups[i] = count - 1;
        bool last = i + 1 == n || strcmp(labels[i], labels[i + 1]) != 0;
        if (last && count == 1)
            size = i + 1;
        if (last && i + 1 - first != size)
            status = fail(r, labels[i], "%s '%s' has %d %s, the first one %d: they must be equal",
                          what, labels[i], i + 1 - first, of, size);
    }
    qsort(seen, (size_t)count, sizeof *seen, by_text);
    for (int i = 1; i < count && status == ADL_OK; i++)
        if (strcmp(seen[i], seen[i - 1]) == 0)
            status = fail(r, seen[i], "%s '%s' does not hold consecutive %s", what, seen[i], of);
    free(seen);
    *per_group = size;
    return status;
}

static const char *label_of(const struct reading *r, int device, const char *key)
{
    return r->engine->property(r->platform->devices[device].host, key);
}

static enum adl_status group_nodes(const struct reading *r, const char **labels, int *groups)
{
    struct adl_sim_platform *p = r->platform;
    for (int d = 0; d < p->n_devices; d++) {
        labels[d] = label_of(r, d, "node");
        if (!labels[d])
            labels[d] = r->engine->host_zone(p->devices[d].host);
    }
    return group(r, "node", "devices", labels, p->n_devices, groups, &p->devices_per_node);
}

static enum adl_status group_nodes_and_sites(const struct reading *r)
{
    struct adl_sim_platform *p = r->platform;
    int n = p->n_devices;
    const char **labels = calloc((size_t)n, sizeof *labels);
    int *groups = malloc((size_t)n * sizeof *groups);
    enum adl_status status = labels && groups ? ADL_OK : no_memory(r);
    if (status == ADL_OK && !p->inner_loopback)
        status = group_nodes(r, labels, groups);
    if (status == ADL_OK) {
        int nodes = n / p->devices_per_node;
        for (int d = 0; d < n; d++)
            p->devices[d].node = p->inner_loopback ? d / p->devices_per_node : groups[d];
        for (int k = 0; k < nodes; k++) {
            labels[k] = label_of(r, k * p->devices_per_node, "site");
            if (!labels[k])
                labels[k] = "";
        }
        status = group(r, "site", "nodes", labels, nodes, groups, &p->nodes_per_site);
    }
    if (status == ADL_OK)
        for (int d = 0; d < n; d++)
            p->devices[d].site = groups[p->devices[d].node];
    free(labels);
    free(groups);
    return status;
}

/* NICs of a node: the same for all; what a single node has does not matter. */
static enum adl_status read_nics(const struct reading *r)
{
    struct adl_sim_platform *p = r->platform;
    p->nics_per_node = 1;
    if (p->devices_per_node == p->n_devices)
        return ADL_OK;
    for (int d = 0; d < p->n_devices; d += p->devices_per_node) {
        int host = p->devices[d].host;
        const char *text = r->engine->property(host, "nics");
        if (!text)
            return fail(r, r->engine->host_zone(host),
                        "node of host '%s': no property 'nics' (network interfaces of a node)",
                        name_of(r, host));
        int64_t nics;
        ADL_TRY(read_property(r, &nics_property, host, text, &nics));
        if (d > 0 && nics != p->nics_per_node)
            return fail(r, r->engine->host_zone(host),
                        "node of host '%s': property nics: %d, the first node has %d: they must be "
                        "equal",
                        name_of(r, host), (int)nics, p->nics_per_node);
        p->nics_per_node = (int)nics;
    }
    return ADL_OK;
}

static enum adl_status check_links(const struct reading *r)
{
    for (int i = 0; i < r->engine->n_links(); i++) {
        struct adl_engine_link link = r->engine->link(i);
        if (!(link.bandwidth > 0) || isinf(link.bandwidth))
            return fail(r, link.name, "link '%s': bandwidth %g is not %s", link.name,
                        link.bandwidth, isinf(link.bandwidth) ? "finite" : "above 0");
        if (!(link.latency_s >= 0) || isinf(link.latency_s))
            return fail(r, link.name, "link '%s': latency %g is %s", link.name, link.latency_s,
                        isinf(link.latency_s) ? "not finite" : "below 0");
    }
    return ADL_OK;
}

static enum adl_status check_route(const struct reading *r, int from, int to)
{
    const struct adl_sim_device *d = r->platform->devices;
    int link;
    if (from == to || adl_sim_platform_route(r->engine, r->platform, from, to, &link, 1) > 0)
        return ADL_OK;
    return fail(r, name_of(r, d[from].host), "no route from host '%s' to host '%s'",
                name_of(r, d[from].host), name_of(r, d[to].host));
}

/* Every pair of a small platform; of a large one every pair within a node and the neighbours of
 * rings, which by the nesting of zones cover the rest. */
static enum adl_status check_routes(const struct reading *r)
{
    enum { ALL_PAIRS = 256 };
    int n = r->platform->n_devices, node = r->platform->devices_per_node;
    int span = n <= ALL_PAIRS ? n : r->platform->inner_loopback ? 1 : node;
    for (int a = 0; a < n; a++) {
        for (int b = a - a % span; b < a - a % span + span && b < n; b++)
            ADL_TRY(check_route(r, a, b));
        ADL_TRY(check_route(r, a, a % node ? a - 1 : a + node - 1));
        ADL_TRY(check_route(r, a, (a + node) % n));
    }
    return ADL_OK;
}

/* A whole number that is said once for the platform: of the first host; 0 without it. */
static enum adl_status read_once(const struct reading *r, const struct adl_field *field, int host,
                                 int *out)
{
    const char *text = r->engine->property(host, field->key);
    int64_t value = 0;
    if (text)
        ADL_TRY(read_property(r, field, host, text, &value));
    *out = (int)value;
    return ADL_OK;
}

/* Whether nodes are written out or only their size, and the number of devices. */
static enum adl_status read_scale(const struct reading *r, int host, int n_hosts)
{
    struct adl_sim_platform *p = r->platform;
    int node_size, devices;
    ADL_TRY(read_once(r, &node_size_property, host, &node_size));
    ADL_TRY(read_once(r, &devices_property, host, &devices));
    if (node_size > 0 && devices > 0)
        return fail(r, "", "properties node_size: %d and devices: %d: one of them at most",
                    node_size, devices);
    if (node_size > 0 && n_hosts % node_size != 0)
        return fail(r, "", "property node_size: %d does not divide the %d hosts", node_size,
                    n_hosts);
    if (devices > INT_MAX / n_hosts)
        return fail(r, "", "property devices: %d for each of %d hosts are too many", devices,
                    n_hosts);
    p->inner_loopback = node_size > 0 || devices > 0;
    p->devices_per_host = devices > 0 ? devices : 1;
    p->devices_per_node = node_size > 0 ? node_size : p->devices_per_host;
    p->n_devices = n_hosts * p->devices_per_host;
    return ADL_OK;
}

static enum adl_status read_devices(const struct reading *r, const struct named *hosts, int n)
{
    struct adl_sim_platform *p = r->platform;
    ADL_TRY(read_scale(r, hosts[0].host, n));
    p->devices = calloc((size_t)p->n_devices, sizeof *p->devices);
    if (!p->devices)
        return no_memory(r);
    const char *texts[N_DEVICE_PROPERTIES] = {NULL};
    for (int h = 0; h < n; h++) {
        struct adl_sim_device *first = &p->devices[h * p->devices_per_host];
        ADL_TRY(read_device(r, hosts[h].host, first, h > 0 ? first - 1 : NULL, texts));
        for (int i = 1; i < p->devices_per_host; i++)
            first[i] = first[0];
    }
    return ADL_OK;
}

static enum adl_status collect(const struct reading *r)
{
    int n = r->engine->n_hosts();
    if (n == 0)
        return fail(r, "", "no hosts: a platform needs at least one device");
    struct named *hosts = malloc((size_t)n * sizeof *hosts);
    enum adl_status status = hosts ? order_hosts(r, hosts, n) : no_memory(r);
    if (status == ADL_OK)
        status = read_devices(r, hosts, n);
    free(hosts);
    ADL_TRY(status);
    ADL_TRY(group_nodes_and_sites(r));
    ADL_TRY(read_nics(r));
    if (r->checked)
        return ADL_OK;
    ADL_TRY(check_links(r));
    return check_routes(r);
}

int adl_sim_platform_end(const struct adl_sim_platform *platform, int from, int to)
{
    const struct adl_sim_device *a = &platform->devices[from], *b = &platform->devices[to];
    return platform->inner_loopback && a->node == b->node ? a->host : b->host;
}

int adl_sim_platform_route(const struct adl_engine_ops *engine,
                           const struct adl_sim_platform *platform, int from, int to, int *links,
                           int cap)
{
    return engine->route(platform->devices[from].host, adl_sim_platform_end(platform, from, to),
                         links, cap);
}

static enum adl_status open_file(struct reading *r)
{
    *r->platform = (struct adl_sim_platform){0};
    ADL_TRY(r->engine->open(r->path, r->err));
    enum adl_status status = collect(r);
    if (status != ADL_OK)
        adl_sim_platform_free(r->platform);
    return status;
}

enum adl_status adl_sim_platform_open(const struct adl_engine_ops *engine, const char *path,
                                      struct adl_sim_platform *out, struct adl_err *err)
{
    return open_file(&(struct reading){engine, path, out, err, .checked = false});
}

enum adl_status adl_sim_platform_reopen(const struct adl_engine_ops *engine, const char *path,
                                        struct adl_sim_platform *out, struct adl_err *err)
{
    return open_file(&(struct reading){engine, path, out, err, .checked = true});
}

void adl_sim_platform_free(struct adl_sim_platform *platform)
{
    free(platform->devices);
    *platform = (struct adl_sim_platform){0};
}
