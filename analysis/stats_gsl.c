/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/stats_gsl.h"

#include <math.h>

#include "build_config.h"

#ifdef ADL_HAVE_GSL
#include <gsl/gsl_blas.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multifit_nlinear.h>

enum adl_status adl_gsl_check(struct adl_err *err)
{
    (void)err;
    gsl_set_error_handler_off(); /* the library's own ends the process */
    return ADL_OK;
}

double adl_gsl_normal(double z)
{
    return gsl_cdf_ugaussian_P(z);
}

double adl_gsl_normal_quantile(double p)
{
    return gsl_cdf_ugaussian_Pinv(p);
}

double adl_gsl_t_above(double t, double freedom)
{
    return gsl_cdf_tdist_Q(t, freedom);
}

double adl_gsl_t_quantile(double p, double freedom)
{
    return gsl_cdf_tdist_Pinv(p, freedom);
}

struct fit {
    adl_curve_fn *fn;
    const double *x, *y;
    size_t n;
};

static int residuals(const gsl_vector *parameters, void *arg, gsl_vector *out)
{
    const struct fit *fit = arg;
    for (size_t i = 0; i < fit->n; i++) {
        const double r = fit->fn(fit->x[i], parameters->data) - fit->y[i];
        if (!isfinite(r))
            return GSL_EDOM;
        gsl_vector_set(out, i, r);
    }
    return GSL_SUCCESS;
}

static void standard_errors(gsl_multifit_nlinear_workspace *work, size_t n, size_t n_parameters,
                            double *errors)
{
    gsl_matrix *covariance = gsl_matrix_alloc(n_parameters, n_parameters);
    double squares;
    if (!covariance)
        return;
    const gsl_vector *left = gsl_multifit_nlinear_residual(work);
    gsl_blas_ddot(left, left, &squares);
    gsl_multifit_nlinear_covar(gsl_multifit_nlinear_jac(work), 0.0, covariance);
    for (size_t i = 0; i < n_parameters; i++)
        errors[i] = sqrt(gsl_matrix_get(covariance, i, i) * squares / (double)(n - n_parameters));
    gsl_matrix_free(covariance);
}

enum adl_status adl_gsl_fit(adl_curve_fn *fn, const double *x, const double *y, size_t n,
                            double *parameters, size_t n_parameters, double *errors,
                            struct adl_err *err)
{
    if (n <= n_parameters)
        return adl_fail(err, ADL_ERR_INPUT, "a fit of %zu parameters needs more than %zu points",
                        n_parameters, n);
    const gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_workspace *work =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how, n, n_parameters);
    if (!work)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a fit of %zu points", n);
    struct fit fit = {fn, x, y, n};
    gsl_multifit_nlinear_fdf system = {.f = residuals, .n = n, .p = n_parameters, .params = &fit};
    gsl_vector_view start = gsl_vector_view_array(parameters, n_parameters);
    int info, failure = gsl_multifit_nlinear_init(&start.vector, &system, work);
    if (!failure)
        failure = gsl_multifit_nlinear_driver(1000, 1e-12, 1e-12, 0.0, NULL, NULL, &info, work);
    /* no progress from here on is what an exact fit looks like */
    const int ended = failure == GSL_ENOPROG ? GSL_SUCCESS : failure;
    if (!ended) {
        for (size_t i = 0; i < n_parameters; i++)
            parameters[i] = gsl_vector_get(gsl_multifit_nlinear_position(work), i);
        if (errors)
            standard_errors(work, n, n_parameters, errors);
    }
    gsl_multifit_nlinear_free(work);
    return ended ? adl_fail(err, ADL_ERR_RUNTIME, "a nonlinear fit of %zu points failed: %s", n,
                            gsl_strerror(failure))
                 : ADL_OK;
}

#else

enum adl_status adl_gsl_check(struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "intervals and fits need GSL, which is not in this build (libgsl-dev)");
}

double adl_gsl_normal(double z)
{
    (void)z;
    return NAN;
}

double adl_gsl_normal_quantile(double p)
{
    (void)p;
    return NAN;
}

double adl_gsl_t_above(double t, double freedom)
{
    (void)t;
    (void)freedom;
    return NAN;
}

double adl_gsl_t_quantile(double p, double freedom)
{
    (void)p;
    (void)freedom;
    return NAN;
}

enum adl_status adl_gsl_fit(adl_curve_fn *fn, const double *x, const double *y, size_t n,
                            double *parameters, size_t n_parameters, double *errors,
                            struct adl_err *err)
{
    (void)fn;
    (void)x;
    (void)y;
    (void)n;
    (void)parameters;
    (void)n_parameters;
    (void)errors;
    return adl_gsl_check(err);
}
#endif
