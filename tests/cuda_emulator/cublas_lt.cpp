/* SPDX-License-Identifier: Apache-2.0 */
#include "cublasLt.h"

#include "kernels/cuda_device.cuh"

cuda_emulator::blas_library cuda_emulator::the_blas;

struct cublas_double_handle {
    int unused;
};

struct cublas_double_operation {
    bool transposed[2]; /* of a, of b */
};

struct cublas_double_layout { /* column-major */
    bool bf16;
    size_t rows, cols, ld;
};

struct cublas_double_preference {
    size_t workspace_bytes;
    uint32_t schemes;
    uint32_t alignment[4]; /* of a, b, c, d */
};

size_t cublasLtGetVersion()
{
    return cuda_emulator::the_blas.version;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
    switch (status) {
    case CUBLAS_STATUS_SUCCESS:
        return "success";
    case CUBLAS_STATUS_INVALID_VALUE:
        return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_NOT_SUPPORTED:
        return "the functionality requested is not supported";
    }
    return "unknown status";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *out)
{
    *out = new cublas_double_handle();
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out, cublasComputeType_t,
                                        cudaDataType_t scale)
{
    *out = new cublas_double_operation();
    return scale == CUDA_R_32F ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t operation,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void *value, size_t size)
{
    cublasOperation_t wanted;
    if (size != sizeof wanted)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&wanted, value, size);
    operation->transposed[what == CUBLASLT_MATMUL_DESC_TRANSB] = wanted == CUBLAS_OP_T;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t operation)
{
    delete operation;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out, cudaDataType_t type,
                                          uint64_t rows, uint64_t cols, int64_t ld)
{
    if (ld < 0 || size_t(ld) < rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    *out = new cublas_double_layout{type == CUDA_R_16BF, rows, cols, size_t(ld)};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    delete layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    *out = new cublas_double_preference{0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t what,
                                                    const void *value, size_t size)
{
    void *to = &preference->schemes;
    size_t wanted = sizeof preference->schemes;
    if (what == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES) {
        to = &preference->workspace_bytes;
        wanted = sizeof preference->workspace_bytes;
    } else if (what >= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES) {
        to = &preference->alignment[what - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES];
    }
    if (size != wanted)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference)
{
    delete preference;
    return CUBLAS_STATUS_SUCCESS;
}

/* Rows and columns of a factor once it is transposed as asked for. */
static size_t rows_of(const cublas_double_layout *x, bool transposed)
{
    return transposed ? x->cols : x->rows;
}

static bool fit(const cublas_double_operation *operation, const cublas_double_layout *a,
                const cublas_double_layout *b, const cublas_double_layout *c)
{
    const bool *t = operation->transposed;
    return rows_of(a, t[0]) == c->rows && rows_of(b, !t[1]) == c->cols &&
           rows_of(a, !t[0]) == rows_of(b, t[1]) && a->bf16 == b->bf16 && (a->bf16 || !c->bf16);
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t *results, int *n)
{
    *n = 0;
    if (!fit(operation, a, b, c) || c->rows != d->rows || c->cols != d->cols || wanted < 1)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!cuda_emulator::the_blas.has_algorithms ||
        preference->schemes &
            (CUBLASLT_REDUCTION_SCHEME_INPLACE | CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    results[0].state = cuda_emulator::the_blas.state;
    results[0].algo.workspace_bytes = preference->workspace_bytes;
    for (int i = 0; i < 4; i++)
        results[0].algo.alignment[i] = preference->alignment[i];
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static float at(const void *x, const cublas_double_layout *layout, size_t row, size_t col)
{
    const size_t i = col * layout->ld + row;
    return layout->bf16 ? adl_value(static_cast<const adl_bf16 *>(x)[i])
                        : static_cast<const float *>(x)[i];
}

static void set(void *x, const cublas_double_layout *layout, size_t row, size_t col, float value)
{
    const size_t i = col * layout->ld + row;
    if (layout->bf16)
        adl_round_to(static_cast<adl_bf16 *>(x)[i], value);
    else
        static_cast<float *>(x)[i] = value;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t a_layout, const void *b,
                              cublasLtMatrixLayout_t b_layout, const void *beta, const void *c,
                              cublasLtMatrixLayout_t c_layout, void *d,
                              cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t *algorithm, void *workspace,
                              size_t workspace_bytes, cudaStream_t)
{
    const void *const operands[] = {a, b, c, d};
    for (int i = 0; i < 4; i++)
        if (reinterpret_cast<uintptr_t>(operands[i]) % algorithm->alignment[i])
            return CUBLAS_STATUS_INVALID_VALUE;
    if (!fit(operation, a_layout, b_layout, d_layout) || !workspace ||
        workspace_bytes < algorithm->workspace_bytes)
        return CUBLAS_STATUS_INVALID_VALUE;
    const cuda_emulator::device_access access;
    const bool *t = operation->transposed;
    const float scale = *static_cast<const float *>(alpha),
                keep = *static_cast<const float *>(beta);
    const size_t inner = rows_of(b_layout, t[1]);
    for (size_t j = 0; j < d_layout->cols; j++)
        for (size_t i = 0; i < d_layout->rows; i++) {
            float sum = 0.0f;
            for (size_t k = 0; k < inner; k++)
                sum += at(a, a_layout, t[0] ? k : i, t[0] ? i : k) *
                       at(b, b_layout, t[1] ? j : k, t[1] ? k : j);
            /* what beta = 0 multiplies is not read: it may be NaN */
            set(d, d_layout, i, j,
                scale * sum + (keep != 0.0f ? keep * at(c, c_layout, i, j) : 0.0f));
        }
    return CUBLAS_STATUS_SUCCESS;
}
