/* SPDX-License-Identifier: Apache-2.0 */
/* Streams that share a device's speed. Each has busy seconds to get done and a rate that it cannot
 * exceed, what it alone makes of the device; rates are max-min fair and add up to 1 at most, times
 * the device's profile. */
#ifndef ADL_SIM_SHARE_H
#define ADL_SIM_SHARE_H

#include <stdbool.h>

#include "sim/profile.h"

struct adl_job {
    double left_s; /* of its busy seconds */
    double most;   /* rate it cannot exceed, in (0, 1] */
    double rate;   /* at present */
    double finish_s;
    bool done;
};

struct adl_share {         /* zeroed: nobody there */
    struct adl_job **jobs; /* [n] not done; borrowed */
    int n, cap;
    double at_s; /* up to which its jobs are worked off */
};
void adl_share_free(struct adl_share *share);
/* Forgets its jobs. */
void adl_share_clear(struct adl_share *share);

/* Works off what is there until now_s, which never decreases. */
void adl_share_advance(struct adl_share *share, const struct adl_profile *profile, double now_s);
/* Adds a job of busy_s busy seconds that would alone take solo_s; false: no memory. */
bool adl_share_add(struct adl_share *share, const struct adl_profile *profile, double now_s,
                   double busy_s, double solo_s, struct adl_job *job);
/* When a job that is not done will be, if nobody joins. */
double adl_share_predict(const struct adl_share *share, const struct adl_profile *profile,
                         const struct adl_job *job);

#endif
