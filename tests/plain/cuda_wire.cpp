/* SPDX-License-Identifier: Apache-2.0 */
/* Wire formats on a GPU against core/wire.h, bit for bit. */
#include "cuda_test.h"

#include "kernels/space_cuda.cuh"

extern "C" {
#include "core/settings.h"
#include "core/wire.h"
}

static void upload(void *to, const void *from, size_t bytes)
{
    need(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, cudaStreamPerThread));
    need(cudaStreamSynchronize(cudaStreamPerThread));
}

static std::vector<char> download(const void *from, size_t bytes)
{
    std::vector<char> to(bytes);
    need(cudaMemcpyAsync(to.data(), from, bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    need(cudaStreamSynchronize(cudaStreamPerThread));
    return to;
}

static std::vector<float> numbers(size_t n, bool finite)
{
    const float edges[] = {0.0f,       -0.0f,     65504.0f,  65520.0f,   0x1p-24f,
                           0x1p-25f,   1e-45f,    1.01f,     3.3961e38f, 0x1.8p-24f,
                           0x1.002p0f, 0x1.01p0f, -INFINITY, INFINITY,   NAN};
    const size_t n_edges = finite ? 12 : 15;
    std::vector<float> x(n);
    uint64_t state = 3;
    for (size_t i = 0; i < n; i++)
        x[i] = i % 3 == 0 && i / 3 < n_edges ? edges[i / 3]
                                             : next_random(&state) * expf(20 * next_random(&state));
    return x;
}

static void check(int wire, size_t n, size_t shift, bool finite)
{
    const std::string name = "wire " + std::to_string(wire) + ", " + std::to_string(n) +
                             " elements, shift " + std::to_string(shift);
    checking(name);
    const size_t bytes = adl_wire_size(wire, n);
    const std::vector<float> x = numbers(n, finite);
    std::vector<float> y(n, 2.0f);
    std::vector<char> packed(bytes);
    char *on_device, *to;
    need(cudaMalloc(&on_device, (n + shift) * 4));
    need(cudaMalloc(&to, bytes + !bytes));
    float *at = reinterpret_cast<float *>(on_device) + shift;
    upload(at, x.data(), n * 4);
    adl_wire_pack(packed.data(), x.data(), n, wire);
    adl_cuda_space.pack(to, at, n, wire);
    expect(download(to, bytes) == packed, name + ": packed otherwise");
    upload(to, packed.data(), bytes);
    for (bool add : {false, true}) {
        upload(at, y.data(), n * 4);
        adl_cuda_space.unpack(at, to, n, wire, add);
        const std::vector<char> got = download(at, n * 4);
        std::vector<float> want = y;
        adl_wire_unpack(want.data(), packed.data(), n, wire, add);
        for (size_t i = 0; i < n; i++) {
            float a;
            memcpy(&a, &got[4 * i], 4);
            expect(a == want[i] || (isnan(a) && isnan(want[i])),
                   name + (add ? ", add" : "") + ": element " + std::to_string(i));
        }
    }
    need(cudaFree(on_device));
    need(cudaFree(to));
    expect(adl_cuda_space_failure() == cudaSuccess, name + ": failed");
}

int main()
{
    leave_where_impossible();
    for (int wire : {ADL_WIRE_F32, ADL_WIRE_F64, ADL_WIRE_BF16, ADL_WIRE_F16, ADL_WIRE_INT8})
        for (size_t n : {0, 1, 7, 256, 300, 2100})
            for (size_t shift : {0, 1})
                for (bool finite : {true, false}) {
                    choose_order(int(n % repeats));
                    check(wire, n, shift, finite);
                }
    return failures ? 1 : 0;
}
