/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA part is a shared library of its own, opened when a model asks for it, so that one
 * program runs with and without GPUs: only the module needs CUDA's libraries. */
#ifndef ADL_KERNELS_CUDA_MODULE_H
#define ADL_KERNELS_CUDA_MODULE_H

#include "kernels/ops.h"

#define ADL_CUDA_MODULE_FILE "libadloco_cuda.so"
enum { ADL_CUDA_MODULE_VERSION = 4 }; /* of this struct and the tables that it names */

/* What the module exports, as `adl_cuda_module`. */
struct adl_cuda_module {
    int version;
    /* Chooses this process's device: the one of its rank on this node, by the environment of
     * mpirun or srun, else the first. ADL_ERR_UNSUPPORTED where there is no driver, no device,
     * one older than compute capability 8.0, or a library of another version than built for. */
    enum adl_status (*open)(struct adl_err *err);
    const struct adl_ops *f32, *bf16; /* on one space */
};

/* Opens the module and the device, once a process; a failure stays one. ADL_ERR_UNSUPPORTED with
 * the loader's words where the module or a library that it needs is missing. */
enum adl_status adl_cuda_module_get(const struct adl_cuda_module **out, struct adl_err *err);

/* GPU memory, through the module: without it there is none. */
extern const struct adl_space adl_space_cuda;

#endif
