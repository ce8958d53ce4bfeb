/* SPDX-License-Identifier: Apache-2.0 */
/* Teams of threads, and a model whose lanes each have one: everyone takes part once in each call,
 * and the bits do not depend on who runs beside. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/model_llama.h"
#include "kernels/team.h"

static int failures;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("FAILED %s:%d: %s\n", __FILE__, __LINE__, #condition);                          \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

enum { MAX_MEMBERS = 5, CALLS = 300, LANES = 2 };

static void count(void *arg, int i)
{
    int *counts = arg; /* each its own: nothing is shared */
    counts[i]++;
}

static void everyone_takes_part_once(void)
{
    for (int n = 1; n <= MAX_MEMBERS; n++) {
        struct adl_team *team = NULL;
        int counts[MAX_MEMBERS] = {0};
        CHECK(adl_team_create(n, &team, NULL) == ADL_OK);
        for (int call = 1; call <= CALLS; call++) {
            adl_team_run(team, count, counts);
            for (int i = 0; i < MAX_MEMBERS; i++)
                CHECK(counts[i] == (i < n ? call : 0));
        }
        adl_team_free(team);
    }
    adl_team_free(NULL);
}

/* One lane's gradient of samples that are its own. */
struct job {
    struct adl_model *model;
    const float *theta;
    float *grad;
    int lane;
    uint64_t first;
    double loss;
    enum adl_status status;
};

static void *run_job(void *arg)
{
    struct job *job = arg;
    const struct adl_samples samples = {
        .first = job->first, .count = 7, .slice_first = job->first, .slice_count = 7};
    job->loss = 0;
    job->status = adl_model_llama.add_grad(job->model, job->lane, 0, job->theta, &samples,
                                           job->grad, &job->loss, NULL);
    return NULL;
}

static void lanes_do_not_disturb_each_other(void)
{
    const struct adl_model_ops *ops = &adl_model_llama;
    const struct adl_llama_config config = {.vocab = ADL_UNSET_INT,
                                            .width = 32,
                                            .layers = 1,
                                            .heads = ADL_UNSET_INT,
                                            .kv_heads = ADL_UNSET_INT,
                                            .hidden = ADL_UNSET_INT,
                                            .context = 16,
                                            .data = "synthetic",
                                            .heldout = 0.1,
                                            .eval_samples = 1,
                                            .threads = 3,
                                            .blas_threads = 1};
    const struct adl_model_env env = {
        .seed = 1, .n_workers = LANES, .n_lanes = LANES, .base_dir = "."};
    struct adl_model *model = NULL;
    CHECK(ops->open(&config, &env, &model, NULL) == ADL_OK);
    const size_t P = ops->n_params(model);
    float *theta = ops->space->alloc(P, ADL_F32);
    CHECK(ops->init(model, theta, NULL) == ADL_OK);
    struct job jobs[2][LANES];
    for (int round = 0; round < 2; round++)
        for (int l = 0; l < LANES; l++)
            jobs[round][l] = (struct job){.model = model,
                                          .theta = theta,
                                          .grad = ops->space->alloc(P, ADL_F32),
                                          .lane = l,
                                          .first = (uint64_t)(100 * l)};
    pthread_t threads[LANES];
    for (int l = 0; l < LANES; l++)
        CHECK(pthread_create(&threads[l], NULL, run_job, &jobs[0][l]) == 0);
    for (int l = 0; l < LANES; l++)
        pthread_join(threads[l], NULL);
    for (int l = 0; l < LANES; l++) {
        run_job(&jobs[1][l]);
        CHECK(jobs[0][l].status == ADL_OK && jobs[1][l].status == ADL_OK);
        CHECK(jobs[0][l].loss == jobs[1][l].loss && jobs[0][l].loss > 0);
        CHECK(memcmp(jobs[0][l].grad, jobs[1][l].grad, P * sizeof(float)) == 0);
    }
    CHECK(memcmp(jobs[0][0].grad, jobs[0][1].grad, P * sizeof(float)) != 0);
    for (int round = 0; round < 2; round++)
        for (int l = 0; l < LANES; l++)
            ops->space->free(jobs[round][l].grad);
    ops->space->free(theta);
    ops->close(model);
}

int main(void)
{
    everyone_takes_part_once();
    lanes_do_not_disturb_each_other();
    printf("team: %s\n", failures ? "failed" : "passed");
    return failures > 0;
}
