/* SPDX-License-Identifier: Apache-2.0 */
/* How this process was started, and which one it is: what the first of these says, where both of
 * its variables are set.
 *   RANK, WORLD_SIZE                              torchrun, or by hand
 *   OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE    Open MPI; PMI_RANK, PMI_SIZE: MPICH and its kin
 *   SLURM_PROCID, SLURM_STEP_NUM_TASKS            srun (a batch script has SLURM_NTASKS, and is
 * one) */
#ifndef ADL_REAL_LAUNCH_H
#define ADL_REAL_LAUNCH_H

#include <stddef.h>

#include "core/status.h"

enum adl_launcher { ADL_NOT_LAUNCHED, ADL_BY_HAND, ADL_BY_MPIRUN, ADL_BY_SRUN };

struct adl_launch {
    enum adl_launcher launcher;
    const char *by; /* the variable that says how many; NULL: no launcher */
    int rank, n;    /* 0 of 1 without a launcher */
};

/* ADL_ERR_INPUT where the variables are no process and their number; then, too, *out is that of no
 * launcher. err may be NULL. */
enum adl_status adl_launch_find(struct adl_launch *out, struct adl_err *err);

/* The same for those who cannot complain. */
static inline struct adl_launch adl_launch_here(void)
{
    struct adl_launch launch;
    adl_launch_find(&launch, NULL);
    return launch;
}

#endif
