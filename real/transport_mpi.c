/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the mpi transport that every build has. */
#include "real/transport_mpi.h"

#include <stdlib.h>

#include "build_config.h"
#include "real/launch.h"
#include "real/mpi/options.h"

const struct adl_field adl_mpi_options[] = {
    {.key = "mpi.threads",
     .type = ADL_TYPE_INT,
     .dflt = "0",
     .min = 0,
     .max = 4096,
     .doc = "Threads of each process that compute for its workers; 0 takes one for each processor.",
     .offset = offsetof(struct adl_mpi_config, threads)},
    {.key = "mpi.deadline",
     .type = ADL_TYPE_REAL,
     .unit = "s",
     .dflt = "60",
     .min = 1,
     .max = 86400,
     .doc = "How long a process may give no sign of life before the run ends. Computing is one, "
            "however long it takes.",
     .offset = offsetof(struct adl_mpi_config, deadline_s)},
    {.key = NULL},
};

int adl_mpi_default_workers(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    (void)n_devices;
    struct adl_launch launch = adl_launch_here();
    return (launch.launcher == ADL_BY_HAND ? 1 : launch.n) * workers_per_device;
}

#ifndef ADL_HAVE_MPI
static enum adl_status open_absent(const void *config, const struct adl_transport_env *env,
                                   struct adl_transport **out, struct adl_err *err)
{
    (void)config;
    (void)env;
    (void)out;
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "transport: mpi is not in this build (libopenmpi-dev was not found when it was "
                    "configured; see 'adloco --version')");
}

/* What never opens needs nothing else. */
const struct adl_transport_ops adl_transport_mpi = {
    .plugin = {.name = "mpi",
               .doc = ADL_MPI_DOC,
               .options = adl_mpi_options,
               .config_size = sizeof(struct adl_mpi_config)},
    .default_workers = adl_mpi_default_workers,
    .open = open_absent,
};
#endif
