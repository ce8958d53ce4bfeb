/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run (kernels/record_curve.h) as a model of the framework: policies and networks can be
 * tried on anybody's training without its framework. Nothing is trained; the loss is read off the
 * record at the progress made, and gradients have the record's signal-to-noise ratio.
 *
 * theta [dim]: the last element is the progress s, in millionths of the record; the others carry
 * noise and nothing else. With l(s) the recorded loss and N(s) its noise scale in samples, a
 * sample's loss is l(s) and its gradient
 *
 *     l'(s) e_s + xi,      xi ~ N(0, N(s) l'(s)^2 / dim I),
 *
 * so that tr C / |grad|^2 = N(s) exactly, and every batch policy measures, estimates and asks as it
 * would on gradients of that noise scale: the norm test on gradients for N / eta^2 samples, that
 * on pseudo-gradients of H plain SGD steps for N / (H eta^2), as their noise averages out over the
 * steps (theory of the delta test). Where the record is level, a trace of slope is kept, so that
 * there is a gradient to compare with.
 *
 * Progress is not what optimizers make of it: after each round s is set, from where the round
 * began, to where its steps at the batch that ran lead (adl_record_advance). Rates and momentum
 * therefore change no loss, nor does H at a given batch: what makes workers drift apart is not in a
 * record.
 * Trainers progress each at its own batch, and a merge averages their progress.
 *
 * Noise is drawn once per slice, as in the quadratic model (draw: batch). A round of plain SGD is
 * taken at once: rates move s by far less than a row of a record, so that its gradients are alike.
 */
#ifndef ADL_KERNELS_MODEL_RECORDED_H
#define ADL_KERNELS_MODEL_RECORDED_H

#include "core/model.h"

struct adl_recorded_config { /* keys "model.*", in the order of the rows */
    const char *data;
    double batch;
    double noise_scale;
    int64_t dim;
    double recorded_tokens, tokens_per_sample; /* NAN: unset */
};

extern const struct adl_model_ops adl_model_recorded;

#endif
