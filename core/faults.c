/* SPDX-License-Identifier: Apache-2.0 */
#include "core/faults.h"

#include <math.h>
#include <stdlib.h>

#include "core/entries.h"
#include "core/rng.h"

struct event {
    int64_t device, node, link; /* ADL_UNSET_INT: not that */
    int64_t round, rounds;
};

#define AT(member) .offset = offsetof(struct event, member)

static const struct adl_field event_keys[] = {
    {"device", ADL_TYPE_INT, NULL, "", 0, 1048575, NULL, "A device.", AT(device)},
    {"node", ADL_TYPE_INT, NULL, "", 0, 1048575, NULL, "All devices of a node.", AT(node)},
    {"link", ADL_TYPE_INT, NULL, "", 0, 1048575, NULL,
     "A node's network: its devices cannot be reached from other nodes, but keep their state.",
     AT(link)},
    {"round", ADL_TYPE_INT, NULL, NULL, 0, 1e9, NULL, "In whose synchronization it strikes.",
     AT(round)},
    {"for", ADL_TYPE_INT, NULL, "1", 1, 1e9, NULL, "Rounds until it is back.", AT(rounds)},
    {0},
};

struct adl_faults {
    struct event *events; /* [n_events] */
    size_t n_events;
    int n_devices, devices_per_node;
    double rate;
    int64_t rounds; /* that a fault of the rate lasts */
    uint64_t seed;
};

static enum adl_status check_event(const struct adl_faults *f, size_t i, struct adl_err *err)
{
    const struct event *e = &f->events[i];
    int given =
        (e->device != ADL_UNSET_INT) + (e->node != ADL_UNSET_INT) + (e->link != ADL_UNSET_INT);
    if (given != 1)
        return adl_fail(err, ADL_ERR_INPUT,
                        "faults.events: entry %zu: needs one of device, node, link, has %d", i + 1,
                        given);
    int n_nodes = (f->n_devices + f->devices_per_node - 1) / f->devices_per_node;
    int64_t at = e->device != ADL_UNSET_INT ? e->device
                 : e->node != ADL_UNSET_INT ? e->node
                                            : e->link;
    int n = e->device != ADL_UNSET_INT ? f->n_devices : n_nodes;
    if (at >= n)
        return adl_fail(err, ADL_ERR_INPUT,
                        "faults.events: entry %zu: %s %lld, but there are %d, from 0", i + 1,
                        e->device != ADL_UNSET_INT ? "device" : "node", (long long)at, n);
    return ADL_OK;
}

enum adl_status adl_faults_open(const struct adl_settings *settings, int n_devices,
                                int devices_per_node, struct adl_faults **out, struct adl_err *err)
{
    *out = NULL;
    bool none = (!settings->faults.events || !*settings->faults.events);
    if (none && !(settings->faults.rate > 0))
        return ADL_OK;
    struct adl_faults *f = calloc(1, sizeof *f);
    if (!f)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for faults");
    *f = (struct adl_faults){.n_devices = n_devices,
                             .devices_per_node = devices_per_node,
                             .rate = settings->faults.rate,
                             .rounds = settings->faults.rounds,
                             .seed = (uint64_t)settings->seed};
    void *events = NULL;
    enum adl_status status =
        none ? ADL_OK
             : adl_entries_parse("faults.events", settings->faults.events, event_keys,
                                 sizeof *f->events, &events, &f->n_events, err);
    f->events = events;
    for (size_t i = 0; i < f->n_events && status == ADL_OK; i++)
        status = check_event(f, i, err);
    if (status != ADL_OK) {
        adl_faults_close(f);
        return status;
    }
    *out = f;
    return ADL_OK;
}

void adl_faults_close(struct adl_faults *faults)
{
    if (!faults)
        return;
    adl_entries_free(event_keys, sizeof *faults->events, faults->events, faults->n_events);
    free(faults);
}

static bool strikes_by_rate(const struct adl_faults *f, int device, int64_t round)
{
    struct adl_rng rng = adl_rng_make(f->seed, ADL_RNG_FAULT, (uint64_t)device, 0);
    return adl_rng_uniform(&rng, (uint64_t)round) < f->rate;
}

/* Whether a fault of a device runs in a round, and whether one has that began before it. *lost: one
 * that costs its state. */
static void look(const struct adl_faults *f, int device, int64_t round, bool at_home, bool *runs,
                 bool *from_before, bool *lost)
{
    int node = device / f->devices_per_node;
    *runs = *from_before = *lost = false;
    for (size_t i = 0; i < f->n_events; i++) {
        const struct event *e = &f->events[i];
        bool hits = e->device == device || e->node == node || (e->link == node && !at_home);
        if (!hits || round < e->round || round - e->round >= e->rounds)
            continue;
        *runs = true;
        *from_before |= e->round < round;
        *lost |= e->link == ADL_UNSET_INT;
    }
    for (int64_t q = round; f->rate > 0 && q >= 0 && q > round - f->rounds; q--)
        if (strikes_by_rate(f, device, q)) {
            *runs = *lost = true;
            *from_before |= q < round;
        }
}

enum adl_fault adl_fault_of(const struct adl_faults *faults, int device, int64_t round,
                            bool at_home)
{
    bool runs, from_before, lost;
    if (!faults || round < 0)
        return ADL_FAULT_NONE;
    look(faults, device, round, at_home, &runs, &from_before, &lost);
    if (!runs)
        return ADL_FAULT_NONE;
    return from_before ? ADL_FAULT_DOWN : ADL_FAULT_STRIKES;
}

bool adl_fault_rejoins(const struct adl_faults *faults, int device, int64_t round, bool at_home,
                       bool *fresh)
{
    bool runs, from_before;
    *fresh = false;
    if (adl_fault_of(faults, device, round - 1, at_home) == ADL_FAULT_NONE ||
        adl_fault_of(faults, device, round, at_home) == ADL_FAULT_DOWN)
        return false;
    look(faults, device, round - 1, at_home, &runs, &from_before, fresh);
    return true;
}

static bool changes(const struct adl_faults *f, int64_t round)
{
    for (int d = 0; d < f->n_devices; d++) {
        enum adl_fault before = adl_fault_of(f, d, round - 1, false);
        bool stays_down =
            before == ADL_FAULT_DOWN && adl_fault_of(f, d, round, false) == ADL_FAULT_DOWN;
        if (before != ADL_FAULT_NONE && !stays_down)
            return true;
    }
    return false;
}

int64_t adl_faults_next(const struct adl_faults *faults, int64_t round, int64_t until)
{
    int64_t next = round + 1;
    while (faults && next < until && !changes(faults, next))
        next++;
    return faults && next < until ? next : until;
}
