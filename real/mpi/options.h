/* SPDX-License-Identifier: Apache-2.0 */
/* What the mpi transport is told, with MPI in the build or without. */
#ifndef ADL_REAL_MPI_OPTIONS_H
#define ADL_REAL_MPI_OPTIONS_H

#include "core/field.h"

struct adl_mpi_config {
    int64_t threads;   /* that compute, by process; 0: one for each processor */
    double deadline_s; /* for a sign of life from each process */
};
extern const struct adl_field adl_mpi_options[];

/* Processes x workers_per_device, where a launcher says how many it started; else 1 x. */
int adl_mpi_default_workers(const void *config, int n_devices, int workers_per_device);

#define ADL_MPI_DOC                                                                                \
    "MPI processes, several workers in each: clusters of CPUs; the same bits as `threads`."

#endif
