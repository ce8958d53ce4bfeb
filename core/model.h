/* SPDX-License-Identifier: Apache-2.0 */
/* Loss and gradient as functions of a flat vector theta [n_params] and of sample indices. The
 * core owns all vectors. A model is one file under kernels/ and one row in the registry.
 *
 * Adding one: 1. a config struct and its option rows (keys "model.*"); 2. the functions below;
 * 3. `const struct adl_model_ops adl_model_<kind>`; 4. a row in core/app/registry.c; 5. the
 * conformance tests run it by itself: finite differences, split invariance, theta untouched. */
#ifndef ADL_CORE_MODEL_H
#define ADL_CORE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/plugin.h"
#include "core/problem.h"
#include "core/space.h"
#include "core/status.h"

struct adl_model; /* the model's own */

/* Samples of one micro-batch, [first, first + count) of a trainer's stream, and the slice they
 * are part of: one worker's samples of one inner step. A model that draws its noise once per
 * slice (quadratic, draw: batch) uses the slice; others only first and count. Where micro-batches
 * must be independent (the micro_batch statistic), slice = micro-batch. */
struct adl_samples {
    uint64_t stream, first;
    uint64_t count; /* >= 1 */
    uint64_t slice_first, slice_count;
};

struct adl_model_env { /* what a model may know of its run */
    uint64_t seed;
    int n_workers;        /* of the world */
    int n_lanes;          /* calls at once, see lane below */
    const char *base_dir; /* of the experiment file: relative paths start there */
};

struct adl_hop; /* a prepared H-step shortcut, the model's own */

struct adl_model_ops {
    struct adl_plugin plugin;
    const struct adl_space *space; /* of theta and gradients */
    enum adl_dtype dtype;

    /* config: filled by plugin.options, borrowed for the life of the model. */
    enum adl_status (*open)(const void *config, const struct adl_model_env *env,
                            struct adl_model **out, struct adl_err *err);
    void (*close)(struct adl_model *model); /* NULL is fine */

    size_t (*n_params)(const struct adl_model *model);
    double (*flops_per_sample)(const struct adl_model *model); /* forward + backward */
    double (*tokens_per_sample)(const struct adl_model *model); /* 1 where it has no tokens */

    /* theta = start point; depends on the seed only. */
    enum adl_status (*init)(struct adl_model *model, void *theta, struct adl_err *err);

    /* grad += sum over the samples of d loss / d theta; *loss_sum += sum of their losses.
     * theta is only read. NaN and infinity are values, not errors. Thread-safe for different
     * lanes: lane < n_lanes is the caller's own scratch. worker is the world index (models with
     * heterogeneous workers use it). */
    enum adl_status (*add_grad)(struct adl_model *model, int lane, int worker, const void *theta,
                                const struct adl_samples *samples, void *grad, double *loss_sum,
                                struct adl_err *err);

    /* The loss a run is judged by: exact where the model can, held-out otherwise. */
    enum adl_status (*eval)(struct adl_model *model, const void *theta, double *loss,
                            struct adl_err *err);
    bool eval_exact; /* free and exact: evaluated at every epoch's end, one check stops */

    /* (optional, NULL: none) `steps` plain SGD steps with rates lr[steps] at once, equal in law
     * to stepping. prepare does what does not depend on theta (per worker if heterogeneous, else
     * worker is ignored); *out is NULL where the configuration has no shortcut. hop updates
     * theta in place; sample indices as for add_grad: step k takes the slice
     * [first + k * stride, +count). Thread-safe. */
    enum adl_status (*hop_prepare)(struct adl_model *model, int worker, const double *lr,
                                   int steps, struct adl_hop **out, struct adl_err *err);
    void (*hop_free)(struct adl_hop *hop);
    void (*hop)(struct adl_model *model, const struct adl_hop *hop, int worker, void *theta,
                uint64_t stream, uint64_t first, uint64_t count);
    /* (optional) whether workers differ, so that hops must be prepared for each. */
    bool (*heterogeneous)(const struct adl_model *model);
    /* (optional, both or none) whether the data change as a trainer sees more of them, and what
     * that does: theta is told relative to an optimum that moves, so theta moves against it. After
     * each round, from `from` to `to` samples of the trainer's life. One trainer only: several
     * would not agree on where the optimum is. */
    bool (*drifts)(const struct adl_model *model);
    void (*drift)(struct adl_model *model, void *theta, double from, double to);
    /* (optional, both or none) theta of a model that stands for a recorded run holds how far it has
     * come: progress reads it, and after each round of a trainer advance sets it to where `steps`
     * steps of `batch` samples, all workers together, lead from `from`, whatever the optimizers
     * made of it. */
    double (*progress)(const struct adl_model *model, const void *theta);
    void (*advance)(struct adl_model *model, void *theta, double from, int64_t steps, double batch);
    /* (optional) prints what theta holds where, for `adloco plan --layout`; config as for open. */
    enum adl_status (*describe)(const void *config, FILE *out, struct adl_err *err);

    /* (optional) what theory may know of it, from the model's start point: out is zeroed by the
     * caller, who frees it (adl_problem_free). */
    enum adl_status (*problem)(struct adl_model *model, struct adl_problem *out,
                               struct adl_err *err);
};

#endif
