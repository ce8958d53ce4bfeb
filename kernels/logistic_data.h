/* SPDX-License-Identifier: Apache-2.0 */
/* What a softmax regression learns: n samples of D features, the last of which is always 1, and
 * their classes; from a table (core/csv.h) or drawn from a mixture of Gaussians. */
#ifndef ADL_KERNELS_LOGISTIC_DATA_H
#define ADL_KERNELS_LOGISTIC_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/status.h"

struct adl_logistic_data {
    size_t n, D, K;    /* samples, features with the constant one, classes (at least 2) */
    double *x;         /* [n x D] */
    int *y;            /* [n] class, 0..K-1: numbered as they come */
    size_t *of_class;  /* [n] samples, class by class */
    size_t *class_end; /* [K] where a class ends in of_class; a class has a sample at least */
};

/* Class k has its mean at `separation` in a random direction, covariance 1; sample i is of class
 * i mod K. */
struct adl_logistic_mixture {
    size_t n, features, K; /* n >= K */
    double separation;
    uint64_t seed;
};

/* data: zeroed; filled, and freed by adl_logistic_data_free whatever comes back. */
enum adl_status adl_logistic_draw(const struct adl_logistic_mixture *mixture,
                                  struct adl_logistic_data *data, struct adl_err *err);
/* Column `label` holds the classes, any text; "": the last column. All others are features.
 * ADL_ERR_INPUT "path:line:column: cause" for a column that is missing, features that are no
 * numbers, empty classes, fewer than 2 or more than 1000 of them. */
enum adl_status adl_logistic_load(const char *path, const char *base_dir, const char *label,
                                  struct adl_logistic_data *data, struct adl_err *err);
/* Every feature but the constant one: mean 0 and variance 1; one that does not vary becomes 0. */
void adl_logistic_standardise(struct adl_logistic_data *data);
void adl_logistic_data_free(struct adl_logistic_data *data);

#endif
