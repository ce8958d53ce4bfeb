/* SPDX-License-Identifier: Apache-2.0 */
/* Where vectors live and how they are combined. The core owns all vectors and touches them
 * only through a space, so that the same controller drives CPU and GPU memory. Vectors are flat
 * arrays of one element type. All sums run in index order: the same bits on every transport. */
#ifndef ADL_CORE_SPACE_H
#define ADL_CORE_SPACE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

enum adl_dtype { ADL_F32, ADL_F64 };
static inline size_t adl_dtype_bytes(enum adl_dtype t)
{
    return t == ADL_F64 ? 8 : 4;
}

struct adl_adamw_step { /* one AdamW update, decoupled decay (Loshchilov & Hutter 2019) */
    double lr, beta1, beta2, eps, weight_decay;
    double correction1, correction2; /* 1 - beta^t */
};

struct adl_space {
    const char *name;
    bool on_host; /* vectors may be read and written through their pointers */
    void *(*alloc)(size_t count, enum adl_dtype t); /* zeroed; NULL: no memory */
    void (*free)(void *x);                          /* NULL is fine */
    void (*zero)(void *x, size_t n, enum adl_dtype t);
    void (*copy)(void *y, const void *x, size_t n, enum adl_dtype t);           /* y = x */
    void (*axpy)(void *y, double a, const void *x, size_t n, enum adl_dtype t); /* y += a x */
    void (*scale)(void *y, double a, size_t n, enum adl_dtype t);               /* y *= a */
    /* y = a x + b z; y may be x or z */
    void (*combine)(void *y, double a, const void *x, double b, const void *z, size_t n,
                    enum adl_dtype t);
    double (*dot)(const void *x, const void *y, size_t n, enum adl_dtype t); /* in double */
    /* scale, and combine followed by y *= c, whose squared norm (of combine's result, before c) comes
     * out of the same pass: the bits of those calls, and of dot. */
    double (*scale_norm2)(void *y, double a, size_t n, enum adl_dtype t);
    double (*combine_norm2)(void *y, double a, const void *x, double b, const void *z, double c,
                            size_t n, enum adl_dtype t);
    /* SGD with momentum (PyTorch form): v = m v + g + wd x; x -= lr v. v may be NULL if m = 0. */
    void (*sgd)(void *x, const void *g, void *v, double lr, double momentum, double weight_decay,
                size_t n, enum adl_dtype t);
    /* m, v: first and second moments. x, m, v updated in one pass. */
    void (*adamw)(void *x, const void *g, void *m, void *v, const struct adl_adamw_step *step,
                  size_t n, enum adl_dtype t);
    /* Outer Nesterov (PyTorch form): v = m v + p; x -= lr (p + m v). */
    void (*nesterov)(void *x, const void *p, void *v, double lr, double momentum, size_t n,
                     enum adl_dtype t);
    /* Bytes of vectors to and from host memory. Where vectors are not on the host, this is also
     * where it shows that an earlier call of the space failed: ADL_ERR_RUNTIME. */
    enum adl_status (*get)(void *host, const void *x, size_t bytes, struct adl_err *err);
    enum adl_status (*put)(void *x, const void *host, size_t bytes, struct adl_err *err);
    /* fp32 vectors to and from the formats of core/wire.h; buffers are this space's memory. */
    void (*pack)(void *to, const void *x, size_t n, int wire);
    void (*unpack)(void *y, const void *from, size_t n, int wire, bool add); /* add: y += */
};

/* Host memory. */
extern const struct adl_space adl_space_cpu;

#endif
