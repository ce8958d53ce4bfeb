/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/device.h"

#include <math.h>

#include "core/rng.h"

void adl_devices_adjust(struct adl_sim_platform *platform, const struct adl_sim_options *options,
                        uint64_t seed)
{
    for (int d = 0; d < platform->n_devices; d++) {
        struct adl_sim_device *device = &platform->devices[d];
        if (!isnan(options->overhead_s))
            device->overhead_s = options->overhead_s;
        if (!isnan(options->half_samples))
            device->half_samples = options->half_samples;
        if (options->spread > 0) {
            struct adl_rng rng = adl_rng_make(seed, ADL_RNG_DEVICE_SPEED, (uint64_t)d, 0);
            double z;
            adl_rng_normals(&rng, 0, 1, &z);
            device->speed_flops *= exp(options->spread * z);
        }
    }
}

/* Mean over the steps of lognormal factors of mean 1. A last fraction of a step counts as such. */
static double mean_jitter(const struct adl_work *work, double sigma, uint64_t seed, int worker)
{
    struct adl_rng rng = adl_rng_make(seed, ADL_RNG_DEVICE_JITTER, (uint64_t)worker, 0);
    double sum = 0, z[64];
    for (double done = 0; done < work->steps;) {
        size_t n = (size_t)fmin(ceil(work->steps - done), sizeof z / sizeof *z);
        adl_rng_normals(&rng, work->step0 + (uint64_t)done, n, z);
        for (size_t i = 0; i < n; i++, done++)
            sum += fmin(1, work->steps - done) * exp(sigma * z[i] - sigma * sigma / 2);
    }
    return sum / work->steps;
}

struct adl_block adl_device_block(const struct adl_sim_device *device, const struct adl_cost *cost,
                                  const struct adl_work *work, double jitter, uint64_t seed,
                                  int worker)
{
    if (!(work->steps > 0))
        return (struct adl_block){0, 0};
    double sample_s = cost->flops_per_sample / device->speed_flops;
    double busy_s = work->samples * sample_s + adl_device_memory_s(device, cost->step_bytes);
    double unfilled_s =
        work->micro_batches * (device->overhead_s + device->half_samples * sample_s);
    double steps = work->steps;
    if (jitter > 0)
        steps *= mean_jitter(work, jitter, seed, worker);
    return (struct adl_block){steps * (busy_s + unfilled_s), steps * busy_s};
}

double adl_device_memory_s(const struct adl_sim_device *device, double bytes)
{
    return device->memory_bandwidth > 0 ? bytes / device->memory_bandwidth : 0;
}
