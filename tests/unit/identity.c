/* SPDX-License-Identifier: Apache-2.0 */
/* The same experiment on threads and on the simulator: the same to the bit, for every method and
 * policy. (On several processes: tests/plain/mpi_identity.c.) */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include "build_config.h"
#include "identity_cases.h"

ParameterizedTestParameters(identity, threads_and_sim)
{
    return cr_make_param_array(struct identity_case, identity_cases, N_IDENTITY_CASES);
}

ParameterizedTest(struct identity_case *c, identity, threads_and_sim)
{
#ifndef ADL_HAVE_SIMGRID
    cr_skip_test("SimGrid is not in this build");
#endif
    char what[IDENTITY_NAME], difference[300];
    identity_name(c, what);
    struct test_run a = identity_run(c, "threads"), b = identity_run(c, "sim");
    cr_assert_eq(a.status, ADL_OK, "%s: %s", what, a.err.message);
    cr_assert_eq(b.status, ADL_OK, "%s: %s", what, b.err.message);
    cr_assert(identity_same(&a, &b, difference, sizeof difference), "%s: %s", what, difference);
    cr_assert_lt(a.summary.times.residual, 1e-9, "%s: %g", what, a.summary.times.residual);
    cr_assert_lt(b.summary.times.residual, 1e-9, "%s: %g", what, b.summary.times.residual);
    cr_assert_gt(test_count_records(&a, "round"), 0);
    free(a.records);
    free(b.records);
}
