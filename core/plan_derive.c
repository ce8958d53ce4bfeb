/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_derive.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/transport.h"
#include "core/units.h"

struct derivation {
    const struct adl_registry *registry;
    const char *experiment_path;
    const char *label;
    struct adl_config *config;
    const struct adl_transport_ops *transport;
    const struct adl_platform_facts *facts; /* NULL: no platform, or none that can be read */
    struct adl_settings s;                  /* as far as derived */
    struct adl_err *err;
};

static const char *origin(const struct derivation *d, const char *key)
{
    return adl_config_origin(d->config, key);
}

static enum adl_status refill(struct derivation *d)
{
    return adl_config_fill(d->config, adl_core_options, &d->s, d->err);
}

static enum adl_status set(struct derivation *d, const char *key, const char *text,
                           const char *from)
{
    char where[256];
    snprintf(where, sizeof where, "%s: from %s: ", d->label, from);
    return adl_config_set(d->config, key, text, where, from, d->err);
}

static enum adl_status set_int(struct derivation *d, const char *key, int64_t value,
                               const char *from)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, value);
    return set(d, key, text, from);
}

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* ---- what is unset ---- */

static enum adl_status derive_name(struct derivation *d)
{
    if (*d->s.name)
        return ADL_OK;
    const char *slash = strrchr(d->experiment_path, '/');
    char *name = strdup(slash ? slash + 1 : d->experiment_path);
    if (!name)
        return adl_fail(d->err, ADL_ERR_NOMEM, "%s: out of memory", d->label);
    char *dot = strrchr(name, '.');
    if (dot && dot != name)
        *dot = '\0';
    enum adl_status status = set(d, "name", name, "the file's name");
    free(name);
    return status;
}

static enum adl_status find_transport(struct derivation *d)
{
    const struct adl_transport_ops *const *list = d->registry->transports;
    for (; list && *list; list++)
        if (!strcmp((*list)->plugin.name, d->s.transport))
            d->transport = *list;
    return d->transport ? ADL_OK
                        : adl_fail(d->err, ADL_ERR_BUG, "transport %s is not in the registry",
                                   d->s.transport);
}

static enum adl_status read_platform(struct derivation *d, struct adl_platform_cache *platforms)
{
    if (!*d->s.cluster.platform) {
        if (d->transport->simulated)
            return adl_fail(d->err, ADL_ERR_INPUT,
                            "%s: transport: %s needs cluster.platform ('adloco platform list' "
                            "shows what is shipped)",
                            d->label, d->s.transport);
        return ADL_OK;
    }
    struct adl_err err = {0}; /* apart: a real transport does without */
    enum adl_status status = adl_platform_cache_get(platforms, d->registry, d->s.cluster.platform,
                                                    d->experiment_path, &d->facts, &err);
    if (status == ADL_OK)
        return ADL_OK;
    d->facts = NULL;
    if (status == ADL_ERR_UNSUPPORTED && !d->transport->simulated)
        return ADL_OK;
    return adl_fail(d->err, status, "%s", err.message);
}

/* The transport's own idea of the world, from its own options. */
static enum adl_status default_workers(struct derivation *d, int64_t *out)
{
    const struct adl_plugin *plugin = &d->transport->plugin;
    void *config = calloc(1, plugin->config_size ? plugin->config_size : 1);
    if (!config)
        return adl_fail(d->err, ADL_ERR_NOMEM, "%s: out of memory", d->label);
    enum adl_status status = adl_config_fill(d->config, plugin->options, config, d->err);
    int n_devices = d->facts ? d->facts->n_devices : 1;
    if (status == ADL_OK)
        *out =
            d->transport->default_workers(config, n_devices, (int)d->s.cluster.workers_per_device);
    free(config);
    return status;
}

static enum adl_status derive_workers(struct derivation *d)
{
    if (d->s.cluster.workers != ADL_UNSET_INT)
        return ADL_OK;
    int64_t workers = 0;
    ADL_TRY(default_workers(d, &workers));
    d->s.cluster.workers = workers;
    return set_int(d, "cluster.workers", workers,
                   d->transport->simulated ? "platform" : "transport");
}

/* One layout key: from the platform, which no file may contradict, else `otherwise`. */
static enum adl_status derive_layout_key(struct derivation *d, const char *key, int64_t *value,
                                         int in_platform, int64_t otherwise)
{
    if (*value == ADL_UNSET_INT) {
        *value = d->facts ? in_platform : otherwise;
        return set_int(d, key, *value, d->facts ? "platform" : "default");
    }
    if (d->facts && *value != in_platform)
        return adl_fail(d->err, ADL_ERR_INPUT, "%s: %s: %" PRId64 " (%s), but platform %s has %d",
                        d->label, key, *value, origin(d, key), d->s.cluster.platform, in_platform);
    return ADL_OK;
}

static enum adl_status derive_layout(struct derivation *d)
{
    static const struct adl_platform_facts none;
    const struct adl_platform_facts *facts = d->facts ? d->facts : &none;
    int64_t devices = divide_up(d->s.cluster.workers, d->s.cluster.workers_per_device);
    ADL_TRY(derive_layout_key(d, "cluster.layout.devices_per_node", &d->s.cluster.devices_per_node,
                              facts->devices_per_node, devices));
    int64_t nodes = divide_up(devices, d->s.cluster.devices_per_node);
    ADL_TRY(derive_layout_key(d, "cluster.layout.nodes_per_site", &d->s.cluster.nodes_per_site,
                              facts->nodes_per_site, nodes));
    return derive_layout_key(d, "cluster.layout.nics_per_node", &d->s.cluster.nics_per_node,
                             facts->nics_per_node, 1);
}

/* Length of the shortest pattern that speeds [n] repeat, as cluster.speeds does. */
static int64_t period(const double *speeds, int64_t n)
{
    for (int64_t p = 1; p < n; p++) {
        int64_t i = p;
        while (i < n && speeds[i] == speeds[i - p])
            i++;
        if (i == n)
            return p;
    }
    return n;
}

static enum adl_status derive_speeds(struct derivation *d)
{
    if (!d->facts || !d->facts->speeds || d->s.cluster.speeds.n > 0)
        return ADL_OK;
    int64_t devices = divide_up(d->s.cluster.workers, d->s.cluster.workers_per_device);
    int64_t n = period(d->facts->speeds, devices);
    if (n == 1)
        return ADL_OK;
    char *text = malloc((size_t)n * 34 + 3);
    if (!text)
        return adl_fail(d->err, ADL_ERR_NOMEM, "%s: out of memory", d->label);
    char *c = text;
    for (int64_t i = 0; i < n; i++) {
        char number[32];
        c = stpcpy(stpcpy(c, i ? ", " : "["),
                   adl_units_print(d->facts->speeds[i], number, sizeof number));
    }
    strcpy(c, "]");
    enum adl_status status = set(d, "cluster.speeds", text, "platform");
    free(text);
    return status;
}

/* ---- what cannot be ---- */

static enum adl_status check_world(const struct derivation *d)
{
    int64_t workers = d->s.cluster.workers, slots = d->s.cluster.workers_per_device;
    if (workers % slots != 0)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: cluster.workers: %" PRId64 " (%s) is not a multiple of "
                        "cluster.workers_per_device, %" PRId64 " (%s)",
                        d->label, workers, origin(d, "cluster.workers"), slots,
                        origin(d, "cluster.workers_per_device"));
    if (d->facts && workers > d->facts->n_devices * slots)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: cluster.workers: %" PRId64 " (%s), but platform %s has %d devices of "
                        "%" PRId64 " workers: at most %" PRId64,
                        d->label, workers, origin(d, "cluster.workers"), d->s.cluster.platform,
                        d->facts->n_devices, slots, d->facts->n_devices * slots);
    if (d->s.trainers > workers)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: trainers: %" PRId64 " (%s), but there are only %" PRId64
                        " workers (cluster.workers, %s); each trainer needs one",
                        d->label, d->s.trainers, origin(d, "trainers"), workers,
                        origin(d, "cluster.workers"));
    return ADL_OK;
}

static enum adl_status check_method(const struct derivation *d)
{
    if (d->s.outer.exchange == ADL_EXCHANGE_GRADIENTS && d->s.batch.balance == ADL_BALANCE_STEPS)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: batch.balance: steps (%s) gives workers unequal numbers of steps, "
                        "but outer.exchange: gradients (%s) exchanges at every step; even and "
                        "speed are possible",
                        d->label, origin(d, "batch.balance"), origin(d, "outer.exchange"));
    return ADL_OK;
}

static enum adl_status check_recorded(const struct derivation *d)
{
    if (strcmp(d->s.batch.policy, "recorded") != 0)
        return ADL_OK;
    if (!*d->s.batch.recorded)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: batch.policy: recorded (%s) needs batch.recorded, the records.jsonl "
                        "of an earlier run",
                        d->label, origin(d, "batch.policy"));
    return ADL_OK;
}

enum { MAX_NAME = 127 }; /* what a summary holds */

static enum adl_status check_name(const struct derivation *d)
{
    size_t n = strlen(d->s.name);
    return n <= MAX_NAME
               ? ADL_OK
               : adl_fail(d->err, ADL_ERR_INPUT, "%s: name: has %zu bytes, at most %d are allowed",
                          d->label, n, MAX_NAME);
}

enum adl_status adl_plan_derive(const struct adl_registry *registry,
                                struct adl_platform_cache *platforms, const char *experiment_path,
                                const char *label, struct adl_config *config, struct adl_err *err)
{
    struct derivation d = {registry, experiment_path, label, config, NULL, NULL, {0}, err};
    ADL_TRY(refill(&d));
    ADL_TRY(derive_name(&d));
    ADL_TRY(find_transport(&d));
    ADL_TRY(read_platform(&d, platforms));
    ADL_TRY(derive_workers(&d));
    ADL_TRY(check_world(&d));
    ADL_TRY(derive_layout(&d));
    ADL_TRY(derive_speeds(&d));
    ADL_TRY(refill(&d));
    ADL_TRY(check_name(&d));
    ADL_TRY(check_method(&d));
    return check_recorded(&d);
}
