/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the real transports: seconds since it was started, by CLOCK_MONOTONIC. */
#ifndef ADL_REAL_CLOCK_H
#define ADL_REAL_CLOCK_H

#include <stdbool.h>
#include <time.h>

struct adl_clock { /* all zero: not started */
    struct timespec start;
    bool started;
};

/* Starts it, if it is not running yet. */
static inline void adl_clock_start(struct adl_clock *clock)
{
    if (!clock->started)
        clock_gettime(CLOCK_MONOTONIC, &clock->start);
    clock->started = true;
}

/* Never decreases; 0 before the start. */
static inline double adl_clock_s(const struct adl_clock *clock)
{
    if (!clock->started)
        return 0;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    /* differences first: a double of seconds since boot would lose nanoseconds */
    return (double)(now.tv_sec - clock->start.tv_sec) +
           1e-9 * (double)(now.tv_nsec - clock->start.tv_nsec);
}

#endif
