/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient exchanges that overlap with the backward pass: buckets of equal size follow each other,
 * each no earlier than the slowest worker has made it. The backward pass is the last two thirds of
 * a step's last micro-batch; what a bucket takes is a whole collective of its bytes. Where streams
 * share a device the engine is at the step's end already, so that there only collectives that need
 * no engine (sim/network.h) overlap. */
#ifndef ADL_SIM_OVERLAP_H
#define ADL_SIM_OVERLAP_H

#include "sim/simulation.h"

/* Runs the collective that p stands for, from the workers' ends of compute (p->made), to its end.
 */
enum adl_status adl_sim_follow_buckets(struct adl_sim_task *task, struct adl_pending *p,
                                       double *end_s, struct adl_err *err);

/* When each worker's gradients get ready, from the book as it stands after their compute. NULL: no
 * memory. */
struct adl_made *adl_sim_made(const struct adl_sim_task *task);

#endif
