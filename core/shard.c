/* SPDX-License-Identifier: Apache-2.0 */
#include "core/shard.h"

#include "core/account.h"

int adl_gpus_per_device(const struct adl_settings *settings)
{
    return settings->cluster.gpus_per_worker > 1 ? (int)settings->cluster.gpus_per_worker : 1;
}

struct adl_layout adl_layout_of(const struct adl_settings *settings)
{
    int gpus = adl_gpus_per_device(settings), nics = (int)settings->cluster.nics_per_node / gpus;
    return (struct adl_layout){.devices_per_node = (int)settings->cluster.devices_per_node / gpus,
                               .nodes_per_site = (int)settings->cluster.nodes_per_site,
                               .nics_per_node = nics > 0 ? nics : 1};
}

void adl_traffic_shard(struct adl_traffic *traffic, int gpus)
{
    for (int l = 0; l < ADL_N_LINK_CLASSES; l++) {
        traffic->messages[l] *= gpus;
        traffic->bytes[l] *= gpus;
    }
}

void adl_counts_shards(struct adl_counts *counts, int gpus, double micro_batches, double bytes)
{
    double g = gpus, exchanges = g > 1 ? 3 * micro_batches : 0;
    counts->exchanges[ADL_CAUSE_SHARD] += exchanges;
    counts->payload_bytes[ADL_CAUSE_SHARD] += exchanges * bytes;
    struct adl_traffic *traffic = &counts->traffic[ADL_CAUSE_SHARD];
    traffic->messages[ADL_LINK_INTRA_NODE] += exchanges * g * (g - 1);
    traffic->bytes[ADL_LINK_INTRA_NODE] += exchanges * (g - 1) * bytes;
}
