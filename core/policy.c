/* SPDX-License-Identifier: Apache-2.0 */
#include "core/policy.h"

#include <math.h>
#include <string.h>

/* Far above any batch that runs, far below where int64_t would overflow: a vanishing gradient
 * asks for more than the world holds, and batch.cap or the devices decide. */
static const double largest_request = 1e15;

static double constant_next(const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    (void)settings;
    (void)obs;
    return NAN;
}

/* S / (eta^2 |grad f|^2): Byrd et al. 2012; theory 1. */
static double norm_test_next(const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    double eta = settings->batch.eta;
    return obs->stat.S / (eta * eta * adl_stat_norm2(&obs->stat, settings->batch.debias));
}

/* S_ip / (theta^2 |grad f|^4): Bollapragada et al. 2018. */
static double inner_product_next(const struct adl_settings *settings,
                                 const struct adl_policy_obs *obs)
{
    double theta = settings->batch.theta;
    double norm2 = adl_stat_norm2(&obs->stat, settings->batch.debias);
    return obs->stat.S_ip / (theta * theta * norm2 * norm2);
}

/* The inner-product test and, with a tolerance of its own, the orthogonality test. */
static double augmented_next(const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    double nu = settings->batch.nu;
    double norm2 = adl_stat_norm2(&obs->stat, settings->batch.debias);
    return fmax(inner_product_next(settings, obs), obs->stat.S_orth / (nu * nu * norm2));
}

/* B_simple = S / |grad f|^2: McCandlish et al. 2018. */
static double noise_scale_next(const struct adl_settings *settings,
                               const struct adl_policy_obs *obs)
{
    return obs->stat.S / adl_stat_norm2(&obs->stat, settings->batch.debias);
}

static double geometric_next(const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    return (double)obs->initial * pow(settings->batch.growth, (double)(obs->round + 1));
}

static double recorded_next(const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    (void)settings;
    int64_t round = obs->round + 1;
    if (obs->n_recorded == 0)
        return NAN;
    return (double)obs->recorded[round < obs->n_recorded ? round : obs->n_recorded - 1];
}

static const struct adl_batch_policy constant = {
    .name = "constant", .doc = "The initial batch throughout.", .next = constant_next};
static const struct adl_batch_policy norm_test = {
    .name = "norm_test",
    .doc = "The batch at which the gradient's noise is eta times its norm (norm test).",
    .need = ADL_NEED_NORM,
    .next = norm_test_next};
static const struct adl_batch_policy inner_product = {
    .name = "inner_product",
    .doc = "The batch at which noise along the gradient is theta times its squared norm.",
    .need = ADL_NEED_INNER_PRODUCT,
    .next = inner_product_next};
static const struct adl_batch_policy augmented = {
    .name = "augmented",
    .doc = "Inner-product test (theta) and orthogonality test (nu): the larger batch of both.",
    .need = ADL_NEED_INNER_PRODUCT,
    .next = augmented_next};
static const struct adl_batch_policy noise_scale = {
    .name = "noise_scale",
    .doc = "The simple gradient noise scale, tr C / |grad f|^2.",
    .need = ADL_NEED_NORM,
    .next = noise_scale_next};
static const struct adl_batch_policy geometric = {
    .name = "geometric",
    .doc = "initial x growth^round, whatever the gradients: the baseline of adaptive policies.",
    .next = geometric_next,
    .free = true};
static const struct adl_batch_policy recorded = {
    .name = "recorded",
    .doc = "The requests of another run, read from its records (batch.recorded).",
    .next = recorded_next,
    .free = true};

const struct adl_batch_policy *const adl_batch_policies[] = {
    &constant, &norm_test, &inner_product, &augmented, &noise_scale, &geometric, &recorded, NULL};

const struct adl_batch_policy *adl_batch_policy_find(const char *name)
{
    for (int i = 0; adl_batch_policies[i]; i++)
        if (strcmp(adl_batch_policies[i]->name, name) == 0)
            return adl_batch_policies[i];
    return NULL;
}

int64_t adl_policy_request(const struct adl_batch_policy *policy,
                           const struct adl_settings *settings, const struct adl_policy_obs *obs)
{
    double wanted = policy->next(settings, obs);
    int64_t request = obs->request;
    if (!isnan(wanted)) {
        /* a hair off before rounding up: 8.000000001 samples are 8 */
        double up = ceil(fmin(wanted, largest_request) * (1 - 1e-12));
        request = up < 1 ? 1 : (int64_t)up;
    }
    if (!policy->free && !settings->batch.may_shrink && request < obs->request)
        request = obs->request;
    if (settings->batch.cap > 0 && request > settings->batch.cap)
        request = settings->batch.cap;
    return request;
}
