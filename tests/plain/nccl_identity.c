/* SPDX-License-Identifier: Apache-2.0 */
/* The same experiment on threads and on nccl, on tests/nccl_double. With one worker a process,
 * which the double adds up by rank, it is the same to the bit; so it is on one process, however
 * many workers that has. With several workers in each of several processes sums associate
 * otherwise: then decisions are the same, and the loss within rounding.
 *   LD_LIBRARY_PATH=build/tests/nccl_double build/tests/plain_nccl_identity */
#include "nccl_ranks.h"

#include "identity_cases.h"

struct comparison {
    struct identity_case *cases; /* [n] */
    int n;
    bool rounds; /* the loss is the same within rounding only */
};

static bool nearly_same(const struct test_run *a, const struct test_run *b, char *out, size_t size)
{
    const struct adl_summary *x = &a->summary, *y = &b->summary;
    if (identity_same_counts(&x->counts, &y->counts) && x->samples == y->samples &&
        fabs(x->loss_final - y->loss_final) <= 1e-9 * fabs(x->loss_final))
        return true;
    snprintf(out, size, "loss %.17g and %.17g, samples %g and %g, or counts", x->loss_final,
             y->loss_final, x->samples, y->samples);
    return false;
}

static int compare(const struct identity_case *c, bool rounds)
{
    char what[IDENTITY_NAME], difference[300] = "";
    identity_name(c, what);
    ranks_meet_anew();
    struct test_run nccl = identity_run(c, "nccl");
    bool same = nccl.status == ADL_OK;
    if (!same)
        snprintf(difference, sizeof difference, "%.250s", nccl.err.message);
    if (same && nccl.summary.process == 0) {
        struct test_run threads = identity_run(c, "threads");
        same = threads.status == ADL_OK && test_count_records(&threads, "round") > 0 &&
               (rounds ? nearly_same(&threads, &nccl, difference, sizeof difference)
                       : identity_same(&threads, &nccl, difference, sizeof difference));
        if (same && !(nccl.summary.times.residual < 1e-9)) {
            snprintf(difference, sizeof difference, "residual %g", nccl.summary.times.residual);
            same = false;
        }
        free(threads.records);
    }
    free(nccl.records);
    if (!same)
        printf("FAILED %s: %s\n", what, difference);
    return !same;
}

static int compare_all(void *arg)
{
    const struct comparison *c = arg;
    int failed = 0;
    for (int i = 0; i < c->n; i++)
        failed += compare(&c->cases[i], c->rounds);
    return failed > 0;
}

/* On four processes with a worker each. */
static struct identity_case apart[] = {
    {{"method=ddp", "cluster.workers=4", "batch.policy=norm_test", "inner.momentum=0.9"}},
    {{"method=local_sgd", "cluster.workers=4", "batch.policy=augmented"}},
    {{"method=diloco", "cluster.workers=4", "batch.policy=norm_test"}},
    {{"method=adloco", "cluster.workers=4", "cluster.workers_per_device=1", "trainers=2"}},
    {{"method=adloco", "cluster.workers=4", "cluster.workers_per_device=1", "merge.every=1"}},
    {{"method=adloco", "cluster.workers=4", "cluster.workers_per_device=1", "merge.policy=all"}},
    {{"method=local_sgd", "cluster.workers=4", "faults.rate=0.05", "batch.policy=norm_test"}},
    {{"method=diloco", "cluster.workers=4", IDENTITY_LLAMA}},
};
/* On one process. */
static struct identity_case together[] = {
    {{"method=diloco", "batch.policy=norm_test"}},
    {{"method=adloco"}},
};
/* On two, with two workers of each of several trainers in each of them. */
static struct identity_case mixed[] = {
    {{"method=local_sgd", "batch.policy=geometric", "cluster.workers=8",
      "cluster.workers_per_device=4"}},
    {{"method=adloco", "batch.policy=geometric", "cluster.workers=8", "merge.every=1",
      "cluster.workers_per_device=4"}},
};

int main(void)
{
    struct {
        int n;
        struct comparison c;
    } runs[] = {
        {4, {apart, (int)(sizeof apart / sizeof *apart), false}},
        {1, {together, (int)(sizeof together / sizeof *together), false}},
        {2, {mixed, (int)(sizeof mixed / sizeof *mixed), true}},
    };
    int failed = 0, codes[RANKS_MOST];
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++)
        failed += ranks_run(runs[i].n, compare_all, &runs[i].c, codes) > 0;
    printf("nccl_identity: %d failed\n", failed);
    return failed > 0;
}
