/* SPDX-License-Identifier: Apache-2.0 */
#include "core/statistic.h"

#include <math.h>

const char *const adl_statistic_names[] = {"gradient", "pseudo_gradient", "micro_batch"};

struct adl_stat adl_stat_workers(const struct adl_stat_sums *sums)
{
    struct adl_stat stat = {.G2 = sums->G2, .B = sums->B};
    if (sums->M < 2) {
        stat.S = stat.U = stat.S_ip = stat.S_orth = NAN;
        return stat;
    }
    double freedom = sums->M - 1;
    stat.S = (sums->Q - sums->B * sums->G2) / freedom;
    stat.U = sums->G2 - stat.S / sums->B;
    stat.S_ip = (sums->P2 - sums->B * sums->G2 * sums->G2) / freedom;
    stat.S_orth = sums->G2 > 0 ? (sums->Q - sums->P2 / sums->G2) / freedom : 0;
    return stat;
}

void adl_stat_micro(int A, double b, double Q, double G2, double *S, double *U)
{
    *S = A > 1 ? (Q - b * G2) / (A - 1) : NAN;
    *U = G2 - *S / b;
}

double adl_stat_norm2(const struct adl_stat *stat, bool debias)
{
    return debias ? fmax(stat->U, 0.1 * stat->G2) : stat->G2;
}
