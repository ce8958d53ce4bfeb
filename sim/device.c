/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/device.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"

/* ---- what differs for good ---- */

static double persistent_factor(double sigma, uint64_t seed, int gpu)
{
    if (!(sigma > 0))
        return 1;
    struct adl_rng rng = adl_rng_make(seed, ADL_RNG_DEVICE_SPEED, (uint64_t)gpu, 0);
    double z;
    adl_rng_normals(&rng, 0, 1, &z);
    return exp(sigma * z);
}

/* Three collectives of (g - 1) rounds, around the ring of the device's GPUs. */
static void find_gather(const struct adl_engine_ops *engine,
                        const struct adl_sim_platform *platform, int first, int gpus,
                        struct adl_device *device)
{
    double thinnest = INFINITY, latency_s = 0;
    for (int i = 0; i < gpus && gpus > 1; i++) {
        struct adl_path_facts path =
            adl_sim_platform_path(engine, platform, first + i, first + (i + 1) % gpus);
        thinnest = fmin(thinnest, path.bandwidth);
        latency_s = fmax(latency_s, path.latency_s);
    }
    device->gather_s_per_byte = 3.0 * (gpus - 1) / gpus / thinnest;
    device->gather_latency_s = 3.0 * (gpus - 1) * latency_s;
}

static void put_together(const struct adl_sim_platform *platform,
                         const struct adl_sim_options *options, int first, int gpus, uint64_t seed,
                         struct adl_device *device)
{
    const struct adl_sim_device *gpu = &platform->devices[first];
    *device = (struct adl_device){
        .host = gpu->host,
        .speed_flops = INFINITY,
        .memory_bandwidth = gpu->memory_bandwidth,
        .overhead_s = isnan(options->overhead_s) ? gpu->overhead_s : options->overhead_s,
        .half_samples = isnan(options->half_samples) ? gpu->half_samples : options->half_samples};
    for (int i = 0; i < gpus; i++) {
        double speed = gpu[i].speed_flops * persistent_factor(options->spread, seed, first + i);
        device->speed_flops = fmin(device->speed_flops, speed);
        device->peak_flops += gpu[i].peak_flops;
    }
}

enum adl_status adl_devices_open(const struct adl_engine_ops *engine,
                                 const struct adl_sim_platform *platform,
                                 const struct adl_sim_options *options, int gpus, uint64_t seed,
                                 const char *base_dir, struct adl_devices *out, struct adl_err *err)
{
    *out = (struct adl_devices){.n = platform->n_devices / gpus, .gpus = gpus};
    out->v = calloc((size_t)out->n + 1, sizeof *out->v);
    if (!out->v)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d devices", out->n);
    if (options->profile && *options->profile)
        ADL_TRY(adl_profiles_read(options->profile, base_dir, &out->profiles, err));
    for (int d = 0; d < out->n; d++) {
        put_together(platform, options, d * gpus, gpus, seed, &out->v[d]);
        find_gather(engine, platform, d * gpus, gpus, &out->v[d]);
        out->v[d].profile = adl_profiles_of(out->profiles, d);
    }
    return ADL_OK;
}

void adl_devices_close(struct adl_devices *devices)
{
    adl_profiles_free(devices->profiles);
    free(devices->v);
    *devices = (struct adl_devices){0};
}

/* ---- what differs from step to step ---- */

/* Factor of mean 1 on a round's times. */
static double drift(const struct adl_draws *draws, uint64_t step0)
{
    double sigma = draws->options->drift;
    if (!(sigma > 0))
        return 1;
    uint64_t round = draws->round_steps > 0 ? step0 / (uint64_t)draws->round_steps : step0;
    struct adl_rng rng =
        adl_rng_make(draws->seed, ADL_RNG_DEVICE_DRIFT, (uint64_t)draws->device, 0);
    double z;
    adl_rng_normals(&rng, round, 1, &z);
    return exp(sigma * z - sigma * sigma / 2);
}

/* Draws of steps step0 + done ... as factors of mean 1. */
static void step_factors(const struct adl_draws *draws, const struct adl_rng *rng, uint64_t first,
                         size_t n, double *factors)
{
    double sigma = draws->options->jitter;
    bool exponential = draws->options->jitter_law == ADL_JITTER_EXPONENTIAL;
    if (!exponential)
        adl_rng_normals(rng, first, n, factors);
    for (size_t i = 0; i < n; i++)
        factors[i] = exponential ? -log(adl_rng_uniform(rng, first + i))
                                 : exp(sigma * factors[i] - sigma * sigma / 2);
}

/* Mean over the steps. A last fraction of a step counts as such. */
static double mean_jitter(const struct adl_draws *draws, const struct adl_work *work)
{
    if (!(draws->options->jitter > 0) && draws->options->jitter_law == ADL_JITTER_LOGNORMAL)
        return 1;
    struct adl_rng rng =
        adl_rng_make(draws->seed, ADL_RNG_DEVICE_JITTER, (uint64_t)draws->worker, 0);
    double sum = 0, factors[64];
    for (double done = 0; done < work->steps;) {
        size_t n = (size_t)fmin(ceil(work->steps - done), sizeof factors / sizeof *factors);
        step_factors(draws, &rng, work->step0 + (uint64_t)done, n, factors);
        for (size_t i = 0; i < n; i++, done++)
            sum += fmin(1, work->steps - done) * factors[i];
    }
    return sum / work->steps;
}

static double stalls_s(const struct adl_draws *draws, const struct adl_work *work)
{
    double probability = draws->options->stall_probability, sum = 0;
    struct adl_rng rng =
        adl_rng_make(draws->seed, ADL_RNG_DEVICE_STALL, (uint64_t)draws->worker, 0);
    for (uint64_t k = 0; probability > 0 && k < (uint64_t)ceil(work->steps); k++)
        if (adl_rng_uniform(&rng, work->step0 + k) < probability)
            sum += draws->options->stall_s;
    return sum;
}

struct adl_block adl_device_block(const struct adl_device *device, int gpus,
                                  const struct adl_cost *cost, const struct adl_work *work,
                                  const struct adl_draws *draws)
{
    if (!(work->steps > 0))
        return (struct adl_block){0};
    double sample_s = cost->flops_per_sample / device->speed_flops;
    double samples_s = work->samples / gpus * sample_s;
    double unfilled_s =
        work->micro_batches * (device->overhead_s + device->half_samples * sample_s);
    double busy_s = samples_s + adl_device_memory_s(device, gpus, cost->step_bytes);
    double factor = mean_jitter(draws, work) * drift(draws, work->step0);
    double steps = work->steps * factor, micro_s = (samples_s + unfilled_s) * factor;
    double hidden_s = draws->options->shard_overlap * micro_s;
    double gathers_s =
        gpus > 1 ? work->micro_batches *
                       (device->gather_latency_s + device->gather_s_per_byte * cost->vector_bytes)
                 : 0;
    return (struct adl_block){.solo_s = steps * (busy_s + unfilled_s) + stalls_s(draws, work),
                              .busy_s = steps * busy_s,
                              .exposed_s = work->steps * fmax(0, gathers_s - hidden_s),
                              .backward_s = 2.0 / 3 * micro_s / work->micro_batches};
}

double adl_device_memory_s(const struct adl_device *device, int gpus, double bytes)
{
    return device->memory_bandwidth > 0 ? bytes / gpus / device->memory_bandwidth : 0;
}
