/* SPDX-License-Identifier: Apache-2.0 */
#include "core/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "core/controller.h"
#include "core/cost.h"
#include "core/records.h"
#include "core/run_dir.h"

/* Everything that is open during a run, closed in one place. */
struct open_run {
    const struct adl_planned *planned;
    const struct adl_transport_ops *transport_ops;
    const struct adl_model_ops *model_ops;
    void *transport_config, *model_config;
    struct adl_transport *transport;
    struct adl_model *model;
    struct adl_book *book;
    struct adl_cost cost;
    char *platform_path, *base_dir, *recorded_path;
    struct adl_processes processes; /* n = 0: the transport did not open */
    struct adl_run_dir *dir;        /* NULL: nothing is written, or by another process */
    struct adl_controller controller;
};

static double monotonic_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static enum adl_status find_plugins(const struct adl_registry *registry, struct open_run *run,
                                    struct adl_err *err)
{
    const struct adl_settings *s = &run->planned->settings;
    for (int i = 0; registry->transports[i]; i++)
        if (strcmp(registry->transports[i]->plugin.name, s->transport) == 0)
            run->transport_ops = registry->transports[i];
    for (int i = 0; registry->models[i]; i++)
        if (strcmp(registry->models[i]->plugin.name, s->model.kind) == 0)
            run->model_ops = registry->models[i];
    if (!run->transport_ops)
        return adl_fail(err, ADL_ERR_INPUT, "transport: no transport '%s'", s->transport);
    if (!run->model_ops)
        return adl_fail(err, ADL_ERR_INPUT, "model.kind: no model '%s'", s->model.kind);
    return ADL_OK;
}

static enum adl_status fill(struct adl_config *config, const struct adl_plugin *plugin, void **out,
                            struct adl_err *err)
{
    *out = calloc(1, plugin->config_size ? plugin->config_size : 1);
    if (!*out)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the options of %s", plugin->name);
    return plugin->options ? adl_config_fill(config, plugin->options, *out, err) : ADL_OK;
}

static enum adl_status directory_of(const char *path, char **out, struct adl_err *err)
{
    const char *slash = strrchr(path, '/');
    *out = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup("./");
    return *out ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
}

/* batch.recorded as given, or, where that does not exist, beside the experiment file. */
static enum adl_status find_recorded(struct open_run *run, struct adl_err *err)
{
    const char *given = run->planned->settings.batch.recorded;
    struct stat st;
    bool beside = given[0] != '/' && stat(given, &st) != 0;
    if (asprintf(&run->recorded_path, "%s%s", beside ? run->base_dir : "", given) < 0) {
        run->recorded_path = NULL;
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a path");
    }
    return ADL_OK;
}

static enum adl_status open_parts(struct open_run *run, const struct adl_run_observer *observer,
                                  struct adl_err *err)
{
    const struct adl_settings *s = &run->planned->settings;
    struct adl_transport_env env = {.settings = s,
                                    .platform_path = run->platform_path,
                                    .base_dir = run->base_dir,
                                    .space = run->model_ops->space,
                                    .cost = &run->cost,
                                    .book = run->book,
                                    .cancelled = observer ? observer->cancelled : NULL,
                                    .cancelled_arg = observer ? observer->arg : NULL};
    ADL_TRY(run->transport_ops->open(run->transport_config, &env, &run->transport, err));
    run->processes = adl_processes_of(run->transport_ops, run->transport);
    ADL_TRY(adl_processes_same_run(&run->processes, run->planned->run_id, err));
    int first, n;
    run->transport_ops->local_workers(run->transport, &first, &n);
    adl_book_restrict(run->book, first, n);
    struct adl_model_env model_env = {.seed = (uint64_t)s->seed,
                                      .n_workers = (int)s->cluster.workers,
                                      .n_lanes = run->transport_ops->n_lanes(run->transport),
                                      .base_dir = run->base_dir};
    return run->model_ops->open(run->model_config, &model_env, &run->model, err);
}

static enum adl_status open_run(const struct adl_registry *registry, const char *experiment_path,
                                const struct adl_run_observer *observer, struct open_run *run,
                                struct adl_err *err)
{
    const struct adl_settings *s = &run->planned->settings;
    ADL_TRY(find_plugins(registry, run, err));
    ADL_TRY(fill(run->planned->config, &run->transport_ops->plugin, &run->transport_config, err));
    ADL_TRY(fill(run->planned->config, &run->model_ops->plugin, &run->model_config, err));
    ADL_TRY(directory_of(experiment_path, &run->base_dir, err));
    ADL_TRY(find_recorded(run, err));
    if (s->cluster.platform[0])
        ADL_TRY(adl_plan_platform_path(registry, s->cluster.platform, experiment_path,
                                       &run->platform_path, err));
    run->book = adl_book_create((int)s->cluster.workers, (int)s->cluster.workers_per_device);
    if (!run->book)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to account for %lld workers",
                        (long long)s->cluster.workers);
    ADL_TRY(open_parts(run, observer, err));
    struct adl_size size = adl_size_of(s, run->model_ops, run->model);
    run->cost = size.cost;
    run->controller = (struct adl_controller){.settings = s,
                                              .model_ops = run->model_ops,
                                              .model = run->model,
                                              .transport_ops = run->transport_ops,
                                              .transport = run->transport,
                                              .S_bytes = size.wire_bytes,
                                              .tokens_per_sample = size.tokens_per_sample,
                                              .recorded_path = run->recorded_path,
                                              .book = run->book,
                                              .observer = observer};
    return adl_controller_open(&run->controller, err);
}

static void close_run(struct open_run *run)
{
    adl_controller_close(&run->controller);
    if (run->model)
        run->model_ops->close(run->model);
    if (run->transport)
        run->transport_ops->close(run->transport);
    adl_book_free(run->book);
    free(run->transport_config);
    free(run->model_config);
    free(run->platform_path);
    free(run->base_dir);
    free(run->recorded_path);
}

static void describe(const struct adl_planned *planned, struct adl_summary *summary)
{
    const struct adl_settings *s = &planned->settings;
    memset(summary, 0, sizeof *summary);
    snprintf(summary->run_id, sizeof summary->run_id, "%s", planned->run_id);
    snprintf(summary->name, sizeof summary->name, "%s", s->name);
    snprintf(summary->variant, sizeof summary->variant, "%s", planned->variant);
    snprintf(summary->point, sizeof summary->point, "%s", planned->point);
    snprintf(summary->method, sizeof summary->method, "%s", s->method);
    snprintf(summary->transport, sizeof summary->transport, "%s", s->transport);
    summary->seed = s->seed;
    summary->status = "failed";
    summary->world = s->cluster.workers;
    summary->devices =
        (s->cluster.workers + s->cluster.workers_per_device - 1) / s->cluster.workers_per_device;
    summary->trainers_initial = s->trainers;
    summary->time_to_target_s = summary->samples_to_target = NAN;
    summary->exchanges_to_target = summary->mfu = NAN;
    summary->sent_messages = summary->sent_bytes = NAN;
}

/* What was carried before a checkpoint is not known any more. */
static enum adl_status derive_links(struct open_run *run, struct adl_summary *summary,
                                    struct adl_err *err)
{
    if (run->transport_ops->links && !run->controller.resumed)
        ADL_TRY(run->transport_ops->links(run->transport, summary->time_s, &summary->links, err));
    adl_bottleneck(&summary->times, &summary->links, summary->bottleneck,
                   sizeof summary->bottleneck);
    return ADL_OK;
}

/* What follows from the run's totals. */
static enum adl_status derive(struct open_run *run, struct adl_summary *summary,
                              struct adl_err *err)
{
    adl_book_close(run->book, summary->time_s - run->controller.base_s, &summary->times);
    double device_s = (double)summary->devices * summary->time_s;
    summary->device_hours = device_s / 3600;
    summary->samples_per_s = summary->samples_useful / summary->time_s;
    summary->tokens_per_s = summary->samples_per_s * run->controller.tokens_per_sample;
    summary->compute_utilization = summary->times.busy_s / device_s;
    summary->goodput = summary->compute_utilization * summary->samples_useful / summary->samples;
    summary->idle_fraction = 1 - summary->compute_utilization;
    if (run->transport_ops->peak_flops) {
        double peak = run->transport_ops->peak_flops(run->transport);
        summary->mfu = peak > 0 ? summary->samples_useful * run->cost.flops_per_sample /
                                      (peak * summary->time_s)
                                : NAN;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    summary->host_peak_rss_bytes = 1024.0 * (double)usage.ru_maxrss;
    return derive_links(run, summary, err);
}

/* The output directory is process 0's. */
static enum adl_status open_dir(struct open_run *run, const char *path, enum adl_run_mode mode,
                                struct adl_summary *summary, struct adl_err *err)
{
    run->controller.dir = path;
    if (!path || run->processes.rank != 0)
        return ADL_OK;
    ADL_TRY(adl_run_dir_open(path, run->planned, mode, run->controller.observer, &run->dir, err));
    run->controller.records = adl_run_dir_records(run->dir);
    if (!adl_run_dir_checkpoint(run->dir))
        adl_record_run(run->controller.records, summary);
    return ADL_OK;
}

/* Everyone takes over the state of the checkpoint that process 0 has found, if it has. */
static enum adl_status resume(struct open_run *run, struct adl_summary *summary,
                              struct adl_err *err)
{
    struct adl_checkpoint *file = run->dir ? adl_run_dir_checkpoint(run->dir) : NULL;
    double found = file != NULL;
    ADL_TRY(adl_processes_largest(&run->processes, &found, err));
    return found > 0 ? adl_controller_load(&run->controller, file, summary, err) : ADL_OK;
}

/* Whether all processes got as far as this, where there are several. */
static enum adl_status agree(const struct open_run *run, enum adl_status status,
                             struct adl_err *err)
{
    return run->processes.n > 1 ? adl_processes_agree(&run->processes, status, err) : status;
}

enum adl_status adl_run(const struct adl_registry *registry, const struct adl_planned *planned,
                        const char *experiment_path, const char *out_dir, enum adl_run_mode mode,
                        const struct adl_run_observer *observer, struct adl_summary *out,
                        struct adl_err *err)
{
    double start_s = monotonic_s();
    struct open_run run = {.planned = planned};
    describe(planned, out);
    enum adl_status status = open_run(registry, experiment_path, observer, &run, err);
    out->process = run.processes.rank;
    if (status == ADL_OK)
        status = open_dir(&run, out_dir, mode, out, err);
    status = agree(&run, status, err);
    if (status == ADL_OK && mode == ADL_RUN_RESUME)
        status = resume(&run, out, err);
    if (status == ADL_OK)
        status = adl_controller_run(&run.controller, out, err);
    if (status == ADL_OK)
        status = adl_share_totals(&run.controller, out, err);
    if (status == ADL_OK)
        status = derive(&run, out, err);
    out->host_wall_s = monotonic_s() - start_s;
    if (run.dir)
        status = adl_run_dir_close(run.dir, status == ADL_OK ? out : NULL, status, err);
    if (status == ADL_OK)
        status = agree(&run, status, err);
    close_run(&run);
    return status;
}
