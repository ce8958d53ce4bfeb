/* SPDX-License-Identifier: Apache-2.0 */
/* How long collectives take on a platform, each trainer's beside the others'.
 *
 * Edges that share links, directly or through others, are a component. What a component of one
 * trainer takes never changes: equal flows that start together last, by max-min fairness, until
 * the fullest link has moved its load, so its time is a formula (unequal ones are simulated). Where
 * several trainers meet, or a link changes over time, edges become flows of the engine; of
 * components that are equal in everything and cannot change (the rails of a node, the nodes of a
 * cluster) one is simulated for all, since their flows start and proceed together.
 *
 * The latencies of a collective's sequential messages are added to the time of its bytes. */
#ifndef ADL_SIM_NETWORK_H
#define ADL_SIM_NETWORK_H

#include "sim/routes.h"

struct adl_stream { /* a simulated edge */
    int from, to;   /* the engine's hosts */
    double volume;
};

struct adl_phase {
    double s_per_byte; /* of the components that follow the formula */
    double latency_s;
    struct adl_stream *streams; /* [n_streams] the others */
    int n_streams;
};

struct adl_load { /* what a collective puts on a link */
    int link;
    int watched;   /* the link that is simulated for it: itself or that of an equal component */
    int phase;     /* of those that were asked for */
    double volume; /* bytes for each byte reduced */
    double peak;   /* share of its bandwidth while the phase lasts; 0: simulated, the engine knows */
};

/* One trainer's collective, ready to run. */
struct adl_course {
    struct adl_phase *phases; /* [n_phases]; none: takes no time */
    int n_phases;
    struct adl_load *loads; /* [n_loads] */
    int n_loads;
    double moved_bytes;        /* reduced and not yet put down (sim/links.h) */
    struct adl_script *script; /* fidelity `message`: what to carry out instead; else NULL */
};

/* Works out the courses [n] of patterns [n] that may run at the same time. changes: as in
 * adl_routes_group. apart: each is taken as if the others were not there, and everything by the
 * formula: the time of the fullest link, a lower bound where flows are unequal. Links of simulated
 * flows are watched. On failure *out is NULL. */
enum adl_status adl_network_solve(const struct adl_engine_ops *engine,
                                  const struct adl_sim_platform *platform,
                                  const struct adl_pattern *patterns, int n, const bool *changes,
                                  bool apart, struct adl_course **out, struct adl_err *err);
void adl_courses_free(struct adl_course *courses, int n); /* NULL is fine */

#endif
