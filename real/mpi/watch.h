/* SPDX-License-Identifier: Apache-2.0 */
/* Why nothing hangs. A thread in each process sends signs of life around a ring and listens for
 * news: a task failed somewhere, a process leaves, a process is lost (its neighbour has missed its
 * signs of life for the deadline). Nobody blocks in MPI: all waiting goes through
 * adl_watch_wait, which ends when there is such news. */
#ifndef ADL_REAL_MPI_WATCH_H
#define ADL_REAL_MPI_WATCH_H

#include "real/crew.h"
#include "real/mpi/wire.h"

struct adl_watch; /* opaque */

/* All processes together. Failures are recorded in the crew; it must outlive the watch. */
enum adl_status adl_watch_open(struct adl_crew *crew, double deadline_s, struct adl_watch **out,
                               struct adl_err *err);
/* Tells every other process of a failure of this one. Once. */
void adl_watch_tell(struct adl_watch *watch, const struct adl_err *failure);

enum adl_progress { ADL_STUCK, ADL_MOVED, ADL_DONE };
/* Calls progress until it is done. Where that cannot be expected any more, the failure.
 * stubborn: goes on in spite of failures, for what everyone does even then, and ends only where
 * a process is lost or has left. */
enum adl_status adl_watch_wait(struct adl_watch *watch, enum adl_progress (*progress)(void *arg),
                               void *arg, bool stubborn, struct adl_err *err);
/* Whether some process is lost, and all that it was to send or to take. */
bool adl_watch_lost(const struct adl_watch *watch);

/* Says goodbye, and waits until all others do, dropping what they still send on wires [n]. False
 * where a process is lost: then MPI cannot be used any more. NULL is fine. */
bool adl_watch_close(struct adl_watch *watch, struct adl_mpi *const *wires, int n);

#endif
