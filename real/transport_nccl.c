/* SPDX-License-Identifier: Apache-2.0 */
#include "real/transport_nccl.h"

#include <stdlib.h>

#include "real/launch.h"
#include "real/nccl/startup.h"
#include "real/nccl/transport.h"

struct nccl_config {
    int64_t threads;
    double deadline_s, start_s;
    int64_t ctas;
    int wire;
    const char *rendezvous;
};

static const struct adl_field nccl_options[] = {
    {.key = "nccl.threads",
     .type = ADL_TYPE_INT,
     .dflt = "0",
     .min = 0,
     .max = 4096,
     .doc = "Threads of each process that drive its workers; 0 takes one for each processor.",
     .offset = offsetof(struct nccl_config, threads)},
    {.key = "nccl.deadline",
     .type = ADL_TYPE_REAL,
     .unit = "s",
     .dflt = "60",
     .min = 1,
     .max = 86400,
     .doc = "How long a process may give no sign of life, or an exchange (of a move: a piece of 8 "
            "MiB) take once all processes are there, before the run ends.",
     .offset = offsetof(struct nccl_config, deadline_s)},
    {.key = "nccl.start",
     .type = ADL_TYPE_REAL,
     .unit = "s",
     .dflt = "300",
     .min = 1,
     .max = 86400,
     .doc = "How long processes have to find each other, and NCCL to start.",
     .offset = offsetof(struct nccl_config, start_s)},
    {.key = "nccl.ctas",
     .type = ADL_TYPE_INT,
     .dflt = "0",
     .min = 0,
     .max = 64,
     .doc =
         "Blocks of a device that one communicator may take. 0 leaves it to NCCL where a process "
         "works for one trainer, and else shares out 32: communicators that are used at once "
         "must fit onto the device together.",
     .offset = offsetof(struct nccl_config, ctas)},
    {.key = "nccl.wire",
     .type = ADL_TYPE_CHOICE,
     .dflt = "f32",
     .choices = "f32|bf16|f16|int8",
     .doc = "What fp32 vectors are sent as. int8 has a scale for each 256 elements, and sends each "
            "process's vector to all others: it pays off up to about eight processes.",
     .offset = offsetof(struct nccl_config, wire)},
    {.key = "nccl.rendezvous",
     .type = ADL_TYPE_TEXT,
     .dflt = "",
     .doc = "Where processes find each other: tcp://HOST:PORT of rank 0, or a file that all see. "
            "Unset, the environment says it: ADLOCO_RENDEZVOUS, mpirun, Slurm, or MASTER_ADDR.",
     .offset = offsetof(struct nccl_config, rendezvous),
     .aside = true},
    {.key = NULL},
};

static const int wires[] = {ADL_WIRE_F32, ADL_WIRE_BF16, ADL_WIRE_F16, ADL_WIRE_INT8};

static int default_workers_nccl(const void *config, int n_devices, int workers_per_device)
{
    (void)config;
    (void)n_devices;
    return adl_launch_here().n * workers_per_device;
}

/* ---- open, close ---- */

static void close_nccl(struct adl_transport *t)
{
    if (!t)
        return;
    adl_engine_close(t->engine);
    adl_nccl_groups_free(&t->groups);
    if (adl_control_lost(t->control))
        adl_startup_give_up();
    adl_control_close(t->control);
    adl_crew_close(&t->crew);
    free(t);
}

static void on_failure(void *arg, const struct adl_err *failure)
{
    struct adl_transport *t = arg;
    adl_control_tell(t->control, failure);
}

/* Who this process is, and its sockets [n]. */
static enum adl_status find_others(struct adl_transport *t, const struct nccl_config *config,
                                   const struct adl_transport_env *env, int **sockets,
                                   struct adl_err *err)
{
    struct adl_rendezvous r = {
        .deadline_s = config->start_s, .cancelled = env->cancelled, .arg = env->cancelled_arg};
    ADL_TRY(adl_startup_meet(config->rendezvous, &r, sockets, err));
    t->rank = r.rank;
    t->n = r.n;
    t->blocks = adl_blocks_make((int)env->settings->cluster.workers,
                                (int)env->settings->cluster.workers_per_device, t->n);
    t->first = adl_blocks_first_worker(&t->blocks, t->rank);
    t->n_local = adl_blocks_first_worker(&t->blocks, t->rank + 1) - t->first;
    return ADL_OK;
}

/* Each for itself: a device, and the thread that drives it. */
static enum adl_status open_device(struct adl_transport *t, const struct nccl_config *config,
                                   struct adl_err *err)
{
    struct adl_err why = {.status = ADL_OK};
    enum adl_status status = adl_nccl_module_get(&t->sums.module, &why);
    if (status == ADL_OK)
        status = adl_engine_open(&t->crew, t->sums.module, t->rank, config->deadline_s, &t->engine,
                                 &why);
    if (status == ADL_OK)
        return ADL_OK;
    if (t->n > 1)
        return adl_fail(err, status, "rank %d: %s", t->rank, why.message);
    return adl_fail(err, status, "%s", why.message);
}

/* All together, after each has got a device. */
static enum adl_status join_world(struct adl_transport *t, const struct nccl_config *config,
                                  struct adl_err *err)
{
    char id[ADL_NCCL_ID_BYTES];
    double clock_s;
    struct adl_err own = {.status = ADL_OK};
    enum adl_status status = open_device(t, config, &own);
    if (status == ADL_OK && t->rank == 0)
        status = t->sums.module->new_id(id, &own);
    if (status != ADL_OK)
        adl_crew_fail(&t->crew, status, own.message, true);
    ADL_TRY(adl_nccl_meet_all(t, ADL_ROOM_STUBBORN, &clock_s, err));
    ADL_TRY(adl_control_pass(t->control, 0, ADL_EVERY_PROCESS, id, sizeof id, err));
    return adl_engine_join(t->engine, id, t->n, config->start_s, err);
}

static enum adl_status open_parts(struct adl_transport *t, const struct nccl_config *config,
                                  const struct adl_transport_env *env, struct adl_err *err)
{
    int *sockets = NULL;
    ADL_TRY(find_others(t, config, env, &sockets, err));
    t->crew.on_failure = on_failure;
    t->crew.on_failure_arg = t;
    enum adl_status status = adl_crew_open(&t->crew, env, config->threads, t->n_local, err);
    if (sockets && status != ADL_OK)
        adl_control_close_sockets(sockets, t->n);
    else if (sockets)
        status = adl_control_open(&t->crew, t->rank, t->n, sockets, config->deadline_s, &t->control,
                                  err);
    free(sockets);
    ADL_TRY(status);
    struct adl_err own = {.status = ADL_OK};
    if (join_world(t, config, &own) != ADL_OK)
        return adl_nccl_say_why(t, &own, err);
    t->sums.crew = &t->crew;
    t->sums.control = t->control;
    t->sums.engine = t->engine;
    t->sums.wire = wires[config->wire];
    t->groups = (struct adl_nccl_groups){
        .engine = t->engine, .rank = t->rank, .n_processes = t->n, .ctas = (int)config->ctas};
    return ADL_OK;
}

static enum adl_status open_nccl(const void *config, const struct adl_transport_env *env,
                                 struct adl_transport **out, struct adl_err *err)
{
    struct adl_transport *t = calloc(1, sizeof *t);
    if (!t)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a transport");
    enum adl_status status = open_parts(t, config, env, err);
    if (status == ADL_OK)
        *out = t;
    else
        close_nccl(t);
    return status;
}

static int n_lanes_nccl(const struct adl_transport *t)
{
    return adl_pool_n_lanes(t->crew.pool);
}

static void local_workers_nccl(const struct adl_transport *t, int *first, int *n)
{
    *first = t->first;
    *n = t->n_local;
}

static void process_nccl(const struct adl_transport *t, int *rank, int *n)
{
    *rank = t->rank;
    *n = t->n;
}

static double now_s_nccl(const struct adl_transport *t)
{
    return adl_crew_now_s(&t->crew);
}

/* ---- an epoch ---- */

/* A trainer's processes. */
static enum adl_status meet_trainers(struct adl_transport *t, struct adl_task *const *tasks, int n,
                                     struct adl_err *err)
{
    struct adl_nccl_word mine = adl_nccl_own_word(t);
    struct adl_visit visit = {.answer = NULL};
    char *told = NULL;
    size_t bytes = 0;
    double clock_s;
    ADL_TRY(adl_nccl_groups_tell(&t->blocks, t->rank, tasks, n, &mine, sizeof mine, &told, &bytes,
                                 err));
    enum adl_status status =
        adl_nccl_meet(t, ADL_ROOM_STUBBORN, told, bytes, &visit, &clock_s, err);
    free(told);
    if (status == ADL_OK)
        status = adl_nccl_groups_make(&t->groups, &visit, sizeof mine, err);
    free(visit.answer);
    return status;
}

static enum adl_status open_tasks(struct adl_transport *t, struct adl_task *const *tasks, int n,
                                  struct adl_err *err)
{
    ADL_TRY(meet_trainers(t, tasks, n, err));
    for (int i = 0; i < n; i++) {
        tasks[i]->impl = adl_nccl_groups_find(&t->groups, tasks[i]->trainer);
        if (!tasks[i]->impl)
            return adl_fail(err, ADL_ERR_BUG, "nobody knows of trainer %d", tasks[i]->trainer);
    }
    return ADL_OK;
}

static enum adl_status run_nccl(struct adl_transport *t, struct adl_task *const *tasks, int n,
                                enum adl_status (*body)(struct adl_task *task, void *arg),
                                void *arg, struct adl_err *err)
{
    double met_s;
    struct adl_err own = {.status = ADL_OK}, everyone = own;
    enum adl_status status = open_tasks(t, tasks, n, &own);
    if (status == ADL_OK)
        status = adl_crew_run(&t->crew, tasks, n, body, arg, err);
    else
        status = adl_nccl_say_why(t, &own, err);
    enum adl_status ended = adl_nccl_meet_all(t, ADL_ROOM_STUBBORN, &met_s, &everyone);
    adl_crew_meet_tasks(&t->crew, tasks, n, met_s);
    return status == ADL_OK && ended != ADL_OK ? adl_fail(err, ended, "%s", everyone.message)
                                               : status;
}

static enum adl_status for_each_nccl(struct adl_transport *t, struct adl_task *task,
                                     adl_worker_fn *fn, void *arg, const struct adl_work *work,
                                     double *compute_s)
{
    return adl_crew_for_each(&t->crew, task, fn, arg, work, compute_s);
}

/* ---- sums ---- */

static enum adl_status allreduce_start_nccl(struct adl_transport *t, struct adl_task *task,
                                            const struct adl_reduction *reduction,
                                            struct adl_pending **out)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    struct adl_pending *pending = malloc(sizeof *pending);
    if (!pending)
        return adl_fail(&task->err, ADL_ERR_NOMEM, "no memory for a sum");
    adl_crew_attribute(&t->crew, task, ADL_TIME_WAIT);
    enum adl_status status =
        adl_nccl_sum_start(&t->sums, task->impl, reduction, task->n_local, pending, &task->err);
    adl_crew_attribute(&t->crew, task, ADL_TIME_TRANSFER);
    if (status == ADL_OK)
        *out = pending;
    else
        free(pending);
    return status;
}

static enum adl_status allreduce_wait_nccl(struct adl_transport *t, struct adl_task *task,
                                           struct adl_pending *pending)
{
    enum adl_status status = adl_nccl_sum_meet(pending, &task->err);
    adl_crew_attribute(&t->crew, task, ADL_TIME_WAIT);
    if (status == ADL_OK)
        status = adl_nccl_sum_finish(pending, &task->err);
    adl_crew_attribute(&t->crew, task, ADL_TIME_TRANSFER);
    free(pending);
    return status;
}

static enum adl_status outer_step_nccl(struct adl_transport *t, struct adl_task *task)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    adl_crew_attribute(&t->crew, task, ADL_TIME_OUTER);
    return ADL_OK;
}

const struct adl_transport_ops adl_transport_nccl = {
    .plugin = {.name = "nccl",
               .doc = "A process for each GPU, sums by NCCL: clusters of GPUs; within rounding of "
                      "`threads`.",
               .options = nccl_options,
               .config_size = sizeof(struct nccl_config)},
    .simulated = false,
    .default_workers = default_workers_nccl,
    .open = open_nccl,
    .close = close_nccl,
    .n_lanes = n_lanes_nccl,
    .local_workers = local_workers_nccl,
    .run = run_nccl,
    .for_each = for_each_nccl,
    .allreduce_start = allreduce_start_nccl,
    .allreduce_wait = allreduce_wait_nccl,
    .outer_step = outer_step_nccl,
    .gather = adl_nccl_gather,
    .move = adl_nccl_move,
    .process = process_nccl,
    .process_of = adl_nccl_process_of,
    .pass = adl_nccl_pass,
    .now_s = now_s_nccl,
};
