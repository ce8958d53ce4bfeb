/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers and schedules against the textbooks' formulas, written out element by element. */
#include <criterion/criterion.h>
#include <math.h>

#include "core/optimizer.h"
#include "core/wire.h"

enum { N = 5, STEPS = 12 };

static void near(double got, double want, const char *what)
{
    cr_expect_float_eq(got, want, 1e-13 * (1 + fabs(want)), "%s: %.17g, not %.17g", what, got,
                       want);
}

/* A gradient that changes with x and step. */
static void gradient(const double *x, int step, double *g)
{
    for (int i = 0; i < N; i++)
        g[i] = 0.3 * (i + 1) * x[i] + sin(1.7 * step + i);
}

static void start(double *x)
{
    for (int i = 0; i < N; i++)
        x[i] = 1 - 0.4 * i;
}

/* PyTorch's SGD: g += wd x; buf = m buf + g; x -= lr buf. */
static void plain_sgd(double lr, double m, double wd, double *x)
{
    double buf[N] = {0}, g[N];
    for (int step = 0; step < STEPS; step++) {
        gradient(x, step, g);
        for (int i = 0; i < N; i++) {
            buf[i] = m * buf[i] + (g[i] + wd * x[i]);
            x[i] = x[i] - lr * buf[i];
        }
    }
}

static void inner_steps(const struct adl_settings *s, struct adl_inner_state *state, double *x)
{
    double g[N];
    for (int step = 0; step < STEPS; step++) {
        gradient(x, step, g);
        adl_inner_step(s, &adl_space_cpu, s->inner.lr, x, g, NULL, state, N, ADL_F64);
    }
}

Test(inner, sgd)
{
    double x[N], want[N], v[N] = {0};
    struct adl_settings s = {.inner = {.optimizer = ADL_INNER_SGD, .lr = 0.1}};
    struct adl_inner_state state = {.v = NULL};
    start(x);
    start(want);
    plain_sgd(0.1, 0, 0, want);
    inner_steps(&s, &state, x);
    for (int i = 0; i < N; i++)
        near(x[i], want[i], "plain");

    s.inner.momentum = 0.9;
    s.inner.weight_decay = 0.01;
    state.v = v;
    start(x);
    start(want);
    plain_sgd(0.1, 0.9, 0.01, want);
    inner_steps(&s, &state, x);
    for (int i = 0; i < N; i++)
        near(x[i], want[i], "momentum and decay");
}

/* Loshchilov & Hutter 2019, algorithm 2, with bias-corrected moments. */
static void plain_adamw(double lr, double b1, double b2, double eps, double wd, double *x)
{
    double m[N] = {0}, v[N] = {0}, g[N];
    for (int step = 0; step < STEPS; step++) {
        gradient(x, step, g);
        for (int i = 0; i < N; i++) {
            m[i] = b1 * m[i] + (1 - b1) * g[i];
            v[i] = b2 * v[i] + (1 - b2) * g[i] * g[i];
            double mean = m[i] / (1 - pow(b1, step + 1)), square = v[i] / (1 - pow(b2, step + 1));
            x[i] = x[i] - lr * wd * x[i] - lr * mean / (sqrt(square) + eps);
        }
    }
}

Test(inner, adamw)
{
    double x[N], want[N], m[N] = {1, 1}, v[N] = {2, 2};
    struct adl_settings s = {.inner = {.optimizer = ADL_INNER_ADAMW,
                                       .lr = 0.02,
                                       .beta1 = 0.9,
                                       .beta2 = 0.99,
                                       .eps = 1e-8,
                                       .weight_decay = 0.1}};
    struct adl_inner_state state = {.m = m, .v = v, .steps = 100};
    adl_inner_reset(&state, &adl_space_cpu, N, ADL_F64);
    cr_expect_eq(state.steps, 0);
    start(x);
    start(want);
    plain_adamw(0.02, 0.9, 0.99, 1e-8, 0.1, want);
    inner_steps(&s, &state, x);
    for (int i = 0; i < N; i++)
        near(x[i], want[i], "AdamW");
    cr_expect_eq(state.steps, STEPS);
}

Test(inner, clipped_by_global_norm)
{
    struct adl_settings s = {.inner = {.optimizer = ADL_INNER_SGD, .lr = 1, .clip = 2.5}};
    struct adl_inner_state state = {.v = NULL};
    double x[] = {0, 0}, g[] = {3, -4}, small[] = {0.3, -0.4};
    adl_inner_step(&s, &adl_space_cpu, 1, x, g, NULL, &state, 2, ADL_F64);
    near(x[0], -1.5, "half of 3");
    near(x[1], 2, "half of -4");
    adl_inner_step(&s, &adl_space_cpu, 1, x, small, NULL, &state, 2, ADL_F64);
    near(x[0], -1.8, "below the limit: as it is");
    const double norm2 = 25;
    double known[] = {3, -4};
    adl_inner_step(&s, &adl_space_cpu, 1, x, known, &norm2, &state, 2, ADL_F64);
    near(x[0], -3.3, "by a norm that is known");
    const double below = 1;
    adl_inner_step(&s, &adl_space_cpu, 1, x, known, &below, &state, 2, ADL_F64);
    near(x[0], -4.8, "which is believed: clipped in place before, as it is now");
}

Test(inner, state_that_is_needed)
{
    struct adl_settings s = {.inner = {.optimizer = ADL_INNER_SGD}};
    int m, v;
    adl_inner_needs(&s, &m, &v);
    cr_expect(!m && !v);
    s.inner.momentum = 0.9;
    adl_inner_needs(&s, &m, &v);
    cr_expect(!m && v);
    s.inner.optimizer = ADL_INNER_ADAMW;
    s.inner.momentum = 0;
    adl_inner_needs(&s, &m, &v);
    cr_expect(m && v);
}

/* PyTorch's SGD(nesterov=True): buf = m buf + p; x -= lr (p + m buf). */
Test(outer, nesterov)
{
    double x[N], want[N], p[N], v[N] = {0}, buf[N] = {0}, lr = 0.7, m = 0.9;
    struct adl_settings s = {
        .outer = {.optimizer = ADL_OUTER_NESTEROV, .lr = 0.7, .momentum = 0.9}};
    start(x);
    start(want);
    for (int step = 0; step < STEPS; step++) {
        gradient(want, step, p);
        for (int i = 0; i < N; i++) {
            buf[i] = m * buf[i] + p[i];
            want[i] = want[i] - lr * (p[i] + m * buf[i]);
        }
        gradient(x, step, p);
        adl_outer_step(&s, &adl_space_cpu, x, p, v, N, ADL_F64);
    }
    for (int i = 0; i < N; i++) {
        near(x[i], want[i], "theta");
        near(v[i], buf[i], "momentum");
    }
}

Test(outer, average_and_sgd)
{
    double x[] = {5, -1}, p[] = {2, 4}, v[] = {0, 0};
    struct adl_settings s = {.outer = {.optimizer = ADL_OUTER_AVERAGE, .lr = 0.1}};
    cr_expect_not(adl_outer_needs_v(&s));
    adl_outer_step(&s, &adl_space_cpu, x, p, NULL, 2, ADL_F64);
    near(x[0], 3, "average takes the whole pseudo-gradient");
    near(x[1], -5, "average takes the whole pseudo-gradient");
    s.outer.optimizer = ADL_OUTER_SGD;
    s.outer.lr = 0.5;
    cr_expect_not(adl_outer_needs_v(&s));
    adl_outer_step(&s, &adl_space_cpu, x, p, NULL, 2, ADL_F64);
    near(x[0], 2, "sgd");
    s.outer.momentum = 0.5;
    cr_expect(adl_outer_needs_v(&s));
    adl_outer_step(&s, &adl_space_cpu, x, p, v, 2, ADL_F64); /* v = 2, x = 1 */
    adl_outer_step(&s, &adl_space_cpu, x, p, v, 2, ADL_F64); /* v = 3, x = -0.5 */
    near(x[0], -0.5, "sgd with momentum");
}

Test(schedule, warm_up_then_constant)
{
    struct adl_settings s = {.inner = {.lr = 0.8, .warmup = 4}};
    near(adl_schedule_lr(&s, 0, 100), 0.2, "first step");
    near(adl_schedule_lr(&s, 3, 100), 0.8, "last step of the warm-up");
    near(adl_schedule_lr(&s, 99, 100), 0.8, "constant");
}

Test(schedule, cosine)
{
    struct adl_settings s = {.inner = {.lr = 0.8, .schedule = ADL_SCHEDULE_COSINE}};
    near(adl_schedule_lr(&s, 0, 100), 0.8, "start");
    near(adl_schedule_lr(&s, 50, 100), 0.4, "half way");
    near(adl_schedule_lr(&s, 25, 100), 0.4 * (1 + sqrt(0.5)), "a quarter");
    near(adl_schedule_lr(&s, 100, 100), 0, "end");
    near(adl_schedule_lr(&s, 250, 100), 0, "beyond the end");
    s.inner.warmup = 20;
    near(adl_schedule_lr(&s, 60, 100), 0.4, "half way after the warm-up");
}

/* Bytes: F32 4, F64 8, BF16 2, F16 2, INT8 1; traffic by the sum in the header. */
Test(bytes, on_the_wire_and_in_memory)
{
    struct adl_settings s = {.inner = {.optimizer = ADL_INNER_ADAMW},
                             .outer = {.optimizer = ADL_OUTER_NESTEROV}};
    cr_expect_eq(adl_wire_bytes(ADL_WIRE_F32), 4);
    cr_expect_eq(adl_wire_bytes(ADL_WIRE_F64), 8);
    cr_expect_eq(adl_wire_bytes(ADL_WIRE_BF16), 2);
    cr_expect_eq(adl_wire_bytes(ADL_WIRE_F16), 2);
    cr_expect_eq(adl_wire_bytes(ADL_WIRE_INT8), 1);
    cr_expect_eq(adl_inner_traffic_bytes(&s), 30);
    cr_expect_eq(adl_outer_traffic_bytes(&s), 20);
    s.inner.optimizer = ADL_INNER_SGD;
    s.outer.optimizer = ADL_OUTER_AVERAGE;
    cr_expect_eq(adl_inner_traffic_bytes(&s), 14);
    cr_expect_eq(adl_outer_traffic_bytes(&s), 12);
}
