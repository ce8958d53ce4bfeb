/* SPDX-License-Identifier: Apache-2.0 */
#include "core/assign.h"

#include <stdlib.h>

#include "core/batch.h"

void adl_placement_order(enum adl_placement placement, int n_workers, int workers_per_device,
                         int *order)
{
    int i = 0;
    if (placement == ADL_PLACE_PACKED) {
        for (; i < n_workers; i++)
            order[i] = i;
        return;
    }
    for (int slot = 0; slot < workers_per_device; slot++)
        for (int w = slot; w < n_workers; w += workers_per_device)
            order[i++] = w;
}

enum adl_status adl_assign(enum adl_placement placement, int n_workers, int workers_per_device,
                           int n_trainers, int *owner, struct adl_err *err)
{
    if (n_trainers > n_workers)
        return adl_fail(err, ADL_ERR_INPUT,
                        "trainers: %d of them for %d workers; at most one "
                        "trainer a worker",
                        n_trainers, n_workers);
    int *order = malloc((size_t)n_workers * sizeof *order);
    int64_t *shares = malloc((size_t)n_trainers * sizeof *shares);
    if (order && shares) {
        adl_placement_order(placement, n_workers, workers_per_device, order);
        adl_share(n_workers, NULL, n_trainers, shares);
        int next = 0;
        for (int k = 0; k < n_trainers; k++)
            for (int64_t i = 0; i < shares[k]; i++)
                owner[order[next++]] = k;
    }
    enum adl_status status = order && shares ? ADL_OK
                                             : adl_fail(err, ADL_ERR_NOMEM,
                                                        "no memory to assign "
                                                        "%d workers",
                                                        n_workers);
    free(order);
    free(shares);
    return status;
}

struct targets {
    int n_living;
    int *living;      /* [n_living] trainer indices, ascending */
    int64_t *workers; /* [n_trainers] wanted number; 0 for dead trainers */
    int64_t *held;    /* [n_trainers] present number */
    double *demand;   /* [n_living] */
    int64_t *share;   /* [n_living] */
};

static void free_targets(struct targets *t)
{
    free(t->living);
    free(t->workers);
    free(t->held);
    free(t->demand);
    free(t->share);
}

static enum adl_status find_targets(const int64_t *demands, int n_trainers, const int *owner,
                                    int n_workers, struct targets *t, struct adl_err *err)
{
    size_t n = (size_t)n_trainers;
    *t = (struct targets){.living = calloc(n, sizeof *t->living),
                          .workers = calloc(n, sizeof *t->workers),
                          .held = calloc(n, sizeof *t->held),
                          .demand = calloc(n, sizeof *t->demand),
                          .share = calloc(n, sizeof *t->share)};
    if (!t->living || !t->workers || !t->held || !t->demand || !t->share)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to redistribute %d workers", n_workers);
    for (int k = 0; k < n_trainers; k++)
        if (demands[k] > 0) {
            t->demand[t->n_living] = (double)demands[k];
            t->living[t->n_living++] = k;
        }
    if (t->n_living == 0 || t->n_living > n_workers)
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot give each of %d trainers one of %d workers",
                        t->n_living, n_workers);
    adl_share(n_workers, t->demand, t->n_living, t->share);
    for (int i = 0; i < t->n_living; i++)
        t->workers[t->living[i]] = t->share[i];
    for (int w = 0; w < n_workers; w++)
        if (owner[w] >= 0)
            t->held[owner[w]]++;
    return ADL_OK;
}

enum adl_status adl_redistribute(enum adl_placement placement, int n_workers,
                                 int workers_per_device, const int64_t *demands, int n_trainers,
                                 int *owner, struct adl_err *err)
{
    struct targets t;
    enum adl_status status = find_targets(demands, n_trainers, owner, n_workers, &t, err);
    int *order = malloc((size_t)n_workers * sizeof *order);
    if (status == ADL_OK && !order)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to redistribute %d workers", n_workers);
    if (status == ADL_OK) {
        adl_placement_order(placement, n_workers, workers_per_device, order);
        /* those with too many give up the last in order; the free ones fill up, in order */
        for (int i = n_workers - 1; i >= 0; i--) {
            int *o = &owner[order[i]];
            if (*o >= 0 && t.held[*o] > t.workers[*o]) {
                t.held[*o]--;
                *o = -1;
            }
        }
        int k = 0;
        for (int i = 0; i < n_workers; i++) {
            if (owner[order[i]] >= 0)
                continue;
            while (t.held[t.living[k]] >= t.workers[t.living[k]])
                k++;
            owner[order[i]] = t.living[k];
            t.held[t.living[k]]++;
        }
    }
    free(order);
    free_targets(&t);
    return status;
}
