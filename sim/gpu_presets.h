/* SPDX-License-Identifier: Apache-2.0 */
/* What the devices of made platforms are. */
#ifndef ADL_SIM_GPU_PRESETS_H
#define ADL_SIM_GPU_PRESETS_H

#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct adl_gpu_preset {
    const char *name;
    const char *sustained;                        /* as a host's speed: "400Tf" */
    const char *peak, *memory, *memory_bandwidth; /* as the properties of sim/platform.h */
    double link;        /* bytes/s to the other devices of its node, each direction */
    const char *source; /* where the numbers are from: lines of at most 90 characters */
};

/* All of them; ends at name == NULL. */
extern const struct adl_gpu_preset adl_gpu_presets[];

struct adl_gpu_run { /* consecutive nodes of one kind */
    const struct adl_gpu_preset *gpu;
    int64_t n_nodes;
};

enum { ADL_MAX_GPU_RUNS = 64 };

/* Reads "h100", or "h100:48,a100:16": kinds with their numbers of devices, in order of devices,
 * gpus together, each a multiple of node_size. Fills runs [ADL_MAX_GPU_RUNS], *n of them. */
enum adl_status adl_gpu_runs_parse(const char *text, int64_t gpus, int64_t node_size,
                                   struct adl_gpu_run *runs, int *n, struct adl_err *err);

#endif
