/* SPDX-License-Identifier: Apache-2.0 */
#include "real/launch.h"

#include <stddef.h>
#include <stdlib.h>

#include "real/rendezvous.h"

static const struct {
    const char *rank, *n;
    enum adl_launcher launcher;
} launchers[] = {
    {"RANK", "WORLD_SIZE", ADL_BY_HAND},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ADL_BY_MPIRUN},
    {"PMI_RANK", "PMI_SIZE", ADL_BY_MPIRUN},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ADL_BY_SRUN},
};

/* -1: no number. */
static long number_of(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);
    return *end || value < 0 ? -1 : value;
}

enum adl_status adl_launch_find(struct adl_launch *out, struct adl_err *err)
{
    *out = (struct adl_launch){ADL_NOT_LAUNCHED, NULL, 0, 1};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        const char *rank_text = getenv(launchers[i].rank), *n_text = getenv(launchers[i].n);
        if (!rank_text || !*rank_text || !n_text || !*n_text)
            continue;
        long rank = number_of(rank_text), n = number_of(n_text);
        if (rank < 0 || n < 1 || rank >= n || n > ADL_RENDEZVOUS_MOST)
            return adl_fail(err, ADL_ERR_INPUT,
                            "%s=%.40s and %s=%.40s are not a process and their number (0..%d of "
                            "1..%d)",
                            launchers[i].rank, rank_text, launchers[i].n, n_text,
                            ADL_RENDEZVOUS_MOST - 1, ADL_RENDEZVOUS_MOST);
        *out = (struct adl_launch){launchers[i].launcher, launchers[i].n, (int)rank, (int)n};
        return ADL_OK;
    }
    return ADL_OK;
}
