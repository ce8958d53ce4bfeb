/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the real transports: seconds by CLOCK_MONOTONIC since a moment of its own. */
#ifndef ADL_REAL_CLOCK_H
#define ADL_REAL_CLOCK_H

#include <time.h>

struct adl_clock {
    struct timespec start;
    double start_s; /* what it showed then */
};

/* From now on it shows s and goes on from there. */
static inline void adl_clock_set(struct adl_clock *clock, double s)
{
    clock_gettime(CLOCK_MONOTONIC, &clock->start);
    clock->start_s = s;
}

/* Never decreases between two settings. */
static inline double adl_clock_s(const struct adl_clock *clock)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* differences first: a double of seconds since boot would lose nanoseconds */
    return clock->start_s + ((double)(now.tv_sec - clock->start.tv_sec) +
                             1e-9 * (double)(now.tv_nsec - clock->start.tv_nsec));
}

#endif
