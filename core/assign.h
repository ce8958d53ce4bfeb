/* SPDX-License-Identifier: Apache-2.0 */
/* Which worker belongs to which trainer (design 4, Assignment). Pure functions of the same
 * numbers everywhere, so that every process agrees without asking. */
#ifndef ADL_CORE_ASSIGN_H
#define ADL_CORE_ASSIGN_H

#include <stdint.h>

#include "core/settings.h"
#include "core/status.h"

/* The order in which trainers take workers: order [n] is a permutation of 0..n-1.
 * spread: by slot, then device (a device's slots go to different trainers: multi-instance
 * training); packed: by device, then slot. */
void adl_placement_order(enum adl_placement placement, int n_workers, int workers_per_device,
                         int *order);

/* owner [n_workers]: trainers 0..n_trainers-1 take runs of the order, as even as possible.
 * More trainers than workers: ADL_ERR_INPUT. */
enum adl_status adl_assign(enum adl_placement placement, int n_workers, int workers_per_device,
                           int n_trainers, int *owner, struct adl_err *err);

/* After a merge: owner [n_workers] holds -1 for the victims' workers; demands [n_trainers] is
 * each living trainer's request, 0 for a dead one. Every living trainer ends with its largest-
 * remainder share of all workers by demand, at least one; the fewest workers move. Impossible
 * (more living trainers than workers): ADL_ERR_RUNTIME. The result depends on demands and on who
 * holds what now, the targets on demands alone. */
enum adl_status adl_redistribute(enum adl_placement placement, int n_workers,
                                 int workers_per_device, const int64_t *demands, int n_trainers,
                                 int *owner, struct adl_err *err);

#endif
