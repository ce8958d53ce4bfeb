/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices are down in which rounds: a pure function of the experiment's schedule and seed, so
 * that a fault changes decisions and counts alike on every transport. Rounds are a trainer's own,
 * from 0.
 *
 * A fault strikes in the synchronization of its first round: what the device computed in it is
 * lost. With faults.action: drop the trainer goes on without it (weights renormalised), and it
 * comes back at the first epoch after `for` rounds, its first one included, with the trainer's
 * parameters sent to it and a fresh inner state. With wait, and where a trainer has nobody else,
 * the trainer waits for the repair, and nothing is lost. The link of a node does not matter to a
 * trainer that lies within the node; what trainers exchange with each other, between epochs, is
 * never held up. */
#ifndef ADL_CORE_FAULTS_H
#define ADL_CORE_FAULTS_H

#include <stdbool.h>

#include "core/settings.h"

enum adl_fault_action { ADL_FAULT_DROP, ADL_FAULT_WAIT };

enum adl_fault {
    ADL_FAULT_NONE,
    ADL_FAULT_STRIKES, /* first round: it computes, and fails in the synchronization */
    ADL_FAULT_DOWN     /* a later one: it is not there */
};

struct adl_faults;

/* *out is NULL where the settings have no faults. devices_per_node: groups of gpus_per_worker. */
enum adl_status adl_faults_open(const struct adl_settings *settings, int n_devices,
                                int devices_per_node, struct adl_faults **out, struct adl_err *err);
void adl_faults_close(struct adl_faults *faults); /* NULL is fine */

/* faults may be NULL: none. A round below 0: none. at_home: all that it exchanges with is on its
 * node, whose link does not matter then. */
enum adl_fault adl_fault_of(const struct adl_faults *faults, int device, int64_t round,
                            bool at_home);
/* Whether a device that was struck or down in the round before is there in this one. *fresh: and
 * has lost its state (not where only its link was down). */
bool adl_fault_rejoins(const struct adl_faults *faults, int device, int64_t round, bool at_home,
                       bool *fresh);
/* The first round after `round`, and before `until`, in which a device leaves or rejoins; until if
 * there is none. */
int64_t adl_faults_next(const struct adl_faults *faults, int64_t round, int64_t until);

#endif
