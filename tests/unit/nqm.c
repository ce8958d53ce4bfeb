/* SPDX-License-Identifier: Apache-2.0 */
/* The recursions against numbers of an independent implementation (in Python, doubles), to 1e-12
 * relative. Common inputs: h, c, x0 below, alpha 0.8, H 4, M 8, b 2, three rounds from x0. */
#include <criterion/criterion.h>
#include <math.h>

#include "analysis/recursion.h"
#include "kernels/nqm.h"

enum { D = 4 };
static const double h[D] = {1.0, 0.5, 0.1, 0.02};
static const double c[D] = {0.4, 0.3, 0.2, 0.1};
static const double x0[D] = {1.0, -1.0, 2.0, 3.0};
static const double alpha = 0.8, H = 4, M = 8, b = 2;

static void near(double got, double want, const char *what)
{
    cr_expect_float_eq(got, want, 1e-12 * fabs(want), "%s: %.17g, not %.17g", what, got, want);
}

static void all_near(const double *got, const double *want, const char *what)
{
    for (int i = 0; i < D; i++)
        near(got[i], want[i], what);
}

Test(nqm, local_sgd)
{
    static const double mean3[D] = {4.095999999999989e-09, -0.002176782335999998, 0.735332775309764,
                                    2.4720795154183963};
    static const double var3[D] = {0.01666666666666667, 0.01874991115534991, 0.04504278267650048,
                                   0.04044610872324072};
    double mean[D], var[D] = {0};
    for (int i = 0; i < D; i++)
        mean[i] = x0[i];
    for (int k = 0; k < 3; k++)
        adl_nqm_round_sgd(D, h, c, alpha, H, M * b, mean, var);
    all_near(mean, mean3, "mean");
    all_near(var, var3, "var");
    const struct adl_nqm_loss loss = adl_nqm_loss_moments(D, h, mean, var);
    near(loss.mean, 0.10382608176631336, "E f");
    near(loss.var, 0.0005357495314917579, "Var f");
}

Test(nqm, outer_nesterov) /* outer rate 0.7, momentum 0.9 */
{
    static const double mean3[D] = {-0.1735178188205591, 0.29249385544994, -0.20689966928238057,
                                    2.0219919832118665};
    static const double var3[D] = {0.031126105770638523, 0.03571919151032516, 0.1286444789491549,
                                   0.14301483853835345};
    struct adl_nqm_outer z[D] = {0};
    double mean[D], var[D];
    for (int i = 0; i < D; i++)
        z[i].mean[0] = x0[i];
    for (int k = 0; k < 3; k++)
        adl_nqm_round_nesterov(D, h, c, alpha, H, M * b, 0.7, 0.9, z);
    for (int i = 0; i < D; i++) {
        mean[i] = z[i].mean[0];
        var[i] = z[i].cov[0][0];
        near(z[i].cov[0][1], z[i].cov[1][0], "a covariance is symmetric");
    }
    all_near(mean, mean3, "mean");
    all_near(var, var3, "var");
    const struct adl_nqm_loss loss = adl_nqm_loss_moments(D, h, mean, var);
    near(loss.mean, 0.11182249314804511, "E f");
    near(loss.var, 0.002720816822337541, "Var f");
}

Test(nqm, outer_sgd_of_rate_one_is_averaging)
{
    struct adl_nqm_outer z[D] = {0};
    double mean[D], var[D] = {0};
    for (int i = 0; i < D; i++)
        mean[i] = z[i].mean[0] = x0[i];
    for (int k = 0; k < 5; k++) {
        adl_nqm_round_sgd(D, h, c, alpha, H, M * b, mean, var);
        adl_nqm_round_nesterov(D, h, c, alpha, H, M * b, 1.0, 0.0, z);
    }
    for (int i = 0; i < D; i++) {
        near(z[i].mean[0], mean[i], "mean");
        near(z[i].cov[0][0], var[i], "var");
    }
}

Test(nqm, multiplicative_noise) /* beta = 0.3 h^2 */
{
    static const double want[D] = {0.01851301643277675, 0.019399878008543592, 0.5867602077607698,
                                   6.151989887046633};
    double beta[D], x2[D];
    for (int i = 0; i < D; i++) {
        beta[i] = 0.3 * h[i] * h[i];
        x2[i] = x0[i] * x0[i];
    }
    for (int k = 0; k < 3; k++)
        adl_nqm_round_multiplicative(D, h, c, beta, alpha, H, M, b, x2);
    all_near(x2, want, "E x^2");
}

Test(nqm, rate_of_the_norm_test)
{
    static const struct {
        double H, eta, r;
    } rows[] = {
        {1, 0.3, 0.9682583823021749}, {1, 0.9, 0.9682854463169623}, {4, 0.3, 0.8789522677848203},
        {4, 0.9, 0.8790601264216027}, {64, 0.3, 0.126958274467043}, {64, 0.9, 0.28452973150579497},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        near(adl_nqm_norm_test_rate(D, h, c, alpha, rows[i].H, rows[i].eta), rows[i].r, "r");
}

Test(nqm, rate_where_there_is_no_noise_or_no_progress)
{
    static const double none[D] = {0};
    near(adl_nqm_norm_test_rate(D, h, none, alpha, H, 0.5), pow(1 - alpha * 0.02, 2 * H),
         "noise 0");
    cr_expect_gt(adl_nqm_norm_test_rate(D, h, c, 1.9, 1, 5.0), 1.0, "a tolerance too wide");
    cr_expect(isnan(adl_nqm_norm_test_rate(D, h, c, NAN, 1, 0.5)));
}

Test(nqm, path_of_the_norm_test) /* eta = 0.5 */
{
    static const double want[5] = {0.260265163024041, 0.13474288005974785, 0.09249518459534306,
                                   0.06996630393956307, 0.055846942623828395};
    double x2[D], zero[D] = {0}, mean[D];
    for (int i = 0; i < D; i++)
        x2[i] = x0[i] * x0[i];
    for (int k = 0; k < 5; k++) {
        adl_nqm_round_norm_test(D, h, c, alpha, H, 0.5, x2);
        for (int i = 0; i < D; i++)
            mean[i] = sqrt(x2[i]);
        near(adl_nqm_loss_moments(D, h, mean, zero).mean, want[k], "E f");
    }
}

/* In the end the path shrinks by the rate. */
Test(nqm, path_ends_at_the_rate)
{
    double x2[D], last = 1.0;
    for (int i = 0; i < D; i++)
        x2[i] = x0[i] * x0[i];
    for (int k = 0; k < 400; k++) {
        last = x2[D - 1];
        adl_nqm_round_norm_test(D, h, c, alpha, H, 0.9, x2);
    }
    const double r = adl_nqm_norm_test_rate(D, h, c, alpha, H, 0.9);
    cr_expect_float_eq(x2[D - 1] / last, r, 1e-9);
}

Test(nqm, hop_map_takes_any_rates)
{
    static const double lr[5] = {0.8, 0.8, 0.8, 0.8, 0.8}, varied[3] = {0.9, 0.4, 0.1};
    for (int i = 0; i < D; i++) {
        const struct adl_local_map local = adl_nqm_local_map(h[i], 0.8, 5);
        const struct adl_nqm_map hop = adl_nqm_hop_map(h[i], lr, 5);
        near(hop.A, local.A, "A");
        near(hop.V, 0.8 * 0.8 * local.V, "V");
        const double a0 = 1 - 0.9 * h[i], a1 = 1 - 0.4 * h[i], a2 = 1 - 0.1 * h[i];
        const struct adl_nqm_map any = adl_nqm_hop_map(h[i], varied, 3);
        near(any.A, a0 * a1 * a2, "A, varied");
        near(any.V, 0.81 * a1 * a1 * a2 * a2 + 0.16 * a2 * a2 + 0.01, "V, varied");
    }
    const struct adl_local_map flat = adl_nqm_local_map(0.0, 0.8, 7);
    cr_expect_eq(flat.V, 7.0, "a flat direction adds up noise");
}

Test(nqm, spectra_and_noises)
{
    static const double want[][D] = {
        [ADL_SPECTRUM_FLAT] = {2, 2, 2, 2},
        [ADL_SPECTRUM_LOG] = {2, 0.2, 0.02, 0.002},
        [ADL_SPECTRUM_LINEAR] = {2, 1.334, 0.668, 0.002},
        [ADL_SPECTRUM_POWER] = {2, 0.5, 2.0 / 9, 0.125},
        [ADL_SPECTRUM_TWO_CLUSTERS] = {2, 2, 0.002, 0.002},
    };
    for (int kind = ADL_SPECTRUM_FLAT; kind <= ADL_SPECTRUM_TWO_CLUSTERS; kind++) {
        double got[D];
        adl_nqm_spectrum((enum adl_spectrum)kind, D, 1000, 2, 2, got);
        all_near(got, want[kind], "spectrum");
    }
    double one;
    adl_nqm_spectrum(ADL_SPECTRUM_LOG, 1, 1000, 1, 3, &one);
    near(one, 3, "one dimension");
    for (int kind = ADL_NOISE_CONSTANT; kind <= ADL_NOISE_CURVATURE2; kind++) {
        double got[D];
        adl_nqm_noise((enum adl_noise)kind, D, h, 10, got);
        near(adl_nqm_trace(D, got), 10, "tr C");
        near(got[1] / got[0], pow(0.5, kind), "c_i ~ h_i^k");
    }
    near(adl_nqm_trace_over_h(D, h, c) / (2 * 1e-3), 4000, "lower bound on samples");
}
