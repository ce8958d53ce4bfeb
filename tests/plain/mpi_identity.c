/* SPDX-License-Identifier: Apache-2.0 */
/* The same experiment on threads and on mpi, on any number of processes: the same to the bit.
 *   tests/mpirun.sh -n 3 build/tests/plain_mpi_identity
 * Exit 1 where a run differs, 77 without MPI. */
#include "identity_cases.h"

static int compare(const struct identity_case *c)
{
    char what[IDENTITY_NAME], difference[300] = "";
    identity_name(c, what);
    struct test_run mpi = identity_run(c, "mpi");
    if (mpi.status == ADL_ERR_UNSUPPORTED) {
        printf("%s\n", mpi.err.message);
        exit(77);
    }
    bool same = mpi.status == ADL_OK;
    if (!same)
        snprintf(difference, sizeof difference, "%.250s", mpi.err.message);
    if (same && mpi.summary.process == 0) {
        struct test_run threads = identity_run(c, "threads");
        same = threads.status == ADL_OK && test_count_records(&threads, "round") > 0 &&
               identity_same(&threads, &mpi, difference, sizeof difference);
        if (same && !(mpi.summary.times.residual < 1e-9)) {
            snprintf(difference, sizeof difference, "residual %g", mpi.summary.times.residual);
            same = false;
        }
        free(threads.records);
    }
    free(mpi.records);
    if (!same)
        printf("FAILED %s: %s\n", what, difference);
    return !same;
}

/* A survivor of little demand that gives up its first worker: what it is made of moves on from a
 * process that its merge did not reach. Requests are replayed from a file of the tree. */
static int compare_shrinking_survivor(void)
{
    const char *source = getenv("ADL_SOURCE_DIR");
    struct identity_case c = {{"method=adloco", "trainers=3", "merge.every=1", "cluster.workers=6",
                               "cluster.workers_per_device=2", "batch.policy=recorded"}};
    snprintf(c.sets[6], sizeof c.sets[6], "batch.recorded=%s/tests/include/requests.jsonl",
             source ? source : ".");
    return compare(&c);
}

int main(void)
{
    int failed = compare_shrinking_survivor();
    for (int i = 0; i < N_IDENTITY_CASES; i++)
        failed += compare(&identity_cases[i]);
    printf("mpi_identity: %d cases, %d failed\n", N_IDENTITY_CASES + 1, failed);
    return failed > 0;
}
