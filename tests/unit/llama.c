/* SPDX-License-Identifier: Apache-2.0 */
/* The network as a whole: layout, gradient against finite differences in double precision, what
 * PyTorch computes, threads, learning by heart; and the model around it: sizes and refusals. */
#include <criterion/criterion.h>
#include <glob.h>
#include <math.h>

#include "build_config.h"
#include "core/optimizer.h"
#include "core/rng.h"
#include "kernels/model_llama.h"
#include "llama_golden.h"
#include "llama_reference.h"
#include "run_helper.h"

static const struct adl_llama_size small = {
    .V = 11, .C = 12, .E = 2, .H = 6, .K = 2, .F = 10, .T = 5, .tied = true};

/* ---- layout */

Test(llama, tensors_lie_one_after_the_other)
{
    struct adl_llama_size sizes[] = {small, small};
    sizes[1].tied = false;
    for (int k = 0; k < 2; k++) {
        size_t end = 0;
        for (size_t i = 0; i < adl_llama_n_tensors(&sizes[k]); i++) {
            const struct adl_llama_tensor t = adl_llama_tensor(&sizes[k], i);
            cr_expect_eq(t.offset, end, "%s", t.name);
            end += t.rows * t.cols;
        }
        cr_expect_eq(end, adl_llama_n_params(&sizes[k]));
    }
    cr_expect_str_eq(adl_llama_tensor(&small, 0).name, "embed");
    cr_expect_str_eq(adl_llama_tensor(&small, 11).name, "1.gate_up");
    cr_expect_str_eq(adl_llama_tensor(&small, 13).name, "norm");
    cr_expect_str_eq(adl_llama_tensor(&sizes[1], 14).name, "head");
}

Test(llama, presets_have_the_sizes_they_are_named_for)
{
    static const double params[] = {109e3, 3.23e6, 30.3e6, 304.6e6};
    size_t i = 0;
    for (; adl_llama_presets[i].name; i++) {
        const double n = (double)adl_llama_n_params(&adl_llama_presets[i].size);
        cr_expect_float_eq(n, params[i], 0.01 * params[i], "%s: %g", adl_llama_presets[i].name, n);
    }
    cr_expect_eq(i, sizeof params / sizeof *params);
}

Test(llama, layout_is_printed)
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = open_memstream(&text, &n);
    adl_llama_print_layout(&small, out);
    fclose(out);
    cr_expect_not_null(strstr(text, "0.qkv                      20           12            144\n"),
                       "%s", text);
    cr_expect_not_null(strstr(text, "parameters"), "%s", text);
    free(text);
}

Test(llama, operations_are_six_a_weight_and_token)
{
    const double n = (double)adl_llama_n_params(&small);
    cr_expect_float_eq(adl_llama_flops(&small), 6 * 5 * n + 2 * 6 * 5 * 5 * 12, 1e-6);
}

/* ---- passes */

struct net {
    struct adl_llama_size size;
    struct adl_llama *net;
    struct adl_queue *queue;
    float *turns, *theta, *grad;
    size_t P;
};

static struct net open_net(const struct adl_llama_size *size, int documents)
{
    struct net n = {.size = *size, .P = adl_llama_n_params(size)};
    struct adl_err err = {0};
    cr_assert_eq(adl_ops_cpu.open(&n.queue, &err), ADL_OK);
    n.turns = adl_llama_turns(&adl_ops_cpu, n.queue, size);
    cr_assert_not_null(n.turns);
    cr_assert_eq(adl_llama_open(&adl_ops_cpu, size, n.turns, documents, &n.net, &err), ADL_OK, "%s",
                 err.message);
    n.theta = adl_space_cpu.alloc(n.P, ADL_F32);
    n.grad = adl_space_cpu.alloc(n.P, ADL_F32);
    return n;
}

static void close_net(struct net *n)
{
    adl_llama_close(n->net);
    adl_ops_cpu.close(n->queue);
    adl_space_cpu.free(n->turns);
    adl_space_cpu.free(n->theta);
    adl_space_cpu.free(n->grad);
}

static void run_net(struct net *n, const int32_t *windows, int documents, float *grad,
                    double *losses)
{
    struct adl_err err = {0};
    cr_assert_eq(adl_llama_run(n->net, n->theta, windows, documents, grad, losses, &err), ADL_OK,
                 "%s", err.message);
}

/* Element i of the start point of tests/bench/train_torch.py. */
static double golden_number(uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u;
    h = (h ^ h >> 15) * 2246822519u;
    return (h ^ h >> 13) / 0x1p31 - 1;
}

static void golden_start(struct net *n)
{
    for (size_t i = 0; i < adl_llama_n_tensors(&n->size); i++) {
        const struct adl_llama_tensor t = adl_llama_tensor(&n->size, i);
        for (size_t k = t.offset; k < t.offset + t.rows * t.cols; k++) {
            const double x = golden_number((uint32_t)k);
            n->theta[k] = (float)(t.rows == 1 ? 1 + 0.2 * x : 0.3 * x);
        }
    }
}

static void golden_window(int32_t *window, int d, int T, int V)
{
    for (int t = 0; t <= T; t++)
        window[t] = (d * 31 + t * t * 7 + 3 * t) % V;
}

static void expect_gradient(bool tied)
{
    enum { DOCUMENTS = 2 };
    struct adl_llama_size size = small;
    size.tied = tied;
    struct net n = open_net(&size, DOCUMENTS);
    int32_t windows[DOCUMENTS][6];
    double losses[DOCUMENTS], *theta = ref_vector(n.P);
    golden_start(&n);
    for (int d = 0; d < DOCUMENTS; d++)
        golden_window(windows[d], d, size.T, size.V);
    for (size_t i = 0; i < n.P; i++) {
        theta[i] = n.theta[i];
        n.grad[i] = 2; /* += */
    }
    run_net(&n, windows[0], DOCUMENTS, n.grad, losses);
    for (int d = 0; d < DOCUMENTS; d++)
        cr_expect_float_eq(losses[d], ref_loss(&size, theta, windows[d]), 1e-6);
    for (size_t i = 0; i < n.P; i++) {
        const double step = 1e-5, at = theta[i];
        double slope = 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            theta[i] = at + sign * step;
            for (int d = 0; d < DOCUMENTS; d++)
                slope += sign * ref_loss(&size, theta, windows[d]) / (2 * step);
        }
        theta[i] = at;
        cr_assert_float_eq(n.grad[i] - 2, slope, 2e-6, "parameter %zu: %.7g, should be %.7g", i,
                           (double)n.grad[i] - 2, slope);
    }
    free(theta);
    close_net(&n);
}

Test(llama, gradient_is_the_losss_slope)
{
    expect_gradient(true);
}

Test(llama, gradient_is_the_losss_slope_with_a_head)
{
    expect_gradient(false);
}

Test(llama, losses_without_a_gradient_are_the_same)
{
    struct net n = open_net(&small, 1);
    int32_t window[6];
    double with, without;
    golden_start(&n);
    golden_window(window, 0, small.T, small.V);
    run_net(&n, window, 1, n.grad, &with);
    run_net(&n, window, 1, NULL, &without);
    cr_expect_eq(with, without);
    close_net(&n);
}

/* Vocabularies whose logits do not fit at once are taken a few rows at a time. */
Test(llama, large_vocabulary)
{
    struct adl_llama_size size = {
        .V = 60000, .C = 4, .E = 1, .H = 2, .K = 1, .F = 3, .T = 40, .tied = true};
    struct net n = open_net(&size, 1);
    int32_t window[41];
    double loss, *theta = ref_vector(n.P);
    golden_start(&n);
    golden_window(window, 0, size.T, 41);
    for (size_t i = 0; i < n.P; i++)
        theta[i] = n.theta[i];
    run_net(&n, window, 1, n.grad, &loss);
    cr_expect_float_eq(loss, ref_loss(&size, theta, window), 2e-5);
    free(theta);
    close_net(&n);
}

/* ---- PyTorch's numbers */

static const struct adl_llama_size golden_sizes[2] = {
    {.V = 23, .C = 24, .E = 2, .H = 4, .K = 2, .F = 40, .T = 9, .tied = true},
    {.V = 23, .C = 24, .E = 2, .H = 2, .K = 2, .F = 40, .T = 9, .tied = false},
};

Test(llama, log_probabilities_of_pytorch)
{
    enum { V = 23, T = 9 };
    for (int k = 0; k < 2; k++) {
        struct net n = open_net(&golden_sizes[k], V);
        int32_t windows[V][T + 1];
        double losses[V];
        golden_start(&n);
        for (int v = 0; v < V; v++) { /* all that differs is the last token to predict */
            golden_window(windows[v], 0, T, V);
            windows[v][T] = v;
        }
        run_net(&n, windows[0], V, NULL, losses);
        for (int v = 0; v < V; v++) {
            const double want = golden_log_probabilities[k][v] - golden_log_probabilities[k][0];
            cr_expect_float_eq(T * (losses[0] - losses[v]), want, 2e-5, "network %d, token %d", k,
                               v);
        }
        close_net(&n);
    }
}

Test(llama, ten_adamw_steps_of_pytorch)
{
    enum { DOCUMENTS = 3, T = 9 };
    struct adl_settings settings = {.inner = {.optimizer = ADL_INNER_ADAMW,
                                              .lr = 1e-2,
                                              .beta1 = 0.9,
                                              .beta2 = 0.95,
                                              .eps = 1e-5,
                                              .weight_decay = 0.1}};
    for (int k = 0; k < 2; k++) {
        struct net n = open_net(&golden_sizes[k], DOCUMENTS);
        struct adl_inner_state inner = {.m = adl_space_cpu.alloc(n.P, ADL_F32),
                                        .v = adl_space_cpu.alloc(n.P, ADL_F32)};
        int32_t windows[DOCUMENTS][T + 1];
        golden_start(&n);
        for (int d = 0; d < DOCUMENTS; d++)
            golden_window(windows[d], d, T, golden_sizes[k].V);
        for (int i = 0; i < 10; i++) {
            double losses[DOCUMENTS];
            adl_space_cpu.zero(n.grad, n.P, ADL_F32);
            run_net(&n, windows[0], DOCUMENTS, n.grad, losses);
            adl_space_cpu.scale(n.grad, 1.0 / DOCUMENTS, n.P, ADL_F32);
            adl_inner_step(&settings, &adl_space_cpu, 1e-2, n.theta, n.grad, NULL, &inner, n.P,
                           ADL_F32);
            const double loss = (losses[0] + losses[1] + losses[2]) / DOCUMENTS;
            cr_expect_float_eq(loss, golden_losses[k][i], 2e-5, "network %d, step %d: %.7f", k, i,
                               loss);
        }
        adl_space_cpu.free(inner.m);
        adl_space_cpu.free(inner.v);
        close_net(&n);
    }
}

/* ---- the model */

#define TINY                                                                                       \
    "name: t\ntransport: threads\nmethod: diloco\ncluster: {workers: 1}\n"                         \
    "model: {kind: llama, preset: custom, width: 24, layers: 1, heads: 2, context: 12, vocab: "    \
    "27, "                                                                                         \
    "eval_samples: 8}\n"                                                                           \
    "inner: {lr: 1e-2, steps: 3}\nouter: {steps: 2}\nbatch: {initial: 5}\n"

static struct test_run run_tiny(const char *set, const char *more)
{
    const char *sets[] = {set, more, NULL};
    return test_run_text(TINY, sets);
}

static void expect_refusal(const char *set, const char *more, const char *message)
{
    struct test_run r = run_tiny(set, more);
    cr_expect_eq(r.status, ADL_ERR_INPUT, "%s: %s", set, r.err.message);
    cr_expect_not_null(strstr(r.err.message, message), "%s: %s", set, r.err.message);
    free(r.records);
}

Test(llama, sizes_that_do_not_fit_are_refused)
{
#ifndef ADL_HAVE_YAML
    cr_skip_test("no YAML in this build");
#endif
    expect_refusal("model.width=25", NULL, "model.heads: 2 heads of width 25");
    expect_refusal("model.kv_heads=3", NULL, "model.kv_heads: 3 does not divide the 2 of");
    expect_refusal("model.context=200000", NULL,
                   "model.data: 'synthetic' has 1 samples of 200000 tokens; model.heldout 0.05");
    expect_refusal("model.context=1e6", NULL, "has 262144 tokens; a sample needs 1000001");
    expect_refusal("model.heldout=1e9", NULL, "model.heldout 1e+09 takes all of them");
    expect_refusal("model.vocab=1", NULL, "2..65536");
}

Test(llama, custom_needs_its_sizes)
{
    struct adl_llama_config config = {.preset = 4,
                                      .vocab = ADL_UNSET_INT,
                                      .width = ADL_UNSET_INT,
                                      .layers = 1,
                                      .heads = 1,
                                      .kv_heads = ADL_UNSET_INT,
                                      .hidden = ADL_UNSET_INT,
                                      .context = ADL_UNSET_INT,
                                      .data = "synthetic",
                                      .threads = 1,
                                      .blas_threads = 1};
    struct adl_model_env env = {.seed = 1, .n_workers = 1, .n_lanes = 1, .base_dir = "."};
    struct adl_model *model;
    struct adl_err err = {0};
    cr_expect_eq(adl_model_llama.open(&config, &env, &model, &err), ADL_ERR_INPUT);
    cr_expect_not_null(strstr(err.message, "custom needs model.width"), "%s", err.message);
}

Test(llama, threads_change_nothing_but_rounding)
{
#ifndef ADL_HAVE_YAML
    cr_skip_test("no YAML in this build");
#endif
    struct test_run one = run_tiny("model.threads=1", NULL);
    for (int threads = 2; threads <= 7; threads += 5) { /* more than samples, too */
        char set[32];
        snprintf(set, sizeof set, "model.threads=%d", threads);
        struct test_run more = run_tiny(set, NULL), again = run_tiny(set, NULL);
        cr_assert_eq(more.status, ADL_OK, "%s", more.err.message);
        cr_expect_float_eq(one.summary.loss_final, more.summary.loss_final, 1e-4);
        cr_expect_eq(more.summary.loss_final, again.summary.loss_final);
        free(more.records);
        free(again.records);
    }
    cr_expect_lt(one.summary.loss_final, one.summary.loss_initial);
    free(one.records);
}

/* One batch, over and over. */
Test(llama, learns_a_batch_by_heart)
{
#ifndef ADL_HAVE_YAML
    cr_skip_test("no YAML in this build");
#endif
    const char *sets[] = {"model.heldout=21840", "inner.steps=120", "outer.steps=1",
                          "batch.initial=5", NULL};
    struct test_run r = test_run_text(TINY, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    cr_expect_lt(test_record(&r, "round", 0, "train_loss"), 0.05, "%g",
                 test_record(&r, "round", 0, "train_loss"));
    free(r.records);
}

/* The stream runs through every sample before it comes to one again. */
Test(llama, learns_the_synthetic_text)
{
#ifndef ADL_HAVE_YAML
    cr_skip_test("no YAML in this build");
#endif
    const char *sets[] = {"inner.steps=300", "outer.steps=1",    "inner.lr=0.02",
                          "outer.lr=1",      "outer.momentum=0", NULL};
    struct test_run r = test_run_text(TINY, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    cr_expect_float_eq(r.summary.loss_initial, log(27), 0.05);
    cr_expect_lt(r.summary.loss_final, 2.6, "%g", r.summary.loss_final);
    cr_expect_gt(r.summary.loss_final, 1.213, "nobody can know more");
    free(r.records);
}

/* ---- a real text: the headers of core/, byte by byte */

static const char headers[] = ADL_SOURCE_DIR "/core/*.h";

/* Entropy of a byte where the one before is known, bits: what frequencies of pairs give. */
static double pair_entropy(void)
{
    static double pairs[256][256], singles[256];
    double n = 0, sum = 0;
    glob_t files;
    cr_assert_eq(glob(headers, 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "r");
        cr_assert_not_null(file);
        for (int c, before = fgetc(file); (c = fgetc(file)) != EOF; before = c, n++) {
            pairs[before][c]++;
            singles[before]++;
        }
        fclose(file);
    }
    globfree(&files);
    for (int a = 0; a < 256; a++)
        for (int b = 0; b < 256; b++)
            sum -= pairs[a][b] > 0 ? pairs[a][b] / n * log2(pairs[a][b] / singles[a]) : 0;
    return sum;
}

/* 1200 steps of 4 windows of 64: 307,200 tokens. Held-out bytes cost less than pairs of letters
 * give, whose frequencies were counted in all of the text: attention has learned more than the last
 * letter. */
Test(llama, learns_a_real_text)
{
#ifndef ADL_HAVE_YAML
    cr_skip_test("no YAML in this build");
#endif
    char data[300];
    snprintf(data, sizeof data, "model.data=%s", headers);
    const char *sets[] = {data, NULL};
    struct test_run r = test_run_text(
        "name: t\ntransport: threads\nmethod: local_sgd\ncluster: {workers: 1}\n"
        "model: {kind: llama, preset: tiny, context: 64, eval_samples: 64}\n"
        "inner: {optimizer: adamw, lr: 1e-2, beta2: 0.95, weight_decay: 0.1, clip: 1, warmup: 10,\n"
        "        schedule: cosine, steps: 20}\n"
        "outer: {steps: 60}\nbatch: {initial: 4}\neval: {every: 30}\n",
        sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    double bits = r.summary.loss_final / M_LN2, pairs = pair_entropy();
    cr_expect_float_eq(r.summary.loss_initial, log(256), 0.1);
    cr_expect_eq(r.summary.samples * 64, 307200);
    cr_expect_lt(bits, pairs, "%g bits a byte, pairs %g", bits, pairs);
    free(r.records);
}
