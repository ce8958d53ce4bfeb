/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated runtime: device memory is the heap, streams do everything at once. */
#include "cuda_emulator.h"

#include <map>
#include <mutex>
#include <new>

struct cuda_emulator_stream {
    int unused;
};

namespace cuda_emulator
{

device the_device;

} // namespace cuda_emulator

using cuda_emulator::the_device;

namespace
{

constexpr std::align_val_t alignment{256}; /* cudaMalloc's */
std::mutex memory_lock;
std::map<void *, size_t> allocated;

} // namespace

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorInvalidValue:
        return "invalid argument";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorStubLibrary:
        return "CUDA driver is a stub library";
    case cudaErrorInsufficientDriver:
        return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorNoDevice:
        return "no CUDA-capable device is detected";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError()
{
    if (the_device.launches_until_failure < 0)
        return cudaSuccess;
    return the_device.launches_until_failure-- == 0 ? cudaErrorLaunchFailure : cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = the_device.count_error == cudaSuccess ? the_device.count : 0;
    return the_device.count_error;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= the_device.count)
        return cudaErrorInvalidValue;
    the_device.taken = device;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int)
{
    switch (what) {
    case cudaDevAttrComputeCapabilityMajor:
        *value = the_device.major;
        return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
        *value = the_device.minor;
        return cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
        *value = 4;
        return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
        *value = 227 * 1024;
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = the_device.runtime;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *all)
{
    *available = the_device.memory - the_device.used;
    *all = the_device.memory;
    return cudaSuccess;
}

cudaError_t cuda_emulator_malloc(void **out, size_t bytes)
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    if (bytes > the_device.memory - the_device.used)
        return cudaErrorMemoryAllocation;
    *out = ::operator new(bytes, alignment);
    memset(*out, 0xFF, bytes); /* NaN: reading what nobody wrote shows */
    allocated[*out] = bytes;
    the_device.used += bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    const auto found = allocated.find(memory);
    if (!memory)
        return cudaSuccess;
    if (found == allocated.end())
        return cudaErrorInvalidValue;
    the_device.used -= found->second;
    allocated.erase(found);
    ::operator delete(memory, alignment);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    if (bytes)
        memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    if (bytes)
        memset(to, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new cuda_emulator_stream();
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    return cudaSuccess;
}
