/* SPDX-License-Identifier: Apache-2.0 */
/* Monte Carlo of the model against its exact moments: R replicates (streams) of a few rounds,
 * |z| < 4 for E f and for Var f, every spectrum with every noise. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "kernels/model_quadratic.h"
#include "analysis/recursion.h"
#include "kernels/nqm.h"

static const struct adl_model_ops *const ops = &adl_model_quadratic;
static const struct adl_space *const cpu = &adl_space_cpu;
enum { D = 6, H = 3, M = 2, B = 2, ROUNDS = 2, R = 4000 };
static const double ALPHA = 0.7;

static struct adl_quadratic_config config_of(int spectrum, int noise)
{
    return (struct adl_quadratic_config){
        .dim = D,
        .condition = 30,
        .spectrum = spectrum,
        .power = 1.5,
        .lipschitz = 1,
        .noise_kind = noise,
        .noise_total = 2,
        .start = 1,
    };
}

enum way { STEPS, HOPS };

struct method {
    enum way way;
    double outer_lr, outer_momentum; /* 1, 0: averaging */
    const double *lr;                /* [H] inner rates */
};

static const double constant[H] = {ALPHA, ALPHA, ALPHA};

/* Worker m's inner steps of one round; x in place. Its samples follow one another. */
static void inner(struct adl_model *model, const struct method *method, const struct adl_hop *hop,
                  int m, uint64_t stream, int round, double *x)
{
    const uint64_t first = (uint64_t)((round * M + m) * H * B);
    if (method->way == HOPS) {
        ops->hop(model, hop, m, x, stream, first, B);
        return;
    }
    for (int k = 0; k < H; k++) {
        double g[D] = {0}, loss = 0;
        const uint64_t at = first + (uint64_t)(k * B);
        const struct adl_samples samples = {
            .stream = stream, .first = at, .count = B, .slice_first = at, .slice_count = B};
        ops->add_grad(model, 0, m, x, &samples, g, &loss, NULL);
        cpu->scale(g, 1.0 / B, D, ADL_F64);
        cpu->sgd(x, g, NULL, method->lr[k], 0, 0, D, ADL_F64);
    }
}

/* f of one replicate after ROUNDS rounds. */
static double replicate(struct adl_model *model, const struct method *method,
                        const struct adl_hop *hop, uint64_t stream)
{
    double x[D], v[D] = {0}, loss;
    ops->init(model, x, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        double pseudo[D] = {0}; /* x - average */
        for (int m = 0; m < M; m++) {
            double y[D];
            memcpy(y, x, sizeof x);
            inner(model, method, hop, m, stream, round, y);
            cpu->combine(y, 1.0, x, -1.0, y, D, ADL_F64);
            cpu->axpy(pseudo, 1.0 / M, y, D, ADL_F64);
        }
        cpu->nesterov(x, pseudo, v, method->outer_lr, method->outer_momentum, D, ADL_F64);
    }
    ops->eval(model, x, &loss, NULL);
    return loss;
}

struct sample {
    double mean, var, mean_error, var_error; /* standard errors */
};

static struct sample simulate(const struct adl_quadratic_config *config,
                              const struct method *method)
{
    static double f[R];
    const struct adl_model_env env = {.seed = 1, .n_workers = M, .n_lanes = 1, .base_dir = "."};
    struct adl_model *model = NULL;
    struct adl_hop *hop = NULL;
    cr_assert_eq(ops->open(config, &env, &model, NULL), ADL_OK);
    if (method->way == HOPS) {
        cr_assert_eq(ops->hop_prepare(model, 0, method->lr, H, &hop, NULL), ADL_OK);
        cr_assert_not_null(hop);
    }
    struct sample s = {0, 0, 0, 0};
    for (int r = 0; r < R; r++) {
        f[r] = replicate(model, method, hop, (uint64_t)r);
        s.mean += f[r] / R;
    }
    ops->hop_free(hop);
    ops->close(model);
    double m4 = 0;
    for (int r = 0; r < R; r++) {
        const double e2 = (f[r] - s.mean) * (f[r] - s.mean);
        s.var += e2 / (R - 1);
        m4 += e2 * e2 / R;
    }
    s.mean_error = sqrt(s.var / R);
    s.var_error = sqrt((m4 - s.var * s.var) / R);
    return s;
}

static void expect(const struct sample *s, struct adl_nqm_loss want, int spectrum, int noise)
{
    const double z = (s->mean - want.mean) / s->mean_error;
    cr_expect_lt(fabs(z), 4, "spectrum %d, noise %d: E f %g, not %g (z %.1f)", spectrum, noise,
                 s->mean, want.mean, z);
    const double zv = (s->var - want.var) / s->var_error;
    cr_expect_lt(fabs(zv), 4, "spectrum %d, noise %d: Var f %g, not %g (z %.1f)", spectrum, noise,
                 s->var, want.var, zv);
}

#define FOR_ALL(spectrum, noise)                                                                   \
    for (int spectrum = ADL_SPECTRUM_FLAT; spectrum <= ADL_SPECTRUM_TWO_CLUSTERS; spectrum++)      \
        for (int noise = ADL_NOISE_CONSTANT; noise <= ADL_NOISE_CURVATURE2; noise++)

static void shape(const struct adl_quadratic_config *config, double h[D], double c[D])
{
    adl_nqm_spectrum((enum adl_spectrum)config->spectrum, D, config->condition, config->power,
                     config->lipschitz, h);
    adl_nqm_noise((enum adl_noise)config->noise_kind, D, h, config->noise_total, c);
}

static void local_sgd(enum way way, const double *lr)
{
    const struct method method = {.way = way, .outer_lr = 1, .lr = lr};
    FOR_ALL(spectrum, noise)
    {
        const struct adl_quadratic_config config = config_of(spectrum, noise);
        double h[D], c[D], mean[D], var[D] = {0};
        shape(&config, h, c);
        for (int i = 0; i < D; i++) {
            const struct adl_nqm_map map = adl_nqm_hop_map(h[i], lr, H);
            mean[i] = pow(map.A, ROUNDS);
            for (int k = 0; k < ROUNDS; k++)
                var[i] = map.A * map.A * var[i] + c[i] / (M * B) * map.V;
        }
        const struct sample s = simulate(&config, &method);
        expect(&s, adl_nqm_loss_moments(D, h, mean, var), spectrum, noise);
    }
}

Test(quadratic_moments, local_sgd_by_steps)
{
    local_sgd(STEPS, constant);
}

Test(quadratic_moments, local_sgd_by_hops)
{
    local_sgd(HOPS, constant);
}

Test(quadratic_moments, rates_that_change)
{
    static const double lr[H] = {1.2, 0.6, 0.2};
    local_sgd(STEPS, lr);
    local_sgd(HOPS, lr);
}

static void nesterov(enum way way)
{
    const struct method method = {
        .way = way, .outer_lr = 0.7, .outer_momentum = 0.9, .lr = constant};
    FOR_ALL(spectrum, noise)
    {
        const struct adl_quadratic_config config = config_of(spectrum, noise);
        double h[D], c[D], mean[D], var[D];
        struct adl_nqm_outer z[D] = {0};
        shape(&config, h, c);
        for (int i = 0; i < D; i++)
            z[i].mean[0] = config.start;
        for (int k = 0; k < ROUNDS; k++)
            adl_nqm_round_nesterov(D, h, c, ALPHA, H, M * B, 0.7, 0.9, z);
        for (int i = 0; i < D; i++) {
            mean[i] = z[i].mean[0];
            var[i] = z[i].cov[0][0];
        }
        const struct sample s = simulate(&config, &method);
        expect(&s, adl_nqm_loss_moments(D, h, mean, var), spectrum, noise);
    }
}

Test(quadratic_moments, outer_nesterov_by_steps)
{
    nesterov(STEPS);
}

Test(quadratic_moments, outer_nesterov_by_hops)
{
    nesterov(HOPS);
}

/* Multiplicative noise is not Gaussian in x: only E f has a closed form. */
static void multiplicative(int draw)
{
    const struct method method = {.way = STEPS, .outer_lr = 1, .lr = constant};
    FOR_ALL(spectrum, noise)
    {
        struct adl_quadratic_config config = config_of(spectrum, noise);
        config.noise_multiplicative = 3;
        config.draw = draw;
        double h[D], c[D], beta[D], x2[D], root[D], zero[D] = {0};
        shape(&config, h, c);
        for (int i = 0; i < D; i++) {
            beta[i] = config.noise_multiplicative * h[i] * h[i];
            x2[i] = config.start * config.start;
        }
        for (int k = 0; k < ROUNDS; k++)
            adl_nqm_round_multiplicative(D, h, c, beta, ALPHA, H, M, B, x2);
        for (int i = 0; i < D; i++)
            root[i] = sqrt(x2[i]);
        const struct sample s = simulate(&config, &method);
        const double want = adl_nqm_loss_moments(D, h, root, zero).mean;
        const double z = (s.mean - want) / s.mean_error;
        cr_expect_lt(fabs(z), 4, "spectrum %d, noise %d: E f %g, not %g (z %.1f)", spectrum, noise,
                     s.mean, want, z);
    }
}

Test(quadratic_moments, multiplicative_noise)
{
    multiplicative(ADL_DRAW_BATCH);
}

Test(quadratic_moments, multiplicative_noise_by_sample)
{
    multiplicative(ADL_DRAW_SAMPLE);
}

/* The fixed point of Local SGD's average is the optimum only where all curvatures are equal:
 * mean' = avg_m (A_m mean + (1 - A_m) x*_m), theory section 2. */
Test(quadratic_moments, heterogeneous_workers_stall)
{
    struct adl_quadratic_config config = config_of(ADL_SPECTRUM_LOG, ADL_NOISE_CURVATURE);
    config.noise_total = 0;
    config.hetero_shift = 1;
    const struct method method = {.way = HOPS, .outer_lr = 1, .lr = constant};
    const struct adl_model_env env = {.seed = 1, .n_workers = M, .n_lanes = 1, .base_dir = "."};
    for (int curved = 0; curved <= 1; curved++) {
        config.hetero_curvature = 0.3 * curved;
        struct adl_model *model = NULL;
        struct adl_hop *hop[M] = {NULL};
        double x[D], loss;
        cr_assert_eq(ops->open(&config, &env, &model, NULL), ADL_OK);
        for (int m = 0; m < M; m++)
            cr_assert_eq(ops->hop_prepare(model, m, method.lr, H, &hop[m], NULL), ADL_OK);
        ops->init(model, x, NULL);
        for (int round = 0; round < 2000; round++) {
            double sum[D] = {0};
            for (int m = 0; m < M; m++) {
                double y[D];
                memcpy(y, x, sizeof x);
                inner(model, &method, hop[m], m, 0, round, y);
                cpu->axpy(sum, 1.0 / M, y, D, ADL_F64);
            }
            memcpy(x, sum, sizeof x);
        }
        ops->eval(model, x, &loss, NULL);
        if (curved)
            cr_expect_gt(loss, 1e-6, "different curvatures: %g", loss);
        else
            cr_expect_lt(loss, 1e-20, "equal curvatures reach the optimum: %g", loss);
        for (int m = 0; m < M; m++)
            ops->hop_free(hop[m]);
        ops->close(model);
    }
}
