/* SPDX-License-Identifier: Apache-2.0 */
#include "core/controller.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/assign.h"
#include "core/records.h"

/* The living trainer with the smallest (sign 1) or largest (sign -1) request; ties go to the
 * lower index; `but` is left out. */
static int extreme(const int64_t *requests, int n, int sign, int but)
{
    int best = -1;
    for (int k = 0; k < n; k++)
        if (k != but && requests[k] > 0 && (best < 0 || sign * (requests[k] - requests[best]) < 0))
            best = k;
    return best;
}

void adl_merge_pair(enum adl_merge_policy policy, const int64_t *requests, int n, int *survivor,
                    int *victim)
{
    *survivor = *victim = -1;
    if (policy == ADL_MERGE_NONE)
        return;
    int worst = extreme(requests, n, 1, -1);
    int other = policy == ADL_MERGE_WORST_WITH_WORST ? extreme(requests, n, 1, worst)
                                                     : extreme(requests, n, -1, worst);
    if (worst < 0 || other < 0)
        return;
    /* the larger request survives; of equal ones the lower index */
    bool keep_other =
        requests[other] > requests[worst] || (requests[other] == requests[worst] && other < worst);
    *survivor = keep_other ? other : worst;
    *victim = keep_other ? worst : other;
}

/* One vector of the victim's to the survivor, averaged in: y = ws y + wv x. */
static void average_in(struct adl_controller *c, void *y, double ws, double wv, const void *x)
{
    if (y)
        c->space->combine(y, ws, y, wv, x, c->P, c->dtype);
}

static double vectors_charged(const struct adl_controller *c, const struct adl_trainer *t)
{
    return c->S_bytes * (t->v ? 2 : 1); /* theta and outer momentum */
}

static enum adl_status run_loss(struct adl_controller *c, double *loss, struct adl_err *err)
{
    *loss = NAN;
    return c->model_ops->eval_exact ? adl_controller_loss(c, loss, err) : ADL_OK;
}

static enum adl_status merge_pair(struct adl_controller *c, struct adl_trainer *survivor,
                                  struct adl_trainer *victim, struct adl_err *err)
{
    double total = (double)survivor->request + (double)victim->request;
    double ws = (double)survivor->request / total, wv = (double)victim->request / total;
    double before, after;
    ADL_TRY(run_loss(c, &before, err));
    struct adl_move move = {.src = victim->workers[0],
                            .dst = survivor->workers,
                            .n_dst = 1,
                            .data = victim->theta,
                            .into = victim->theta,
                            .bytes = c->state_bytes,
                            .charged_bytes = vectors_charged(c, victim),
                            .cause = ADL_CAUSE_MERGE};
    ADL_TRY(adl_exchange_move(c, &move, err));
    ADL_TRY(adl_share_victim(c, survivor, victim, err));
    if (adl_hosts(c, survivor, c->processes.rank)) {
        average_in(c, survivor->theta, ws, wv, victim->theta);
        average_in(c, survivor->v, ws, wv, victim->v);
    }
    victim->alive = false;
    victim->merged_into = survivor->index;
    c->merges++;
    ADL_TRY(run_loss(c, &after, err));
    adl_record_merge(c, survivor->index, victim->index, ws, wv, before, after);
    for (int i = 0; i < victim->n_workers; i++)
        c->owner[victim->workers[i]] = -1;
    victim->n_workers = 0;
    return ADL_OK;
}

static bool hosted(const struct adl_controller *c, const int *previous, int device, int trainer)
{
    int slots = (int)c->settings->cluster.workers_per_device, first = device * slots;
    for (int w = first; w < first + slots && w < c->n_workers; w++)
        if (previous[w] == trainer)
            return true;
    return false;
}

/* The survivor that a trainer ended in at this merge point, through others perhaps; or itself. */
static int ended_in(const struct adl_controller *c, int k)
{
    while (c->trainers[k].merged_into >= 0)
        k = c->trainers[k].merged_into;
    return k;
}

/* Whether a device held all that t is made of now: t itself and what was merged into it. Then it
 * needs nothing sent: with several trainers on every device, merging is local. */
static bool holds_all(const struct adl_controller *c, const int *previous, int device,
                      const struct adl_trainer *t)
{
    if (!hosted(c, previous, device, t->index))
        return false;
    for (int k = 0; k < c->n_trainers; k++)
        if (ended_in(c, k) == t->index && !hosted(c, previous, device, k))
            return false;
    return true;
}

/* theta and outer momentum from the trainer's first worker to the devices that lack them. */
static enum adl_status broadcast(struct adl_controller *c, const struct adl_trainer *t, int from,
                                 const int *previous, struct adl_err *err)
{
    int *lacking = malloc((size_t)t->n_workers * sizeof *lacking), n = 0;
    if (!lacking)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to broadcast to %d workers", t->n_workers);
    for (int i = 0; i < t->n_workers; i++) {
        int device = adl_device_of(c, t->workers[i]);
        bool listed = n > 0 && adl_device_of(c, lacking[n - 1]) == device;
        if (device != adl_device_of(c, from) && !listed && !holds_all(c, previous, device, t))
            lacking[n++] = t->workers[i];
    }
    enum adl_status status = ADL_OK;
    if (n > 0) {
        struct adl_move move = {.src = from,
                                .dst = lacking,
                                .n_dst = n,
                                .data = t->theta,
                                .into = t->theta,
                                .bytes = c->state_bytes,
                                .charged_bytes = vectors_charged(c, t),
                                .cause = ADL_CAUSE_REDISTRIBUTION};
        status = adl_exchange_move(c, &move, err);
    }
    free(lacking);
    return status;
}

/* The worker that holds a trainer's state when its workers change: the lowest it kept. Without
 * one it would have lost its state; the fewest-moves rule keeps at least one. */
static int first_kept(const struct adl_trainer *t, const int *previous)
{
    for (int i = 0; i < t->n_workers; i++)
        if (previous[t->workers[i]] == t->index)
            return t->workers[i];
    return t->workers[0];
}

static enum adl_status redistribute(struct adl_controller *c, const int *previous,
                                    struct adl_err *err)
{
    int64_t *demands = malloc((size_t)c->n_trainers * sizeof *demands);
    if (!demands)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d demands", c->n_trainers);
    for (int k = 0; k < c->n_trainers; k++)
        demands[k] = c->trainers[k].alive ? c->trainers[k].request : 0;
    enum adl_status status = adl_redistribute(c->settings->cluster.placement, c->n_workers,
                                              (int)c->settings->cluster.workers_per_device, demands,
                                              c->n_trainers, c->owner, err);
    free(demands);
    ADL_TRY(status);
    ADL_TRY(adl_apply_owner(c, previous, err));
    for (int k = 0; k < c->n_trainers; k++) {
        struct adl_trainer *t = &c->trainers[k];
        if (!t->alive)
            continue;
        int from = first_kept(t, previous);
        ADL_TRY(broadcast(c, t, from, previous, err));
        ADL_TRY(adl_share_inner(c, t, from, err));
    }
    return ADL_OK;
}

/* One pair; with policy `all`, until one trainer is left. Leaves the victims' workers at -1. */
static enum adl_status merge_all_pairs(struct adl_controller *c, int64_t *requests,
                                       struct adl_err *err)
{
    enum adl_merge_policy policy = c->settings->merge.policy;
    for (;;) {
        int survivor, victim;
        for (int k = 0; k < c->n_trainers; k++)
            requests[k] = c->trainers[k].alive ? c->trainers[k].request : 0;
        adl_merge_pair(policy, requests, c->n_trainers, &survivor, &victim);
        if (victim < 0)
            return ADL_OK;
        ADL_TRY(merge_pair(c, &c->trainers[survivor], &c->trainers[victim], err));
        if (policy != ADL_MERGE_ALL)
            return ADL_OK;
    }
}

enum adl_status adl_merge(struct adl_controller *c, struct adl_err *err)
{
    int *previous = malloc((size_t)c->n_workers * sizeof *previous);
    int64_t *requests = malloc((size_t)c->n_trainers * sizeof *requests);
    enum adl_status status = ADL_OK;
    if (!previous || !requests)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to merge %d trainers", c->n_trainers);
    if (status == ADL_OK) {
        for (int k = 0; k < c->n_trainers; k++)
            c->trainers[k].merged_into = -1;
        memcpy(previous, c->owner, (size_t)c->n_workers * sizeof *previous);
        status = merge_all_pairs(c, requests, err);
    }
    if (status == ADL_OK)
        status = redistribute(c, previous, err);
    free(previous);
    free(requests);
    return status;
}

/* Who is down has no part, unless the trainer has nobody else. */
static bool takes_part(const struct adl_controller *c, const struct adl_trainer *t, int worker,
                       bool others)
{
    return c->owner[worker] == t->index && !(others && c->absent[worker]);
}

static enum adl_status list_workers(struct adl_controller *c, struct adl_trainer *t,
                                    struct adl_err *err)
{
    bool present = false;
    for (int w = 0; w < c->n_workers; w++)
        present = present || (c->owner[w] == t->index && !c->absent[w]);
    size_t n = 0;
    for (int w = 0; w < c->n_workers; w++)
        n += takes_part(c, t, w, present);
    size_t room = n ? n : 1;
    t->n_scalars = ADL_N_SCALARS + (c->settings->cluster.measured ? n : 0);
    free(t->workers);
    free(t->devices);
    free(t->scalars);
    free(t->sums);
    free(t->in);
    t->workers = malloc(room * sizeof *t->workers);
    t->devices = malloc(room * sizeof *t->devices);
    t->scalars = malloc(room * t->n_scalars * sizeof *t->scalars);
    t->sums = malloc(t->n_scalars * sizeof *t->sums);
    t->in = malloc(room * sizeof *t->in);
    if (!t->workers || !t->devices || !t->scalars || !t->sums || !t->in)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a trainer of %zu workers", n);
    t->n_workers = t->n_devices = 0;
    for (int w = 0; w < c->n_workers; w++) {
        if (!takes_part(c, t, w, present))
            continue;
        int device = adl_device_of(c, w);
        t->workers[t->n_workers++] = w;
        if (t->n_devices == 0 || t->devices[t->n_devices - 1] != device)
            t->devices[t->n_devices++] = device;
    }
    return ADL_OK;
}

enum adl_status adl_apply_owner(struct adl_controller *c, const int *previous, struct adl_err *err)
{
    int first, n;
    c->transport_ops->local_workers(c->transport, &first, &n);
    for (int k = 0; k < c->n_trainers; k++) {
        struct adl_trainer *t = &c->trainers[k];
        ADL_TRY(list_workers(c, t, err));
        t->task = (struct adl_task){
            .trainer = k, .workers = t->workers, .n_workers = t->n_workers, .user = t};
        for (int i = 0; i < t->n_workers; i++) {
            if (t->workers[i] < first)
                t->task.first_local++;
            else if (t->workers[i] < first + n)
                t->task.n_local++;
        }
    }
    for (int w = 0; previous && w < c->n_workers; w++)
        if (c->owner[w] != previous[w])
            adl_inner_reset(&c->workers[w].inner, c->space, c->P, c->dtype);
    return ADL_OK;
}
