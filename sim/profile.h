/* SPDX-License-Identifier: Apache-2.0 */
/* Speeds of devices over time, from a file: a line is `time factor` for every device, or `time
 * factor device`; # starts a comment. A factor holds from its time (s) to the device's next line;
 * before the first it is 1. A device with lines of its own ignores the common ones. */
#ifndef ADL_SIM_PROFILE_H
#define ADL_SIM_PROFILE_H

#include "core/status.h"

struct adl_profile { /* of one device, or of all others */
    int device;      /* -1: all others */
    int n;
    const double *times_s, *factors; /* [n] times ascending, factors above 0 */
};

struct adl_profiles;

/* ADL_ERR_INPUT with file and line where it is not as above. path is relative to base_dir (may be
 * NULL) unless it starts with '/'. */
enum adl_status adl_profiles_read(const char *path, const char *base_dir, struct adl_profiles **out,
                                  struct adl_err *err);
void adl_profiles_free(struct adl_profiles *profiles); /* NULL is fine */
/* Of this device; NULL: its speed does not change. profiles may be NULL. */
const struct adl_profile *adl_profiles_of(const struct adl_profiles *profiles, int device);

/* When work of work_s at full speed ends that starts at start_s. profile may be NULL. */
double adl_profile_finish(const struct adl_profile *profile, double start_s, double work_s);
/* Seconds at full speed that get done from start_s to end_s. */
double adl_profile_work(const struct adl_profile *profile, double start_s, double end_s);

#endif
