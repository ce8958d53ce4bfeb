/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of several GPUs (cluster.gpus_per_worker): a worker's model is sharded over them. To
 * everyone else they are one device; each of its exchanges runs as several in parallel, one for
 * each GPU's shard. */
#ifndef ADL_CORE_SHARD_H
#define ADL_CORE_SHARD_H

#include "core/collective.h"

/* GPUs of a device, at least 1. */
int adl_gpus_per_device(const struct adl_settings *settings);
/* How the settings' devices lie on the nodes. A shard has an interface of its own where there are
 * as many interfaces as GPUs. */
struct adl_layout adl_layout_of(const struct adl_settings *settings);
/* From the traffic of one shard to that of all `gpus` of them. */
void adl_traffic_shard(struct adl_traffic *traffic, int gpus);
/* Adds the traffic within devices of so many GPUs for a number of micro-batches: parameters are
 * gathered for the forward and the backward pass and gradients scattered, three collectives of
 * (gpus - 1) x bytes together. One GPU: nothing. */
struct adl_counts;
void adl_counts_shards(struct adl_counts *counts, int gpus, double micro_batches, double bytes);

#endif
