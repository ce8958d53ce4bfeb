/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/recursion.h"

#include <math.h>
#include <stdbool.h>

/* (1 - q^n) / (1 - q), qn = q^n; its limit n where q is 1 but for rounding. */
static double geometric(double q, double qn, double n)
{
    return fabs(1.0 - q) > 1e-14 ? (1.0 - qn) / (1.0 - q) : n;
}

struct adl_local_map adl_nqm_local_map(double h, double alpha, double H)
{
    const double a = 1.0 - alpha * h;
    const double A = pow(a, H);
    return (struct adl_local_map){.A = A, .V = geometric(a * a, A * A, H)};
}

void adl_nqm_round_sgd(size_t d, const double *h, const double *c, double alpha, double H,
                       double Mb, double *mean, double *var)
{
    for (size_t i = 0; i < d; i++) {
        const struct adl_local_map map = adl_nqm_local_map(h[i], alpha, H);
        mean[i] *= map.A;
        var[i] = map.A * map.A * var[i] + alpha * alpha * c[i] / Mb * map.V;
    }
}

void adl_nqm_round_multiplicative(size_t d, const double *h, const double *c, const double *beta,
                                  double alpha, double H, double M, double b, double *x2)
{
    for (size_t i = 0; i < d; i++) {
        const double a = 1.0 - alpha * h[i];
        const double lam = a * a + alpha * alpha * beta[i] / b;
        const double lamH = pow(lam, H);
        const double Q = lamH * x2[i] + alpha * alpha * c[i] / b * geometric(lam, lamH, H);
        const double P = pow(a, 2.0 * H) * x2[i];
        x2[i] = Q / M + (1.0 - 1.0 / M) * P;
    }
}

void adl_nqm_step_nesterov(double A, double noise, double lr, double m, struct adl_nqm_outer *z)
{
    const double T[2][2] = {{1.0 - lr * (1.0 + m) * (1.0 - A), -lr * m * m}, {1.0 - A, m}};
    const double g[2] = {lr * (1.0 + m), -1.0};
    const struct adl_nqm_outer old = *z;
    for (int r = 0; r < 2; r++) {
        z->mean[r] = T[r][0] * old.mean[0] + T[r][1] * old.mean[1];
        for (int s = 0; s < 2; s++) {
            double sum = g[r] * g[s] * noise;
            for (int j = 0; j < 2; j++)
                for (int k = 0; k < 2; k++)
                    sum += T[r][j] * old.cov[j][k] * T[s][k];
            z->cov[r][s] = sum;
        }
    }
}

void adl_nqm_round_nesterov(size_t d, const double *h, const double *c, double alpha, double H,
                            double Mb, double lr, double m, struct adl_nqm_outer *z)
{
    for (size_t i = 0; i < d; i++) {
        const struct adl_local_map map = adl_nqm_local_map(h[i], alpha, H);
        adl_nqm_step_nesterov(map.A, alpha * alpha * c[i] / Mb * map.V, lr, m, &z[i]);
    }
}

struct adl_nqm_loss adl_nqm_loss_moments(size_t d, const double *h, const double *mean,
                                         const double *var)
{
    struct adl_nqm_loss loss = {0.0, 0.0};
    for (size_t i = 0; i < d; i++) {
        const double m2 = mean[i] * mean[i];
        loss.mean += 0.5 * h[i] * (m2 + var[i]);
        loss.var += 0.5 * h[i] * h[i] * (var[i] * var[i] + 2.0 * m2 * var[i]);
    }
    return loss;
}

void adl_nqm_round_norm_test(size_t d, const double *h, const double *c, double alpha, double H,
                             double eta, double *x2)
{
    double slope2 = 0.0; /* E |grad f|^2 */
    for (size_t i = 0; i < d; i++)
        slope2 += h[i] * h[i] * x2[i];
    const double noise = alpha * alpha * eta * eta / adl_nqm_trace(d, c) * slope2;
    for (size_t i = 0; i < d; i++) {
        const struct adl_local_map map = adl_nqm_local_map(h[i], alpha, H);
        x2[i] = map.A * map.A * x2[i] + noise * c[i] * map.V;
    }
}

/* sum w_i / (r - A_i^2), w_i = alpha^2 h_i^2 c_i V_i: decreasing in r above the largest A^2. */
static double resolvent(size_t d, const double *h, const double *c, double alpha, double H,
                        double r)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; i++) {
        const struct adl_local_map map = adl_nqm_local_map(h[i], alpha, H);
        sum += alpha * alpha * h[i] * h[i] * c[i] * map.V / (r - map.A * map.A);
    }
    return sum;
}

double adl_nqm_norm_test_rate(size_t d, const double *h, const double *c, double alpha, double H,
                              double eta)
{
    const double target = adl_nqm_trace(d, c) / (eta * eta);
    double low = 0.0, weight = 0.0;
    for (size_t i = 0; i < d; i++) {
        const struct adl_local_map map = adl_nqm_local_map(h[i], alpha, H);
        low = fmax(low, map.A * map.A);
        weight += alpha * alpha * h[i] * h[i] * c[i] * map.V;
    }
    double high = weight == 0.0 ? low : low + weight / target; /* without noise: low itself */
    while (true) {
        const double middle = low + 0.5 * (high - low);
        if (!(middle > low && middle < high)) /* neighbours, or not a number */
            return high;
        if (resolvent(d, h, c, alpha, H, middle) > target)
            low = middle;
        else
            high = middle;
    }
}

double adl_nqm_trace(size_t d, const double *c)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; i++)
        sum += c[i];
    return sum;
}

double adl_nqm_trace_over_h(size_t d, const double *h, const double *c)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; i++)
        sum += c[i] / h[i];
    return sum;
}
