/* SPDX-License-Identifier: Apache-2.0 */
/* The one file that knows GSL: distributions and nonlinear least squares. */
#ifndef ADL_ANALYSIS_STATS_GSL_H
#define ADL_ANALYSIS_STATS_GSL_H

#include <stddef.h>

#include "core/status.h"

/* ADL_ERR_UNSUPPORTED where the build has no GSL: to be asked first. The others then give NAN. */
enum adl_status adl_gsl_check(struct adl_err *err);

double adl_gsl_normal(double z);                     /* P(Z <= z) */
double adl_gsl_normal_quantile(double p);            /* its inverse */
double adl_gsl_t_above(double t, double freedom);    /* P(T > t), Student */
double adl_gsl_t_quantile(double p, double freedom); /* inverse of P(T <= t) */

/* y = f(x, parameters) */
typedef double adl_curve_fn(double x, const double *parameters);
/* Least squares by Levenberg-Marquardt: parameters [n_parameters] come as the start and leave as
 * the solution. errors (may be NULL) [n_parameters]: their standard errors. n > n_parameters.
 * ADL_ERR_RUNTIME where it does not converge. */
enum adl_status adl_gsl_fit(adl_curve_fn *fn, const double *x, const double *y, size_t n,
                            double *parameters, size_t n_parameters, double *errors,
                            struct adl_err *err);

#endif
