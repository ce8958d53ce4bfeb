/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the workers of one trainer. A process adds up its own workers' vectors first, in their
 * order, where they lie; then its scalars go to the control network, which adds all workers' in
 * canonical order; and when all are there, NCCL adds up the processes' vectors while the caller may
 * do something else.
 *
 * How vectors cross the network, by `nccl.wire`; F64 ones always as they are:
 *   f32         ncclAllReduce: an order of NCCL's own
 *   bf16, f16   packed, ncclAllReduce in that type, unpacked
 *   int8        packed with scales by block; ncclAllGather; all processes' added up in fp32, in the
 *               order of their ranks. Sums of packed bytes would mean nothing.
 * Whatever the wire, the sum has the same bits on all processes. Vectors in host memory are copied
 * to the device and back. */
#ifndef ADL_REAL_NCCL_SUM_H
#define ADL_REAL_NCCL_SUM_H

#include "real/nccl/groups.h"

struct adl_nccl_sums { /* what all of them share; all borrowed */
    struct adl_crew *crew;
    struct adl_control *control; /* NULL: this process is alone */
    struct adl_engine *engine;
    const struct adl_nccl_module *module;
    int wire; /* enum adl_wire */
};

struct adl_pending { /* one at a time in a group */
    struct adl_nccl_sums *sums;
    struct adl_nccl_group *group;
    const struct adl_reduction *reduction;
    struct adl_visit visit;
    struct adl_op op;
    bool packs, copies;
    size_t bytes; /* of the vector on its way */
};

/* Adds up here and asks for the rest. n_local: the task's workers here. */
enum adl_status adl_nccl_sum_start(struct adl_nccl_sums *sums, struct adl_nccl_group *group,
                                   const struct adl_reduction *reduction, int n_local,
                                   struct adl_pending *pending, struct adl_err *err);
/* Until all are there: so far they waited for slower ones. The scalars are complete. */
enum adl_status adl_nccl_sum_meet(struct adl_pending *pending, struct adl_err *err);
/* Until the sum is where it belongs. */
enum adl_status adl_nccl_sum_finish(struct adl_pending *pending, struct adl_err *err);

#endif
