/* SPDX-License-Identifier: Apache-2.0 */
/* Devices (design 1: a GPU, or the g GPUs that a worker is sharded over) and how long they compute.
 * A micro-batch of s samples takes
 *   overhead + flops_per_sample (s / g + half) / speed,
 * so that its rate saturates with the samples in flight, and every inner step step_bytes / g /
 * memory bandwidth more: each instance moves its own weights and optimizer state.
 *
 * A sharded worker gathers its parameters for the forward and the backward pass of a micro-batch
 * and scatters its gradients: 3 (g - 1) / g S over the thinnest link between neighbours. Assumed,
 * as of FSDP with prefetching: what lies under device.shard_overlap of the micro-batch's compute
 * time is hidden, the rest is exposed transfer.
 *
 * Times differ: between devices for good (spread), from round to round (drift, which does not
 * average out over a round's steps), from step to step (jitter, stalls), and along a run
 * (sim/profile.h). Every draw is keyed by device or worker and round or step. */
#ifndef ADL_SIM_DEVICE_H
#define ADL_SIM_DEVICE_H

#include "core/transport.h"
#include "sim/options.h"
#include "sim/platform.h"
#include "sim/profile.h"

struct adl_device {
    int host;                                          /* the engine's, of its first GPU */
    double speed_flops;                                /* sustained, of its slowest GPU */
    double peak_flops;                                 /* of all GPUs; 0: unknown */
    double memory_bandwidth, overhead_s, half_samples; /* of a GPU */
    double gather_s_per_byte, gather_latency_s; /* of all gathers and the scatter of S together */
    const struct adl_profile *profile;          /* NULL: none */
};

struct adl_devices {
    int n, gpus; /* gpus: of each */
    struct adl_device *v;
    struct adl_profiles *profiles; /* NULL: none */
};

/* Puts a platform's GPUs together, with the experiment's overrides, the persistent spread and the
 * profiles. base_dir: where the profiles' path starts. */
enum adl_status adl_devices_open(const struct adl_engine_ops *engine,
                                 const struct adl_sim_platform *platform,
                                 const struct adl_sim_options *options, int gpus, uint64_t seed,
                                 const char *base_dir, struct adl_devices *out,
                                 struct adl_err *err);
void adl_devices_close(struct adl_devices *devices);

/* A block of steps: its time alone on the device, and how much of it keeps the device wholly
 * busy. The rest (launches, an unfilled device) can be filled by other streams. */
struct adl_block {
    double solo_s, busy_s;
    double exposed_s;  /* transfer inside the device that computing does not hide, after it */
    double backward_s; /* of its last micro-batch: two thirds of it */
};

/* What blocks draw from. */
struct adl_draws {
    const struct adl_sim_options *options;
    uint64_t seed;
    int64_t round_steps; /* inner.steps: which round a step belongs to */
    int device, worker;
};
struct adl_block adl_device_block(const struct adl_device *device, int gpus,
                                  const struct adl_cost *cost, const struct adl_work *work,
                                  const struct adl_draws *draws);

double adl_device_memory_s(const struct adl_device *device, int gpus, double bytes);

#endif
