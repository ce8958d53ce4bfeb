/* SPDX-License-Identifier: Apache-2.0 */
/* Claims put to the test. A claim is an experiment file with one key more, which no run sees:
 *
 *   claim:
 *     title: Synchronization delay falls 2.5 times
 *     says: what the paper says, in a sentence
 *     regime: under which conditions it is asked here, written before any run
 *     tuning: how the variants were tuned, and the command that repeats it
 *     curve: {y: exchanges, of: [adloco, diloco], at: {KEY: VALUE}} # (optional)
 *     quick: {KEY: VALUE}           # (optional) what a quick look sets, to be done in seconds
 *     asks:
 *       - regime: seed setting
 *         measure: sync              # adl_claim_measures
 *         of: adloco                 # the variant that the claim speaks for
 *         over: diloco               # (optional) what it is compared with, seed by seed
 *         at: {KEY: VALUE}           # (optional) which point of the sweep
 *         window: [1, 20]            # (optional) exchanges between which a law is fitted
 *         least: 1.2                 # (optional) the least loss there is, unless 0: roughness
 *         below: 0.4                 # or `above`: what the value, or the ratio, has to pass;
 *                                    # or both: between which two it has to lie
 *
 * The first question is the primary one and decides the claim; the others are secondary: they are
 * corrected together by Holm's method and stand beside it whichever way they fall. A question
 * holds where the one-sided p-value against its threshold is below 0.025, which is where a 95%
 * interval ends. */
#ifndef ADL_ANALYSIS_CLAIMS_H
#define ADL_ANALYSIS_CLAIMS_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/curves.h"
#include "analysis/fit.h"
#include "analysis/results.h"
#include "analysis/stats.h"
#include "core/tree.h"

enum adl_claim_kind {
    ADL_CLAIM_TO_TARGET, /* spent by a run that has to reach its target loss */
    ADL_CLAIM_AT_END,    /* of a run that has to end without diverging */
};
struct adl_claim_run { /* where a measure finds a run */
    const struct adl_results *results;
    size_t row;
    const char *dir;         /* of the sweep */
    double from, to, least;  /* the window; the least loss */
    enum adl_status *status; /* broken records */
    struct adl_err *err;
};
struct adl_claim_measure {
    const char *name, *what; /* what: "exchanges to the target" */
    enum adl_claim_kind kind;
    bool difference;                               /* may be negative or zero: no ratios */
    double (*of)(const struct adl_claim_run *run); /* NAN: this run does not have it */
};
extern const struct adl_claim_measure adl_claim_measures[]; /* ends at name == NULL */

struct adl_claim_ask {
    const char *regime, *of, *over; /* over: "" where not given */
    const struct adl_tree *at;      /* a map of the point's keys; NULL: any */
    const struct adl_claim_measure *measure;
    bool below; /* only below was asked */
    double threshold;
    double upper;    /* where above and below were asked, below's; else INFINITY */
    double from, to; /* 0, INFINITY where not given */
    double least;    /* 0 where not given */
};
struct adl_claim_curve {
    const char *y;                  /* "exchanges" or "loss", over samples; NULL: none */
    const struct adl_tree *at, *of; /* a map, or NULL; a list of variants */
};
struct adl_claim {
    char *path, *id; /* id: the file's name without its ending */
    const char *title, *says, *regime, *tuning;
    struct adl_claim_curve curve;
    const struct adl_tree *quick; /* a map; NULL where not given */
    struct adl_claim_ask *asks;   /* [n] */
    size_t n;
    struct adl_tree *tree; /* owns all texts */
};

/* The curve of the run's records; false: it has none, or *run->status says why. */
bool adl_claim_load_curve(const struct adl_claim_run *run, struct adl_curve *curve);
/* Laws of the exchanges as a function of the samples, within the window; false: fewer than 5
 * points, or *run->status says why. */
bool adl_claim_fit(const struct adl_claim_run *run, const struct adl_curve *curve,
                   struct adl_laws *laws);
/* Whether the measure tells how well one law fits, and which. */
bool adl_claim_law(const struct adl_claim_measure *measure, enum adl_law *law);

/* Whether the experiment holds a claim. ADL_ERR_INPUT where it cannot be read. */
enum adl_status adl_claim_is(const char *path, bool *out, struct adl_err *err);
/* ADL_ERR_INPUT with place and cause. */
enum adl_status adl_claim_load(const char *path, struct adl_claim **out, struct adl_err *err);
void adl_claim_free(struct adl_claim *claim); /* NULL is fine */

/* Whether a sweep point has every key of `at`: {a: 1} is in "a=1 b=2", not in "a=10". */
bool adl_claim_at(const struct adl_tree *at, const char *point);
/* Whether a run takes part in a question. */
bool adl_claim_wants(const struct adl_claim_ask *ask, const char *variant, const char *point);

struct adl_claim_answer {
    const struct adl_claim_ask *ask;
    size_t n;          /* pairs, or runs; 0: nothing was run */
    size_t short_of;   /* runs of the claim's variant that fell short: it then does not hold */
    size_t short_over; /* the other's: they count with what they had spent when they ended */
    size_t unmeasured; /* pairs whose other run has no such value: it then does not hold either */
    double of, over;   /* medians; NAN where a run fell short, has no value or there is none */
    struct adl_estimate estimate; /* value NAN where short_of or unmeasured > 0 */
    double p, adjusted; /* one-sided against the threshold; adjusted: Holm's, primary: p */
    bool holds;
};
enum { ADL_CLAIM_PER_CENT = 95 };

/* The answers [claim->n] from a sweep's directory. quick: only the primary question, on the first
 * quick_seeds seeds, whatever else is there. Several runs of a seed in one question, or a single
 * seed: ADL_ERR_INPUT. */
enum adl_status adl_claim_judge(const struct adl_claim *claim, const char *dir, bool quick,
                                size_t quick_seeds, struct adl_claim_answer *answers,
                                struct adl_err *err);

struct adl_claim_result { /* for the report */
    const struct adl_claim *claim;
    const struct adl_claim_answer *answers;
    bool drawn, has_curve, has_laws; /* claims/ID.svg, claims/ID-curve.svg, claims/ID-laws.svg */
};
/* CLAIMS.md. quick: only primary questions, on few seeds. */
void adl_claims_write(const struct adl_claim_result *results, size_t n, bool quick, FILE *out);

/* Draws DIR/ID.svg (the answers), DIR/ID-curve.svg and DIR/ID-laws.svg (the fitted laws in their
 * windows, of the first seed), as far as there is something to draw; sets drawn, has_curve and
 * has_laws. sweep: the directory of the runs. ADL_ERR_UNSUPPORTED: no gnuplot. */
enum adl_status adl_claims_draw(struct adl_claim_result *result, const char *sweep, const char *dir,
                                struct adl_err *err);

#endif
