/* SPDX-License-Identifier: Apache-2.0 */
/* The world spread over processes with a GPU each, in contiguous blocks of whole devices:
 *   srun -n 4 adloco run FILE --set transport=nccl
 * or mpirun, torchrun, or by hand: real/nccl/startup.h says how processes are told who they are and
 * where they meet. Without a launcher it is a world of one process. Without GPU, driver or NCCL
 * opening it fails with ADL_ERR_UNSUPPORTED.
 *
 * What is the same to the bit as on `threads`, and what is not. Scalars, rows, moves and every
 * decision that depends on them alone are. Vectors are added up within a process in world order,
 * then over processes by NCCL in an order of its own: the sum is the same on all processes, and
 * from run to run on the same machines, but differs from the canonical one by rounding. With
 * nccl.wire: int8 the order is that of ranks. What follows from vectors (losses, batches) agrees
 * within what rounding does to it.
 *
 *   real/rendezvous.c       processes find each other; strangers do not
 *   real/nccl/startup.c     who is who, by the launcher
 *   real/nccl/control.c     small data, failures, signs of life; hub.c is its middle
 *   real/nccl/nccl.c        the one file that includes nccl.h: a module opened at run time
 *   real/nccl/engine.c      communicators, the order of what happens on them, the watchdog
 *   real/nccl/groups.c      communicators by trainer and epoch
 *   real/nccl/sum.c         sums
 *   real/transport_nccl.c   the transport; real/nccl/transport.h names its other files */
#ifndef ADL_REAL_TRANSPORT_NCCL_H
#define ADL_REAL_TRANSPORT_NCCL_H

#include "core/transport.h"

extern const struct adl_transport_ops adl_transport_nccl;

#endif
