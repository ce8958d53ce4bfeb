/* SPDX-License-Identifier: Apache-2.0 */
/* Everything theory says of one variant of an experiment, from what is known of its problem, its
 * settings and its network: what `adloco bounds` prints. */
#ifndef ADL_ANALYSIS_BOUNDS_CASE_H
#define ADL_ANALYSIS_BOUNDS_CASE_H

#include <stdio.h>

#include "analysis/bounds.h"
#include "analysis/bounds_path.h"
#include "core/collective.h"
#include "core/json.h"

struct adl_bounds_network {      /* NAN: unknown */
    double devices, nodes;       /* P of one trainer, on so many nodes */
    double bytes;                /* S */
    double shards;               /* that cross side by side, each over an interface of its own */
    double latency_s, bandwidth; /* between its nodes, or inside where it has one */
    double inner_latency_s, inner_bandwidth; /* inside a node */
    enum adl_collective collective;          /* in force, resolved */
    struct adl_traffic traffic;              /* of one all-reduce of S, all shards */
    double statistic_vectors;                /* all-reduces of S more a round, for the batch test */
    double statistic_bytes;                  /* payload of scalars a round, for the batch test */
};

struct adl_bounds_input { /* NAN: unknown */
    const char *variant, *point;
    const struct adl_problem *problem;
    struct adl_bound_case c; /* eta: of the exact test, 0 where none is known */
    double eta_asked, theta, nu;
    bool plug_in;
    double epsilon, samples;
    double alpha;
    double trainers;
    /* What the theorems ask of a method. */
    bool constant_rate, plain_sgd, averages, constant_batch, norm_test;
    const char *no_path; /* why the recursion does not cover it; NULL: it does */
    bool too_large;      /* to be followed coordinate by coordinate at all */
    struct adl_path_plan path;
    struct adl_bounds_network network;
    double step_s, sample_s, outer_s; /* t0, t1, an outer step */
};

enum adl_regime {                   /* of the count as a function of the samples */
                  ADL_REGIME_LOG,   /* C grows with ln N */
                  ADL_REGIME_POWER, /* before that: like a power of N */
                  ADL_REGIME_LINEAR /* with N: a constant batch */
};
extern const char *const adl_regime_names[];

struct adl_bounds_row {
    struct adl_bound own;   /* at the theorem's own rate */
    struct adl_bound_at at; /* at the experiment's */
    bool guarantee;         /* else a prediction: it holds on quadratics */
    bool applies;           /* the variant is what the theorem speaks of */
};

struct adl_bounds_point {
    struct adl_path_point at;
    enum adl_regime regime;
};
enum { ADL_BOUNDS_POINTS = 64, ADL_BOUNDS_COLLECTIVES = 7 };

struct adl_bounds_cost { /* of one shard's exchange by closed form; NAN: not defined for this group
                          */
    const char *name;
    struct adl_coll_cost cost;
};

struct adl_bounds {
    struct adl_bounds_row rows[ADL_N_THEOREMS];
    struct adl_bound augmented; /* T3 with theta^2 + nu^2 in the place of eta^2 */
    double t3_samples;
    double t5_rounds, t5_samples, t5_alpha;
    bool t5_guarantee;                 /* else noise may fall below that of the optimum on the way */
    double samples_lower, depth_lower; /* samples; sequential steps */

    bool has_path;
    struct adl_path_result t3q;   /* of the exact norm test: exact */
    struct adl_path_result exact; /* of the variant: exact at a constant batch, else a mean field,
                                     which may stall where a run's scatter drives its ratchet on */
    double rate;                  /* T3-Q's r */
    bool has_t3q, t3q_applies;    /* it can be computed; the variant takes that test */

    double log_from_rounds; /* 2 / (alpha mu H) */
    enum adl_regime regime; /* at epsilon */
    double cap_batch;       /* largest batch that runs, all workers; INFINITY: none */
    double cap_floor;       /* loss it cannot get below at this rate */
    double cap_rounds;      /* ln(cap_batch / B) / ln(1/r): when T3-Q gets there */
    struct adl_bounds_point points[ADL_BOUNDS_POINTS]; /* [n_points] evenly in ln N */
    int n_points;

    struct adl_bounds_cost costs[ADL_BOUNDS_COLLECTIVES];
    double bandwidth_lower_s; /* 2 (P-1)/P S beta: no all-reduce is faster */
    double exchange_s;        /* of the collective in force */
    double rounds, samples;   /* that the times below take: the recursion's, else a bound's */
    double round_s, total_s, utilization, break_even;
};

/* ADL_ERR_NOMEM only. */
enum adl_status adl_bounds_make(const struct adl_bounds_input *input, struct adl_bounds *out,
                                struct adl_err *err);

extern const char *const adl_theorem_keys[ADL_N_THEOREMS]; /* "T1_pl", ... */
extern const char *const adl_path_end_names[];

/* Members of an open JSON object. */
void adl_bounds_json(const struct adl_bounds_input *input, const struct adl_bounds *b,
                     struct adl_json *json);
/* A section of text. */
void adl_bounds_print(const struct adl_bounds_input *input, const struct adl_bounds *b, FILE *out);

#endif
