/* SPDX-License-Identifier: Apache-2.0 */
/* The world spread over MPI processes, in contiguous blocks of whole devices:
 *   mpirun -n 4 adloco run FILE --set transport=mpi
 * Without a launcher it is a world of one process; without MPI in the build opening it fails with
 * ADL_ERR_UNSUPPORTED.
 *
 *   real/mpi/wire.c      the one file that includes mpi.h
 *   real/mpi/watch.c     signs of life, failures told to all, waiting that never hangs
 *   real/mpi/relay.c     vectors from one process along others
 *   real/mpi/sum.c       sums in world order, or MPI's own
 *   real/mpi/transport.c the transport */
#ifndef ADL_REAL_TRANSPORT_MPI_H
#define ADL_REAL_TRANSPORT_MPI_H

#include "core/transport.h"

extern const struct adl_transport_ops adl_transport_mpi;

#endif
