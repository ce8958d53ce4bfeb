/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/bounds_options.h"

#include <math.h>

#define TINY 1e-18 /* open end of a range that excludes 0 */
#define ROW(key_, unit_, min_, member, doc_)                                                       \
    {                                                                                              \
        .key = "bounds." key_, .type = ADL_TYPE_REAL, .unit = unit_, .dflt = "", .min = min_,      \
        .max = INFINITY, .offset = offsetof(struct adl_bounds_options, member), .doc = doc_        \
    }

const struct adl_field adl_bounds_options[] = {
    ROW("L", NULL, TINY, L,
        "Theory: smoothness. Set, no model is asked: the constants are those given here."),
    ROW("mu", NULL, TINY, mu, "Theory: strong convexity, or the constant of the PL inequality."),
    ROW("s2", NULL, 0, s2, "Theory: trace of a sample's gradient covariance."),
    ROW("d0", NULL, 0, d0, "Theory: loss at the start above the optimum."),
    ROW("D2", NULL, 0, D2, "Theory: squared distance from the start to the optimum."),
    ROW("epsilon", NULL, TINY, epsilon,
        "Theory: loss above the optimum to reach. Unset: stop.loss."),
    ROW("samples", NULL, TINY, samples,
        "Theory: samples N that T5 speaks of. Unset: those of the exact recursion."),
    ROW("M", NULL, 1, M, "Theory: workers of a trainer. Unset: cluster.workers / trainers."),
    ROW("b", NULL, TINY, b, "Theory: samples of a worker's step. Unset: batch.initial."),
    ROW("H", NULL, 1, H,
        "Theory: inner steps between synchronizations. Unset: inner.steps; 1 "
        "where gradients are exchanged."),
    ROW("alpha", NULL, TINY, alpha, "Theory: inner rate. Unset: inner.lr."),
    ROW("eta", NULL, TINY, eta, "Theory: tolerance of the norm test. Unset: batch.eta."),
    ROW("latency", "s", 0, latency_s, "Theory: latency between devices. Unset: the platform's."),
    ROW("bandwidth", "B/s", TINY, bandwidth,
        "Theory: bandwidth between devices. Unset: the platform's."),
    ROW("inner_latency", "s", 0, inner_latency_s,
        "Theory: latency inside a node. Unset: the platform's."),
    ROW("inner_bandwidth", "B/s", TINY, inner_bandwidth,
        "Theory: bandwidth inside a node. Unset: the platform's."),
    ROW("bytes", "B", 0, bytes, "Theory: bytes of an exchange [S]. Unset: the model's."),
    ROW("step_time", "s", 0, step_s,
        "Theory: time of an inner step beside its samples [t0]. Unset: the platform's."),
    ROW("sample_time", "s", 0, sample_s, "Theory: time of a sample [t1]. Unset: the platform's."),
    {.key = NULL},
};
