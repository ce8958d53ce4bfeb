/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that fail, stay away and come back (core/faults.h). */
#include "core/controller.h"

#include <stdlib.h>

static enum adl_fault fault_of(const struct adl_controller *c, int worker, int64_t round)
{
    return adl_fault_of(c->faults, adl_device_of(c, worker), round, c->at_home[c->owner[worker]]);
}

/* Whether nobody of a trainer was left in a round: then it waited, and lost nothing. */
static bool all_out(const struct adl_controller *c, int trainer, int64_t round)
{
    for (int w = 0; w < c->n_workers; w++)
        if (c->owner[w] == trainer && fault_of(c, w, round) == ADL_FAULT_NONE)
            return false;
    return true;
}

static bool rejoins(const struct adl_controller *c, int worker, bool *fresh)
{
    return adl_fault_rejoins(c->faults, adl_device_of(c, worker), c->round,
                             c->at_home[c->owner[worker]], fresh) &&
           !all_out(c, c->owner[worker], c->round - 1);
}

/* A worker that has the trainer's state; there is one, as not all were out. */
static int source_of(const struct adl_controller *c, const struct adl_trainer *t)
{
    for (int i = 0; i < t->n_workers; i++)
        if (fault_of(c, t->workers[i], c->round - 1) == ADL_FAULT_NONE)
            return t->workers[i];
    return t->workers[0];
}

/* theta and outer momentum to the devices that are back. */
static enum adl_status welcome(struct adl_controller *c, struct adl_trainer *t, struct adl_err *err)
{
    int *back = malloc((size_t)t->n_workers * sizeof *back), n = 0;
    if (!back)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to send to %d workers", t->n_workers);
    for (int i = 0; i < t->n_workers; i++) {
        int w = t->workers[i];
        bool fresh, listed = n > 0 && adl_device_of(c, back[n - 1]) == adl_device_of(c, w);
        if (!rejoins(c, w, &fresh))
            continue;
        if (fresh)
            adl_inner_reset(&c->workers[w].inner, c->space, c->P, c->dtype);
        if (!listed)
            back[n++] = w;
    }
    int from = source_of(c, t);
    struct adl_move move = {.src = from,
                            .dst = back,
                            .n_dst = n,
                            .data = t->theta,
                            .into = t->theta,
                            .bytes = c->state_bytes,
                            .charged_bytes = c->S_bytes * (t->v ? 2 : 1),
                            .cause = ADL_CAUSE_REDISTRIBUTION};
    enum adl_status status = n > 0 ? adl_exchange_move(c, &move, err) : ADL_OK;
    free(back);
    return status == ADL_OK && n > 0 ? adl_share_inner(c, t, from, err) : status;
}

/* Which trainers lie within a node. */
static void find_homes(struct adl_controller *c)
{
    int per_node = c->layout.devices_per_node;
    for (int k = 0; k < c->n_trainers; k++) {
        int home = -1;
        c->at_home[k] = true;
        for (int w = 0; w < c->n_workers; w++) {
            int node = adl_device_of(c, w) / per_node;
            if (c->owner[w] != k)
                continue;
            c->at_home[k] &= home < 0 || home == node;
            home = node;
        }
    }
}

enum adl_status adl_faults_begin(struct adl_controller *c, struct adl_err *err)
{
    if (c->faults)
        find_homes(c);
    if (!c->faults || c->settings->faults.action == ADL_FAULT_WAIT)
        return ADL_OK;
    bool changed = false;
    for (int w = 0; w < c->n_workers; w++) {
        bool absent = fault_of(c, w, c->round) == ADL_FAULT_DOWN;
        changed = changed || absent != c->absent[w];
        c->absent[w] = absent;
    }
    if (changed)
        ADL_TRY(adl_apply_owner(c, NULL, err));
    for (int k = 0; k < c->n_trainers && c->round > 0; k++)
        if (c->trainers[k].alive)
            ADL_TRY(welcome(c, &c->trainers[k], err));
    return ADL_OK;
}

void adl_faults_strike(struct adl_round_plan *plan)
{
    struct adl_controller *c = plan->c;
    struct adl_trainer *t = plan->t;
    const struct adl_settings *s = c->settings;
    int struck = 0, out = 0;
    for (int i = 0; i < t->n_workers; i++) {
        enum adl_fault fault = fault_of(c, t->workers[i], t->round);
        struck += fault == ADL_FAULT_STRIKES;
        out += fault != ADL_FAULT_NONE;
    }
    bool waits = s->faults.action == ADL_FAULT_WAIT || out == t->n_workers;
    for (int i = 0; i < t->n_workers; i++) {
        struct adl_worker *w = &c->workers[t->workers[i]];
        w->lost = !waits && fault_of(c, t->workers[i], t->round) == ADL_FAULT_STRIKES;
    }
    t->faults += struck;
    if (struck > 0)
        plan->delay_s = waits ? s->faults.repair_s : s->faults.timeout_s;
}
