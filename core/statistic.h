/* SPDX-License-Identifier: Apache-2.0 */
/* The batch statistics (theory.md 1): from sums over workers, or over micro-batches, to the
 * variance of a sample's gradient and the squared norm of the mean gradient. Pure formulas. */
#ifndef ADL_CORE_STATISTIC_H
#define ADL_CORE_STATISTIC_H

#include <stdbool.h>
#include <stddef.h>

/* As in the choices of batch.statistic: [enum adl_statistic]. */
extern const char *const adl_statistic_names[];

/* Over M workers with shares b_m, sum b_m = B, mean gradients g_m, gb = sum b_m g_m / B,
 * p_m = g_m . gb. Equal shares are the special case b_m = b. */
struct adl_stat_sums {
    int M;
    double B;
    double G2; /* |gb|^2 */
    double Q;  /* sum b_m |g_m|^2 */
    double P2; /* sum b_m p_m^2; used by the inner-product tests only */
};

struct adl_stat {
    double S;      /* (Q - B G2) / (M - 1): unbiased for tr C; NAN for M < 2 */
    double U;      /* G2 - S / B: unbiased for |grad f|^2, may be negative */
    double G2;     /* the plug-in estimate: biased up by tr C / B */
    double S_ip;   /* (P2 - B G2^2) / (M - 1) */
    double S_orth; /* (Q - P2 / G2) / (M - 1) */
    double B;      /* the batch that ran: what S was scaled with */
};

/* Theory 1, "Unequal shares". */
struct adl_stat adl_stat_workers(const struct adl_stat_sums *sums);

/* One worker's A micro-batches of s_a samples, sum s_a = b, mean gradients g_a, their weighted
 * mean g: Q = sum s_a |g_a|^2, G2 = |g|^2. S = (Q - b G2) / (A - 1), U = G2 - S / b. */
void adl_stat_micro(int A, double b, double Q, double G2, double *S, double *U);

/* What the norm is taken to be: max(U, G2 / 10) when debiasing (an estimate at or below zero
 * must not ask for an infinite batch), G2 otherwise. */
double adl_stat_norm2(const struct adl_stat *stat, bool debias);

#endif
