/* SPDX-License-Identifier: Apache-2.0 */
/* The middle of the control network: a thread of process 0 with a socket to each process, itself
 * included. It never waits for one of them.
 *
 * Processes meet in rooms. When as many are in as the first one said, each gets the answer, and the
 * room is gone: either what all brought, by rank, each with its number of bytes (uint32_t) before
 * it; or the sum of all rows of doubles, added one by one by rank: in canonical order, since ranks
 * host ascending workers. All answers come to everyone in one order. */
#ifndef ADL_REAL_NCCL_HUB_H
#define ADL_REAL_NCCL_HUB_H

#include "core/status.h"

struct adl_hub; /* opaque */

/* sockets [n]: taken over, whatever comes. Who is silent for the deadline is lost. */
enum adl_status adl_hub_open(const int *sockets, int n, double deadline_s, struct adl_hub **out,
                             struct adl_err *err);
/* Serves until all have said goodbye or are lost. NULL is fine. */
void adl_hub_close(struct adl_hub *hub);

#endif
