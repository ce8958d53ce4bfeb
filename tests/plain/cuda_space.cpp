/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors in GPU memory against the CPU's: element-wise calls bit for bit, dot within rounding and
 * always the same. */
#include "cuda_test.h"

#include <functional>

#include "kernels/space_cuda.cuh"

static const adl_space *const gpu = &adl_cuda_space, *const cpu = &adl_space_cpu;
enum { VECTORS = 4, SENTINELS = 8 };

/* Host memory copied to the device and back, with room for `shift` elements before. */
struct vectors {
    enum adl_dtype type;
    size_t n, shift;
    char *host[VECTORS], *device[VECTORS];

    vectors(enum adl_dtype t, size_t count, size_t offset) : type(t), n(count), shift(offset)
    {
        uint64_t state = 5;
        for (int v = 0; v < VECTORS; v++) {
            host[v] = static_cast<char *>(cpu->alloc(n + SENTINELS, t));
            need(cudaMalloc(&device[v], bytes(shift + n)));
            for (size_t i = 0; i < n; i++) {
                const double x = next_random(&state), y = v == 3 ? fabs(x) : x; /* 3: a square */
                if (t == ADL_F64)
                    reinterpret_cast<double *>(host[v])[i] = y;
                else
                    reinterpret_cast<float *>(host[v])[i] = static_cast<float>(y);
            }
            need(cudaMemcpyAsync(at(v), host[v], bytes(n), cudaMemcpyHostToDevice,
                                 cudaStreamPerThread));
        }
        need(cudaStreamSynchronize(cudaStreamPerThread));
    }
    vectors(const vectors &) = delete;
    ~vectors()
    {
        for (int v = 0; v < VECTORS; v++) {
            cpu->free(host[v]);
            need(cudaFree(device[v]));
        }
    }

    size_t bytes(size_t count) const
    {
        return count * adl_dtype_bytes(type);
    }
    void *at(int v) const
    {
        return device[v] + bytes(shift);
    }

    bool equal(int v) const
    {
        std::vector<char> got(bytes(n) + 1);
        need(cudaMemcpyAsync(got.data(), at(v), bytes(n), cudaMemcpyDeviceToHost,
                             cudaStreamPerThread));
        need(cudaStreamSynchronize(cudaStreamPerThread));
        return memcmp(got.data(), host[v], bytes(n)) == 0;
    }
};

typedef std::function<void(const adl_space *, void *const *, size_t, enum adl_dtype)> call;

static void check_call(const char *name, const call &f)
{
    checking(name);
    for (enum adl_dtype t : {ADL_F32, ADL_F64})
        for (size_t n : {0, 1, 3, 4, 1021, 5000})
            for (size_t shift = 0; shift < 2; shift++)
                for (int repeat = 0; repeat < repeats; repeat++) {
                    choose_order(repeat);
                    vectors v(t, n, shift);
                    void *on_host[VECTORS], *on_device[VECTORS];
                    for (int i = 0; i < VECTORS; i++) {
                        on_host[i] = v.host[i];
                        on_device[i] = v.at(i);
                    }
                    f(cpu, on_host, n, t);
                    f(gpu, on_device, n, t);
                    for (int i = 0; i < VECTORS; i++)
                        expect(v.equal(i), std::string(name) + " of " + std::to_string(n) +
                                               " elements of type " + std::to_string(t) +
                                               ": not the CPU's bits");
                }
}

static void check_calls()
{
    typedef void *const *at;
    check_call("zero", [](auto *s, at x, size_t n, auto t) { s->zero(x[0], n, t); });
    check_call("copy", [](auto *s, at x, size_t n, auto t) { s->copy(x[0], x[1], n, t); });
    check_call("axpy", [](auto *s, at x, size_t n, auto t) { s->axpy(x[0], -1.7, x[1], n, t); });
    check_call("scale", [](auto *s, at x, size_t n, auto t) { s->scale(x[0], 0.3, n, t); });
    check_call("combine", [](auto *s, at x, size_t n, auto t) {
        s->combine(x[0], 0.3, x[1], -2.1, x[2], n, t);
    });
    check_call("combine in place", [](auto *s, at x, size_t n, auto t) {
        s->combine(x[0], 0.3, x[0], -2.1, x[2], n, t);
        s->combine(x[1], 0.3, x[2], -2.1, x[1], n, t);
    });
    check_call("sgd with momentum", [](auto *s, at x, size_t n, auto t) {
        s->sgd(x[0], x[1], x[2], 0.1, 0.9, 0.01, n, t);
    });
    check_call("sgd", [](auto *s, at x, size_t n, auto t) {
        s->sgd(x[0], x[1], NULL, 0.1, 0, 0.01, n, t);
    });
    check_call("nesterov", [](auto *s, at x, size_t n, auto t) {
        s->nesterov(x[0], x[1], x[2], 0.7, 0.9, n, t);
    });
    check_call("adamw", [](auto *s, at x, size_t n, auto t) {
        const struct adl_adamw_step step = {.lr = 0.01,
                                            .beta1 = 0.9,
                                            .beta2 = 0.99,
                                            .eps = 1e-8,
                                            .weight_decay = 0.1,
                                            .correction1 = 0.19,
                                            .correction2 = 0.0199};
        s->adamw(x[0], x[1], x[2], x[3], &step, n, t);
    });
}

/* Norms that come with a pass: the vector's bits are the CPU's, the norm's those of dot. */
static void check_norms()
{
    typedef void *const *at;
    check_call("scale_norm2", [](auto *s, at x, size_t n, auto t) {
        s->copy(x[1], x[0], n, t);
        s->scale(x[1], -0.3, n, t);
        const double want = s->dot(x[1], x[1], n, t);
        expect(s->scale_norm2(x[0], -0.3, n, t) == want, "scale_norm2 is not dot");
    });
    check_call("combine_norm2", [](auto *s, at x, size_t n, auto t) {
        s->combine(x[0], 1.0, x[1], -1.7, x[2], n, t);
        const double want = s->dot(x[0], x[0], n, t);
        expect(s->combine_norm2(x[2], 1.0, x[1], -1.7, x[2], 0.3, n, t) == want,
               "combine_norm2 is not dot");
    });
}

static void check_dot()
{
    checking("dot");
    for (enum adl_dtype t : {ADL_F32, ADL_F64})
        for (size_t n : {0, 1, 5, 1021, 70000})
            for (size_t shift = 0; shift < 2; shift++) {
                vectors v(t, n, shift);
                const double want = cpu->dot(v.host[0], v.host[1], n, t);
                double first = 0;
                for (int repeat = 0; repeat < repeats; repeat++) {
                    choose_order(repeat);
                    const double got = gpu->dot(v.at(0), v.at(1), n, t);
                    first = repeat == 0 ? got : first;
                    expect(fabs(got - want) <= 1e-14 * double(n), "dot: not the CPU's");
                    expect(got == first, "dot: bits change");
                }
            }
}

static void check_memory()
{
    checking("memory");
    void *x = gpu->alloc(5, ADL_F64);
    double host[5] = {1, 1, 1, 1, 1};
    expect(x != NULL, "alloc");
    need(cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, cudaStreamPerThread));
    need(cudaStreamSynchronize(cudaStreamPerThread));
    for (double y : host)
        expect(y == 0.0, "memory starts as zeros");
    struct adl_err err = {};
    const double sent[2] = {-3, 7};
    expect(gpu->put(static_cast<double *>(x) + 1, sent, sizeof sent, &err) == ADL_OK, "put");
    expect(gpu->get(host, x, sizeof host, &err) == ADL_OK, "get");
    expect(host[0] == 0 && host[1] == -3 && host[2] == 7 && host[3] == 0, "what was put");
    gpu->free(x);
    gpu->free(NULL);
    expect(gpu->alloc(SIZE_MAX / 4, ADL_F64) == NULL, "sizes that overflow are refused");
    expect(gpu->alloc(SIZE_MAX / 64, ADL_F64) == NULL, "more than there is, is refused");
    expect(adl_cuda_space_failure() == cudaSuccess, "a refused allocation is no failure");
}

int main()
{
    leave_where_impossible();
    check_calls();
    check_norms();
    check_dot();
    check_memory();
    return failures ? 1 : 0;
}
