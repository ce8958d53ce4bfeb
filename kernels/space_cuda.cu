/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/space_cuda.cuh"

#include <atomic>

#include "kernels/cuda_entry.cuh"
#include "kernels/cuda_queue.cuh"
#include "kernels/cuda_wire.cuh"
#include "kernels/space_cuda_packs.cuh"

namespace
{

constexpr unsigned THREADS = 256, MAX_PARTIALS = 1024;
constexpr unsigned SUM_PACKS = 8; /* of a thread, where n is small */

std::atomic<int> failure{cudaSuccess};

void check(cudaError_t error)
{
    int none = cudaSuccess;
    if (error == cudaSuccess)
        return;
    cudaGetLastError(); /* CUDA remembers it too, and would tell the next launch */
    failure.compare_exchange_strong(none, error);
}

/* The calling thread's own, on this process's device. */
cudaStream_t own_stream()
{
    check(adl_cuda_use_device());
    return cudaStreamPerThread;
}

/* Runs what launches on a queue of the calling thread's stream, to its end. */
template <class F> void run(const F &launches)
{
    adl_queue queue = {};
    queue.stream = own_stream();
    launches(&queue);
    check(queue.error);
    check(cudaStreamSynchronize(queue.stream));
}

/* ---- element-wise: each byte moved once */

template <class F> __global__ void __launch_bounds__(THREADS) map_kernel(F f, size_t n, bool wide)
{
    constexpr size_t apart = THREADS * F::pack, block = packs_of<F> * apart;
    double none = 0.0;
    apply<packs_of<F>>(none, f, blockIdx.x * block + threadIdx.x * F::pack, apart, n, wide);
}

template <class F> void map(const F &f, size_t n)
{
    if (n > 0)
        run([&](adl_queue *queue) {
            adl_launch(queue, "", map_kernel<F>,
                       adl_ceil_div(n, size_t(THREADS) * F::pack * packs_of<F>), THREADS, 0, f, n,
                       f.aligned());
        });
}

/* ---- sums over elements, of which each is read, and written, once: a partial sum a block, then
 * one block adds them */

template <class F>
__global__ void __launch_bounds__(THREADS) sum_kernel(double *partials, F f, size_t n, bool wide)
{
    ADL_SHARED(double, slots, 32);
    double sum = 0.0;
    const size_t apart = size_t(gridDim.x) * THREADS * F::pack;
    size_t i = (size_t(blockIdx.x) * THREADS + threadIdx.x) * F::pack;
    for (; i < n; i += packs_of_sums * apart)
        apply<packs_of_sums>(sum, f, i, apart, n, wide);
    sum = adl_block_sum(sum, slots);
    if (threadIdx.x == 0)
        partials[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(THREADS) total_kernel(double *partials, unsigned n)
{
    ADL_SHARED(double, slots, 32);
    double sum = 0.0;
    for (unsigned i = threadIdx.x; i < n; i += THREADS)
        sum += partials[i];
    sum = adl_block_sum(sum, slots);
    if (threadIdx.x == 0)
        partials[0] = sum;
}

/* A thread's partial sums live as long as it does. */
struct partial_sums {
    double *memory = nullptr;

    double *get()
    {
        if (!memory)
            check(cudaMalloc(&memory, MAX_PARTIALS * sizeof *memory));
        return memory;
    }
    ~partial_sums()
    {
        cudaFree(memory);
    }
};

thread_local partial_sums partials;

template <class F> double sum(const F &f, size_t n)
{
    if (n == 0)
        return 0.0;
    double *memory = partials.get(), total = NAN;
    if (!memory)
        return total;
    const unsigned wanted = adl_ceil_div(n, size_t(THREADS) * F::pack * SUM_PACKS);
    const unsigned blocks = wanted < MAX_PARTIALS ? wanted : MAX_PARTIALS;
    run([&](adl_queue *queue) {
        adl_launch(queue, "", sum_kernel<F>, blocks, THREADS, 0, memory, f, n, f.aligned());
        adl_launch(queue, "", total_kernel, 1, THREADS, 0, memory, blocks);
        check(cudaMemcpyAsync(&total, memory, sizeof total, cudaMemcpyDeviceToHost, queue->stream));
    });
    return total;
}

/* ---- the table */

void *alloc_cuda(size_t count, enum adl_dtype t)
{
    const cudaStream_t stream = own_stream();
    void *x = nullptr;
    const size_t bytes = count * adl_dtype_bytes(t);
    if (bytes / adl_dtype_bytes(t) != count || cudaMalloc(&x, bytes ? bytes : 1) != cudaSuccess) {
        cudaGetLastError(); /* the caller knows; it must not look like a later call's */
        return nullptr;
    }
    check(cudaMemsetAsync(x, 0, bytes, stream));
    check(cudaStreamSynchronize(stream));
    return x;
}

void free_cuda(void *x)
{
    check(cudaFree(x));
}

void zero_cuda(void *x, size_t n, enum adl_dtype t)
{
    const cudaStream_t stream = own_stream();
    check(cudaMemsetAsync(x, 0, n * adl_dtype_bytes(t), stream));
    check(cudaStreamSynchronize(stream));
}

void copy_cuda(void *y, const void *x, size_t n, enum adl_dtype t)
{
    const cudaStream_t stream = own_stream();
    check(cudaMemcpyAsync(y, x, n * adl_dtype_bytes(t), cudaMemcpyDeviceToDevice, stream));
    check(cudaStreamSynchronize(stream));
}

template <class R> R *as(void *x)
{
    return static_cast<R *>(x);
}

template <class R> const R *as(const void *x)
{
    return static_cast<const R *>(x);
}

template <class R> void axpy_of(void *y, double a, const void *x, size_t n)
{
    map(axpy<R>{{{as<R>(y), as<R>(x)}, {as<R>(y)}}, R(a)}, n);
}

template <class R> void scale_of(void *y, double a, size_t n)
{
    map(scale<R>{{{as<R>(y)}, {as<R>(y)}}, R(a)}, n);
}

template <class R>
void combine_of(void *y, double a, const void *x, double b, const void *z, size_t n)
{
    map(combine<R>{{{as<R>(x), as<R>(z)}, {as<R>(y)}}, R(a), R(b)}, n);
}

template <class R> double dot_of(const void *x, const void *y, size_t n)
{
    return sum(dot<R>{{{as<R>(x), as<R>(y)}, {}}}, n);
}

template <class R> double scale_norm2_of(void *y, double a, size_t n)
{
    return sum(scale_norm2<R>{{{as<R>(y)}, {as<R>(y)}}, R(a)}, n);
}

template <class R>
double combine_norm2_of(void *y, double a, const void *x, double b, const void *z, double c,
                        size_t n)
{
    return sum(combine_norm2<R>{{{as<R>(x), as<R>(z)}, {as<R>(y)}}, R(a), R(b), R(c)}, n);
}

template <class R>
void sgd_of(void *x, const void *g, void *v, double lr, double momentum, double decay, size_t n)
{
    if (v)
        map(momentum_sgd<R>{{{as<R>(x), as<R>(v), as<R>(g)}, {as<R>(x), as<R>(v)}},
                            R(lr),
                            R(momentum),
                            R(decay)},
            n);
    else
        map(sgd<R>{{{as<R>(x), as<R>(g)}, {as<R>(x)}}, R(lr), R(decay)}, n);
}

template <class R>
void adamw_of(void *x, const void *g, void *m, void *v, const struct adl_adamw_step *s, size_t n)
{
    map(adamw<R>{{{as<R>(x), as<R>(m), as<R>(v), as<R>(g)}, {as<R>(x), as<R>(m), as<R>(v)}},
                 R(s->beta1),
                 R(1.0 - s->beta1),
                 R(s->beta2),
                 R(1.0 - s->beta2),
                 R(s->lr / s->correction1),
                 R(1.0 / sqrt(s->correction2)),
                 R(s->eps),
                 R(1.0 - s->lr * s->weight_decay)},
        n);
}

template <class R>
void nesterov_of(void *x, const void *p, void *v, double lr, double momentum, size_t n)
{
    map(nesterov<R>{{{as<R>(x), as<R>(v), as<R>(p)}, {as<R>(x), as<R>(v)}}, R(lr), R(momentum)}, n);
}

void axpy_cuda(void *y, double a, const void *x, size_t n, enum adl_dtype t)
{
    t == ADL_F64 ? axpy_of<double>(y, a, x, n) : axpy_of<float>(y, a, x, n);
}

void scale_cuda(void *y, double a, size_t n, enum adl_dtype t)
{
    t == ADL_F64 ? scale_of<double>(y, a, n) : scale_of<float>(y, a, n);
}

void combine_cuda(void *y, double a, const void *x, double b, const void *z, size_t n,
                  enum adl_dtype t)
{
    t == ADL_F64 ? combine_of<double>(y, a, x, b, z, n) : combine_of<float>(y, a, x, b, z, n);
}

double dot_cuda(const void *x, const void *y, size_t n, enum adl_dtype t)
{
    return t == ADL_F64 ? dot_of<double>(x, y, n) : dot_of<float>(x, y, n);
}

double scale_norm2_cuda(void *y, double a, size_t n, enum adl_dtype t)
{
    return t == ADL_F64 ? scale_norm2_of<double>(y, a, n) : scale_norm2_of<float>(y, a, n);
}

double combine_norm2_cuda(void *y, double a, const void *x, double b, const void *z, double c,
                          size_t n, enum adl_dtype t)
{
    return t == ADL_F64 ? combine_norm2_of<double>(y, a, x, b, z, c, n)
                        : combine_norm2_of<float>(y, a, x, b, z, c, n);
}

void sgd_cuda(void *x, const void *g, void *v, double lr, double momentum, double weight_decay,
              size_t n, enum adl_dtype t)
{
    t == ADL_F64 ? sgd_of<double>(x, g, v, lr, momentum, weight_decay, n)
                 : sgd_of<float>(x, g, v, lr, momentum, weight_decay, n);
}

void adamw_cuda(void *x, const void *g, void *m, void *v, const struct adl_adamw_step *step,
                size_t n, enum adl_dtype t)
{
    t == ADL_F64 ? adamw_of<double>(x, g, m, v, step, n) : adamw_of<float>(x, g, m, v, step, n);
}

void nesterov_cuda(void *x, const void *p, void *v, double lr, double momentum, size_t n,
                   enum adl_dtype t)
{
    t == ADL_F64 ? nesterov_of<double>(x, p, v, lr, momentum, n)
                 : nesterov_of<float>(x, p, v, lr, momentum, n);
}

/* Between device and host. What failed before makes the bytes worthless, so it fails here. */
enum adl_status move_bytes(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                           struct adl_err *err)
{
    const cudaStream_t stream = own_stream();
    check(cudaMemcpyAsync(to, from, bytes, kind, stream));
    check(cudaStreamSynchronize(stream));
    const cudaError_t error = adl_cuda_space_failure();
    if (error == cudaSuccess)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_RUNTIME, "CUDA: work on vectors failed: %s",
                    cudaGetErrorString(error));
}

enum adl_status get_cuda(void *host, const void *x, size_t bytes, struct adl_err *err)
{
    return move_bytes(host, x, bytes, cudaMemcpyDeviceToHost, err);
}

enum adl_status put_cuda(void *x, const void *host, size_t bytes, struct adl_err *err)
{
    return move_bytes(x, host, bytes, cudaMemcpyHostToDevice, err);
}

void pack_cuda(void *to, const void *x, size_t n, int wire)
{
    run([=](adl_queue *queue) { adl_cuda_wire_pack(queue, to, as<float>(x), n, wire); });
}

void unpack_cuda(void *y, const void *from, size_t n, int wire, bool add)
{
    run([=](adl_queue *queue) { adl_cuda_wire_unpack(queue, as<float>(y), from, n, wire, add); });
}

} // namespace

cudaError_t adl_cuda_space_failure()
{
    return static_cast<cudaError_t>(failure.exchange(cudaSuccess));
}

extern "C" const struct adl_space adl_cuda_space = {
    .name = "cuda",
    .on_host = false,
    .alloc = alloc_cuda,
    .free = free_cuda,
    .zero = zero_cuda,
    .copy = copy_cuda,
    .axpy = axpy_cuda,
    .scale = scale_cuda,
    .combine = combine_cuda,
    .dot = dot_cuda,
    .scale_norm2 = scale_norm2_cuda,
    .combine_norm2 = combine_norm2_cuda,
    .sgd = sgd_cuda,
    .adamw = adamw_cuda,
    .nesterov = nesterov_cuda,
    .get = get_cuda,
    .put = put_cuda,
    .pack = pack_cuda,
    .unpack = unpack_cuda,
};
