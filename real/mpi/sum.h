/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the workers of one trainer, whose processes are its members. Canonical order, worker
 * by worker and one addition at a time, in one of two ways:
 *   chain   each member adds its workers onto the partial sum of the member below and passes it
 *           up; the top passes the total down again; block by block, so that all links are busy
 *   owners  where each of a few members hosts one worker: member i adds up blocks i, i + m, ...
 *           of all members, in order, and sends them back
 * `reduction: fast` adds local workers, then leaves the vector to MPI; scalars keep their order. */
#ifndef ADL_REAL_MPI_SUM_H
#define ADL_REAL_MPI_SUM_H

#include "real/mpi/relay.h"

enum { ADL_SUM_TAGS = 4 }; /* tags that one trainer takes */

struct adl_sum_group {
    struct adl_watch *watch;
    struct adl_mpi *wire;
    const struct adl_space *space;
    int *members;               /* [n] processes, ascending */
    int n, me;                  /* me: index of this process */
    int tag;                    /* the first of ADL_SUM_TAGS */
    bool one_each;              /* each hosts one worker */
    struct adl_mpi_group *fast; /* NULL: canonical order */
};

/* Returns when all members are here, before adl_sum: so far they waited for slower ones. */
enum adl_status adl_sum_meet(const struct adl_sum_group *group,
                             const struct adl_reduction *reduction, int n_local,
                             struct adl_err *err);
/* Adds up the reduction's local vectors [n_local] and those of the other members. After a failure
 * nobody touches its memory any more. */
enum adl_status adl_sum(const struct adl_sum_group *group, const struct adl_reduction *reduction,
                        int n_local, struct adl_err *err);

#endif
