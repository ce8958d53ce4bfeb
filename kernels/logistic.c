/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/logistic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Four sums side by side: an order of its own, the same everywhere. */
static double dot(const double *a, const double *b, size_t n)
{
    double sum[4] = {0.0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t k = 0; k < 4; k++)
            sum[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

static void add(double *y, double a, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] += a * x[i];
}

/* p = softmax(W x); returns ln sum exp z. */
static double probabilities(const struct adl_logistic_data *data, const double *x, const double *W,
                            double *p)
{
    const size_t K = data->K, D = data->D;
    double most = -INFINITY, sum = 0.0;
    for (size_t k = 0; k < K; k++) {
        p[k] = dot(W + k * D, x, D);
        most = p[k] > most ? p[k] : most;
    }
    for (size_t k = 0; k < K; k++)
        sum += exp(p[k] - most);
    const double log_sum = most + log(sum);
    for (size_t k = 0; k < K; k++)
        p[k] = exp(p[k] - log_sum);
    return log_sum;
}

double adl_logistic_sample(const struct adl_logistic_data *data, size_t i, const double *W,
                           double w, double *grad, double *p)
{
    const double *x = data->x + i * data->D;
    const size_t y = (size_t)data->y[i];
    const double log_sum = probabilities(data, x, W, p);
    for (size_t k = 0; grad && k < data->K; k++)
        add(grad + k * data->D, w * (p[k] - (k == y)), x, data->D);
    return log_sum - dot(W + y * data->D, x, data->D);
}

double adl_logistic_value(const struct adl_logistic *f, const double *W, double *grad, double *p)
{
    const struct adl_logistic_data *data = f->data;
    const size_t P = data->K * data->D;
    double sum = 0.5 * f->lambda * dot(W, W, P);
    for (size_t j = 0; grad && j < P; j++)
        grad[j] = f->lambda * W[j];
    for (size_t i = 0; i < data->n; i++)
        sum += f->w[i] * adl_logistic_sample(data, i, W, f->w[i], grad, p);
    return sum;
}

/* ---- the optimum */

struct solver {
    const struct adl_logistic *f;
    size_t P;
    double *p, *q;                    /* [K] */
    double *W, *grad, *trial;         /* [P] */
    double *step, *r, *way, *product; /* [P] of the conjugate gradients */
    double *probabilities;            /* [n x K] at W */
};

/* out = Hessian at W times v. */
static void curve(const struct solver *s, const double *v, double *out)
{
    const struct adl_logistic_data *data = s->f->data;
    const size_t K = data->K, D = data->D;
    for (size_t j = 0; j < s->P; j++)
        out[j] = s->f->lambda * v[j];
    for (size_t i = 0; i < data->n; i++) {
        const double *x = data->x + i * D, *p = s->probabilities + i * K;
        double mean = 0.0;
        for (size_t k = 0; k < K; k++) {
            s->q[k] = dot(v + k * D, x, D);
            mean += p[k] * s->q[k];
        }
        for (size_t k = 0; k < K; k++)
            add(out + k * D, s->f->w[i] * p[k] * (s->q[k] - mean), x, D);
    }
}

/* step = -Hessian^-1 grad, to a relative residual of `tolerance` or a step for each parameter. */
static void newton_step(const struct solver *s, double tolerance)
{
    const size_t P = s->P;
    memset(s->step, 0, P * sizeof *s->step);
    for (size_t j = 0; j < P; j++)
        s->way[j] = s->r[j] = -s->grad[j];
    double rr = dot(s->r, s->r, P);
    const double enough = tolerance * tolerance * rr;
    for (size_t k = 0; k < P && rr > enough; k++) {
        curve(s, s->way, s->product);
        const double a = rr / dot(s->way, s->product, P), before = rr;
        add(s->step, a, s->way, P);
        add(s->r, -a, s->product, P);
        rr = dot(s->r, s->r, P);
        for (size_t j = 0; j < P; j++)
            s->way[j] = s->r[j] + rr / before * s->way[j];
    }
}

/* W += t step, t halved until the loss falls as it should (Armijo). Where no step does, rounding
 * hides what is left: false. */
static bool descend(const struct solver *s, double *value)
{
    const double slope = dot(s->grad, s->step, s->P);
    for (double t = 1.0; t > 1e-10; t *= 0.5) {
        memcpy(s->trial, s->W, s->P * sizeof *s->trial);
        add(s->trial, t, s->step, s->P);
        const double there = adl_logistic_value(s->f, s->trial, NULL, s->p);
        if (!(there < *value && there <= *value + 1e-4 * t * slope))
            continue;
        memcpy(s->W, s->trial, s->P * sizeof *s->W);
        *value = there;
        return true;
    }
    return false;
}

static void remember_probabilities(const struct solver *s)
{
    const struct adl_logistic_data *data = s->f->data;
    for (size_t i = 0; i < data->n; i++)
        probabilities(data, data->x + i * data->D, s->W, s->probabilities + i * data->K);
}

/* Newton's last steps are below what the loss can show: they are taken as long as the gradient
 * shrinks. */
static void polish(const struct solver *s, double *norm)
{
    for (int k = 0; k < 3; k++) {
        remember_probabilities(s);
        newton_step(s, 1e-10);
        memcpy(s->trial, s->W, s->P * sizeof *s->trial);
        add(s->W, 1.0, s->step, s->P);
        adl_logistic_value(s->f, s->W, s->grad, s->p);
        const double now = sqrt(dot(s->grad, s->grad, s->P));
        if (!(now < *norm)) {
            memcpy(s->W, s->trial, s->P * sizeof *s->W);
            return;
        }
        *norm = now;
    }
}

/* *start: f(0), where W is at first. */
static enum adl_status minimise(const struct solver *s, double *start, struct adl_err *err)
{
    enum { MAX_STEPS = 200 };
    double value = *start = adl_logistic_value(s->f, s->W, s->grad, s->p);
    const double first = sqrt(dot(s->grad, s->grad, s->P));
    double norm = first;
    for (int k = 0; k < MAX_STEPS && 1e-9 * first < norm; k++) {
        remember_probabilities(s);
        newton_step(s, fmin(0.1, norm / first));
        if (!descend(s, &value))
            break;
        adl_logistic_value(s->f, s->W, s->grad, s->p);
        norm = sqrt(dot(s->grad, s->grad, s->P));
    }
    polish(s, &norm);
    if (!(norm <= 1e-6 * fmax(first, s->f->lambda)))
        return adl_fail(err, ADL_ERR_INPUT,
                        "model.l2: the optimum at %g cannot be found: its gradient stays at %g of "
                        "%g; features are too large (model.standardise) or model.l2 too small",
                        s->f->lambda, norm, first);
    return ADL_OK;
}

/* ---- constants */

/* Largest eigenvalue of sum w_i x_i x_i', by the power method; v, next [D]. */
static double largest_moment(const struct adl_logistic *f, double *v, double *next)
{
    enum { MAX_STEPS = 10000 };
    const struct adl_logistic_data *data = f->data;
    const size_t D = data->D;
    double found = 0.0;
    for (size_t j = 0; j < D; j++) /* no direction of the data is likely to be across this one */
        v[j] = 1.0 + 0.5 * sin((double)j + 1.0);
    for (int step = 0; step < MAX_STEPS; step++) {
        const double norm = sqrt(dot(v, v, D));
        memset(next, 0, D * sizeof *next);
        for (size_t i = 0; i < data->n; i++) {
            const double *x = data->x + i * D;
            add(next, f->w[i] * dot(x, v, D) / norm, x, D);
        }
        const double before = found;
        found = sqrt(dot(next, next, D));
        memcpy(v, next, D * sizeof *v);
        if (found <= before * (1.0 + 1e-13))
            break;
    }
    return found;
}

static void measure_noise(const struct solver *s, struct adl_logistic_constants *out)
{
    const struct adl_logistic_data *data = s->f->data;
    double *mean = s->trial;
    memset(mean, 0, s->P * sizeof *mean);
    out->s2_most = out->s2_optimum = 0.0;
    for (size_t i = 0; i < data->n; i++) {
        const double *x = data->x + i * data->D;
        const double w = s->f->w[i], x2 = dot(x, x, data->D);
        adl_logistic_sample(data, i, s->W, 1.0, NULL, s->p);
        s->p[data->y[i]] -= 1.0;
        for (size_t k = 0; k < data->K; k++)
            add(mean + k * data->D, w * s->p[k], x, data->D);
        out->s2_optimum += w * dot(s->p, s->p, data->K) * x2;
        out->s2_most += w * 2.0 * x2;
    }
    out->s2_optimum -= dot(mean, mean, s->P);
}

static bool allocate(struct solver *s)
{
    const struct adl_logistic_data *data = s->f->data;
    double **vectors[] = {&s->grad, &s->trial, &s->step, &s->r, &s->way, &s->product};
    bool all = true;
    s->p = calloc(data->K, sizeof *s->p);
    s->q = calloc(data->K, sizeof *s->q);
    s->probabilities = calloc(data->n * data->K, sizeof *s->probabilities);
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        *vectors[i] = calloc(s->P, sizeof **vectors[i]);
        all = all && *vectors[i];
    }
    return all && s->p && s->q && s->probabilities;
}

static void release(struct solver *s)
{
    double *all[] = {s->p,    s->q, s->probabilities, s->grad,   s->trial,
                     s->step, s->r, s->way,           s->product};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

enum adl_status adl_logistic_solve(const struct adl_logistic *f, double *W,
                                   struct adl_logistic_constants *out, struct adl_err *err)
{
    struct solver s = {.f = f, .P = f->data->K * f->data->D, .W = W};
    enum adl_status status = ADL_OK;
    memset(W, 0, s.P * sizeof *W);
    if (!allocate(&s))
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to solve for %zu parameters", s.P);
    if (status == ADL_OK)
        status = minimise(&s, &out->start, err);
    if (status == ADL_OK) {
        out->least = adl_logistic_value(f, W, NULL, s.p);
        measure_noise(&s, out);
        out->L = 0.5 * largest_moment(f, s.step, s.r) + f->lambda;
    }
    release(&s);
    return status;
}
