/* SPDX-License-Identifier: Apache-2.0 */
/* Which of this node's processes this is, as its launcher says: each takes the device of that
 * number. For C and CUDA sources alike, so that all parts of a process take the same one. */
#ifndef ADL_CORE_LOCAL_RANK_H
#define ADL_CORE_LOCAL_RANK_H

#include <stddef.h>
#include <stdlib.h>

/* 0 where nobody says. */
static inline int adl_local_rank(void)
{
    /* torchrun and by hand; Open MPI; MPICH and its kin; srun */
    static const char *const names[] = {"LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        char *end = NULL;
        long rank = text && *text ? strtol(text, &end, 10) : -1;
        if (end && !*end && rank >= 0 && rank < 1024)
            return (int)rank;
    }
    return 0;
}

#endif
