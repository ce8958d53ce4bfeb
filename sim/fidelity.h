/* SPDX-License-Identifier: Apache-2.0 */
/* Fidelity `message`: a collective carried out message by message.
 *
 * A device goes through its part of a collective step by step. In a step it sends and receives one
 * message on each of its edges of the present phase; a message moves once both ends are there,
 * takes its latency after that, and the next step begins when all of this one have arrived. Stages
 * that run side by side are gone through each for itself. There are no barriers between phases, so
 * that a device may be ahead of others. */
#ifndef ADL_SIM_FIDELITY_H
#define ADL_SIM_FIDELITY_H

#include "sim/pattern.h"
#include "sim/platform.h"

/* Of struct adl_sim_options.fidelity. */
enum adl_fidelity {
    ADL_FIDELITY_FLOW,     /* a flow for each edge, where trainers may meet (sim/network.h) */
    ADL_FIDELITY_ANALYTIC, /* closed forms, each trainer as if alone */
    ADL_FIDELITY_MESSAGE
};

struct adl_script;      /* what every device does */
struct adl_performance; /* one that is under way */

/* The pattern is not needed afterwards. */
enum adl_status adl_script_create(const struct adl_engine_ops *engine,
                                  const struct adl_sim_platform *platform,
                                  const struct adl_pattern *pattern, struct adl_script **out,
                                  struct adl_err *err);
void adl_script_free(struct adl_script *script); /* NULL is fine */
/* What one performance sends where `bytes` are reduced. */
void adl_script_sent(const struct adl_script *script, double bytes, double *messages,
                     double *sent_bytes);

/* Starts one, in an actor; the script must outlive it. changing: links may change meanwhile. */
enum adl_status adl_script_start(const struct adl_engine_ops *engine,
                                 const struct adl_script *script, double bytes, bool changing,
                                 struct adl_performance **out, struct adl_err *err);
/* Waits for its end, in an actor, returns how long it took, and frees it. */
double adl_script_finish(struct adl_performance *performance);

#endif
