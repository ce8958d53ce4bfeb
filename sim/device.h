/* SPDX-License-Identifier: Apache-2.0 */
/* How long devices compute. A micro-batch of s samples takes
 *   overhead + flops_per_sample (s + half) / speed,
 * so that its rate saturates with the samples in flight, and every inner step step_bytes / memory
 * bandwidth more: each instance moves its own weights and optimizer state. */
#ifndef ADL_SIM_DEVICE_H
#define ADL_SIM_DEVICE_H

#include "core/transport.h"
#include "sim/options.h"
#include "sim/platform.h"

/* A block of steps: its time alone on the device, and how much of it keeps the device wholly
 * busy. The rest (launches, an unfilled device) can be filled by other streams. */
struct adl_block {
    double solo_s, busy_s;
};

/* Applies the experiment's overrides and the persistent spread to the devices of a platform. */
void adl_devices_adjust(struct adl_sim_platform *platform, const struct adl_sim_options *options,
                        uint64_t seed);

/* worker: whose jitter. */
struct adl_block adl_device_block(const struct adl_sim_device *device, const struct adl_cost *cost,
                                  const struct adl_work *work, double jitter, uint64_t seed,
                                  int worker);

double adl_device_memory_s(const struct adl_sim_device *device, double bytes);

#endif
