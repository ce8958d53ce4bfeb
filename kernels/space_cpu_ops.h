/* SPDX-License-Identifier: Apache-2.0 */
/* The element-wise operations of core/space.h for one element type. Included by space_cpu.c once
 * a type, with REAL = the type, SQRT = its square root, NAME(op) = the function's name. */

static void NAME(axpy)(REAL *restrict y, REAL a, const REAL *restrict x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

static void NAME(scale)(REAL *y, REAL a, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] *= a;
}

/* not restrict: y may be x or z */
static void NAME(combine)(REAL *y, REAL a, const REAL *x, REAL b, const REAL *z, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = a * x[i] + b * z[i];
}

/* One addition at a time: a blocked sum would change bits with the block. */
static double NAME(dot)(const REAL *x, const REAL *y, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return sum;
}

static double NAME(scale_norm2)(REAL *y, REAL a, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        y[i] *= a;
        sum += (double)y[i] * (double)y[i];
    }
    return sum;
}

static double NAME(combine_norm2)(REAL *y, REAL a, const REAL *x, REAL b, const REAL *z, REAL c,
                                  size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        const REAL combined = a * x[i] + b * z[i];
        y[i] = combined * c;
        sum += (double)combined * (double)combined;
    }
    return sum;
}

static void NAME(sgd_plain)(REAL *restrict x, const REAL *restrict g, REAL lr, REAL decay, size_t n)
{
    for (size_t i = 0; i < n; i++)
        x[i] -= lr * (g[i] + decay * x[i]);
}

static void NAME(sgd_momentum)(REAL *restrict x, const REAL *restrict g, REAL *restrict v, REAL lr,
                               REAL momentum, REAL decay, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + (g[i] + decay * x[i]);
        x[i] -= lr * v[i];
    }
}

static void NAME(adamw)(REAL *restrict x, const REAL *restrict g, REAL *restrict m,
                        REAL *restrict v, const struct adl_adamw_step *step, size_t n)
{
    const REAL beta1 = (REAL)step->beta1, new1 = (REAL)(1.0 - step->beta1);
    const REAL beta2 = (REAL)step->beta2, new2 = (REAL)(1.0 - step->beta2);
    const REAL rate = (REAL)(step->lr / step->correction1);
    const REAL root = (REAL)(1.0 / sqrt(step->correction2));
    const REAL eps = (REAL)step->eps;
    const REAL keep = (REAL)(1.0 - step->lr * step->weight_decay);
    for (size_t i = 0; i < n; i++) {
        m[i] = beta1 * m[i] + new1 * g[i];
        v[i] = beta2 * v[i] + new2 * g[i] * g[i];
        x[i] = keep * x[i] - rate * m[i] / (root * SQRT(v[i]) + eps);
    }
}

static void NAME(nesterov)(REAL *restrict x, const REAL *restrict p, REAL *restrict v, REAL lr,
                           REAL momentum, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        v[i] = momentum * v[i] + p[i];
        x[i] -= lr * (p[i] + momentum * v[i]);
    }
}
