/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite for transports over several processes, all cases in each process:
 *   tests/mpirun.sh -n 4 build/tests/plain_mpi_conformance [CASE]
 * Without mpirun it is a world of one process. Exit 1 if a case failed, 77 without MPI. */
#include "tests/plain/conformance_faults.h"
#include "tests/plain/conformance_sums.h"
#include "tests/plain/conformance_time.h"

#include "real/transport_mpi.h"

enum { DEADLINE_S = 120, SKIPPED = 77 };

static int n_run;

static int run_case(const struct conformance_case *test, int n_workers)
{
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    int before = atomic_load(&n_failed_checks), rank = 0, n = 1;
    enum adl_status status = world_open(&w, &adl_transport_mpi, n_workers, &err);
    if (status == ADL_OK) {
        w.ops->process(w.t, &rank, &n);
        test->run(&w);
        n_run++;
    } else {
        printf("%s: %s\n", test->name, err.message);
    }
    world_close(&w);
    if (status == ADL_ERR_UNSUPPORTED)
        exit(SKIPPED);
    if (status != ADL_OK || atomic_load(&n_failed_checks) > before) {
        printf("FAILED mpi/%s/%d workers, rank %d of %d\n", test->name, n_workers, rank, n);
        return 1;
    }
    return 0;
}

static int run_cases(const struct conformance_case *tests, const char *only)
{
    static const int sizes[] = {1, 2, 3, MAX_WORKERS};
    int failed = 0;
    for (; tests->name; tests++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (!only || strcmp(only, tests->name) == 0)
                failed += run_case(tests, sizes[i]);
    return failed;
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    alarm(DEADLINE_S);
    int failed =
        run_cases(sum_cases, only) + run_cases(fault_cases, only) + run_cases(time_cases, only);
    printf("mpi_conformance: %d cases, %d failed\n", n_run, failed);
    return failed > 0;
}
