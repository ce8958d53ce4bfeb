/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <stdlib.h>

#include "core/records.h"
#include "core/shard.h"

int adl_device_of(const struct adl_controller *c, int worker)
{
    return worker / (int)c->settings->cluster.workers_per_device;
}

double adl_now_s(const struct adl_controller *c)
{
    return c->base_s + c->transport_ops->now_s(c->transport);
}

enum adl_status adl_exchange(struct adl_controller *c, struct adl_trainer *t,
                             const struct adl_reduction *reduction)
{
    if (t->n_devices > 1) {
        struct adl_traffic traffic;
        adl_collective_traffic(c->settings->collective, &c->layout, t->devices, t->n_devices,
                               reduction->charged_bytes / c->gpus, &traffic);
        adl_traffic_shard(&traffic, c->gpus);
        adl_counts_exchange(&t->counts, reduction->cause, reduction->charged_bytes, &traffic);
        t->depth += 1;
    }
    double start_s = adl_now_s(c);
    struct adl_pending *pending = NULL;
    ADL_TRY(c->transport_ops->allreduce_start(c->transport, &t->task, reduction, &pending));
    ADL_TRY(c->transport_ops->allreduce_wait(c->transport, &t->task, pending));
    /* gradient exchanges are one row a block, written by the round */
    if (t->n_devices > 1 && reduction->cause != ADL_CAUSE_INNER)
        adl_record_sync(t, reduction->cause, 1, reduction->charged_bytes, start_s, adl_now_s(c));
    return ADL_OK;
}

enum adl_status adl_exchange_move(struct adl_controller *c, const struct adl_move *move,
                                  struct adl_err *err)
{
    int *devices = malloc((size_t)move->n_dst * sizeof *devices);
    if (!devices)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to move to %d workers", move->n_dst);
    int from = adl_device_of(c, move->src), n = 0;
    for (int i = 0; i < move->n_dst; i++) {
        int device = adl_device_of(c, move->dst[i]);
        if (device != from && (n == 0 || devices[n - 1] != device))
            devices[n++] = device;
    }
    if (n > 0) {
        struct adl_traffic traffic;
        adl_chain_traffic(&c->layout, from, devices, n, move->charged_bytes / c->gpus, &traffic);
        adl_traffic_shard(&traffic, c->gpus);
        adl_counts_exchange(&c->counts, move->cause, move->charged_bytes, &traffic);
        c->exchange_rounds += 1;
    }
    free(devices);
    return c->transport_ops->move(c->transport, move, 1, err);
}
