/* SPDX-License-Identifier: Apache-2.0 */
/* Batch policies: from a round's statistic to the trainer's next request. Pure: no clock, no
 * randomness, no input or output; every process computes the same answer from the same sums.
 *
 * Adding one: a function `next`, a row in adl_batch_policies (core/policy.c). */
#ifndef ADL_CORE_POLICY_H
#define ADL_CORE_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "core/settings.h"
#include "core/statistic.h"

/* What a policy looks at. All batches are of the whole trainer, per inner step. */
struct adl_policy_obs {
    int64_t round; /* outer round just finished, from 0 */
    int trainer;
    int64_t initial;         /* the trainer's first request */
    int64_t request;         /* the present one */
    struct adl_stat stat;    /* of the batch that ran; S smoothed if asked for */
    const int64_t *recorded; /* [n_recorded] requests by round, of this trainer */
    int64_t n_recorded;
};

enum adl_stat_need { /* what must be measured for a policy */
                     ADL_NEED_NOTHING,
                     ADL_NEED_NORM,         /* Q and G2 */
                     ADL_NEED_INNER_PRODUCT /* P2 as well: one more exchange, of a scalar, after gb
                                               is known */
};

struct adl_batch_policy {
    const char *name, *doc;
    enum adl_stat_need need;
    /* The wanted request, before cap and ratchet; NAN: no opinion. */
    double (*next)(const struct adl_settings *settings, const struct adl_policy_obs *obs);
    bool free; /* sets the request outright: the ratchet does not apply */
};

extern const struct adl_batch_policy *const adl_batch_policies[];       /* NULL-ended */
const struct adl_batch_policy *adl_batch_policy_find(const char *name); /* or NULL */

/* The next request: policy, ratchet (unless batch.may_shrink), batch.cap, at least 1. */
int64_t adl_policy_request(const struct adl_batch_policy *policy,
                           const struct adl_settings *settings, const struct adl_policy_obs *obs);

#endif
