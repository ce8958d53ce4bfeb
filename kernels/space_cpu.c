/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory: 64-byte aligned vectors and plain loops that compilers vectorise. F32 vectors are
 * computed in float, F64 in double. */
#include "core/space.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

enum { ALIGNMENT = 64 }; /* a cache line, and the widest vector register */

#define REAL     float
#define SQRT     sqrtf
#define NAME(op) op##_f32
#include "kernels/space_cpu_ops.h"
#undef REAL
#undef SQRT
#undef NAME

#define REAL     double
#define SQRT     sqrt
#define NAME(op) op##_f64
#include "kernels/space_cpu_ops.h"
#undef REAL
#undef SQRT
#undef NAME

static void *alloc_cpu(size_t count, enum adl_dtype t)
{
    const size_t limit = (SIZE_MAX - ALIGNMENT) / adl_dtype_bytes(t);
    if (count > limit)
        return NULL;
    const size_t lines = count * adl_dtype_bytes(t) / ALIGNMENT + 1;
    void *x = aligned_alloc(ALIGNMENT, lines * ALIGNMENT);
    if (x != NULL)
        memset(x, 0, lines * ALIGNMENT);
    return x;
}

static void zero_cpu(void *x, size_t n, enum adl_dtype t)
{
    memset(x, 0, n * adl_dtype_bytes(t));
}

static void copy_cpu(void *y, const void *x, size_t n, enum adl_dtype t)
{
    memcpy(y, x, n * adl_dtype_bytes(t));
}

static void axpy_cpu(void *y, double a, const void *x, size_t n, enum adl_dtype t)
{
    if (t == ADL_F64)
        axpy_f64(y, a, x, n);
    else
        axpy_f32(y, (float)a, x, n);
}

static void scale_cpu(void *y, double a, size_t n, enum adl_dtype t)
{
    if (t == ADL_F64)
        scale_f64(y, a, n);
    else
        scale_f32(y, (float)a, n);
}

static void combine_cpu(void *y, double a, const void *x, double b, const void *z, size_t n,
                        enum adl_dtype t)
{
    if (t == ADL_F64)
        combine_f64(y, a, x, b, z, n);
    else
        combine_f32(y, (float)a, x, (float)b, z, n);
}

static double dot_cpu(const void *x, const void *y, size_t n, enum adl_dtype t)
{
    return t == ADL_F64 ? dot_f64(x, y, n) : dot_f32(x, y, n);
}

static double scale_norm2_cpu(void *y, double a, size_t n, enum adl_dtype t)
{
    return t == ADL_F64 ? scale_norm2_f64(y, a, n) : scale_norm2_f32(y, (float)a, n);
}

static double combine_norm2_cpu(void *y, double a, const void *x, double b, const void *z, double c,
                                size_t n, enum adl_dtype t)
{
    if (t == ADL_F64)
        return combine_norm2_f64(y, a, x, b, z, c, n);
    return combine_norm2_f32(y, (float)a, x, (float)b, z, (float)c, n);
}

static void sgd_cpu(void *x, const void *g, void *v, double lr, double momentum,
                    double weight_decay, size_t n, enum adl_dtype t)
{
    if (t == ADL_F64 && v == NULL)
        sgd_plain_f64(x, g, lr, weight_decay, n);
    else if (t == ADL_F64)
        sgd_momentum_f64(x, g, v, lr, momentum, weight_decay, n);
    else if (v == NULL)
        sgd_plain_f32(x, g, (float)lr, (float)weight_decay, n);
    else
        sgd_momentum_f32(x, g, v, (float)lr, (float)momentum, (float)weight_decay, n);
}

static void adamw_cpu(void *x, const void *g, void *m, void *v, const struct adl_adamw_step *step,
                      size_t n, enum adl_dtype t)
{
    if (t == ADL_F64)
        adamw_f64(x, g, m, v, step, n);
    else
        adamw_f32(x, g, m, v, step, n);
}

static void nesterov_cpu(void *x, const void *p, void *v, double lr, double momentum, size_t n,
                         enum adl_dtype t)
{
    if (t == ADL_F64)
        nesterov_f64(x, p, v, lr, momentum, n);
    else
        nesterov_f32(x, p, v, (float)lr, (float)momentum, n);
}

static enum adl_status get_cpu(void *host, const void *x, size_t bytes, struct adl_err *err)
{
    (void)err;
    memcpy(host, x, bytes);
    return ADL_OK;
}

static enum adl_status put_cpu(void *x, const void *host, size_t bytes, struct adl_err *err)
{
    (void)err;
    memcpy(x, host, bytes);
    return ADL_OK;
}

const struct adl_space adl_space_cpu = {
    .name = "cpu",
    .on_host = true,
    .alloc = alloc_cpu,
    .free = free,
    .zero = zero_cpu,
    .copy = copy_cpu,
    .axpy = axpy_cpu,
    .scale = scale_cpu,
    .combine = combine_cpu,
    .dot = dot_cpu,
    .scale_norm2 = scale_norm2_cpu,
    .combine_norm2 = combine_norm2_cpu,
    .sgd = sgd_cpu,
    .adamw = adamw_cpu,
    .nesterov = nesterov_cpu,
    .get = get_cpu,
    .put = put_cpu,
    .pack = adl_wire_pack,
    .unpack = adl_wire_unpack,
};
