/* SPDX-License-Identifier: Apache-2.0 */
/* Runs CUDA kernels on the CPU, for tests: the part of CUDA's language and runtime that
 * kernels/ uses, as plain C++. Threads of a block are fibers, switched at barriers and warp
 * shuffles only; blocks run one after the other.
 *
 * What it sees: results; reads and writes outside of memory (under ASan: global and shared memory
 * are heap blocks of exact size); the host touching device memory, unless a kernel of another
 * thread runs at that moment; copies that name the wrong kind of memory; reads of memory that
 * nobody wrote (it starts as NaN); addresses that are not aligned to what is read (under UBSan);
 * barriers that not every thread reaches; launches beyond the limits of a device; and, by running
 * threads and blocks in other orders, most missing barriers and any dependence between blocks: the
 * bits must not change.
 *
 * What it cannot see: memory order and anything that needs threads to be interleaved between
 * barriers; warps that diverge; rounding that differs on a device (fused multiplications and
 * additions, approximate functions); registers, occupancy, and speed.
 *
 * Failures print one line and abort: this is a test utility. */
#ifndef ADL_TESTS_CUDA_EMULATOR_H
#define ADL_TESTS_CUDA_EMULATOR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <type_traits>

/* ---- language */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

struct alignas(16) uint4 { /* of bytes, so that it may stand for whatever is there */
    unsigned char bytes[16];
};
static inline void __stcs(uint4 *to, const uint4 &value)
{
    *to = value;
}

struct __nv_bfloat162 {
    uint16_t x, y;
};
/* To nearest, ties to even; NaN becomes the one that devices make. */
static inline uint16_t cuda_emulator_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return 0x7FFF;
    const uint32_t below = bits & 0xFFFFu,
                   up = below > 0x8000u || (below == 0x8000u && bits >> 16 & 1u);
    return static_cast<uint16_t>((bits >> 16) + up);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {cuda_emulator_bf16(x), cuda_emulator_bf16(y)};
}

namespace cuda_emulator
{

/* Of the running thread. */
extern thread_local uint3 thread_index, block_index;
extern thread_local dim3 block_size, grid_size;

/* In which threads of a block and blocks of a grid take turns. */
enum class order { ascending, descending, scrambled };
extern order run_order;

void launch(dim3 grid, dim3 block, size_t shared_bytes, const void *kernel,
            const std::function<void()> &body);
void launched(); /* by launch, at its end */
void barrier(const char *file, int line);

/* While one lives, device memory may be touched. */
struct device_access {
    device_access();
    device_access(const device_access &) = delete;
    ~device_access();
};

/* The block's memory of one declaration, which `site` stands for. */
void *shared(const void *site, size_t bytes);
void *shared_at_launch();

/* All 32 lanes of a warp hand in 8 bytes each and get those of lane `from`. */
uint64_t exchange(uint32_t mask, uint64_t value, int from);
int lane();

template <class T> T shuffle_xor(uint32_t mask, T value, int distance)
{
    static_assert(sizeof(T) <= sizeof(uint64_t));
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = exchange(mask, bits, lane() ^ distance);
    memcpy(&value, &bits, sizeof value);
    return value;
}

} // namespace cuda_emulator

#define threadIdx       cuda_emulator::thread_index
#define blockIdx        cuda_emulator::block_index
#define blockDim        cuda_emulator::block_size
#define gridDim         cuda_emulator::grid_size
#define __syncthreads() cuda_emulator::barrier(__FILE__, __LINE__)
#define __shfl_xor_sync cuda_emulator::shuffle_xor

#define ADL_SHARED(type, name, count)                                                              \
    static char name##_site;                                                                       \
    type(&name)[count] =                                                                           \
        *static_cast<type(*)[count]>(cuda_emulator::shared(&name##_site, sizeof(type[count])))
#define ADL_SHARED_AT_LAUNCH(type, name)                                                           \
    type *name = static_cast<type *>(cuda_emulator::shared_at_launch())

/* ---- runtime */

#define CUDART_VERSION 13000

enum cudaError_t {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorStubLibrary = 34,
    cudaErrorInsufficientDriver = 35,
    cudaErrorNoDevice = 100,
    cudaErrorLaunchFailure = 719
};
enum cudaMemcpyKind {
    cudaMemcpyHostToDevice = 1,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum { cudaStreamNonBlocking = 1 };
typedef struct cuda_emulator_stream *cudaStream_t;
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr what, int device);
struct cudaDeviceProp {
    char name[256];
};
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int device);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaMemGetInfo(size_t *available, size_t *all);
cudaError_t cuda_emulator_malloc(void **out, size_t bytes);
template <class T> cudaError_t cudaMalloc(T **out, size_t bytes)
{
    return cuda_emulator_malloc(reinterpret_cast<void **>(out), bytes);
}
cudaError_t cudaFree(void *memory);
cudaError_t cuda_emulator_malloc_host(void **out, size_t bytes);
template <class T> cudaError_t cudaMallocHost(T **out, size_t bytes)
{
    return cuda_emulator_malloc_host(reinterpret_cast<void **>(out), bytes);
}
cudaError_t cudaFreeHost(void *memory);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cuda_emulator_set_shared(const void *kernel, cudaFuncAttribute what, int bytes);
template <class K> cudaError_t cudaFuncSetAttribute(K *kernel, cudaFuncAttribute what, int bytes)
{
    return cuda_emulator_set_shared(reinterpret_cast<const void *>(kernel), what, bytes);
}

namespace cuda_emulator
{

/* The device that the runtime tells of; tests set what they need, or describe it in the variable
 * CUDA_EMULATOR by memory, error, count, major, runtime and launches (until one fails). */
struct device {
    cudaError_t count_error = cudaSuccess; /* what cudaGetDeviceCount returns */
    int count = 1, major = 9, minor = 0, runtime = CUDART_VERSION;
    size_t memory = size_t(1) << 30; /* allocations beyond it fail */
    size_t used = 0;
    int taken = 0;                   /* by the last cudaSetDevice */
    int launches_until_failure = -1; /* the one after them fails; below 0: none */
    int pageable_copies = 0;         /* asynchronous ones of host memory that is not page-locked */
};
extern device the_device;

} // namespace cuda_emulator

#endif
