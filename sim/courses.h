/* SPDX-License-Identifier: Apache-2.0 */
/* The collectives of an epoch's trainers, worked out beside each other, and kept while the trainers
 * stay the same.
 *
 * `auto` chooses by payload. What it takes for large ones is worked out beside what the other
 * trainers take for large ones. Small payloads, which the steps' latencies decide, are charged as
 * if nobody else were there, and do not slow others, unless links change with time. */
#ifndef ADL_SIM_COURSES_H
#define ADL_SIM_COURSES_H

#include "core/transport.h"
#include "sim/network.h"

struct adl_transport;

struct adl_courses {
    int *groups; /* number of devices, then the devices, for each trainer */
    size_t n_groups;
    const int **group;       /* [n] into groups */
    struct adl_course *main; /* [n] */
    struct adl_course **few; /* [n][2] recursive doubling, halving-doubling; NULL: not needed yet */
    int n;
};

/* Puts down what was carried so far. */
void adl_sim_courses_take(struct adl_transport *t);
void adl_sim_courses_free(struct adl_transport *t);

/* Works out the tasks' collectives, unless they are those of the last epoch. */
enum adl_status adl_sim_prepare_courses(struct adl_transport *t, struct adl_task *const *tasks,
                                        int n, struct adl_err *err);
/* The course of task number k for a payload. */
enum adl_status adl_sim_course(struct adl_transport *t, int k, double bytes,
                               struct adl_course **out, struct adl_err *err);
/* One collective for itself. chain: a pipelined one, whose messages are forwarded while they
 * arrive: flows in every fidelity but `analytic`. */
enum adl_status adl_sim_single_course(struct adl_transport *t, const struct adl_pattern *pattern,
                                      bool chain, struct adl_course **out, struct adl_err *err);

#endif
