/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of the simulator: how exact it is, and how devices differ from the platform's. */
#ifndef ADL_SIM_OPTIONS_H
#define ADL_SIM_OPTIONS_H

#include "core/field.h"

enum adl_sharing { ADL_SHARE_PROCESSOR, ADL_SHARE_TURNS };

struct adl_sim_options {
    int fidelity;                    /* one so far: flow */
    int sharing;                     /* enum adl_sharing */
    double overhead_s, half_samples; /* NAN: the platform's */
    double spread, jitter;           /* sigmas */
};

extern const struct adl_field adl_sim_options[];

#endif
