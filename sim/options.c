/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/options.h"

#include <math.h>

#define AT(field) offsetof(struct adl_sim_options, field)

const struct adl_field adl_sim_options[] = {
    {"sim.fidelity", ADL_TYPE_CHOICE, NULL, "flow", 0, 0, "flow",
     "How exact the network is: one flow for each edge of a collective.", AT(fidelity)},
    {"device.sharing", ADL_TYPE_CHOICE, NULL, "processor", 0, 0, "processor|turns",
     "How workers of one device share it: all at once at a share of its speed, or one at a time.",
     AT(sharing)},
    {"device.overhead", ADL_TYPE_REAL, "s", "", 0, INFINITY, NULL,
     "Fixed time of a micro-batch; unset: the platform's.", AT(overhead_s)},
    {"device.half_samples", ADL_TYPE_REAL, NULL, "", 0, INFINITY, NULL,
     "Samples of a micro-batch at which a device reaches half of its sustained speed; unset: the "
     "platform's.",
     AT(half_samples)},
    {"device.spread", ADL_TYPE_REAL, NULL, "0", 0, 2, NULL,
     "Persistent differences between devices: sigma of the lognormal factor on each one's speed.",
     AT(spread)},
    {"device.jitter", ADL_TYPE_REAL, NULL, "0", 0, 2, NULL,
     "Differences between steps: sigma of the lognormal factor (of mean 1) on each step's time.",
     AT(jitter)},
    {.key = NULL}};
