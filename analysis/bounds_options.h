/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of `adloco bounds`: constants for where no model, platform or batch policy gives them,
 * or where they shall be others. */
#ifndef ADL_ANALYSIS_BOUNDS_OPTIONS_H
#define ADL_ANALYSIS_BOUNDS_OPTIONS_H

#include "core/field.h"

struct adl_bounds_options { /* NAN: unset */
    double L, mu, s2, d0, D2;
    double epsilon, samples;
    double M, b, H, alpha, eta;
    double latency_s, bandwidth, inner_latency_s, inner_bandwidth, bytes;
    double step_s, sample_s;
};
extern const struct adl_field adl_bounds_options[];

#endif
