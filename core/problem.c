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
