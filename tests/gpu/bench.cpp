/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA module reaches on the device at hand, as JSON on stdout, an object a line:
 * memory-bound operators beside the measured copy, attention and products in flop/s, training
 * steps of a preset in tokens/s and as a share of the device's peak (mfu; null where that is not
 * known), and several workers on streams of their own beside one.
 *   gpu_bench [--training | --tables] [PRESET [TOKENS_OF_A_PASS]]     steps and workers, operators
 *   gpu_bench --try     everything once, at sizes that the emulator can carry */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cuda_device.cuh"

extern "C" {
#include "core/settings.h"
#include "core/wire.h"
#include "kernels/llama.h"
#include "kernels/ops_cuda.h"
}

static void need(bool holds, const char *what)
{
    if (holds)
        return;
    fprintf(stderr, "gpu_bench: %s\n", what);
    exit(1);
}

struct effort {
    size_t copied, elements; /* of vectors */
    int N, C, F, V, R;       /* of operators; R rows of logits */
    struct adl_attention attention;
    int groups, calls;        /* timed */
    int warm_steps, steps, T; /* of training; T tokens of a document */
};
static const struct effort full = {.copied = size_t(1) << 29,
                                   .elements = size_t(1) << 28,
                                   .N = 16384,
                                   .C = 1024,
                                   .F = 4096,
                                   .V = 32000,
                                   .R = 4096,
                                   .attention = {.B = 16, .T = 1024, .H = 16, .K = 4, .D = 64},
                                   .groups = 5,
                                   .calls = 20,
                                   .warm_steps = 3,
                                   .steps = 10,
                                   .T = 1024};
static const struct effort tried = {.copied = 4096,
                                    .elements = 4096,
                                    .N = 16,
                                    .C = 16,
                                    .F = 24,
                                    .V = 40,
                                    .R = 4,
                                    .attention = {.B = 2, .T = 8, .H = 2, .K = 1, .D = 8},
                                    .groups = 1,
                                    .calls = 1,
                                    .warm_steps = 1,
                                    .steps = 1,
                                    .T = 8};
static const struct effort *effort = &full;

static double now_s()
{
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}

static void finish(const adl_ops *ops, adl_queue *queue)
{
    struct adl_err err = {};
    need(ops->finish(queue, &err) == ADL_OK, err.message);
}

/* Seconds of one call: the median of some groups. */
static double seconds(const adl_ops *ops, adl_queue *queue, const std::function<void()> &call)
{
    std::vector<double> took(effort->groups);
    for (int i = 0; i < effort->warm_steps; i++)
        call();
    finish(ops, queue);
    for (double &s : took) {
        const double start = now_s();
        for (int i = 0; i < effort->calls; i++)
            call();
        finish(ops, queue);
        s = (now_s() - start) / effort->calls;
    }
    std::sort(took.begin(), took.end());
    return took[took.size() / 2];
}

struct vectors { /* device memory, freed at the end */
    const adl_ops *ops;
    std::vector<float *> all;

    float *get(size_t floats)
    {
        all.push_back(static_cast<float *>(ops->space->alloc(floats, ADL_F32)));
        need(all.back(), "out of memory");
        return all.back();
    }
    ~vectors()
    {
        for (float *x : all)
            ops->space->free(x);
    }
};

static double copy_rate() /* bytes/s, read and written */
{
    const adl_ops *ops = &adl_cuda_ops_f32;
    const size_t n = effort->copied;
    vectors v{ops, {}};
    float *x = v.get(n), *y = v.get(n);
    double best = 0;
    for (int i = 0; i < 10; i++) {
        const double start = now_s();
        ops->space->copy(y, x, n, ADL_F32);
        best = fmax(best, 8.0 * double(n) / (now_s() - start));
    }
    return best;
}

static void line(const std::string &name, double s, double bytes, double flops, double copy)
{
    printf("{\"name\": \"%s\", \"time_s\": %.4g", name.c_str(), s);
    if (bytes > 0)
        printf(", \"bytes_per_s\": %.4g, \"of_copy\": %.3f", bytes / s, bytes / s / copy);
    if (flops > 0)
        printf(", \"flops_per_s\": %.4g", flops / s);
    puts("}");
    fflush(stdout);
}

static void bench_vectors(double copy)
{
    const adl_ops *ops = &adl_cuda_ops_f32;
    const size_t n = effort->elements;
    vectors v{ops, {}};
    float *x = v.get(n), *y = v.get(n), *m = v.get(n), *w = v.get(n);
    adl_queue *queue = nullptr;
    struct adl_err err = {};
    need(ops->open(&queue, &err) == ADL_OK, err.message);
    const struct adl_adamw_step step = {1e-3, 0.9, 0.95, 1e-8, 0.1, 0.1, 0.05};
    const double one = 4.0 * double(n);
    const adl_space *s = ops->space;
    line("axpy", seconds(ops, queue, [=] { s->axpy(y, 0.5, x, n, ADL_F32); }), 3 * one, 0, copy);
    line("combine", seconds(ops, queue, [=] { s->combine(m, 1, x, -1, y, n, ADL_F32); }), 3 * one,
         0, copy);
    line("dot", seconds(ops, queue, [=] { s->dot(x, y, n, ADL_F32); }), 2 * one, 0, copy);
    line("scale_norm2", seconds(ops, queue, [=] { s->scale_norm2(y, 1.0, n, ADL_F32); }), 2 * one,
         0, copy);
    line("combine_norm2",
         seconds(ops, queue, [=] { s->combine_norm2(m, 1, x, -1, y, 0.5, n, ADL_F32); }), 3 * one,
         0, copy);
    line("adamw", seconds(ops, queue, [=] { s->adamw(x, y, m, w, &step, n, ADL_F32); }), 7 * one, 0,
         copy);
    line("nesterov", seconds(ops, queue, [=] { s->nesterov(x, y, m, 0.7, 0.9, n, ADL_F32); }),
         5 * one, 0, copy);
    for (const auto &[name, wire] : {std::pair("bf16", ADL_WIRE_BF16), {"int8", ADL_WIRE_INT8}}) {
        const double bytes = one + double(adl_wire_size(wire, n));
        const int format = wire;
        line(std::string("pack ") + name, seconds(ops, queue, [=] { s->pack(m, x, n, format); }),
             bytes, 0, copy);
        line(std::string("unpack ") + name,
             seconds(ops, queue, [=] { s->unpack(y, m, n, format, false); }), bytes, 0, copy);
    }
    ops->close(queue);
}

/* Operators at the sizes of a large pass. */
static void bench_operators(const adl_ops *ops, double copy)
{
    const int N = effort->N, C = effort->C, F = effort->F, V = effort->V, R = effort->R;
    const struct adl_attention a = effort->attention;
    const int W = (a.H + 2 * a.K) * a.D;
    const double E = ops->activation_bytes, rows = double(N) * C, wide = double(N) * F;
    const std::string in = std::string(" ") + (E == 2 ? "bf16" : "fp32");
    vectors v{ops, {}};
    float *x = v.get(size_t(rows)), *y = v.get(size_t(rows)), *z = v.get(size_t(rows));
    float *g = v.get(2 * size_t(wide)), *h = v.get(size_t(wide)), *w = v.get(size_t(V) * C);
    float *dw = v.get(size_t(V) * C), *rstd = v.get(N), *lse = v.get(size_t(N) * a.H);
    float *logits = v.get(size_t(R) * V), *turns = v.get(size_t(a.T) * a.D);
    int32_t *tokens = reinterpret_cast<int32_t *>(v.get(N));
    adl_queue *q = nullptr;
    struct adl_err err = {};
    need(ops->open(&q, &err) == ADL_OK, err.message);
    std::vector<int32_t> words(N);
    for (int n = 0; n < N; n++)
        words[n] = int32_t(uint32_t(n) * 2654435761u % uint32_t(V));
    ops->upload(q, tokens, words.data(), words.size() * sizeof words[0]);
    if (ops->round)
        line("round" + in, seconds(ops, q, [=] { ops->round(q, g, w, size_t(V) * C); }),
             (4 + E) * double(V) * C, 0, copy);
    line("rmsnorm" + in,
         seconds(ops, q, [=] { ops->rmsnorm(q, z, y, rstd, x, y, w, N, C, 1e-5f); }), 4 * E * rows,
         0, copy);
    line("rmsnorm_backward" + in,
         seconds(ops, q, [=] { ops->rmsnorm_backward(q, z, dw, x, y, rstd, w, N, C); }),
         4 * E * rows, 0, copy);
    line("swiglu" + in, seconds(ops, q, [=] { ops->swiglu(q, h, g, N, F); }), 3 * E * wide, 0,
         copy);
    line("swiglu_backward" + in, seconds(ops, q, [=] { ops->swiglu_backward(q, g, h, g, N, F); }),
         5 * E * wide, 0, copy);
    line("rope" + in, seconds(ops, q, [=] { ops->rope(q, g, turns, N, &a, 0); }),
         2 * E * double(N) * (a.H + a.K) * a.D, 0, copy);
    line("cross_entropy" + in,
         seconds(ops, q, [=] { ops->cross_entropy(q, rstd, logits, tokens, R, V, 1.0f); }),
         2 * E * double(R) * V, 0, copy);
    line("embed" + in, seconds(ops, q, [=] { ops->embed(q, x, w, tokens, N, C); }), E * rows, 0,
         copy);
    line("embed_backward" + in,
         seconds(ops, q, [=] { ops->embed_backward(q, dw, x, tokens, N, C); }), E * rows, 0, copy);
    /* causal: half of the scores; two products forward, five backward */
    const double scores = 0.5 * double(a.B) * a.H * double(a.T) * a.T * 2 * a.D;
    float *dqkv = v.get(size_t(N) * W);
    line("attention" + in, seconds(ops, q, [=] { ops->attention(q, x, lse, g, &a); }), 0,
         2 * scores, copy);
    line("attention_backward" + in,
         seconds(ops, q, [=] { ops->attention_backward(q, dqkv, y, g, x, lse, &a); }), 0,
         5 * scores, copy);
    line("matmul" + in, seconds(ops, q, [=] { ops->matmul(q, h, x, w, N, C, F); }), 0, 2 * rows * F,
         copy);
    line("matmul_backward" + in,
         seconds(ops, q, [=] { ops->matmul_backward(q, x, dw, h, y, w, N, C, F); }), 0,
         4 * rows * F, copy);
    finish(ops, q);
    ops->close(q);
}

/* ---- training */

struct trainee {
    const adl_ops *ops;
    struct adl_llama_size size;
    int documents;
    size_t P;
    struct adl_llama *net = nullptr;
    adl_queue *queue = nullptr;
    float *turns = nullptr, *theta, *grad, *m, *v;
    std::vector<int32_t> windows;
    std::vector<double> losses;

    trainee(const adl_ops *table, const struct adl_llama_size &s, int n)
        : ops(table), size(s), documents(n), P(adl_llama_n_params(&s)),
          windows(size_t(n) * (s.T + 1)), losses(n)
    {
        struct adl_err err = {};
        need(ops->open(&queue, &err) == ADL_OK, err.message);
        turns = adl_llama_turns(ops, queue, &size);
        need(turns && adl_llama_open(ops, &size, turns, n, &net, &err) == ADL_OK, err.message);
        for (float **x : {&theta, &grad, &m, &v})
            need((*x = static_cast<float *>(ops->space->alloc(P, ADL_F32))), "out of memory");
        std::vector<float> start(P, 1.0f);
        uint32_t state = 1;
        for (size_t i = 0; i < adl_llama_n_tensors(&size); i++) {
            const struct adl_llama_tensor t = adl_llama_tensor(&size, i);
            for (size_t k = 0; t.init > 0 && k < t.rows * t.cols; k++) {
                state = state * 1664525u + 1013904223u;
                start[t.offset + k] = float(t.init * 1.7) * (float(state >> 8) / 8388608.0f - 1.0f);
            }
        }
        for (int32_t &token : windows) {
            state = state * 1664525u + 1013904223u;
            token = int32_t((state >> 8) % uint32_t(size.V));
        }
        ops->upload(queue, theta, start.data(), P * sizeof start[0]);
        finish(ops, queue);
    }
    trainee(const trainee &) = delete;
    ~trainee()
    {
        for (float *x : {turns, theta, grad, m, v})
            ops->space->free(x);
        adl_llama_close(net);
        ops->close(queue);
    }

    double step(int k) /* its loss */
    {
        struct adl_err err = {};
        ops->space->zero(grad, P, ADL_F32);
        need(adl_llama_run(net, theta, windows.data(), documents, grad, losses.data(), &err) ==
                 ADL_OK,
             err.message);
        ops->space->scale(grad, 1.0 / documents, P, ADL_F32);
        const struct adl_adamw_step s = {
            3e-4, 0.9, 0.95, 1e-8, 0.1, 1 - pow(0.9, k + 1), 1 - pow(0.95, k + 1)};
        ops->space->adamw(theta, grad, m, v, &s, P, ADL_F32);
        double sum = 0;
        for (double loss : losses)
            sum += loss / double(losses.size());
        return sum;
    }
};

/* Tokens a second of so many workers at once, each with `documents` a step. */
static double train(const adl_ops *ops, const struct adl_llama_size &size, int documents,
                    int workers, double *loss)
{
    std::vector<std::unique_ptr<trainee>> all;
    for (int w = 0; w < workers; w++)
        all.push_back(std::make_unique<trainee>(ops, size, documents));
    auto steps = [&all, loss](int from, int to) {
        std::vector<std::thread> threads;
        for (auto &one : all)
            threads.emplace_back([&one, from, to, loss, &all] {
                for (int k = from; k < to; k++) {
                    const double got = one->step(k);
                    if (one == all[0])
                        *loss = got;
                }
            });
        for (auto &thread : threads)
            thread.join();
    };
    const int warm = effort->warm_steps;
    steps(0, warm);
    const double start = now_s();
    steps(warm, warm + effort->steps);
    return double(workers) * documents * size.T * effort->steps / (now_s() - start);
}

static struct adl_llama_size preset(const char *name)
{
    for (int i = 0; adl_llama_presets[i].name; i++)
        if (!strcmp(adl_llama_presets[i].name, name))
            return adl_llama_presets[i].size;
    fprintf(stderr, "gpu_bench: no preset '%s'\n", name);
    exit(2);
}

/* Dense products of bfloat16 a second, as the maker states it; 0: not known. */
static double peak_flops(const char *device)
{
    static const struct {
        const char *part;
        double flops;
    } known[] = {{"NVL", 0}, /* their clocks are others */
                 {"GH200", 0},       {"H100 PCIe", 756e12}, {"H100", 989.4e12},
                 {"H200", 989.4e12}, {"A100", 311.8e12}};
    for (const auto &k : known)
        if (strstr(device, k.part))
            return k.flops;
    return 0;
}

static void bench_training(const struct adl_llama_size &size, int documents, double peak)
{
    const double flops = adl_llama_flops(&size) / size.T;
    for (const adl_ops *ops : {&adl_cuda_ops_bf16, &adl_cuda_ops_f32}) {
        const bool bf16 = ops == &adl_cuda_ops_bf16;
        double loss = 0;
        const double rate = train(ops, size, documents, 1, &loss);
        printf("{\"name\": \"train_%s\", \"context\": %d, \"documents\": %d, \"loss\": %.5g, "
               "\"tokens_per_s\": %.5g, \"flops_per_s\": %.4g, \"mfu\": ",
               bf16 ? "bf16" : "fp32", size.T, documents, loss, rate, rate * flops);
        if (bf16 && peak > 0)
            printf("%.3f}\n", rate * flops / peak);
        else
            puts("null}");
        fflush(stdout);
    }
}

static void bench_workers(const struct adl_llama_size &size)
{
    double loss = 0;
    const double one = train(&adl_cuda_ops_bf16, size, 1, 1, &loss);
    const double four = train(&adl_cuda_ops_bf16, size, 1, 4, &loss);
    printf("{\"name\": \"workers\", \"documents\": 1, \"one_tokens_per_s\": %.5g, "
           "\"four_tokens_per_s\": %.5g, \"ratio\": %.3f}\n",
           one, four, four / one);
}

int main(int argc, char **argv)
{
    const bool training = argc < 2 || strcmp(argv[1], "--tables") != 0;
    const bool tables = argc < 2 || strcmp(argv[1], "--training") != 0;
    if (!training || !tables) {
        argc--;
        argv++;
    }
    const char *name = argc > 1 ? argv[1] : "microllama-300m";
    int tokens = argc > 2 ? atoi(argv[2]) : full.N;
    if (!strcmp(name, "--try")) {
        effort = &tried;
        name = "tiny";
        tokens = tried.T;
    }
    struct adl_llama_size size = preset(name);
    size.T = effort->T;
    const int documents = tokens / size.T;
    need(documents > 0, "TOKENS_OF_A_PASS is at least 1024");
    cudaDeviceProp device;
    need(cudaGetDeviceProperties(&device, 0) == cudaSuccess, "no device");
    const double copy = copy_rate();
    printf("{\"name\": \"device\", \"device\": \"%s\", \"preset\": \"%s\", "
           "\"copy_bytes_per_s\": %.4g}\n",
           device.name, name, copy);
    fflush(stdout);
    if (training) {
        bench_training(size, documents, peak_flops(device.name));
        bench_workers(size);
    }
    if (tables) {
        bench_vectors(copy);
        bench_operators(&adl_cuda_ops_bf16, copy);
        bench_operators(&adl_cuda_ops_f32, copy);
    }
    return 0;
}
