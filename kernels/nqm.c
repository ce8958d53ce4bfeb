/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/nqm.h"

#include <math.h>

static double curvature(enum adl_spectrum kind, size_t i, size_t d, double kappa, double p)
{
    const double along = d > 1 ? (double)i / (double)(d - 1) : 0.0; /* 0 .. 1 */
    switch (kind) {
    case ADL_SPECTRUM_LOG:
        return exp(-log(kappa) * along);
    case ADL_SPECTRUM_LINEAR:
        return 1.0 + (1.0 / kappa - 1.0) * along;
    case ADL_SPECTRUM_POWER:
        return pow((double)(i + 1), -p);
    case ADL_SPECTRUM_TWO_CLUSTERS:
        return i < d / 2 ? 1.0 : 1.0 / kappa;
    case ADL_SPECTRUM_FLAT:
        break;
    }
    return 1.0;
}

void adl_nqm_spectrum(enum adl_spectrum kind, size_t d, double kappa, double p, double L, double *h)
{
    for (size_t i = 0; i < d; i++)
        h[i] = L * curvature(kind, i, d, kappa, p);
}

void adl_nqm_noise(enum adl_noise kind, size_t d, const double *h, double trace, double *c)
{
    double sum = 0.0;
    for (size_t i = 0; i < d; i++) {
        c[i] = kind == ADL_NOISE_CONSTANT ? 1.0 : kind == ADL_NOISE_CURVATURE ? h[i] : h[i] * h[i];
        sum += c[i];
    }
    const double scale = trace / sum;
    for (size_t i = 0; i < d; i++)
        c[i] *= scale;
}
