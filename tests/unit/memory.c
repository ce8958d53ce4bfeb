/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of devices: bytes a parameter, the largest micro-batch, and what does not fit. */
#include <criterion/criterion.h>

#include "build_config.h"
#include "core/memory.h"
#include "sim_runs.h"

static struct adl_settings settings(void)
{
    struct adl_settings s = {.inner.optimizer = ADL_INNER_ADAMW,
                             .outer = {.optimizer = ADL_OUTER_NESTEROV,
                                       .momentum = 0.9,
                                       .exchange = ADL_EXCHANGE_PSEUDO_GRADIENTS}};
    s.model.stand_in_params = 20e9;
    s.model.stand_in_tokens_per_sample = 2048;
    s.model.stand_in_activation_bytes = s.model.stand_in_state_bytes = NAN;
    return s;
}

Test(memory, bytes_a_parameter)
{
    struct adl_settings s = settings();
    cr_expect_eq(adl_memory_of(&s).state_bytes, 24 * 20e9, "AdamW under Nesterov");
    s.outer.exchange = ADL_EXCHANGE_GRADIENTS;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 16 * 20e9, "ddp: no outer state");
    s.inner.optimizer = ADL_INNER_SGD;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 8 * 20e9, "SGD: master weights only");
    s.inner.momentum = 0.9;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 12 * 20e9, "and its momentum");
    s.outer.exchange = ADL_EXCHANGE_PARAMETERS;
    s.outer.optimizer = ADL_OUTER_AVERAGE;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 12 * 20e9, "an average needs no start");
    s.outer.exchange = ADL_EXCHANGE_PSEUDO_GRADIENTS;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 16 * 20e9, "a pseudo-gradient does");
    s.model.stand_in_state_bytes = 18;
    cr_expect_eq(adl_memory_of(&s).state_bytes, 18 * 20e9, "as given");
}

/* 34 h L with h = 128 L and 12 h^2 L parameters: L = 46.69, h = 5976. */
Test(memory, activations)
{
    struct adl_settings s = settings();
    cr_expect_float_eq(adl_memory_of(&s).sample_bytes, 2048 * 34 * 5976.0 * 46.69, 1e7);
    s.model.stand_in_activation_bytes = 1e6;
    cr_expect_eq(adl_memory_of(&s).sample_bytes, 2048e6);
}

Test(memory, samples_are_multiples_of_gpus_that_fit_beside_every_instance)
{
    struct adl_memory m = {.state_bytes = 100, .sample_bytes = 10};
    cr_expect_eq(adl_memory_samples(&m, 400, 1, 1), 30);
    cr_expect_eq(adl_memory_samples(&m, 400, 1, 2), 10);
    cr_expect_eq(adl_memory_samples(&m, 400, 1, 4), 0);
    cr_expect_lt(adl_memory_samples(&m, 400, 1, 5), 0);
    cr_expect_eq(adl_memory_samples(&m, 400, 8, 1), 24);
    cr_expect_eq(adl_memory_samples(&m, 179, 8, 1), 0);
}

/* ---- in a plan ---- */

#define SEED                                                                                       \
    "transport: threads\n"                                                                         \
    "cluster: {platform: h100-64, workers: 8, gpus_per_worker: 8}\n"                               \
    "model: {kind: quadratic, dim: 4, stand_in: {params: 20e9, tokens_per_sample: 2048}}\n"        \
    "method: diloco\nouter: {steps: 1}\ninner.steps: 1\n"

/* The plan's only run's batch.max, or -1 with the message in *err. */
static int64_t batch_max(const char *const *sets, struct adl_err *err)
{
    struct adl_plan *plan = NULL;
    char path[] = "/tmp/adloco-memory-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs(SEED, file);
    fclose(file);
    size_t n = 0;
    while (sets[n])
        n++;
    enum adl_status status = adl_plan_load(adl_registry(), path, sets, n, NULL, &plan, err);
    int64_t max = status == ADL_OK ? plan->runs[0].settings.batch.max : -1;
    cr_assert(status == ADL_OK || status == ADL_ERR_INPUT, "status %d", status);
    adl_plan_free(plan);
    unlink(path);
    return max;
}

#define BATCH_MAX(...) batch_max((const char *[]){__VA_ARGS__, NULL}, &err)

static void skip_without_platforms(void)
{
#if !defined ADL_HAVE_SIMGRID || !defined ADL_HAVE_YAML
    cr_skip_test("reading platforms and YAML needs SimGrid and libfyaml");
#endif
}

/* 640 GB of a node, 480 of them state; a sample takes 19.4 GB. */
Test(memory, a_20_billion_parameter_instance_fills_a_node)
{
    skip_without_platforms();
    struct adl_err err = {0};
    cr_expect_eq(BATCH_MAX("seed=1"), 8, "%s", err.message);
    cr_expect_eq(BATCH_MAX("batch.max=16"), 16, "as given: %s", err.message);
    cr_expect_eq(BATCH_MAX("model.stand_in.activation_bytes=1MB"), 72, "%s", err.message);
    cr_expect_eq(BATCH_MAX("method=ddp"), 24, "less state, more room: %s", err.message);
    cr_expect_eq(BATCH_MAX("device.memory=0"), 0, "unknown: no limit: %s", err.message);
    cr_expect_eq(BATCH_MAX("device.memory=160GB"), 40, "larger GPUs: %s", err.message);
}

Test(memory, two_do_not_fit)
{
    skip_without_platforms();
    struct adl_err err = {0};
    cr_expect_eq(BATCH_MAX("cluster.workers_per_device=2"), -1);
    const char *const said[] = {
        "480 GB an instance", "2 of them", "take 960 GB", "8 GPUs", "80 GB", "640 GB", "24 bytes"};
    for (size_t i = 0; i < sizeof said / sizeof *said; i++)
        cr_expect(strstr(err.message, said[i]), "'%s' is not in: %s", said[i], err.message);
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("cluster.workers_per_device=2", "batch.max=8"), -1,
                 "nor where the batch is given");
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("cluster.gpus_per_worker=4"), -1, "nor on half a node");
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("model.stand_in.tokens_per_sample=1e5"), -1, "no room for a sample");
    cr_expect(strstr(err.message, "a sample per GPU"), "%s", err.message);
}

Test(memory, batches_are_multiples_of_the_gpus)
{
    skip_without_platforms();
    struct adl_err err = {0};
    cr_expect_eq(BATCH_MAX("batch.max=12"), -1);
    cr_expect(strstr(err.message, "batch.max: 12 (--set) is not a multiple of "
                                  "cluster.gpus_per_worker, 8"),
              "%s", err.message);
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("batch.max=4"), -1,
                 "less than a sample a GPU, which is no limit of none");
    cr_expect(strstr(err.message, "batch.max: 4 (--set) is not a multiple"), "%s", err.message);
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("batch.initial=4"), -1);
    err = (struct adl_err){0};
    cr_expect_eq(BATCH_MAX("cluster.gpus_per_worker=3", "device.memory=1TB"), -1);
    cr_expect(strstr(err.message, "devices_per_node"), "%s", err.message);
}

/* The limit that memory sets binds: a share of 24 on batch.max 8 is accumulated in three. */
Test(memory, the_limit_binds_every_transport)
{
    skip_without_platforms();
    const char *const transports[] = {"transport=threads", "transport=sim"};
    for (int i = 0; i < 2; i++) {
        const char *sets[] = {transports[i], "batch.initial=24", NULL};
        struct test_run r = sim_run_text(SEED, sets);
        cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
        cr_expect_eq(r.summary.accumulation_max, 3);
        free(r.records);
    }
}

/* Rings of shards: eight times the messages, the same bytes, all of it between nodes; what stays
 * inside devices has its own cause: 3 collectives a micro-batch. */
Test(memory, shards_are_counted)
{
    skip_without_platforms();
    const char *sets[] = {"model.stand_in.wire_dtype=bf16", "batch.initial=24", "inner.steps=2",
                          NULL};
    struct test_run r = sim_run_text(SEED, sets);
    cr_assert_eq(r.status, ADL_OK, "%s", r.err.message);
    const struct adl_counts *c = &r.summary.counts;
    const struct adl_traffic *outer = &c->traffic[ADL_CAUSE_OUTER];
    cr_expect_eq(c->exchanges[ADL_CAUSE_OUTER], 1);
    cr_expect_eq(outer->messages[ADL_LINK_INTER_NODE], 8 * 8 * 2 * 7);
    cr_expect_float_eq(outer->bytes[ADL_LINK_INTER_NODE], 2 * 7 * 40e9, 1);
    cr_expect_eq(outer->messages[ADL_LINK_INTRA_NODE], 0);
    cr_expect_eq(c->exchanges[ADL_CAUSE_SHARD], 8 * 2 * 3 * 3, "workers, steps, micro-batches");
    cr_expect_eq(c->traffic[ADL_CAUSE_SHARD].messages[ADL_LINK_INTRA_NODE], 144 * 8 * 7);
    cr_expect_eq(c->traffic[ADL_CAUSE_SHARD].bytes[ADL_LINK_INTRA_NODE], 144 * 7 * 40e9);
    cr_expect_eq(adl_counts_exchanges(c), 1, "not in the headline");
    cr_expect_eq(adl_counts_messages(c), 8 * 8 * 2 * 7);
    free(r.records);
}
