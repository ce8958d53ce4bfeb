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

/* A moment on this clock, for waits that end by themselves. */
static inline struct timespec adl_clock_in(double s)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    long ns = until.tv_nsec + (long)(1e9 * (s - (double)(long)s));
    until.tv_sec += (time_t)s + ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return until;
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
