/* SPDX-License-Identifier: Apache-2.0 */
/* What launchers of several processes (mpirun, srun) say in the environment. */
#ifndef ADL_REAL_LAUNCH_H
#define ADL_REAL_LAUNCH_H

struct adl_launch {
    const char *by; /* the variable that says so; NULL: no launcher */
    int n, rank;    /* processes, and which one this is; 1 and 0 without a launcher */
};
struct adl_launch adl_launch_here(void);

#endif
