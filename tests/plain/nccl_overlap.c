/* SPDX-License-Identifier: Apache-2.0 */
/* A sum goes on between start and wait: one rank waits for it only after the other one, whose wait
 * needs both, has got it. On tests/nccl_double.
 *   LD_LIBRARY_PATH=build/tests/nccl_double build/tests/plain_nccl_overlap */
#include "nccl_ranks.h"

#include <sys/mman.h>

#include "tests/plain/conformance_sums.h"

#include "real/transport_nccl.h"

enum { N = 2, COUNT = 100000, PATIENCE_MS = 20000 };

static atomic_int *others_done; /* shared by the ranks */

static enum adl_status body(struct adl_task *task, void *arg)
{
    struct world *w = arg;
    struct adl_pending *pending = NULL;
    bool first = hosted(w, 0);
    float *in = calloc(COUNT, sizeof *in), *out = calloc(COUNT, sizeof *out);
    const void *vectors[] = {in};
    struct adl_reduction r = {.in = vectors, .out = out, .count = COUNT, .cause = ADL_CAUSE_OUTER};
    for (size_t k = 0; k < COUNT; k++)
        in[k] = (float)(k % 1000) + (first ? 0.25f : 0.5f);
    enum adl_status status = w->ops->allreduce_start(w->t, task, &r, &pending);
    for (int ms = 0; first && ms < PATIENCE_MS && !atomic_load(others_done); ms++)
        usleep(1000);
    if (first)
        CHECK(atomic_load(others_done), "the other rank waits for this one's wait");
    if (status == ADL_OK)
        status = w->ops->allreduce_wait(w->t, task, pending);
    for (size_t k = 0; k < COUNT && status == ADL_OK; k += 777)
        CHECK(out[k] == 2 * (float)(k % 1000) + 0.75f, "element %zu is %g", k, (double)out[k]);
    if (!first)
        atomic_store(others_done, 1);
    free(in);
    free(out);
    return status;
}

static int run_rank(void *arg)
{
    (void)arg;
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    ranks_meet_anew();
    enum adl_status status = world_open(&w, &adl_transport_nccl, N, &err);
    if (status == ADL_OK)
        status = world_run(&w, 1, body, &w, &err);
    CHECK(status == ADL_OK, "%s", err.message);
    world_close(&w);
    return atomic_load(&n_failed_checks) > 0;
}

int main(void)
{
    int codes[RANKS_MOST];
    others_done =
        mmap(NULL, sizeof *others_done, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (others_done == MAP_FAILED)
        return 1;
    int failed = ranks_run(N, run_rank, NULL, codes);
    printf("nccl_overlap: %d ranks failed\n", failed);
    return failed > 0;
}
