/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the CUDA module share. They are compiled with the emulator, or by nvcc for a
 * device: tests/gpu/run.sh. */
#ifndef ADL_TESTS_CUDA_TEST_H
#define ADL_TESTS_CUDA_TEST_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <string>
#include <vector>

#include "kernels/cuda_device.cuh"

extern "C" {
#include "kernels/ops_cuda.h"
}

inline int failures;

/* What comes next, for who reads how far a crash or a hang let it come. */
inline void checking(const std::string &what)
{
    printf("checking %s\n", what.c_str());
    fflush(stdout);
}

inline void expect(bool holds, const std::string &what)
{
    if (holds)
        return;
    failures++;
    printf("FAILED: %s\n", what.c_str());
    fflush(stdout);
}

inline void need(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    printf("CUDA: %s\n", cudaGetErrorString(error));
    exit(1);
}

/* Uniform in +-1; the same on every machine. */
inline float next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return float(int32_t(*state >> 32)) / 2147483648.0f;
}

/* Other orders of threads and blocks where they can be had, else once more. */
constexpr int repeats = 3;
inline void choose_order(int repeat)
{
#ifndef __CUDACC__
    using cuda_emulator::order;
    const order orders[] = {order::ascending, order::descending, order::scrambled};
    cuda_emulator::run_order = orders[repeat];
#else
    (void)repeat;
#endif
}

/* Ends a test program that cannot run here; the reason is printed. */
inline void leave_where_impossible()
{
#ifdef __SANITIZE_THREAD__
    puts("skipped: fibers of the emulator are not known to the thread sanitizer");
    exit(77);
#elif defined(__CUDACC__)
    int n = 0;
    const cudaError_t error = cudaGetDeviceCount(&n);
    if (error == cudaSuccess && n > 0)
        return;
    printf("skipped: no usable CUDA device: %s\n", cudaGetErrorString(error));
    exit(77);
#endif
}

#endif
