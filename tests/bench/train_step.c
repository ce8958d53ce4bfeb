/* SPDX-License-Identifier: Apache-2.0 */
/* Training steps of the llama model as a worker takes them: gradient of a batch, its mean, AdamW.
 *   train_step [THREADS [STEPS [BATCH [PRESET]]]]
 * prints tokens/s of the fastest and of the median step, the loss of the last, and bytes: the
 * process's peak, parameters with gradient and optimizer state, activations. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/optimizer.h"
#include "kernels/llama.h"
#include "kernels/model_llama.h"

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int preset_named(const char *name)
{
    for (int i = 0; adl_llama_presets[i].name; i++)
        if (strcmp(adl_llama_presets[i].name, name) == 0)
            return i;
    fprintf(stderr, "train_step: no preset '%s'\n", name);
    exit(2);
}

struct bench {
    struct adl_model *model;
    struct adl_settings settings;
    struct adl_inner_state inner;
    float *theta, *grad;
    size_t P;
    uint64_t batch, next;
};

static double step(struct bench *b)
{
    const struct adl_model_ops *ops = &adl_model_llama;
    const struct adl_samples samples = {
        .first = b->next, .count = b->batch, .slice_first = b->next, .slice_count = b->batch};
    struct adl_err err = {0};
    double loss = 0;
    ops->space->zero(b->grad, b->P, ADL_F32);
    if (ops->add_grad(b->model, 0, 0, b->theta, &samples, b->grad, &loss, &err) != ADL_OK) {
        fprintf(stderr, "train_step: %s\n", err.message);
        exit(1);
    }
    ops->space->scale(b->grad, 1.0 / (double)b->batch, b->P, ADL_F32);
    adl_inner_step(&b->settings, ops->space, b->settings.inner.lr, b->theta, b->grad, NULL,
                   &b->inner, b->P, ADL_F32);
    b->next += b->batch;
    return loss / (double)b->batch;
}

static void open_bench(struct bench *b, const struct adl_llama_config *config)
{
    const struct adl_model_ops *ops = &adl_model_llama;
    const struct adl_model_env env = {.seed = 1, .n_workers = 1, .n_lanes = 1, .base_dir = "."};
    struct adl_err err = {0};
    if (ops->open(config, &env, &b->model, &err) != ADL_OK) {
        fprintf(stderr, "train_step: %s\n", err.message);
        exit(1);
    }
    b->P = ops->n_params(b->model);
    b->theta = ops->space->alloc(b->P, ADL_F32);
    b->grad = ops->space->alloc(b->P, ADL_F32);
    b->inner.m = ops->space->alloc(b->P, ADL_F32);
    b->inner.v = ops->space->alloc(b->P, ADL_F32);
    b->settings.inner.optimizer = ADL_INNER_ADAMW;
    b->settings.inner.lr = 1e-3;
    b->settings.inner.beta1 = 0.9;
    b->settings.inner.beta2 = 0.95;
    b->settings.inner.eps = 1e-8;
    b->settings.inner.weight_decay = 0.1;
    if (!b->theta || !b->grad || !b->inner.m || !b->inner.v ||
        ops->init(b->model, b->theta, &err) != ADL_OK)
        exit(1);
}

int main(int argc, char **argv)
{
    const int threads = argc > 1 ? atoi(argv[1]) : 1, steps = argc > 2 ? atoi(argv[2]) : 10;
    struct adl_llama_config config = {.preset = preset_named(argc > 4 ? argv[4] : "3m"),
                                      .vocab = ADL_UNSET_INT,
                                      .width = ADL_UNSET_INT,
                                      .layers = ADL_UNSET_INT,
                                      .heads = ADL_UNSET_INT,
                                      .kv_heads = ADL_UNSET_INT,
                                      .hidden = ADL_UNSET_INT,
                                      .context = ADL_UNSET_INT,
                                      .data = "synthetic",
                                      .heldout = 0.05,
                                      .eval_samples = 1,
                                      .threads = threads,
                                      .blas_threads = 1};
    struct bench b = {.batch = argc > 3 ? strtoull(argv[3], NULL, 10) : 8};
    double *took_s = calloc((size_t)steps + 1, sizeof *took_s), loss = 0;
    if (threads < 1 || steps < 1 || b.batch < 1 || !took_s) {
        fprintf(stderr, "usage: train_step [THREADS [STEPS [BATCH [PRESET]]]]\n");
        return 2;
    }
    open_bench(&b, &config);
    for (int i = -2; i < steps; i++) { /* two to warm up */
        const double start_s = now_s();
        loss = step(&b);
        took_s[i < 0 ? steps : i] = now_s() - start_s;
    }
    qsort(took_s, (size_t)steps, sizeof *took_s, by_value);
    const double tokens = (double)b.batch * adl_model_llama.tokens_per_sample(b.model);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const struct adl_llama_size *size = &adl_llama_presets[config.preset].size;
    const int documents =
        adl_ops_cpu.pass_tokens / size->T > 0 ? adl_ops_cpu.pass_tokens / size->T : 1;
    const double pass = (double)adl_llama_activations(&adl_ops_cpu, size, documents);
    printf("%.0f %.0f %.4f %.0f %.0f %.0f\n", tokens / took_s[0], tokens / took_s[steps / 2], loss,
           1024.0 * (double)usage.ru_maxrss, 4.0 * 4.0 * (double)b.P, 4.0 * threads * pass);
    adl_model_llama.close(b.model);
    void *vectors[] = {b.theta, b.grad, b.inner.m, b.inner.v};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        adl_model_llama.space->free(vectors[i]);
    free(took_s);
    return 0;
}
