/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the simulator: how exact it is, and how devices differ from the platform's. */
#ifndef ADL_SIM_OPTIONS_H
#define ADL_SIM_OPTIONS_H

#include "core/field.h"

enum adl_sharing { ADL_SHARE_PROCESSOR, ADL_SHARE_TURNS };
enum adl_jitter_law { ADL_JITTER_LOGNORMAL, ADL_JITTER_EXPONENTIAL };

struct adl_sim_options {
    int fidelity;                    /* enum adl_fidelity (sim/fidelity.h) */
    int64_t message_devices;
    const char *background, *link_profile; /* "" none (sim/capacity.h) */
    int64_t ddp_buckets;             /* of a gradient exchange; below 2: no overlap */
    int sharing;                     /* enum adl_sharing */
    double stagger_s;                /* between the starts of a device's streams */
    double overhead_s, half_samples; /* NAN: the platform's */
    double shard_overlap;            /* share of a micro-batch that hides its gathers */
    double spread, drift, jitter;    /* sigmas */
    int jitter_law;                  /* enum adl_jitter_law */
    double stall_probability, stall_s;
    const char *profile; /* "" none */
};

extern const struct adl_field adl_sim_options[];

#endif
