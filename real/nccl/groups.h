/* SPDX-License-Identifier: Apache-2.0 */
/* An epoch's trainers, as all processes know them, and their communicators, split from the world.
 * One that stays as it was keeps its communicator. */
#ifndef ADL_REAL_NCCL_GROUPS_H
#define ADL_REAL_NCCL_GROUPS_H

#include "real/blocks.h"
#include "real/nccl/control.h"
#include "real/nccl/engine.h"

/* Room for vectors on their way: grows, and stays. In the space's memory, or NCCL's. */
struct adl_buffer {
    void *x;
    size_t bytes;
    void (*free)(void *x);
};

struct adl_nccl_group {
    int trainer;
    int *members;          /* [n] processes, ascending */
    int n, me;             /* me: index of this process, -1: no member */
    int ctas;              /* see adl_nccl_groups */
    bool made;             /* its members have a communicator */
    struct adl_nccl *comm; /* NULL: no member, or needs none */
    struct adl_buffer packed, collected, staged, staged_all; /* sum.c's */
};

struct adl_nccl_groups {
    struct adl_engine *engine;
    struct adl_nccl_group *of; /* [n] by trainer */
    int n;
    int rank, n_processes;
    int ctas; /* of a communicator; 0: shared out among a process's trainers */
};

/* What this process tells the others of its tasks: those of which it hosts the first worker. Into
 * malloc'ed *out, behind `head` [head_bytes]. */
enum adl_status adl_nccl_groups_tell(const struct adl_blocks *blocks, int rank,
                                     struct adl_task *const *tasks, int n, const void *head,
                                     size_t head_bytes, char **out, size_t *bytes,
                                     struct adl_err *err);
/* All processes together: from what all told to communicators. */
enum adl_status adl_nccl_groups_make(struct adl_nccl_groups *groups, const struct adl_visit *told,
                                     size_t head_bytes, struct adl_err *err);
/* NULL where there is none. */
struct adl_nccl_group *adl_nccl_groups_find(struct adl_nccl_groups *groups, int trainer);
/* Their communicators go with the engine. */
void adl_nccl_groups_free(struct adl_nccl_groups *groups);

#endif
