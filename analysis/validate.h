/* SPDX-License-Identifier: Apache-2.0 */
/* Our formulas beside published figures. Nothing is fitted: where reality is systematically
 * slower, the ratios show it.
 *
 * Streaming DiLoCo, table 4. A step is one third forward and two thirds backward; gradients are
 * released in 128 equal buckets over the backward pass into one first-in first-out network queue
 * without latency; 2 (1 - 1/M) N numbers cross it per synchronization; all is due at the end of its
 * step, and what is late stalls compute. Closed form, for a queue that never runs dry:
 *   bandwidth = 2 (1 - 1/M) N bits / (H T (1/CU - 1) + (2/3) T (1 - 1/128)).
 *
 * Wall clock of the DiLoCo scaling laws' appendix, N parameters, D tokens in T steps, R chips of Q
 * flop/s in M replicas, W parameters/s and e s of the networks inside (0) and between (1):
 *   6 N D/(R Q) + T [(2 N/W0)(1 - M/R) + e0] + (T/H) [(2 N/W1)(1 - 1/R) + e1].
 *
 * Measured runs: a ring over the workers, 2 (P-1)/P S over the link without latency; utilization
 * H t / (H t + sync). */
#ifndef ADL_ANALYSIS_VALIDATE_H
#define ADL_ANALYSIS_VALIDATE_H

#include <stdbool.h>
#include <stdio.h>

#include "core/status.h"

struct adl_streaming {
    double sites, params, bits; /* M, N, bits of a number on the wire */
    double step_s, inner_steps; /* T, H */
};
struct adl_scaling_law {
    double params, tokens, steps;  /* N, D, T */
    double chips, flops, replicas; /* R, Q, M */
    double inner_steps;            /* H */
    double inner_rate, inner_s;    /* W0 in parameters/s, e0 */
    double outer_rate, outer_s;    /* W1, e1 */
};

/* What is validated: a table, so that a test can break one formula and see it fail. */
struct adl_formulas {
    double (*streaming_bandwidth)(const struct adl_streaming *s, double utilization); /* bit/s */
    double (*streaming_queue)(const struct adl_streaming *s, double bit_per_s); /* utilization */
    double (*wall_clock_s)(const struct adl_scaling_law *law);
    double (*outer_s)(const struct adl_scaling_law *law); /* the last term of it */
    double (*ring_s)(double P, double S, double a, double b);
    double (*multi_ring_s)(double G, double n, double S, double a1, double b1, double a2,
                           double b2);
    double (*utilization)(double compute_s, double sync_s);
};
extern const struct adl_formulas adl_formulas;

enum adl_measured_kind { /* of measured synchronizations; cold: the only one of its run */
                         ADL_MEASURED_NOT,
                         ADL_MEASURED_WARM,
                         ADL_MEASURED_COLD,
                         ADL_MEASURED_DDP
};

struct adl_validate_row {
    const char *source; /* static */
    char row[96];
    double published, ours, ratio; /* published / ours */
    double low, high;              /* band of the ratio; NAN: not judged; high may be INFINITY */
    enum adl_measured_kind measured;
    double link_bit_per_s; /* of a measured synchronization */
};
enum adl_verdict { ADL_VERDICT_NONE, ADL_VERDICT_FAIL, ADL_VERDICT_PASS };
enum adl_verdict adl_validate_verdict(const struct adl_validate_row *row);

struct adl_validation {
    struct adl_validate_row *rows;
    size_t n, cap, n_judged, n_failed;
};

/* dir: where the tables are (analysis/published). ADL_ERR_INPUT for a broken table. */
enum adl_status adl_validate(const char *dir, const struct adl_formulas *formulas,
                             struct adl_validation *out, struct adl_err *err);
void adl_validation_free(struct adl_validation *validation);

void adl_validation_json(const struct adl_validation *validation, FILE *out);
void adl_validation_print(const struct adl_validation *validation, FILE *out);

#endif
