/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds beside the counts of runs: how tight they are, and whether a guarantee was broken. */
#ifndef ADL_ANALYSIS_BOUNDS_MEASURED_H
#define ADL_ANALYSIS_BOUNDS_MEASURED_H

#include "analysis/bounds_case.h"

/* What the runs of one variant did, a run a seed. Rounds are synchronizations; where data-parallel
 * runs are looked at only once in `block` of them, bounds are rounded up to whole blocks; to one
 * where the start is good enough. */
struct adl_bounds_runs {
    double *rounds;  /* [n] to the target, or, where it was not reached, all that ran */
    double *samples; /* [n] likewise */
    bool *reached;   /* [n] */
    size_t n;
    double block;
};

struct adl_bounds_measured {
    size_t n, n_reached;
    double rounds_median, rounds_mean, rounds_error; /* standard error of the mean; NAN: n < 2 */
    double samples_median;
    double tightness[ADL_N_THEOREMS]; /* bound at the experiment's rate over the median; NAN */
    bool judged[ADL_N_THEOREMS];      /* the theorem guarantees something for these runs */
    bool violated[ADL_N_THEOREMS];    /* mean above the guarantee by more than 4 errors */
    bool any_violated;
    double t3q_ratio, exact_ratio; /* predicted over median; NAN where either is unknown */
};

/* A run that fell short of the target needs more rounds than it ran: it counts with those, which
 * can only excuse a bound. Sorts rounds and samples. */
void adl_bounds_judge(const struct adl_bounds *bounds, struct adl_bounds_runs *runs,
                      struct adl_bounds_measured *out);

void adl_bounds_measured_json(const struct adl_bounds_measured *m, struct adl_json *json);
void adl_bounds_measured_print(const struct adl_bounds_measured *m, const struct adl_bounds *b,
                               FILE *out);

#endif
