/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt: the only file that knows it. Its matrices are column-major, so c^T = b^T a^T is what
 * is asked for. Of the algorithms that split the inner dimension, those with atomics are excluded
 * (bits must not change from run to run), and those that add parts rounded to bfloat16. */
#include "kernels/cuda_blas.cuh"

#include <cublasLt.h>

#include <map>
#include <memory>
#include <new>
#include <tuple>

enum { WORKSPACE_BYTES = 32 * 1024 * 1024 /* what cuBLAS advises for Hopper */ };

namespace
{

const char *text_of(cublasStatus_t status)
{
    return cublasLtGetStatusString(status);
}

void check(adl_queue *queue, cublasStatus_t status)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        adl_cuda_failed(queue, "a matrix product", text_of(status));
}

/* Owners of the library's objects; nobody destroys what was never made. */
template <class T, cublasStatus_t (*destroy)(T)> struct destroyer {
    using pointer = T;
    void operator()(T made) const
    {
        destroy(made);
    }
};
template <class T, cublasStatus_t (*destroy)(T)>
using owned = std::unique_ptr<T, destroyer<T, destroy>>;
using owned_layout = owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using owned_operation = owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using owned_preference = owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

/* A product's shape, as cuBLASLt wants it, and the algorithm it was given. */
struct plan {
    owned_operation operation;
    owned_layout a, b, c;
    cublasLtMatmulAlgo_t algorithm = {};
};

using shape = std::tuple<int, int, int, bool, bool, bool, bool, bool, bool>;

bool aligned(const adl_cuda_product &p)
{
    return adl_aligned(p.a) && adl_aligned(p.b) && adl_aligned(p.c);
}

shape shape_of(const adl_cuda_product &p)
{
    return {p.rows, p.cols,   p.inner, p.a_transposed, p.b_transposed,
            p.bf16, p.c_bf16, p.add,   aligned(p)};
}

} // namespace

struct adl_cuda_blas {
    cublasLtHandle_t handle = nullptr;
    void *workspace = nullptr;
    std::map<shape, std::unique_ptr<plan>> plans;
};

namespace
{

owned_layout layout(adl_queue *queue, bool bf16, int rows, int cols)
{
    cublasLtMatrixLayout_t made = nullptr;
    check(queue,
          cublasLtMatrixLayoutCreate(&made, bf16 ? CUDA_R_16BF : CUDA_R_32F, rows, cols, rows));
    return owned_layout(made);
}

template <class T>
void set(adl_queue *queue, cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what,
         T value)
{
    check(queue, cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof value));
}

/* The heuristic's first choice that fits the workspace and the operands' alignment. */
void choose(adl_queue *queue, plan *made, const adl_cuda_product &p)
{
    cublasLtMatmulPreference_t wish = nullptr;
    const size_t workspace = WORKSPACE_BYTES;
    const uint32_t bytes = aligned(p) ? 16 : p.bf16 ? sizeof(adl_bf16) : sizeof(float);
    const uint32_t schemes = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    check(queue, cublasLtMatmulPreferenceCreate(&wish));
    const owned_preference owner(wish);
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *value;
        size_t size;
    } wishes[] = {{CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof workspace},
                  {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes, sizeof schemes},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &bytes, sizeof bytes},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &bytes, sizeof bytes},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &bytes, sizeof bytes},
                  {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &bytes, sizeof bytes}};
    for (const auto &w : wishes)
        if (!queue->what)
            check(queue, cublasLtMatmulPreferenceSetAttribute(wish, w.what, w.value, w.size));
    cublasLtMatmulHeuristicResult_t found = {};
    int n = 0;
    if (!queue->what)
        check(queue, cublasLtMatmulAlgoGetHeuristic(queue->blas->handle, made->operation.get(),
                                                    made->a.get(), made->b.get(), made->c.get(),
                                                    made->c.get(), wish, 1, &found, &n));
    if (n == 0 || found.state != CUBLAS_STATUS_SUCCESS)
        adl_cuda_failed(queue, "a matrix product", "cuBLASLt has no algorithm for its shape");
    made->algorithm = found.algo;
}

std::unique_ptr<plan> make_plan(adl_queue *queue, const adl_cuda_product &p)
{
    auto made = std::make_unique<plan>();
    cublasLtMatmulDesc_t operation = nullptr;
    check(queue, cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    made->operation.reset(operation);
    if (queue->what)
        return made;
    set(queue, operation, CUBLASLT_MATMUL_DESC_TRANSA, p.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(queue, operation, CUBLASLT_MATMUL_DESC_TRANSB, p.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    const int b_rows = p.b_transposed ? p.inner : p.cols;
    const int a_rows = p.a_transposed ? p.rows : p.inner;
    made->a = layout(queue, p.bf16, b_rows, p.b_transposed ? p.cols : p.inner);
    made->b = layout(queue, p.bf16, a_rows, p.a_transposed ? p.inner : p.rows);
    made->c = layout(queue, p.c_bf16, p.cols, p.rows);
    if (!queue->what)
        choose(queue, made.get(), p);
    return made;
}

} // namespace

enum adl_status adl_cuda_blas_check(struct adl_err *err)
{
    const size_t found = cublasLtGetVersion(); /* 13.0.2 is 130002 */
    if (found / 10000 == CUBLAS_VERSION / 10000)
        return ADL_OK;
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "no usable CUDA device: cuBLASLt is %zu, built for version %d", found / 10000,
                    CUBLAS_VERSION / 10000);
}

void adl_cuda_blas_open(adl_queue *queue)
{
    queue->blas = new (std::nothrow) adl_cuda_blas;
    if (!queue->blas) {
        adl_cuda_failed(queue, "cuBLASLt", "no memory");
        return;
    }
    check(queue, cublasLtCreate(&queue->blas->handle));
    adl_cuda_check(queue, cudaMalloc(&queue->blas->workspace, WORKSPACE_BYTES),
                   "cuBLASLt's workspace");
}

void adl_cuda_blas_close(adl_queue *queue)
{
    if (!queue->blas)
        return;
    queue->blas->plans.clear();
    cudaFree(queue->blas->workspace);
    if (queue->blas->handle)
        cublasLtDestroy(queue->blas->handle);
    delete queue->blas;
    queue->blas = nullptr;
}

void adl_cuda_multiply(adl_queue *queue, const adl_cuda_product &p)
{
    adl_cuda_check(queue, adl_cuda_use_device(), "a matrix product");
    if (queue->what)
        return;
    auto &slot = queue->blas->plans[shape_of(p)];
    if (!slot)
        slot = make_plan(queue, p);
    if (queue->what) { /* not a plan that anyone may use later */
        slot.reset();
        return;
    }
    const float one = 1.0f, beta = p.add ? 1.0f : 0.0f;
    check(queue,
          cublasLtMatmul(queue->blas->handle, slot->operation.get(), &one, p.b, slot->a.get(), p.a,
                         slot->b.get(), &beta, p.c, slot->c.get(), p.c, slot->c.get(),
                         &slot->algorithm, queue->blas->workspace, WORKSPACE_BYTES, queue->stream));
}
