/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plan_derive.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/faults.h"
#include "core/memory.h"
#include "core/shard.h"
#include "core/transport.h"
#include "core/units.h"

/* Samples beyond which memory is no limit. */
static const double MAX_DERIVED_BATCH = 1e9;

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
    int n_devices = d->facts ? d->facts->n_devices / (int)d->s.cluster.gpus_per_worker : 1;
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
                              facts->devices_per_node, devices * d->s.cluster.gpus_per_worker));
    int64_t nodes =
        divide_up(devices * d->s.cluster.gpus_per_worker, d->s.cluster.devices_per_node);
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

/* GPUs that share a worker go at the pace of the slowest. */
static double slowest_of(const double *speeds, int64_t n)
{
    double slowest = speeds[0];
    for (int64_t i = 1; i < n; i++)
        slowest = fmin(slowest, speeds[i]);
    return slowest;
}

/* speeds [devices], text: scratch of 34 bytes a device and 3 more. */
static enum adl_status set_speeds(struct derivation *d, int64_t devices, double *speeds, char *text)
{
    int64_t gpus = d->s.cluster.gpus_per_worker;
    for (int64_t i = 0; i < devices; i++)
        speeds[i] = slowest_of(d->facts->speeds + i * gpus, gpus);
    int64_t n = period(speeds, devices);
    if (n == 1)
        return ADL_OK;
    char *c = text;
    for (int64_t i = 0; i < n; i++) {
        char number[32];
        c = stpcpy(stpcpy(c, i ? ", " : "["), adl_units_print(speeds[i], number, sizeof number));
    }
    strcpy(c, "]");
    return set(d, "cluster.speeds", text, "platform");
}

static enum adl_status derive_speeds(struct derivation *d)
{
    if (!d->facts || !d->facts->speeds || d->s.cluster.speeds.n > 0)
        return ADL_OK;
    int64_t devices = divide_up(d->s.cluster.workers, d->s.cluster.workers_per_device);
    double *speeds = malloc((size_t)devices * sizeof *speeds);
    char *text = malloc((size_t)devices * 34 + 3);
    enum adl_status status =
        speeds && text ? ADL_OK : adl_fail(d->err, ADL_ERR_NOMEM, "%s: out of memory", d->label);
    if (status == ADL_OK)
        status = set_speeds(d, devices, speeds, text);
    free(speeds);
    free(text);
    return status;
}

/* ---- memory ---- */

static double gpu_memory(const struct derivation *d)
{
    if (!isnan(d->s.device_memory_bytes))
        return d->s.device_memory_bytes;
    return d->facts ? d->facts->memory_bytes : 0;
}

static enum adl_status fail_memory(const struct derivation *d, const struct adl_memory *memory,
                                   double gpu_bytes)
{
    int64_t gpus = d->s.cluster.gpus_per_worker, slots = d->s.cluster.workers_per_device;
    char parts[96] = "model.stand_in.state_bytes";
    if (isnan(d->s.model.stand_in_state_bytes))
        snprintf(parts, sizeof parts, "weights and gradients %g, inner optimizer %g, outer %g",
                 memory->weights, memory->inner, memory->outer);
    return adl_fail(
        d->err, ADL_ERR_INPUT,
        "%s: model.stand_in.params: %g parameters at %g bytes (%s) are %.4g GB an instance; "
        "%" PRId64 " of them (cluster.workers_per_device, %s) take %.4g GB and a sample per GPU "
        "%.4g GB, but a device of %" PRId64 " GPUs (cluster.gpus_per_worker, %s) of %.4g GB (%s) "
        "has %.4g GB",
        d->label, d->s.model.stand_in_params, memory->param_bytes, parts, memory->state_bytes / 1e9,
        slots, origin(d, "cluster.workers_per_device"), (double)slots * memory->state_bytes / 1e9,
        (double)gpus * memory->sample_bytes / 1e9, gpus, origin(d, "cluster.gpus_per_worker"),
        gpu_bytes / 1e9, isnan(d->s.device_memory_bytes) ? "platform" : origin(d, "device.memory"),
        (double)gpus * gpu_bytes / 1e9);
}

/* The models' states must fit; what is left decides batch.max, unless that is given. */
static enum adl_status derive_batch_max(struct derivation *d)
{
    double gpu_bytes = gpu_memory(d);
    if (isnan(d->s.model.stand_in_params) || gpu_bytes <= 0)
        return ADL_OK;
    int64_t gpus = d->s.cluster.gpus_per_worker;
    struct adl_memory memory = adl_memory_of(&d->s);
    double samples = adl_memory_samples(&memory, (double)gpus * gpu_bytes, gpus,
                                        d->s.cluster.workers_per_device);
    bool given = strcmp(origin(d, "batch.max"), "default") != 0;
    if (samples < 0 || (samples < (double)gpus && !given))
        return fail_memory(d, &memory, gpu_bytes);
    if (given || !(samples < MAX_DERIVED_BATCH))
        return ADL_OK;
    return set_int(d, "batch.max", (int64_t)samples, "memory");
}

/* A sharded worker's samples are spread evenly over its GPUs. */
static enum adl_status derive_batch_initial(struct derivation *d)
{
    if (d->s.cluster.gpus_per_worker == 1 || strcmp(origin(d, "batch.initial"), "default") != 0)
        return ADL_OK;
    return set_int(d, "batch.initial", d->s.cluster.gpus_per_worker, "cluster.gpus_per_worker");
}

/* ---- what cannot be ---- */

static enum adl_status check_multiple(const struct derivation *d, const char *key, int64_t value)
{
    int64_t gpus = d->s.cluster.gpus_per_worker;
    if (value % gpus == 0)
        return ADL_OK;
    return adl_fail(
        d->err, ADL_ERR_INPUT,
        "%s: %s: %" PRId64 " (%s) is not a multiple of cluster.gpus_per_worker, %" PRId64 " (%s)",
        d->label, key, value, origin(d, key), gpus, origin(d, "cluster.gpus_per_worker"));
}

/* A device of several GPUs lies within a node, and its batches are spread over all of them. */
static enum adl_status check_shards(const struct derivation *d)
{
    ADL_TRY(check_multiple(d, "cluster.layout.devices_per_node", d->s.cluster.devices_per_node));
    ADL_TRY(check_multiple(d, "batch.initial", d->s.batch.initial));
    return check_multiple(d, "batch.max", d->s.batch.max);
}

static enum adl_status check_world(const struct derivation *d)
{
    int64_t workers = d->s.cluster.workers, slots = d->s.cluster.workers_per_device;
    if (workers % slots != 0)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: cluster.workers: %" PRId64 " (%s) is not a multiple of "
                        "cluster.workers_per_device, %" PRId64 " (%s)",
                        d->label, workers, origin(d, "cluster.workers"), slots,
                        origin(d, "cluster.workers_per_device"));
    int64_t devices = d->facts ? d->facts->n_devices / d->s.cluster.gpus_per_worker : 0;
    if (d->facts && workers > devices * slots)
        return adl_fail(d->err, ADL_ERR_INPUT,
                        "%s: cluster.workers: %" PRId64 " (%s), but platform %s has %" PRId64
                        " devices of %" PRId64 " workers: at most %" PRId64,
                        d->label, workers, origin(d, "cluster.workers"), d->s.cluster.platform,
                        devices, slots, devices * slots);
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

static enum adl_status check_faults(const struct derivation *d)
{
    struct adl_err err = {0};
    struct adl_faults *faults;
    int64_t devices = divide_up(d->s.cluster.workers, d->s.cluster.workers_per_device);
    struct adl_layout layout = adl_layout_of(&d->s);
    enum adl_status status =
        adl_faults_open(&d->s, (int)devices, layout.devices_per_node, &faults, &err);
    adl_faults_close(faults);
    return status == ADL_OK ? ADL_OK : adl_fail(d->err, status, "%s: %s", d->label, err.message);
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
    ADL_TRY(derive_batch_max(&d));
    ADL_TRY(derive_batch_initial(&d));
    ADL_TRY(refill(&d));
    ADL_TRY(check_shards(&d));
    ADL_TRY(check_name(&d));
    ADL_TRY(check_method(&d));
    ADL_TRY(check_faults(&d));
    return check_recorded(&d);
}
