/* SPDX-License-Identifier: Apache-2.0 */
/* The emulated runtime: streams do everything at once; device memory is memory that the host may
 * not touch while no kernel and no copy runs: pages without access, or, under ASan, poisoned heap
 * blocks of exact size. */
#include "cuda_emulator.h"

#include <stdio.h>
#include <stdlib.h>

#include <map>
#include <mutex>
#include <new>
#include <string>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

struct cuda_emulator_stream {
    int unused;
};

namespace cuda_emulator
{

/* As the environment describes it: "memory=100000 major=7", say. */
static device described()
{
    device d;
    const char *text = getenv("CUDA_EMULATOR");
    for (const char *at = text; at && *at;) {
        char name[32];
        long value = 0;
        int length = 0;
        if (sscanf(at, " %31[a-z_]=%ld %n", name, &value, &length) != 2) {
            fprintf(stderr, "CUDA_EMULATOR=%s: not understood at '%s'\n", text, at);
            abort();
        }
        const std::string key = name;
        if (key == "memory")
            d.memory = size_t(value);
        else if (key == "error")
            d.count_error = static_cast<cudaError_t>(value);
        else if (key == "launches")
            d.launches_until_failure = int(value);
        else
            *(key == "count" ? &d.count : key == "major" ? &d.major : &d.runtime) = int(value);
        at += length;
    }
    return d;
}

device the_device = described();

} // namespace cuda_emulator

using cuda_emulator::the_device;

namespace
{

/* NaN: reading what nobody wrote shows. The rest of a larger piece, a workspace, is left as it is:
 * pages that nobody touched cost nothing. */
constexpr size_t FILLED_BYTES = 4 << 20;

std::mutex memory_lock;
std::map<char *, size_t> allocated, page_locked;
int accesses; /* kernels and copies that run */
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t fail(cudaError_t error)
{
    last_error = error;
    return error;
}

/* Whether [x, x + bytes) is in one of the pieces. */
bool within(const std::map<char *, size_t> &pieces, const void *x, size_t bytes)
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    const char *first = static_cast<const char *>(x);
    auto next = pieces.upper_bound(const_cast<char *>(first));
    if (next == pieces.begin())
        return false;
    --next;
    return first + bytes <= next->first + next->second;
}

bool on_device(const void *x, size_t bytes)
{
    return within(allocated, x, bytes);
}

#if defined(__SANITIZE_ADDRESS__)

constexpr std::align_val_t alignment{256}; /* cudaMalloc's */

char *new_memory(size_t bytes)
{
    return static_cast<char *>(::operator new(bytes, alignment));
}

void delete_memory(char *memory, size_t)
{
    ::operator delete(memory, alignment);
}

void allow(char *memory, size_t bytes, bool access)
{
    if (access)
        __asan_unpoison_memory_region(memory, bytes);
    else
        __asan_poison_memory_region(memory, bytes);
}

#else

/* With the page behind it, which nobody may ever touch. */
size_t pages_of(size_t bytes)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    return (bytes + page - 1) / page * page + page;
}

/* Says what a fault in device memory is: else it is nobody's but the program's own. */
void on_fault(int number, siginfo_t *info, void *)
{
    static const char text[] = "cuda_emulator: the host touches device memory\n";
    const char *at = static_cast<const char *>(info->si_addr);
    for (const auto &piece : allocated)
        if (at >= piece.first && at < piece.first + pages_of(piece.second)) {
            if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
                _exit(1);
            abort();
        }
    signal(number, SIG_DFL);
}

char *new_memory(size_t bytes)
{
    static const bool once = [] {
        struct sigaction action = {};
        action.sa_sigaction = on_fault;
        action.sa_flags = SA_SIGINFO;
        return sigaction(SIGSEGV, &action, nullptr) == 0;
    }();
    void *memory = MAP_FAILED;
    if (once)
        memory = mmap(nullptr, pages_of(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<char *>(memory);
}

void delete_memory(char *memory, size_t bytes)
{
    munmap(memory, pages_of(bytes));
}

void allow(char *memory, size_t bytes, bool access)
{
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    if (mprotect(memory, pages_of(bytes) - page, access ? PROT_READ | PROT_WRITE : PROT_NONE))
        abort();
}

#endif

} // namespace

cuda_emulator::device_access::device_access()
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    if (accesses++ == 0)
        for (const auto &piece : allocated)
            allow(piece.first, piece.second, true);
}

cuda_emulator::device_access::~device_access()
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    if (--accesses == 0)
        for (const auto &piece : allocated)
            allow(piece.first, piece.second, false);
}

void cuda_emulator::launched()
{
    if (the_device.launches_until_failure >= 0 && the_device.launches_until_failure-- == 0)
        fail(cudaErrorLaunchFailure);
}

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
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = the_device.count_error == cudaSuccess ? the_device.count : 0;
    return the_device.count_error;
}

cudaError_t cudaSetDevice(int device)
{
    if (device < 0 || device >= the_device.count)
        return fail(cudaErrorInvalidValue);
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
    return fail(cudaErrorInvalidValue);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int)
{
    snprintf(properties->name, sizeof properties->name, "the emulator");
    return cudaSuccess;
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
        return fail(cudaErrorMemoryAllocation);
    char *memory = new_memory(bytes);
    if (!memory)
        return fail(cudaErrorMemoryAllocation);
    allow(memory, bytes, true);
    memset(memory, 0xFF, bytes < FILLED_BYTES ? bytes : FILLED_BYTES);
    allow(memory, bytes, accesses > 0);
    allocated[memory] = bytes;
    the_device.used += bytes;
    *out = memory;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    const auto found = allocated.find(static_cast<char *>(memory));
    if (!memory)
        return cudaSuccess;
    if (found == allocated.end())
        return fail(cudaErrorInvalidValue);
    the_device.used -= found->second;
    allow(found->first, found->second, true);
    delete_memory(found->first, found->second);
    allocated.erase(found);
    return cudaSuccess;
}

cudaError_t cuda_emulator_malloc_host(void **out, size_t bytes)
{
    char *memory = static_cast<char *>(malloc(bytes));
    if (!memory)
        return fail(cudaErrorMemoryAllocation);
    const std::lock_guard<std::mutex> hold(memory_lock);
    page_locked[memory] = bytes;
    *out = memory;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    const std::lock_guard<std::mutex> hold(memory_lock);
    if (memory && !page_locked.erase(static_cast<char *>(memory)))
        return fail(cudaErrorInvalidValue);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t)
{
    if (bytes == 0)
        return cudaSuccess;
    if (on_device(to, bytes) != (kind != cudaMemcpyDeviceToHost) ||
        on_device(from, bytes) != (kind != cudaMemcpyHostToDevice))
        return fail(cudaErrorInvalidValue);
    const void *host = kind == cudaMemcpyHostToDevice ? from : to;
    if (kind != cudaMemcpyDeviceToDevice && !within(page_locked, host, bytes))
        the_device.pageable_copies++;
    const cuda_emulator::device_access access;
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
    if (bytes == 0)
        return cudaSuccess;
    if (!on_device(to, bytes))
        return fail(cudaErrorInvalidValue);
    const cuda_emulator::device_access access;
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
