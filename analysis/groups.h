/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that differ only in their seed, as one line of a comparison: medians over the seeds. */
#ifndef ADL_ANALYSIS_GROUPS_H
#define ADL_ANALYSIS_GROUPS_H

#include "analysis/results.h"

/* What is compared. Less is better, except for the batch, which is neither. */
enum adl_measure {
    ADL_MEASURE_EXCHANGES, /* to the target, by all trainers */
    ADL_MEASURE_ROUNDS,    /* exchange rounds: the longest chain over trainers */
    ADL_MEASURE_WIRE,      /* bytes, all senders together */
    ADL_MEASURE_TIME,      /* seconds to the target */
    ADL_MEASURE_SYNC,      /* seconds per worker: waiting, exposed transfer, outer steps */
    ADL_MEASURE_SHARE,     /* of sync in the run's time, 0..1 */
    ADL_MEASURE_SAMPLES,   /* to the target */
    ADL_MEASURE_BATCH,     /* samples per inner step at the end, all trainers together */
    ADL_N_MEASURES
};

struct adl_group {
    const char *platform, *variant; /* of the results; "" without */
    char *point;                    /* the swept keys but the platform */
    size_t *rows;                   /* [n_seeds] of the results */
    size_t n_seeds, n_done, n_reached, n_diverged, n_failed;
    double median[ADL_N_MEASURES]; /* NAN where half of the seeds or more have no value */
    double target_loss;            /* NAN: none was set */
    size_t n_points;               /* that it was chosen from; 1: not chosen */
};

struct adl_groups {
    struct adl_group *v; /* [n] by platform, variant, point, in the plan's order */
    size_t n;
    bool has_target; /* some run had a loss to reach; without, totals stand for "to target" */
};

enum adl_status adl_groups_make(const struct adl_results *results, struct adl_groups *out,
                                struct adl_err *err);
/* Where a variant has more points than this on a platform, they are a tuning grid: keeps the
 * best one, which reached the target with every seed and did so in the smallest median time
 * (failing that: with the most seeds). */
enum { ADL_GRID_POINTS = 6 };
void adl_groups_choose(struct adl_groups *groups);
void adl_groups_free(struct adl_groups *groups);

/* Whether every seed reached the target: only then a line can be the best of its column. */
bool adl_group_complete(const struct adl_group *group);
/* The row whose time to the target is the (lower) median; the first where none reached it. */
size_t adl_group_median_row(const struct adl_results *results, const struct adl_group *group);

/* The median of v [n], sorting it: a NAN counts as larger than all, so that a median over seeds
 * of which half never arrived is NAN; of an even n the mean of the middle two. */
double adl_median(double *v, size_t n);

#endif
