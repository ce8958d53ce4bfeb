/* SPDX-License-Identifier: Apache-2.0 */
#include "real/transport_threads.h"

#include <stdlib.h>

#include "real/crew.h"

struct threads_config {
    int64_t count;
};

static const struct adl_field threads_options[] = {
    {.key = "threads.count",
     .type = ADL_TYPE_INT,
     .dflt = "0",
     .min = 0,
     .max = 4096,
     .doc = "Threads that compute for the workers; 0 takes one for each processor.",
     .offset = offsetof(struct threads_config, count)},
    {.key = NULL},
};

struct adl_transport {
    struct adl_crew crew;
};

static int default_workers_threads(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    (void)n_devices;
    return workers_per_device;
}

static void close_threads(struct adl_transport *t)
{
    if (t)
        adl_crew_close(&t->crew);
    free(t);
}

static enum adl_status open_threads(const void *config, const struct adl_transport_env *env,
                                    struct adl_transport **out, struct adl_err *err)
{
    const struct threads_config *own = config;
    struct adl_transport *t = calloc(1, sizeof *t);
    if (!t)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a transport");
    enum adl_status status =
        adl_crew_open(&t->crew, env, own->count, (int)env->settings->cluster.workers, err);
    if (status == ADL_OK)
        *out = t;
    else
        close_threads(t);
    return status;
}

static int n_lanes_threads(const struct adl_transport *t)
{
    return adl_pool_n_lanes(t->crew.pool);
}

static void local_workers_threads(const struct adl_transport *t, int *first, int *n)
{
    *first = 0;
    *n = t->crew.n_world;
}

static double now_s_threads(const struct adl_transport *t)
{
    return adl_crew_now_s(&t->crew);
}

static void sent_threads(const struct adl_transport *t, double *messages, double *bytes)
{
    (void)t;
    *messages = *bytes = 0;
}

static enum adl_status run_threads(struct adl_transport *t, struct adl_task *const *tasks, int n,
                                   enum adl_status (*body)(struct adl_task *task, void *arg),
                                   void *arg, struct adl_err *err)
{
    t->crew.failure.status = ADL_OK;
    enum adl_status status = adl_crew_run(&t->crew, tasks, n, body, arg, err);
    adl_crew_meet_tasks(&t->crew, tasks, n, adl_crew_now_s(&t->crew));
    return status;
}

static enum adl_status for_each_threads(struct adl_transport *t, struct adl_task *task,
                                        adl_worker_fn *fn, void *arg, const struct adl_work *work,
                                        double *compute_s)
{
    return adl_crew_for_each(&t->crew, task, fn, arg, work, compute_s);
}

/* All of the trainer's workers are here, and adding is work of this thread: the sum is done at
 * once, and nothing is left to wait for. The task stands for what is pending. */
static enum adl_status allreduce_start_threads(struct adl_transport *t, struct adl_task *task,
                                               const struct adl_reduction *reduction,
                                               struct adl_pending **out)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    adl_crew_attribute(&t->crew, task, ADL_TIME_WAIT);
    adl_crew_sum(t->crew.env.space, reduction, task->n_local, false);
    adl_crew_attribute(&t->crew, task, ADL_TIME_TRANSFER);
    *out = (struct adl_pending *)task;
    return ADL_OK;
}

static enum adl_status allreduce_wait_threads(struct adl_transport *t, struct adl_task *task,
                                              struct adl_pending *pending)
{
    (void)pending;
    return adl_crew_check(&t->crew, &task->err);
}

static enum adl_status outer_step_threads(struct adl_transport *t, struct adl_task *task)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    adl_crew_attribute(&t->crew, task, ADL_TIME_OUTER);
    return ADL_OK;
}

/* Every leader is hosted here, so the rows are complete already. */
static enum adl_status gather_threads(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                      const int *leaders, double charged_bytes, struct adl_err *err)
{
    (void)rows;
    (void)n_rows;
    (void)n_cols;
    (void)leaders;
    (void)charged_bytes;
    return adl_crew_check(&t->crew, err);
}

static enum adl_status move_threads(struct adl_transport *t, const struct adl_move *moves, int n,
                                    struct adl_err *err)
{
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    for (int i = 0; i < n; i++) {
        const struct adl_move *m = &moves[i];
        if (m->into && m->into != m->data) /* whole numbers of either type are whole F32s */
            t->crew.env.space->copy(m->into, m->data, m->bytes / 4, ADL_F32);
    }
    adl_crew_meet(&t->crew, ADL_TIME_TRANSFER, adl_crew_now_s(&t->crew));
    return ADL_OK;
}

const struct adl_transport_ops adl_transport_threads = {
    .plugin = {.name = "threads",
               .doc = "Threads of one process: runs anywhere; the reference for the others.",
               .options = threads_options,
               .config_size = sizeof(struct threads_config)},
    .simulated = false,
    .default_workers = default_workers_threads,
    .open = open_threads,
    .close = close_threads,
    .n_lanes = n_lanes_threads,
    .local_workers = local_workers_threads,
    .run = run_threads,
    .for_each = for_each_threads,
    .allreduce_start = allreduce_start_threads,
    .allreduce_wait = allreduce_wait_threads,
    .outer_step = outer_step_threads,
    .gather = gather_threads,
    .move = move_threads,
    .now_s = now_s_threads,
    .sent = sent_threads,
};
