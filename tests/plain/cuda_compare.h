/* SPDX-License-Identifier: Apache-2.0 */
/* Holds a GPU operator against the CPU's. Every operand is memory of exact size, results start as
 * NaN, and the GPU's part is repeated: with operands that are and are not aligned to 16 bytes, and
 * so that bits that depend on chance would show (on the emulator: threads and blocks in other
 * orders). Compiled with the emulator, or by nvcc for a device: tests/gpu/run.sh. */
#ifndef ADL_TESTS_CUDA_COMPARE_H
#define ADL_TESTS_CUDA_COMPARE_H

#include <functional>
#include <memory>

#include "cuda_test.h"

enum class role { in, out, in_out };

struct tensor {
    const char *name;
    size_t n;
    role is;
    bool activation = true; /* of the table's element type; else floats */
    float spread = 1.0f;    /* inputs: uniform within +- spread, about `middle` */
    float middle = 0.0f;
};

struct example {
    std::string name;
    std::vector<tensor> tensors;
    std::vector<int32_t> tokens;
    /* What differences may be, relative to an element and to its tensor's root mean square. */
    float tolerance, tolerance_bf16;
    std::function<void(const adl_ops *, adl_queue *, float *const *, const int32_t *)> run;
};

inline std::vector<float> start_of(const tensor &t, uint64_t seed, bool bf16)
{
    std::vector<float> v(t.n);
    for (float &x : v) {
        x = t.is == role::out ? NAN : t.middle + t.spread * next_random(&seed);
        if (bf16 && t.activation)
            x = adl_rounded<adl_bf16>(x);
    }
    return v;
}

/* Device memory of exact size, `shift` elements behind an aligned address. */
struct device_tensor {
    char *memory = nullptr, *at = nullptr;
    size_t n, bytes;
    bool bf16;

    device_tensor(const std::vector<float> &v, bool as_bf16, size_t shift)
        : n(v.size()), bytes(as_bf16 ? 2 : 4), bf16(as_bf16)
    {
        need(cudaMalloc(&memory, (n + shift) * bytes));
        at = memory + shift * bytes;
        std::vector<adl_bf16> rounded(bf16 ? n : 0);
        for (size_t i = 0; i < rounded.size(); i++)
            adl_round_to(rounded[i], v[i]);
        const void *from = bf16 ? static_cast<const void *>(rounded.data()) : v.data();
        need(cudaMemcpyAsync(at, from, n * bytes, cudaMemcpyHostToDevice, cudaStreamPerThread));
        need(cudaStreamSynchronize(cudaStreamPerThread));
    }
    device_tensor(const device_tensor &) = delete;
    ~device_tensor()
    {
        need(cudaFree(memory));
    }

    std::vector<float> get() const
    {
        std::vector<float> v(n);
        std::vector<adl_bf16> rounded(bf16 ? n : 0);
        void *to = bf16 ? static_cast<void *>(rounded.data()) : v.data();
        need(cudaMemcpyAsync(to, at, n * bytes, cudaMemcpyDeviceToHost, cudaStreamPerThread));
        need(cudaStreamSynchronize(cudaStreamPerThread));
        for (size_t i = 0; i < rounded.size(); i++)
            v[i] = adl_value(rounded[i]);
        return v;
    }
};

typedef std::vector<std::vector<float>> values;

inline values run_on_cpu(const example &e, bool bf16)
{
    values v;
    std::vector<float *> at;
    for (size_t i = 0; i < e.tensors.size(); i++)
        v.push_back(start_of(e.tensors[i], i + 1, bf16));
    for (auto &x : v)
        at.push_back(x.data());
    struct adl_err err = {};
    adl_queue *queue = nullptr;
    expect(adl_ops_cpu.open(&queue, &err) == ADL_OK, err.message);
    e.run(&adl_ops_cpu, queue, at.data(), e.tokens.data());
    adl_ops_cpu.close(queue);
    return v;
}

/* One for each table, kept to the end. */
inline adl_queue *queue_of(const adl_ops *ops)
{
    static adl_queue *queues[2];
    adl_queue *&queue = queues[ops == &adl_cuda_ops_bf16];
    struct adl_err err = {};
    if (!queue)
        expect(ops->open(&queue, &err) == ADL_OK, err.message);
    return queue;
}

inline void close_queues()
{
    adl_cuda_ops_f32.close(queue_of(&adl_cuda_ops_f32));
    adl_cuda_ops_bf16.close(queue_of(&adl_cuda_ops_bf16));
}

inline values run_on_gpu(const example &e, const adl_ops *ops, bool bf16, size_t shift)
{
    values v;
    std::vector<std::unique_ptr<device_tensor>> on_device;
    std::vector<float *> at;
    for (size_t i = 0; i < e.tensors.size(); i++) {
        const tensor &t = e.tensors[i];
        on_device.push_back(
            std::make_unique<device_tensor>(start_of(t, i + 1, bf16), bf16 && t.activation, shift));
        at.push_back(reinterpret_cast<float *>(on_device.back()->at));
    }
    int32_t *tokens = nullptr;
    struct adl_err err = {};
    adl_queue *queue = queue_of(ops);
    need(cudaMalloc(&tokens, e.tokens.size() * sizeof *tokens + 1));
    ops->upload(queue, tokens, e.tokens.data(), e.tokens.size() * sizeof *tokens);
    e.run(ops, queue, at.data(), tokens);
    expect(ops->finish(queue, &err) == ADL_OK, e.name + ": " + err.message);
    need(cudaFree(tokens));
    for (auto &t : on_device)
        v.push_back(t->get());
    return v;
}

inline double root_mean_square(const std::vector<float> &v)
{
    double sum = 0;
    for (float x : v)
        sum += isfinite(x) ? double(x) * x : 0.0;
    return sqrt(sum / double(v.size() ? v.size() : 1));
}

inline void compare(const example &e, const std::string &where, const values &want,
                    const values &got, float tolerance)
{
    for (size_t t = 0; t < want.size(); t++) {
        const double rms = root_mean_square(want[t]);
        for (size_t i = 0; i < want[t].size(); i++) {
            const double a = want[t][i], b = got[t][i];
            const bool near = isfinite(a) ? fabs(a - b) <= tolerance * (fabs(a) + rms) : a == b;
            if (near || (isnan(a) && isnan(b)))
                continue;
            char text[200];
            snprintf(text, sizeof text, "%s[%zu] is %.9g, on the CPU %.9g", e.tensors[t].name, i, b,
                     a);
            expect(false, e.name + where + ": " + text);
            break;
        }
    }
}

inline bool same_bits(const values &a, const values &b)
{
    for (size_t t = 0; t < a.size(); t++)
        if (a[t].size() && memcmp(a[t].data(), b[t].data(), a[t].size() * sizeof(float)))
            return false;
    return true;
}

inline void check(const example &e)
{
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const adl_ops *ops = bf16 ? &adl_cuda_ops_bf16 : &adl_cuda_ops_f32;
        checking(e.name + (bf16 ? ", bf16" : ", fp32"));
        const values want = run_on_cpu(e, bf16);
        values first;
        for (int repeat = 0; repeat < repeats; repeat++)
            for (size_t shift = 0; shift < 2; shift++) {
                if (shift && repeat)
                    continue;
                choose_order(repeat);
                const values got = run_on_gpu(e, ops, bf16, shift);
                const std::string where =
                    std::string(bf16 ? ", bf16" : ", fp32") + (shift ? ", unaligned" : "");
                compare(e, where, want, got, bf16 ? e.tolerance_bf16 : e.tolerance);
                if (repeat == 0 && shift == 0)
                    first = got;
                expect(shift || same_bits(first, got), e.name + where + ": bits change");
            }
    }
}

#endif
