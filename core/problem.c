/* SPDX-License-Identifier: Apache-2.0 */
#include "core/problem.h"

#include <stdlib.h>

bool adl_problem_allocate(struct adl_problem *problem, size_t dim, bool multiplicative)
{
    problem->dim = dim;
    problem->h = calloc(dim, sizeof *problem->h);
    problem->c = calloc(dim, sizeof *problem->c);
    problem->x0 = calloc(dim, sizeof *problem->x0);
    problem->beta = multiplicative ? calloc(dim, sizeof *problem->beta) : NULL;
    if (problem->h && problem->c && problem->x0 && (problem->beta || !multiplicative))
        return true;
    adl_problem_free(problem);
    return false;
}

void adl_problem_free(struct adl_problem *problem)
{
    free(problem->h);
    free(problem->c);
    free(problem->beta);
    free(problem->x0);
    problem->h = problem->c = problem->beta = problem->x0 = NULL;
    problem->dim = 0;
}

struct adl_nqm_map adl_nqm_hop_map(double h, const double *lr, size_t steps)
{
    struct adl_nqm_map map = {.A = 1.0, .V = 0.0};
    for (size_t k = 0; k < steps; k++) {
        const double a = 1.0 - lr[k] * h;
        map.A *= a;
        map.V = a * a * map.V + lr[k] * lr[k];
    }
    return map;
}
