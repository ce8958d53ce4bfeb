/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "core/space.h"

static const struct adl_space *const cpu = &adl_space_cpu;
enum { N = 37 }; /* not a multiple of any vector width */

static double get(const void *x, size_t i, enum adl_dtype t)
{
    return t == ADL_F64 ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void set(void *x, size_t i, enum adl_dtype t, double value)
{
    if (t == ADL_F64)
        ((double *)x)[i] = value;
    else
        ((float *)x)[i] = (float)value;
}

/* N + 1 elements: sin-like numbers, and a sentinel behind them. */
static void *vector(enum adl_dtype t, double phase)
{
    void *x = cpu->alloc(N + 1, t);
    cr_assert_not_null(x);
    for (size_t i = 0; i < N; i++)
        set(x, i, t, sin(phase + (double)i));
    set(x, N, t, 77.0);
    return x;
}

static void expect(const void *x, size_t i, enum adl_dtype t, double want, const char *what)
{
    const double tolerance = (t == ADL_F64 ? 1e-14 : 1e-6) * (1.0 + fabs(want));
    cr_assert_float_eq(get(x, i, t), want, tolerance, "%s, type %d, element %zu: %.17g for %.17g",
                       what, (int)t, i, get(x, i, t), want);
    cr_assert_eq(get(x, N, t), 77.0, "%s writes past its end", what);
}

#define FOR_TYPES(t) for (enum adl_dtype t = ADL_F32; t <= ADL_F64; t++)

Test(space, bytes_come_and_go)
{
    double *x = vector(ADL_F64, 0);
    const double sent[2] = {-3, 7};
    double back[3];
    cr_assert_eq(cpu->put(x + 4, sent, sizeof sent, NULL), ADL_OK);
    cr_assert_eq(cpu->get(back, x + 3, sizeof back, NULL), ADL_OK);
    cr_expect_eq(back[0], sin(3.0));
    cr_expect_eq(back[1], -3.0);
    cr_expect_eq(back[2], 7.0);
    expect(x, 6, ADL_F64, sin(6.0), "put");
    cpu->free(x);
}

Test(space, vectors_are_aligned_and_zeroed)
{
    FOR_TYPES(t)
    {
        for (size_t n = 0; n < 200; n += 7) {
            void *x = cpu->alloc(n, t);
            cr_assert_not_null(x);
            cr_assert_eq((uintptr_t)x % 64, 0);
            for (size_t i = 0; i < n; i++)
                cr_assert_eq(get(x, i, t), 0.0);
            cpu->free(x);
        }
        cr_expect_null(cpu->alloc(SIZE_MAX / 4, t), "sizes that overflow are refused");
    }
    cpu->free(NULL);
}

Test(space, copy_zero_scale_axpy)
{
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *y = vector(t, 1.0), *z = vector(t, 2.0);
        cpu->axpy(y, -1.5, x, N, t);
        for (size_t i = 0; i < N; i++)
            expect(y, i, t, sin(1.0 + (double)i) - 1.5 * get(x, i, t), "axpy");
        cpu->copy(z, y, N, t);
        for (size_t i = 0; i < N; i++)
            cr_assert_eq(get(z, i, t), get(y, i, t));
        cpu->scale(z, 0.25, N, t);
        for (size_t i = 0; i < N; i++)
            expect(z, i, t, 0.25 * get(y, i, t), "scale");
        cpu->zero(z, N, t);
        for (size_t i = 0; i < N; i++)
            expect(z, i, t, 0.0, "zero");
        cpu->axpy(z, 1.0, x, 0, t);
        expect(z, 0, t, 0.0, "axpy of nothing");
        cpu->free(x);
        cpu->free(y);
        cpu->free(z);
    }
}

Test(space, combine_allows_aliases)
{
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *z = vector(t, 1.0), *y = vector(t, 2.0);
        cpu->combine(y, 2.0, x, -0.5, z, N, t);
        for (size_t i = 0; i < N; i++)
            expect(y, i, t, 2.0 * get(x, i, t) - 0.5 * get(z, i, t), "combine");
        void *x2 = vector(t, 0.0), *z2 = vector(t, 1.0);
        cpu->combine(x2, 2.0, x2, -0.5, z, N, t);
        cpu->combine(z2, 2.0, x, -0.5, z2, N, t);
        for (size_t i = 0; i < N; i++) {
            cr_assert_eq(get(x2, i, t), get(y, i, t), "y is x");
            cr_assert_eq(get(z2, i, t), get(y, i, t), "y is z");
        }
        void *all[] = {x, y, z, x2, z2};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            cpu->free(all[i]);
    }
}

/* 2^60 swallows what comes before it is taken back: only index order leaves 3. */
Test(space, dot_adds_in_index_order_in_double)
{
    FOR_TYPES(t)
    {
        static const double terms[] = {1.0, 0x1p60, 1.0, -0x1p60, 1.0, 2.0};
        void *x = cpu->alloc(6, t), *one = cpu->alloc(6, t);
        for (size_t i = 0; i < 6; i++) {
            set(x, i, t, terms[i]);
            set(one, i, t, 1.0);
        }
        cr_expect_eq(cpu->dot(x, one, 6, t), 3.0);
        set(x, 0, t, 1.0 + 0x1p-20);
        cr_expect_eq(cpu->dot(x, x, 1, t), (1.0 + 0x1p-20) * (1.0 + 0x1p-20),
                     "products are exact in double");
        cpu->free(x);
        cpu->free(one);
    }
}

/* One pass has the bits of the calls that it stands for. */
Test(space, norms_come_with_the_pass)
{
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *z = vector(t, 1.0), *y = vector(t, 2.0), *want = vector(t, 3.0);
        cpu->copy(want, y, N, t);
        cpu->scale(want, -0.3, N, t);
        cr_expect_eq(cpu->scale_norm2(y, -0.3, N, t), cpu->dot(want, want, N, t));
        for (size_t i = 0; i <= N; i++)
            cr_assert_eq(get(y, i, t), get(want, i, t), "scale_norm2");
        cpu->combine(want, 1.0, x, -1.7, z, N, t);
        const double norm2 = cpu->dot(want, want, N, t);
        cpu->scale(want, 0.3, N, t);
        cr_expect_eq(cpu->combine_norm2(z, 1.0, x, -1.7, z, 0.3, N, t), norm2);
        for (size_t i = 0; i <= N; i++)
            cr_assert_eq(get(z, i, t), get(want, i, t), "combine_norm2, y is z");
        cr_expect_eq(cpu->scale_norm2(y, 2.0, 0, t), 0.0);
        void *all[] = {x, y, z, want};
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
            cpu->free(all[i]);
    }
}

Test(space, dot_does_not_know_alignment)
{
    FOR_TYPES(t)
    {
        void *x = cpu->alloc(N + 8, t);
        double want = 0.0;
        for (size_t shift = 0; shift < 8; shift++) {
            char *at = (char *)x + shift * adl_dtype_bytes(t);
            for (size_t i = 0; i < N; i++)
                set(at, i, t, sin((double)i) * pow(10.0, (double)(i % 7)));
            const double got = cpu->dot(at, at, N, t);
            want = shift == 0 ? got : want;
            cr_expect_eq(got, want, "shift %zu", shift);
        }
        cpu->free(x);
    }
}

Test(space, sgd_is_pytorchs)
{
    const double lr = 0.1, m = 0.9, wd = 0.01;
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *g = vector(t, 1.0), *v = vector(t, 2.0), *plain = vector(t, 0.0);
        cpu->sgd(x, g, v, lr, m, wd, N, t);
        cpu->sgd(plain, g, NULL, lr, 0.0, wd, N, t);
        for (size_t i = 0; i < N; i++) {
            const double x0 = sin((double)i), slope = sin(1.0 + (double)i) + wd * x0;
            const double v1 = m * sin(2.0 + (double)i) + slope;
            expect(v, i, t, v1, "sgd's velocity");
            expect(x, i, t, x0 - lr * v1, "sgd");
            expect(plain, i, t, x0 - lr * slope, "sgd without momentum");
        }
        cpu->free(x);
        cpu->free(g);
        cpu->free(v);
        cpu->free(plain);
    }
}

Test(space, nesterov_is_pytorchs)
{
    const double lr = 0.7, m = 0.9;
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *p = vector(t, 1.0), *v = vector(t, 2.0);
        cpu->nesterov(x, p, v, lr, m, N, t);
        for (size_t i = 0; i < N; i++) {
            const double step = sin(1.0 + (double)i), v1 = m * sin(2.0 + (double)i) + step;
            expect(v, i, t, v1, "nesterov's velocity");
            expect(x, i, t, sin((double)i) - lr * (step + m * v1), "nesterov");
        }
        cpu->free(x);
        cpu->free(p);
        cpu->free(v);
    }
}

/* Three steps against the paper's form: bias-corrected moments, decay apart from the gradient. */
Test(space, adamw_is_loshchilovs)
{
    const double lr = 0.01, b1 = 0.9, b2 = 0.999, eps = 1e-3, wd = 0.1;
    FOR_TYPES(t)
    {
        void *x = vector(t, 0.0), *m = vector(t, 0.0), *v = vector(t, 0.0), *g = vector(t, 0.0);
        double want[N], mean[N] = {0}, square[N] = {0};
        cpu->zero(m, N, t);
        cpu->zero(v, N, t);
        for (size_t i = 0; i < N; i++)
            want[i] = get(x, i, t);
        for (int k = 1; k <= 3; k++) {
            const struct adl_adamw_step step = {.lr = lr,
                                                .beta1 = b1,
                                                .beta2 = b2,
                                                .eps = eps,
                                                .weight_decay = wd,
                                                .correction1 = 1.0 - pow(b1, k),
                                                .correction2 = 1.0 - pow(b2, k)};
            for (size_t i = 0; i < N; i++) {
                const double slope = cos(k + 2.0 * (double)i);
                set(g, i, t, slope);
                mean[i] = b1 * mean[i] + (1 - b1) * slope;
                square[i] = b2 * square[i] + (1 - b2) * slope * slope;
                want[i] -= lr * wd * want[i];
                want[i] -=
                    lr * (mean[i] / step.correction1) / (sqrt(square[i] / step.correction2) + eps);
            }
            cpu->adamw(x, g, m, v, &step, N, t);
        }
        for (size_t i = 0; i < N; i++) {
            expect(x, i, t, want[i], "adamw");
            expect(m, i, t, mean[i], "adamw's first moment");
            expect(v, i, t, square[i], "adamw's second moment");
        }
        cpu->free(x);
        cpu->free(m);
        cpu->free(v);
        cpu->free(g);
    }
}
