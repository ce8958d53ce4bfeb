/* SPDX-License-Identifier: Apache-2.0 */
/* The reference transport, the smallest, to be read first: one process hosts the world. Each
 * task is a thread; the tasks' workers run on a pool of threads; sums and moves are plain
 * memory operations; time is the monotonic clock.
 *
 * A worker that found no free thread waited for the processor: that is WAIT, as is everything
 * between the end of its compute and the sum. Work that for_each runs without charge (work is
 * NULL) is attributed by the call that follows it. Nothing crosses a network: sent is 0. */
#ifndef ADL_REAL_TRANSPORT_THREADS_H
#define ADL_REAL_TRANSPORT_THREADS_H

#include "core/transport.h"

extern const struct adl_transport_ops adl_transport_threads;

#endif
