/* SPDX-License-Identifier: Apache-2.0 */
/* From experiment files to runs: precedence, grids, derived keys, and what is refused. The
 * registry is a toy: a platform file holds "devices per_node nodes_per_site nics speeds...". */
#include <criterion/criterion.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_config.h"
#include "core/methods.h"
#include "core/model.h"
#include "core/plan.h"
#include "core/transport.h"

/* ---- the toy registry ---- */

static int platform_reads;

static enum adl_status read_platform(const char *path, struct adl_platform_facts *out,
                                     struct adl_err *err)
{
    FILE *in = fopen(path, "r");
    cr_assert_not_null(in);
    platform_reads++;
    *out = (struct adl_platform_facts){0};
    int n = fscanf(in, "%d %d %d %d", &out->n_devices, &out->devices_per_node, &out->nodes_per_site,
                   &out->nics_per_node);
    if (n == 4) {
        out->speeds = calloc((size_t)out->n_devices, sizeof *out->speeds);
        for (int i = 0; i < out->n_devices; i++)
            if (fscanf(in, "%lf", &out->speeds[i]) != 1)
                out->speeds[i] = 1;
    }
    fclose(in);
    return n == 4 ? ADL_OK : adl_fail(err, ADL_ERR_INPUT, "%s:1: not a platform", path);
}

static enum adl_status cannot_read(const char *path, struct adl_platform_facts *out,
                                   struct adl_err *err)
{
    *out = (struct adl_platform_facts){0};
    return adl_fail(err, ADL_ERR_UNSUPPORTED, "%s: no simulator", path);
}

struct local {
    int64_t factor;
    const char *things;
};
static const struct adl_field local_rows[] = {
    {"local.factor", ADL_TYPE_INT, NULL, "1", 1, 9, NULL, "F.",
     .offset = offsetof(struct local, factor)},
    {"local.things", ADL_TYPE_TEXT, NULL, "", 0, 0, NULL, "T.",
     .offset = offsetof(struct local, things)},
    {0},
};
static int sim_workers(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    return n_devices * workers_per_device;
}
static int local_workers(const void *config, int n_devices, int workers_per_device)
{
    (void)n_devices;
    return (int)((const struct local *)config)->factor * workers_per_device;
}

static const struct adl_transport_ops toy_sim = {
    .plugin = {"sim", "Sim.", NULL, 0}, .simulated = true, .default_workers = sim_workers};
static const struct adl_transport_ops toy_threads = {
    .plugin = {"threads", "Local.", local_rows, sizeof(struct local)},
    .default_workers = local_workers};
static const struct adl_transport_ops *const transports[] = {&toy_threads, &toy_sim, NULL};
static const struct adl_model_ops toy_model = {.plugin = {"quadratic", "Toy.", NULL, 0}};
static const struct adl_model_ops *const models[] = {&toy_model, NULL};
static const struct adl_platform_reader reader = {.read = read_platform};
static const struct adl_platform_reader no_reader = {.read = cannot_read};
static struct adl_registry registry = {
    .transports = transports, .models = models, .methods = adl_methods, .platform_reader = &reader};

/* ---- a directory of files ---- */

static char dir[64];

static const char *path_of(const char *name)
{
    static char path[4][256];
    static int next;
    char *out = path[next++ % 4];
    snprintf(out, 256, "%s/%s", dir, name);
    return out;
}

static void write_file(const char *name, const char *text)
{
    FILE *out = fopen(path_of(name), "w");
    cr_assert_not_null(out);
    fputs(text, out);
    fclose(out);
}

static void setup(void)
{
    strcpy(dir, "/tmp/adl_plan_XXXXXX");
    cr_assert_not_null(mkdtemp(dir));
    mkdir(path_of("platforms"), 0700);
    write_file("platforms/sixteen.xml", "16 8 2 8");
    write_file("platforms/slow.xml", "16 8 2 1");
    write_file("uneven.xml", "4 2 1 1  1 0.5 1 0.5");
    setenv("ADL_DATA_DIR", dir, 1);
#ifndef ADL_HAVE_YAML
    cr_skip_test("needs YAML");
#endif
}

static void teardown(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", dir);
    cr_assert_eq(system(command), 0);
}

TestSuite(plan, .init = setup, .fini = teardown);

/* ---- loading ---- */

static struct adl_plan *load_with(const char *text, const char *variant, size_t n_sets,
                                  const char *const *sets)
{
    struct adl_err err = {0};
    struct adl_plan *plan = NULL;
    write_file("e.yaml", text);
    cr_assert_eq(adl_plan_load(&registry, path_of("e.yaml"), sets, n_sets, variant, &plan, &err),
                 ADL_OK, "%s", err.message);
    return plan;
}

static struct adl_plan *load(const char *text)
{
    return load_with(text, NULL, 0, NULL);
}

static struct adl_plan *load_set(const char *text, const char *set)
{
    return load_with(text, NULL, 1, &set);
}

/* The message, without the directory, that an experiment is refused with. */
static const char *refuse_with(const char *text, const char *variant, const char *set)
{
    static struct adl_err err;
    static char message[1024];
    struct adl_plan *plan = NULL;
    memset(&err, 0, sizeof err);
    write_file("e.yaml", text);
    cr_expect_eq(
        adl_plan_load(&registry, path_of("e.yaml"), &set, set != NULL, variant, &plan, &err),
        ADL_ERR_INPUT, "%s", text);
    adl_plan_free(plan);
    cr_expect_null(strchr(err.message, '\n'));
    char *to = message;
    for (const char *from = err.message; *from;) {
        if (!strncmp(from, dir, strlen(dir)) && from[strlen(dir)] == '/')
            from += strlen(dir) + 1;
        else
            *to++ = *from++;
    }
    *to = '\0';
    return message;
}

static const char *refuse(const char *text)
{
    return refuse_with(text, NULL, NULL);
}

static const char *get(const struct adl_plan *plan, size_t run, const char *key)
{
    cr_assert_lt(run, plan->n_runs);
    return adl_config_get(plan->runs[run].config, key);
}

static const char *origin(const struct adl_plan *plan, const char *key)
{
    return adl_config_origin(plan->runs[0].config, key);
}

static void expect_warning(const struct adl_plan *plan, const char *part)
{
    cr_assert_eq(plan->n_warnings, 1);
    cr_expect_not_null(strstr(plan->warnings[0], part), "%s", plan->warnings[0]);
}

/* A list of things with keys of their own (core/entries.h) is one text, however it is written. */
Test(plan, lists_of_maps_are_text)
{
    static const char *const texts[] = {
        "local:\n  things:\n    - {from: a, rate: 5GB/s}\n    - from: b\n      rate: 1e3\n",
        "local.things: [{from: a, rate: 5GB/s}, {from: b, rate: 1e3}]\n",
        "local.things: \"[{from: a, rate: 5GB/s}, {from: b, rate: 1e3}]\"\n"};
    for (int i = 0; i < 3; i++) {
        struct adl_plan *plan = load(texts[i]);
        cr_expect_str_eq(get(plan, 0, "local.things"),
                         "[{from: a, rate: 5GB/s}, {from: b, rate: 1e3}]");
        adl_plan_free(plan);
    }
    cr_expect_str_eq(refuse("local.things: [{from: [a]}]\n"),
                     "e.yaml:1:1: 'local.things' needs a value or a list of values");
    cr_expect_str_eq(refuse("inner.lr: [{from: a}]\n"),
                     "e.yaml:1:1: inner.lr: '[{from: a}]' is not a number (at least 0, default "
                     "0.1)");
}

/* ---- one run ---- */

Test(plan, nested_and_dotted_keys_are_the_same)
{
    struct adl_plan *a =
        load("inner: {lr: 0.3, steps: 7}\ncluster: {layout: {nics_per_node: 2}}\n");
    struct adl_plan *b =
        load("inner.lr: 0.3\ninner: {steps: 7}\ncluster.layout: {nics_per_node: 2}");
    cr_expect_str_eq(a->runs[0].run_id, b->runs[0].run_id);
    cr_expect_str_eq(a->id, b->id);
    cr_expect_eq(b->runs[0].settings.inner.steps, 7);
    cr_expect_eq(b->runs[0].settings.inner.lr, 0.3);
    cr_expect_eq(b->runs[0].settings.cluster.nics_per_node, 2);
    adl_plan_free(a);
    adl_plan_free(b);
}

Test(plan, origins_tell_where_a_value_came_from)
{
    struct adl_plan *plan =
        load_with("method: diloco\n\ninner: {lr: 0.3}\nsweep: {batch.initial: [4]}\n"
                  "variants: {v: {batch.max: 8, when: {batch.max=8: {batch.cap: 9}}}}",
                  NULL, 1, (const char *const[]){"outer.lr=0.5"});
    cr_expect_str_eq(origin(plan, "inner.lr"), "e.yaml:3");
    cr_expect_str_eq(origin(plan, "outer.momentum"), "method diloco");
    cr_expect_str_eq(origin(plan, "outer.lr"), "--set");
    cr_expect_str_eq(origin(plan, "batch.initial"), "sweep");
    cr_expect_str_eq(origin(plan, "batch.max"), "variant v");
    cr_expect_str_eq(origin(plan, "batch.cap"), "variant v when batch.max=8");
    cr_expect_str_eq(origin(plan, "inner.eps"), "default");
    cr_expect_str_eq(plan->name, "e");
    adl_plan_free(plan);
}

/* default < method < file < sweep < variant < --set, one key for each neighbouring pair. */
Test(plan, precedence)
{
    const char *text = "method: diloco\nouter.lr: 0.1\nouter.momentum: 0.2\n"
                       "inner: {lr: 0.2, momentum: 0.2, eps: 0.2}\n"
                       "sweep: {inner.lr: [0.3], inner.momentum: [0.3], inner.eps: [0.3]}\n"
                       "variants: {v: {inner.momentum: 0.4, inner.eps: 0.4}}\n";
    struct adl_plan *plan = load_set(text, "inner.eps=0.5");
    cr_expect_str_eq(get(plan, 0, "outer.optimizer"), "nesterov");
    cr_expect_str_eq(get(plan, 0, "outer.lr"), "0.1");
    cr_expect_str_eq(get(plan, 0, "inner.lr"), "0.3");
    cr_expect_str_eq(get(plan, 0, "inner.momentum"), "0.4");
    cr_expect_str_eq(get(plan, 0, "inner.eps"), "0.5");
    adl_plan_free(plan);
}

Test(plan, the_last_layer_chooses_the_method)
{
    const char *text = "method: diloco\nsweep: {method: [local_sgd]}\nvariants: {v: {method: ddp}, "
                       "w: {}}\n";
    struct adl_plan *plan = load(text);
    cr_assert_eq(plan->n_runs, 2);
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "gradients");
    cr_expect_str_eq(get(plan, 0, "outer.optimizer"), "average");
    cr_expect_str_eq(get(plan, 1, "outer.exchange"), "parameters");
    adl_plan_free(plan);
    plan = load_set(text, "method=adloco");
    cr_expect_str_eq(get(plan, 0, "trainers"), "4");
    cr_expect_str_eq(get(plan, 0, "outer.optimizer"), "nesterov");
    adl_plan_free(plan);
}

Test(plan, a_methods_exchange_yields_only_to_variant_or_set)
{
    const char *file = "method: ddp\nouter.exchange: parameters\n";
    struct adl_plan *plan = load(file);
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "gradients");
    expect_warning(plan, "e.yaml:2: outer.exchange: parameters yields to method ddp");
    adl_plan_free(plan);
    plan = load_set(file, "outer.exchange=parameters");
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "parameters");
    adl_plan_free(plan);
    plan = load("method: ddp\nvariants: {v: {outer.exchange: parameters}}");
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "parameters");
    adl_plan_free(plan);
    plan = load("method: ddp\nsweep: {outer.exchange: [parameters, pseudo_gradients]}");
    cr_assert_eq(plan->n_runs, 1);
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "gradients");
    expect_warning(plan, "outer.exchange");
    adl_plan_free(plan);
    plan = load("method: custom\nouter.exchange: parameters\n");
    cr_expect_str_eq(get(plan, 0, "outer.exchange"), "parameters");
    cr_expect_eq(plan->n_warnings, 0);
    adl_plan_free(plan);
}

/* ---- many runs ---- */

Test(plan, runs_are_ordered_by_point_variant_seed)
{
    struct adl_plan *plan = load("seeds: [5, 6]\n"
                                 "sweep: {inner.lr: [0.1, 2e-1], inner: {steps: [3, 4]}}\n"
                                 "variants:\n  a: {batch.initial: 2}\n  b: {batch.initial: 3}\n");
    cr_assert_eq(plan->n_runs, 16);
    cr_expect_eq(plan->n_swept, 2);
    cr_expect_eq(plan->n_warnings, 0);
    const char *points[] = {"inner.lr=0.1 inner.steps=3", "inner.lr=0.1 inner.steps=4",
                            "inner.lr=0.2 inner.steps=3", "inner.lr=0.2 inner.steps=4"};
    for (size_t i = 0; i < 16; i++) {
        cr_expect_str_eq(plan->runs[i].point, points[i / 4]);
        cr_expect_str_eq(plan->runs[i].variant, i / 2 % 2 ? "b" : "a");
        cr_expect_eq(plan->runs[i].settings.seed, i % 2 ? 6 : 5);
        cr_expect_eq(plan->runs[i].settings.seeds.n, 0);
        cr_expect_eq(plan->runs[i].settings.batch.initial, i / 2 % 2 ? 3 : 2);
        for (size_t k = 0; k < i; k++)
            cr_expect_str_neq(plan->runs[i].run_id, plan->runs[k].run_id);
    }
    adl_plan_free(plan);
}

Test(plan, a_variant_may_sweep_and_depend)
{
    struct adl_plan *plan = load("sweep: {inner.steps: [3, 4]}\n"
                                 "variants:\n"
                                 "  plain: {inner.lr: 0.5}\n"
                                 "  tuned:\n"
                                 "    inner.lr: 0.1\n"
                                 "    sweep: {batch.initial: [1, 2]}\n"
                                 "    when:\n"
                                 "      inner.steps=4: {inner.lr: 0.2}\n"
                                 "      batch.initial=2: {inner.momentum: 0.9}\n");
    cr_assert_eq(plan->n_runs, 6);
    cr_expect_str_eq(plan->runs[0].variant, "plain");
    cr_expect_str_eq(plan->runs[1].point, "inner.steps=3 batch.initial=1");
    cr_expect_str_eq(get(plan, 1, "inner.lr"), "0.1");
    cr_expect_str_eq(get(plan, 1, "inner.momentum"), "0");
    cr_expect_str_eq(get(plan, 2, "inner.momentum"), "0.9");
    cr_expect_str_eq(get(plan, 4, "inner.lr"), "0.2");
    cr_expect_str_eq(get(plan, 3, "inner.lr"), "0.5");
    cr_expect_eq(plan->n_warnings, 0);
    adl_plan_free(plan);
}

Test(plan, conditions_see_what_set_decides_and_yield_to_it)
{
    const char *text = "variants: {v: {when: {inner.steps=4: {inner.lr: 0.2, batch.max: 5}}}}";
    const char *sets[] = {"inner.steps=4", "batch.max=6"};
    struct adl_plan *plan = load_with(text, NULL, 2, sets);
    cr_expect_str_eq(get(plan, 0, "inner.lr"), "0.2");
    cr_expect_str_eq(get(plan, 0, "batch.max"), "6");
    adl_plan_free(plan);
    plan = load(text);
    cr_expect_str_eq(get(plan, 0, "inner.lr"), "0.1");
    expect_warning(plan, "'inner.steps=4' holds in no run of variant v");
    adl_plan_free(plan);
}

Test(plan, equal_runs_are_kept_once)
{
    struct adl_plan *plan = load("seeds: [1, 1]\nsweep: {inner.lr: [0.1, 1e-1]}\n");
    cr_expect_eq(plan->n_runs, 1);
    adl_plan_free(plan);
}

Test(plan, swept_keys_that_change_nothing_are_told)
{
    struct adl_plan *plan =
        load("sweep: {inner.lr: [0.1, 0.2]}\nvariants: {a: {inner.lr: 1}, b: {inner.lr: 2}}");
    cr_expect_eq(plan->n_runs, 2);
    expect_warning(plan, "e.yaml:1: swept key 'inner.lr' changes no run");
    adl_plan_free(plan);
    plan = load("sweep: {inner.lr: [0.1, 0.2]}\nvariants: {a: {inner.lr: 1}, b: {}}");
    cr_expect_eq(plan->n_runs, 3);
    cr_expect_eq(plan->n_warnings, 0);
    adl_plan_free(plan);
    plan = load_set("sweep: {inner.lr: [0.1, 0.2]}", "inner.lr=3");
    cr_expect_eq(plan->n_runs, 1);
    expect_warning(plan, "'inner.lr'");
    adl_plan_free(plan);
    plan = load("variants: {a: {sweep: {inner.lr: [1, 2]}, when: {trainers=1: {inner.lr: 3}}}}");
    expect_warning(plan, "'inner.lr' changes no run of variant a");
    adl_plan_free(plan);
    plan = load("transport: sim\ncluster.platform: sixteen\nsweep: {local.factor: [1, 2]}");
    expect_warning(plan, "'local.factor'"); /* belongs to the other transport */
    adl_plan_free(plan);
}

Test(plan, one_variant_can_be_kept)
{
    const char *text = "variants: {a: {inner.lr: 1}, b: {sweep: {inner.lr: [2, 3]}}}";
    struct adl_plan *plan = load_with(text, "a", 0, NULL);
    cr_assert_eq(plan->n_runs, 1);
    cr_expect_eq(plan->n_swept, 0);
    cr_expect_str_eq(plan->runs[0].variant, "a");
    adl_plan_free(plan);
    cr_expect_str_eq(refuse_with(text, "c", NULL), "e.yaml: no variant 'c'; there are a, b");
    cr_expect_str_eq(refuse_with("trainers: 1", "c", NULL),
                     "e.yaml: variant 'c': the experiment has none");
}

Test(plan, seed_and_seeds)
{
    struct adl_plan *plan = load("inner.lr: 0.2");
    cr_expect_eq(plan->runs[0].settings.seed, 1);
    adl_plan_free(plan);
    plan = load_set("seeds: [1, 2, 3]", "seed=9");
    cr_assert_eq(plan->n_runs, 1);
    cr_expect_eq(plan->runs[0].settings.seed, 9);
    adl_plan_free(plan);
    plan = load_set("seed: 4", "seeds=[7, 8]");
    cr_assert_eq(plan->n_runs, 2);
    cr_expect_eq(plan->runs[1].settings.seed, 8);
    adl_plan_free(plan);
}

/* ---- derived keys ---- */

Test(plan, the_platform_gives_workers_and_layout)
{
    platform_reads = 0;
    struct adl_plan *plan = load("transport: sim\ncluster: {workers_per_device: 2}\n"
                                 "sweep: {cluster.platform: [sixteen, slow], inner.lr: [1, 2]}\n");
    const struct adl_settings *s = &plan->runs[0].settings;
    cr_expect_eq(s->cluster.workers, 32);
    cr_expect_eq(s->cluster.devices_per_node, 8);
    cr_expect_eq(s->cluster.nodes_per_site, 2);
    cr_expect_eq(s->cluster.nics_per_node, 8);
    cr_expect_eq(s->cluster.speeds.n, 0, "equal devices need no speeds");
    cr_expect_eq(plan->runs[2].settings.cluster.nics_per_node, 1);
    cr_expect_str_eq(origin(plan, "cluster.workers"), "platform");
    cr_expect_eq(platform_reads, 2, "each file is read once");
    adl_plan_free(plan);
}

Test(plan, unequal_devices_give_speeds_by_their_period)
{
    struct adl_plan *plan = load("transport: sim\ncluster.platform: uneven.xml\n");
    cr_expect_str_eq(get(plan, 0, "cluster.speeds"), "[1, 0.5]");
    adl_plan_free(plan);
    plan = load("transport: sim\ncluster.platform: uneven.xml\ncluster.speeds: [3, 4]\n");
    cr_expect_str_eq(get(plan, 0, "cluster.speeds"), "[3, 4]");
    adl_plan_free(plan);
    plan = load("transport: sim\ncluster: {platform: uneven.xml, workers: 1}\n");
    cr_expect_str_eq(get(plan, 0, "cluster.speeds"), "");
    adl_plan_free(plan);
}

Test(plan, without_a_platform_the_world_is_one_node)
{
    struct adl_plan *plan = load("cluster: {workers_per_device: 2}\nlocal.factor: 3\n");
    const struct adl_settings *s = &plan->runs[0].settings;
    cr_expect_eq(s->cluster.workers, 6, "the transport's own idea, from its own options");
    cr_expect_eq(s->cluster.devices_per_node, 3);
    cr_expect_eq(s->cluster.nodes_per_site, 1);
    cr_expect_eq(s->cluster.nics_per_node, 1);
    adl_plan_free(plan);
    plan = load("cluster: {workers: 12, layout: {devices_per_node: 4}}\n");
    cr_expect_eq(plan->runs[0].settings.cluster.nodes_per_site, 3);
    adl_plan_free(plan);
}

Test(plan, other_transports_take_the_platforms_layout_where_it_can_be_read)
{
    const char *text = "cluster: {platform: sixteen, workers: 16}\n";
    struct adl_plan *plan = load(text);
    cr_expect_eq(plan->runs[0].settings.cluster.devices_per_node, 8);
    adl_plan_free(plan);
    registry.platform_reader = &no_reader;
    plan = load(text);
    cr_expect_eq(plan->runs[0].settings.cluster.devices_per_node, 16);
    adl_plan_free(plan);
    struct adl_err err = {0};
    write_file("e.yaml", "transport: sim\ncluster.platform: sixteen\n");
    cr_expect_eq(adl_plan_load(&registry, path_of("e.yaml"), NULL, 0, NULL, &plan, &err),
                 ADL_ERR_UNSUPPORTED);
}

/* ---- a run's own file ---- */

Test(plan, a_resolved_file_plans_the_same_run)
{
    struct adl_plan *plan = load("transport: sim\nmethod: ddp\ncluster.platform: sixteen\n"
                                 "seeds: [3, 4]\nsweep: {inner.lr: [0.25, 0.5]}\n"
                                 "variants: {v: {outer.exchange: parameters, stop.time: 5ms}}");
    cr_assert_eq(plan->n_runs, 4);
    for (size_t i = 0; i < plan->n_runs; i++) {
        struct adl_err err = {0};
        struct adl_plan *again;
        FILE *out = fopen(path_of("run.yaml"), "w");
        adl_config_dump(plan->runs[i].config, out);
        fclose(out);
        cr_assert_eq(adl_plan_load(&registry, path_of("run.yaml"), NULL, 0, NULL, &again, &err),
                     ADL_OK, "%s", err.message);
        cr_assert_eq(again->n_runs, 1);
        cr_expect_str_eq(again->runs[0].run_id, plan->runs[i].run_id);
        cr_expect_str_eq(again->name, "e");
        cr_expect_eq(again->n_warnings, 0);
        adl_plan_free(again);
    }
    adl_plan_free(plan);
}

/* ---- what is refused ---- */

Test(plan, keys_and_values)
{
    cr_expect_str_eq(refuse("inner: {lrr: 1}"),
                     "e.yaml:1:9: unknown key 'inner.lrr'; did you mean 'inner.lr'?");
    cr_expect_str_eq(refuse("\ninner:\n  steps: eight"),
                     "e.yaml:3:3: inner.steps: 'eight' is not an integer (1..1e9, default 50)");
    cr_expect_str_eq(refuse("stop.time: 5GB"), "e.yaml:1:1: stop.time: '5GB' is not a number in s, "
                                               "as in 50us (at least 0, default unset)");
    cr_expect_str_eq(refuse("inner.lr: -1"),
                     "e.yaml:1:1: inner.lr: '-1' is not a number (at least 0, default 0.1)");
    cr_expect_str_eq(refuse("merge.policy: some"),
                     "e.yaml:1:1: merge.policy: 'some' is not one of none, worst_with_worst, "
                     "best_with_worst, all (default none)");
    cr_expect_str_eq(refuse("inner.lr: [1, 2]"),
                     "e.yaml:1:1: inner.lr: '[1, 2]' is not a number (at least 0, default 0.1)");
    cr_expect_str_eq(refuse("inner.lr: [[1], 2]"),
                     "e.yaml:1:1: 'inner.lr' needs a value or a list of values");
    cr_expect_str_eq(refuse("inner: {lr: 1}\ninner.lr: 2"),
                     "e.yaml:2:1: key 'inner.lr' stands twice, first in line 1");
    cr_expect_str_eq(refuse("inner.lr: 1\ninner.lr: 2"),
                     "e.yaml:2:1: key 'inner.lr' stands twice, first in line 1");
    cr_expect_str_eq(refuse("just words"), "e.yaml:1:1: 'just words' stands where a map of keys is "
                                           "needed");
    cr_expect_str_eq(refuse(""), "e.yaml: is empty");
    cr_expect_str_eq(refuse_with("trainers: 1", NULL, "inner.lr"),
                     "--set: 'inner.lr' is not of the form KEY=VALUE");
    cr_expect_str_eq(refuse_with("trainers: 1", NULL, "iner.lr=1"),
                     "--set: unknown key 'iner.lr'; did you mean 'inner.lr'?");
}

Test(plan, sweeps_and_variants)
{
    cr_expect_str_eq(refuse("sweep: {}"), "e.yaml:1:1: 'sweep' is empty");
    cr_expect_str_eq(refuse("sweep:"), "e.yaml:1:1: 'sweep' needs keys with lists of values");
    cr_expect_str_eq(refuse("sweep: {inner.lr: []}"),
                     "e.yaml:1:9: 'inner.lr' sweeps over an empty list");
    cr_expect_str_eq(refuse("sweep: {inner.lr: 1}"),
                     "e.yaml:1:9: 'inner.lr' needs a list of values to sweep over");
    cr_expect_str_eq(refuse("sweep: {inner.lr: [1, x]}"),
                     "e.yaml:1:23: inner.lr: 'x' is not a number (at least 0, default 0.1)");
    cr_expect_str_eq(refuse("sweep: {inner: {lr: [1]}, inner.lr: [2]}"),
                     "e.yaml:1:27: key 'inner.lr' stands twice, first in line 1");
    cr_expect_str_eq(refuse("variants: {}"),
                     "e.yaml:1:1: 'variants' needs at least one NAME: {...}");
    cr_expect_str_eq(refuse("variants: {a: {}, a: {}}"),
                     "e.yaml:1:19: key 'a' stands twice, first in line 1");
    cr_expect_str_eq(refuse("variants: {a b: {}}"),
                     "e.yaml:1:12: 'a b' is no name for a variant: letters, digits and _.+- are, "
                     "up to 100");
    cr_expect_str_eq(refuse("variants: {a: 3}"), "e.yaml:1:12: 'a' needs a map of keys");
    cr_expect_str_eq(refuse("variants: {a: {when: {inner.lr: {}}}}"),
                     "e.yaml:1:23: 'inner.lr' is not a condition of the form KEY=VALUE");
    cr_expect_str_eq(refuse("variants: {a: {when: {iner.lr=1: {}}}}"),
                     "e.yaml:1:23: unknown key 'iner.lr'; did you mean 'inner.lr'?");
    cr_expect_str_eq(refuse("variants: {a: {when: {inner.lr=1: {method: ddp}}}}"),
                     "e.yaml:1:23: 'inner.lr=1' may not choose the method; write a variant for "
                     "each");
}

/* Appends "KEY: [1, 2, ... n]". */
static void append_axis(char *text, const char *key, int n)
{
    sprintf(text + strlen(text), "%s: [", key);
    for (int i = 1; i <= n; i++)
        sprintf(text + strlen(text), "%s%d", i > 1 ? ", " : "", i);
    strcat(text, "]");
}

/* Too many points are refused before they are planned. */
Test(plan, endless_grids)
{
    static const char refusal[] =
        "e.yaml: sweeps over more than 20000 points; split it into several experiments";
    char text[4096] = "sweep: {";
    const char *keys[] = {"inner.lr", "inner.eps", "outer.lr", "batch.eta", "batch.theta"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        append_axis(text, keys[i], 100);
        strcat(text, i < 4 ? ", " : "}\n");
    }
    cr_expect_str_eq(refuse(text), refusal);
    strcpy(text, "sweep: {");
    append_axis(text, "inner.lr", 150);
    strcat(text, "}\nvariants: {v: {sweep: {");
    append_axis(text, "outer.lr", 150);
    strcat(text, "}}}\n");
    cr_expect_str_eq(refuse(text), refusal);
}

Test(plan, worlds_that_cannot_be)
{
    cr_expect_str_eq(refuse("trainers: 5\ncluster.workers: 4"),
                     "e.yaml: trainers: 5 (e.yaml:1), but there are only 4 workers "
                     "(cluster.workers, e.yaml:2); each trainer needs one");
    cr_expect_str_eq(refuse("cluster: {workers: 3, workers_per_device: 2}"),
                     "e.yaml: cluster.workers: 3 (e.yaml:1) is not a multiple of "
                     "cluster.workers_per_device, 2 (e.yaml:1)");
    cr_expect_str_eq(refuse("transport: sim\ncluster: {platform: sixteen, workers: 17}"),
                     "e.yaml: cluster.workers: 17 (e.yaml:2), but platform sixteen has 16 devices "
                     "of 1 workers: at most 16");
    cr_expect_str_eq(refuse("transport: sim"),
                     "e.yaml: transport: sim needs cluster.platform ('adloco platform list' shows "
                     "what is shipped)");
    cr_expect_str_eq(
        refuse("transport: sim\ncluster: {platform: sixteen, layout: {nics_per_node: 2}}"),
        "e.yaml: cluster.layout.nics_per_node: 2 (e.yaml:2), but platform sixteen has 8");
    cr_expect_not_null(strstr(refuse("batch.balance: steps\nmethod: ddp"), "batch.balance: steps"));
    cr_expect_not_null(strstr(refuse("batch.policy: recorded"), "needs batch.recorded"));
    cr_expect_str_eq(
        refuse("sweep: {inner.lr: [0.1]}\nvariants: {v: {trainers: 2}}"),
        "e.yaml: variant v: inner.lr=0.1: trainers: 2 (variant v), but there are only 1 workers "
        "(cluster.workers, transport); each trainer needs one");
}

Test(plan, platforms_that_cannot_be_read)
{
    cr_expect_str_eq(refuse("transport: sim\ncluster.platform: sixten"),
                     "cluster.platform: 'sixten' is no shipped platform (platforms/sixten.xml: No "
                     "such file or directory); did you mean 'sixteen'?");
    cr_expect_str_eq(refuse("transport: sim\ncluster.platform: no.xml"),
                     "cluster.platform: no.xml: No such file or directory");
    cr_expect_str_eq(refuse("transport: sim\ncluster.platform: ./platforms"),
                     "cluster.platform: ./platforms: is a directory, a file is needed");
    write_file("broken.xml", "nothing");
    cr_expect_str_eq(refuse("transport: sim\ncluster.platform: broken.xml"),
                     "broken.xml:1: not a platform");
}

/* Every beginning of a file, and every file with one byte damaged, ends in a plan or a line. */
Test(plan, damaged_files)
{
    static const char text[] = "name: \"x\\ty\"\ntransport: sim\ncluster: {platform: sixteen}\n"
                               "inner: {optimizer: sgd, lr: 1e-1}\nseeds: [1, 2]\n"
                               "variants:\n  a: {method: ddp, when: {trainers=1: {inner.lr: 2}}}\n"
                               "  b:\n    method: diloco\n    sweep: {outer.lr: [1, 2]}\n"
                               "sweep:\n  batch.max: [1, 2]\n";
    char damaged[sizeof text];
    for (size_t i = 0; i < 3 * sizeof text; i++) {
        struct adl_err err = {0};
        struct adl_plan *plan = NULL;
        strcpy(damaged, text);
        size_t at = i % (sizeof text - 1);
        damaged[at] = "\0{\xff"[i / sizeof text];
        write_file("e.yaml", damaged);
        enum adl_status status =
            adl_plan_load(&registry, path_of("e.yaml"), NULL, 0, NULL, &plan, &err);
        cr_expect(status == ADL_OK || (status == ADL_ERR_INPUT && *err.message), "%zu: %d %s", i,
                  status, err.message);
        if (status == ADL_OK)
            adl_plan_free(plan);
    }
}
