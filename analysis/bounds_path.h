/* SPDX-License-Identifier: Apache-2.0 */
/* What one trainer of the algorithm does on the noisy quadratic model, without running it: the
 * exact moments of its loss, round by round, under a given sequence of batches. Where the batch is
 * adapted, the request follows from expectations in the place of what a run measures (a mean
 * field), through the same test, ratchet, cap and switch; a run's requests scatter around it.
 *
 * Covers SGD without momentum, decay or clipping at any rate schedule, the outer optimizers, and
 * workers that minimise the same function. Multiplicative noise: outer averaging at a constant rate
 * and a constant batch only. */
#ifndef ADL_ANALYSIS_BOUNDS_PATH_H
#define ADL_ANALYSIS_BOUNDS_PATH_H

#include <stdint.h>

#include "core/problem.h"
#include "core/settings.h"
#include "core/status.h"

enum adl_path_test { /* what the request follows */
                     ADL_PATH_CONSTANT,
                     ADL_PATH_GRADIENT,    /* norm test on the last inner gradients */
                     ADL_PATH_DELTA,       /* on pseudo-gradients */
                     ADL_PATH_MICRO_BATCH, /* within each worker's last batch */
                     ADL_PATH_EXACT /* on E |grad f|^2 at the round's own start, without rounding,
                                       ratchet, cap and switch: theorem T3-Q */
};

struct adl_path_plan {
    const struct adl_problem *problem; /* with arrays */
    double M, H;
    double alpha;                                 /* rate, or the top of the schedule */
    double (*rate)(const void *arg, double step); /* NULL: alpha throughout */
    const void *rate_arg;
    double outer_lr, outer_momentum; /* of the Nesterov form; averaging: 1, 0 */

    enum adl_path_test test;
    double initial; /* request: samples of an inner step, all workers */
    double eta;
    bool plug_in, may_shrink;
    bool shared;     /* workers exchange gradients at every step: they never drift apart */
    double cap;      /* on the request; INFINITY: none */
    double max;      /* largest micro-batch; INFINITY: none */
    int switch_mode; /* enum adl_switch_mode */
    double switch_factor;

    double epsilon;    /* ends the path at this loss; may be NAN */
    double max_rounds; /* ends it too */
};

struct adl_path_point {
    double rounds, samples, loss; /* after so many rounds */
    double request;               /* that the last of these rounds ran under */
    double ran;  /* samples of an inner step, all workers, after the switch; under the exact test
                    what it asks for, rounded up for each worker */
    bool capped; /* less ran than was wanted */
};
typedef void adl_path_fn(void *arg, const struct adl_path_point *point);

enum adl_path_end {
    ADL_PATH_REACHED, /* epsilon */
    ADL_PATH_STALLED, /* at a floor above it */
    ADL_PATH_DIVERGED,
    ADL_PATH_MAX_ROUNDS
};
struct adl_path_result {
    enum adl_path_end end;
    struct adl_path_point last;
    double cap_rounds, cap_samples; /* before the first capped round; NAN: none was */
};

/* Whether this problem and plan are covered. */
bool adl_path_covers(const struct adl_path_plan *plan);
/* Follows the path; visit (may be NULL) is called for the start and after each round.
 * ADL_ERR_NOMEM only. */
enum adl_status adl_path_follow(const struct adl_path_plan *plan, adl_path_fn *visit, void *arg,
                                struct adl_path_result *out, struct adl_err *err);

/* Loss that a constant batch B of SGD at a constant rate cannot get below:
 * sum alpha c_i / (2 (2 - alpha h_i) B). */
double adl_path_floor(const struct adl_problem *problem, double alpha, double B);

#endif
