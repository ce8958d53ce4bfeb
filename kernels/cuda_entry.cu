/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA module exports, and which device a process takes. */
extern "C" {
#include "kernels/cuda_module.h"
#include "kernels/ops_cuda.h"
}

#include "core/local_rank.h"
#include "kernels/cuda_blas.cuh"
#include "kernels/cuda_entry.cuh"

namespace
{

enum { OLDEST = 8 /* compute capability 8.0: bfloat16, and shared memory for tiles */ };

int chosen; /* device of this process */

enum adl_status refuse(struct adl_err *err, cudaError_t error, const char *what)
{
    return adl_fail(err, ADL_ERR_UNSUPPORTED, "no usable CUDA device: %s: %s (error %d)", what,
                    cudaGetErrorString(error), static_cast<int>(error));
}

/* Minor versions of one major one understand each other. */
enum adl_status check_versions(struct adl_err *err)
{
    int runtime = 0;
    const cudaError_t error = cudaRuntimeGetVersion(&runtime);
    if (error != cudaSuccess)
        return refuse(err, error, "asking for the runtime's version");
    if (runtime / 1000 != CUDART_VERSION / 1000)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no usable CUDA device: the CUDA runtime is %d.%d, built for %d",
                        runtime / 1000, runtime % 1000 / 10, CUDART_VERSION / 1000);
    return adl_cuda_blas_check(err);
}

enum adl_status open_device(struct adl_err *err)
{
    int n = 0, major = 0, minor = 0;
    cudaError_t error = cudaGetDeviceCount(&n);
    if (error != cudaSuccess)
        return refuse(err, error, "looking for devices");
    if (n == 0)
        return adl_fail(err, ADL_ERR_UNSUPPORTED, "no usable CUDA device: there are none");
    ADL_TRY(check_versions(err));
    const int device = adl_local_rank() % n;
    error = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    if (error != cudaSuccess)
        return refuse(err, error, "asking for a device's age");
    if (major < OLDEST)
        return adl_fail(err, ADL_ERR_UNSUPPORTED,
                        "no usable CUDA device: device %d has compute capability %d.%d, needed is "
                        "%d.0 or later",
                        device, major, minor, OLDEST);
    chosen = device;
    error = cudaSetDevice(device);
    return error == cudaSuccess ? ADL_OK : refuse(err, error, "taking a device");
}

} // namespace

cudaError_t adl_cuda_use_device()
{
    static thread_local cudaError_t error = cudaSetDevice(chosen);
    return error;
}

extern "C" __attribute__((visibility("default"))) const struct adl_cuda_module adl_cuda_module = {
    .version = ADL_CUDA_MODULE_VERSION,
    .open = open_device,
    .f32 = &adl_cuda_ops_f32,
    .bf16 = &adl_cuda_ops_bf16,
};
