/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/options.h"

#include <math.h>

#define AT(field) .offset = offsetof(struct adl_sim_options, field)

const struct adl_field adl_sim_options[] = {
    {"sim.fidelity", ADL_TYPE_CHOICE, NULL, "flow", 0, 0, "flow|analytic|message",
     "How exact the network is: `flow` simulates one flow for each edge of a collective where "
     "trainers meet, `analytic` takes each trainer as if alone, `message` simulates every message.",
     AT(fidelity)},
    {"sim.message_devices", ADL_TYPE_INT, NULL, "256", 2, 65536, NULL,
     "Most devices that fidelity `message` takes on: messages grow with their square.",
     AT(message_devices)},
    {"sim.background", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "Traffic of others, a list of {from: HOST, to: HOST, bandwidth: B/s or share: 0..1, start: s, "
     "end: s}: takes that much, or that share of its thinnest link, from every link of the route.",
     AT(background)},
    {"sim.profile", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "File of bandwidths over time, relative to the experiment: lines of `time link factor`, names "
     "with * for several links.",
     AT(link_profile)},
    {"sim.ddp_buckets", ADL_TYPE_INT, NULL, "16", 1, 4096, NULL,
     "Equal buckets of a gradient exchange: each starts as soon as the backward pass (two thirds "
     "of "
     "a step's last micro-batch) has made it, so that only what is left counts as exposed. 1: no "
     "overlap.",
     AT(ddp_buckets)},
    {"device.sharing", ADL_TYPE_CHOICE, NULL, "processor", 0, 0, "processor|turns",
     "How workers of one device share it: all at once at a share of its speed, or one at a time.",
     AT(sharing)},
    {"cluster.stagger", ADL_TYPE_REAL, "s", "0", 0, INFINITY, NULL,
     "Delay between the starts of the streams of a device, at every epoch's start: the k-th begins "
     "k times this later. It counts as idle.",
     AT(stagger_s)},
    {"device.overhead", ADL_TYPE_REAL, "s", "", 0, INFINITY, NULL,
     "Fixed time of a micro-batch; unset: the platform's.", AT(overhead_s)},
    {"device.half_samples", ADL_TYPE_REAL, NULL, "", 0, INFINITY, NULL,
     "Samples of a micro-batch at which a device reaches half of its sustained speed; unset: the "
     "platform's.",
     AT(half_samples)},
    {"device.shard_overlap", ADL_TYPE_REAL, NULL, "1", 0, 1, NULL,
     "Share of a micro-batch's compute time under which a sharded worker hides the gathering of "
     "its parameters and the scattering of its gradients.",
     AT(shard_overlap)},
    {"device.spread", ADL_TYPE_REAL, NULL, "0", 0, 2, NULL,
     "Persistent differences between GPUs: sigma of the lognormal factor on each one's speed.",
     AT(spread)},
    {"device.drift", ADL_TYPE_REAL, NULL, "0", 0, 2, NULL,
     "Differences between rounds: sigma of the lognormal factor (of mean 1) on a device's times in "
     "each round, which its steps share.",
     AT(drift)},
    {"device.jitter", ADL_TYPE_REAL, NULL, "0", 0, 2, NULL,
     "Differences between steps: sigma of the lognormal factor (of mean 1) on each step's time. "
     "They average out over the steps of a round.",
     AT(jitter)},
    {"device.jitter_law", ADL_TYPE_CHOICE, NULL, "lognormal", 0, 0, "lognormal|exponential",
     "Distribution of a step's time; `exponential` has no sigma and ignores device.jitter.",
     AT(jitter_law)},
    {"device.stall_probability", ADL_TYPE_REAL, NULL, "0", 0, 1, NULL,
     "Probability that a worker stalls in a step, as long as device.stall_time.",
     AT(stall_probability)},
    {"device.stall_time", ADL_TYPE_REAL, "s", "1", 0, INFINITY, NULL, "Length of a stall.",
     AT(stall_s)},
    {"device.profile", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL,
     "File of speeds over time, relative to the experiment: lines `time factor` for all devices or "
     "`time factor device`; a factor holds until the next line.",
     AT(profile)},
    {.key = NULL}};
