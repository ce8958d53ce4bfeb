/* SPDX-License-Identifier: Apache-2.0 */
#include "real/transport_mpi.h"

#include <stdlib.h>
#include <string.h>

#include "real/blocks.h"
#include "real/crew.h"
#include "real/mpi/options.h"
#include "real/mpi/sum.h"

struct adl_transport {
    struct adl_crew crew;
    struct adl_watch *watch;
    struct adl_mpi *sums; /* messages of tasks */
    struct adl_mpi *ends; /* of calls between epochs */
    int rank, n;
    struct adl_blocks blocks;
    int first, n_local; /* workers hosted here */
    bool fast;
};

static int process_of_mpi(const struct adl_transport *t, int worker)
{
    return adl_blocks_process_of(&t->blocks, worker);
}

/* ---- open, close ---- */

static void close_mpi(struct adl_transport *t)
{
    if (!t)
        return;
    struct adl_mpi *wires[] = {t->sums, t->ends};
    int n = t->sums && t->ends ? 2 : 0;
    if (!adl_watch_close(t->watch, wires, n))
        return; /* what is still under way may touch all of this until the process ends */
    adl_mpi_close(t->sums);
    adl_mpi_close(t->ends);
    adl_crew_close(&t->crew);
    free(t);
}

static void on_failure(void *arg, const struct adl_err *failure)
{
    struct adl_transport *t = arg;
    if (t->watch && t->n > 1)
        adl_watch_tell(t->watch, failure);
}

static enum adl_status open_parts(struct adl_transport *t, const struct adl_mpi_config *config,
                                  const struct adl_transport_env *env, struct adl_err *err)
{
    ADL_TRY(adl_mpi_open(&t->sums, err));
    ADL_TRY(adl_mpi_open(&t->ends, err));
    t->rank = adl_mpi_rank(t->ends);
    t->n = adl_mpi_size(t->ends);
    t->crew.n_world = (int)env->settings->cluster.workers;
    t->blocks =
        adl_blocks_make(t->crew.n_world, (int)env->settings->cluster.workers_per_device, t->n);
    t->first = adl_blocks_first_worker(&t->blocks, t->rank);
    t->n_local = adl_blocks_first_worker(&t->blocks, t->rank + 1) - t->first;
    t->fast = env->settings->reduction == ADL_REDUCTION_FAST;
    t->crew.on_failure = on_failure;
    t->crew.on_failure_arg = t;
    ADL_TRY(adl_crew_open(&t->crew, env, config->threads, t->n_local, err));
    return adl_watch_open(&t->crew, config->deadline_s, &t->watch, err);
}

static enum adl_status open_mpi(const void *config, const struct adl_transport_env *env,
                                struct adl_transport **out, struct adl_err *err)
{
    if (!env->space->on_host)
        return adl_fail(err, ADL_ERR_INPUT,
                        "transport: mpi sums vectors in host memory; model.kind: %s keeps them in "
                        "%s memory",
                        env->settings->model.kind, env->space->name);
    struct adl_transport *t = calloc(1, sizeof *t);
    if (!t)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a transport");
    enum adl_status status = open_parts(t, config, env, err);
    if (status == ADL_OK)
        *out = t;
    else
        close_mpi(t);
    return status;
}

static int n_lanes_mpi(const struct adl_transport *t)
{
    return adl_pool_n_lanes(t->crew.pool);
}

static void local_workers_mpi(const struct adl_transport *t, int *first, int *n)
{
    *first = t->first;
    *n = t->n_local;
}

static void process_mpi(const struct adl_transport *t, int *rank, int *n)
{
    *rank = t->rank;
    *n = t->n;
}

static double now_s_mpi(const struct adl_transport *t)
{
    return adl_crew_now_s(&t->crew);
}

static void sent_mpi(const struct adl_transport *t, double *messages, double *bytes)
{
    double m, b;
    adl_mpi_sent(t->sums, messages, bytes);
    adl_mpi_sent(t->ends, &m, &b);
    *messages += m;
    *bytes += b;
}

/* ---- meetings: everyone tells process 0, which tells everyone ---- */

struct star {
    struct adl_transport *t;
    struct adl_mpi_request *requests; /* [n] */
    bool failed;                      /* a failure is known: what tasks still send is dropped */
};

static enum adl_progress star_progress(void *arg)
{
    struct star *s = arg;
    bool all = true;
    for (int p = 0; p < s->t->n; p++)
        all = adl_mpi_test(&s->requests[p]) && all;
    if (s->failed)
        while (adl_mpi_drop(s->t->sums))
            ;
    else
        s->failed = adl_crew_failed(&s->t->crew);
    return all ? ADL_DONE : ADL_STUCK;
}

static enum adl_status finish(struct star *s, bool stubborn, struct adl_err *err)
{
    enum adl_status status = adl_watch_wait(s->t->watch, star_progress, s, stubborn, err);
    for (int p = 0; status != ADL_OK && p < s->t->n; p++)
        adl_mpi_cancel(&s->requests[p]);
    while (status != ADL_OK && !adl_watch_lost(s->t->watch) && star_progress(s) != ADL_DONE)
        adl_mpi_drop(s->t->ends);
    return status;
}

/* mine [bytes] of every process into all [n x bytes] on process 0; decide makes `verdict` of them
 * there; then everyone has it. */
static enum adl_status meet(struct adl_transport *t, const void *mine, char *all, size_t bytes,
                            void (*decide)(struct adl_transport *t, const char *all, void *arg),
                            void *arg, void *verdict, size_t verdict_bytes, bool stubborn,
                            struct adl_err *err)
{
    struct star s = {.t = t, .requests = calloc((size_t)t->n, sizeof *s.requests)};
    if (!s.requests)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a meeting");
    for (int p = 1; p < t->n && t->rank == 0; p++)
        adl_mpi_receive(t->ends, p, 0, all + (size_t)p * bytes, bytes, &s.requests[p]);
    if (t->rank == 0)
        memcpy(all, mine, bytes);
    else
        adl_mpi_send(t->ends, 0, 0, mine, bytes, &s.requests[0]);
    enum adl_status status = finish(&s, stubborn, err);
    if (status == ADL_OK) {
        if (t->rank == 0)
            decide(t, all, arg);
        for (int p = 1; p < t->n && t->rank == 0; p++)
            adl_mpi_send(t->ends, p, 0, verdict, verdict_bytes, &s.requests[p]);
        if (t->rank != 0)
            adl_mpi_receive(t->ends, 0, 0, verdict, verdict_bytes, &s.requests[0]);
        status = finish(&s, stubborn, err);
    }
    free(s.requests);
    return status;
}

/* How an epoch ended, here or everywhere; the clock is the furthest. */
struct verdict {
    double clock_s;
    int status;
    char message[sizeof((struct adl_err *)0)->message];
};

static void decide_verdict(struct adl_transport *t, const char *all, void *arg)
{
    struct verdict *out = arg;
    memcpy(out, all, sizeof *out);
    for (int p = 1; p < t->n; p++) {
        struct verdict v;
        memcpy(&v, all + (size_t)p * sizeof v, sizeof v);
        if (out->status == ADL_OK && v.status != ADL_OK) {
            out->status = v.status;
            memcpy(out->message, v.message, sizeof v.message);
        }
        if (v.clock_s > out->clock_s)
            out->clock_s = v.clock_s;
    }
}

/* Everyone waits for everyone, and knows of every failure. *clock_s: the furthest clock. */
static enum adl_status meet_all(struct adl_transport *t, bool stubborn, double *clock_s,
                                struct adl_err *err)
{
    struct verdict mine = {.clock_s = adl_crew_now_s(&t->crew)}, verdict = mine;
    if (adl_crew_failed(&t->crew)) {
        mine.status = (int)t->crew.failure.status;
        memcpy(mine.message, t->crew.failure.message, sizeof mine.message);
    }
    char *all = malloc((size_t)t->n * sizeof mine);
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a meeting");
    enum adl_status status = meet(t, &mine, all, sizeof mine, decide_verdict, &verdict, &verdict,
                                  sizeof verdict, stubborn, err);
    free(all);
    *clock_s = verdict.clock_s;
    ADL_TRY(status);
    if (verdict.status == ADL_OK)
        return ADL_OK;
    adl_crew_fail(&t->crew, (enum adl_status)verdict.status, verdict.message, false);
    return adl_fail(err, (enum adl_status)verdict.status, "%s", verdict.message);
}

/* ---- an epoch ---- */

static enum adl_status open_group(struct adl_transport *t, struct adl_task *task,
                                  struct adl_err *err)
{
    struct adl_sum_group *g = calloc(1, sizeof *g);
    task->impl = g;
    if (g)
        g->members = malloc((size_t)task->n_workers * sizeof *g->members);
    if (!g || !g->members)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a group of %d", task->n_workers);
    g->watch = t->watch;
    g->wire = t->sums;
    g->space = t->crew.env.space;
    g->tag = task->trainer * ADL_SUM_TAGS;
    g->n = adl_blocks_hosts(&t->blocks, task->workers, task->n_workers, g->members);
    g->one_each = g->n == task->n_workers;
    while (g->members[g->me] != t->rank)
        g->me++;
    if (t->fast && g->n > 1)
        g->fast = adl_mpi_group_create(t->sums, g->members, g->n);
    return ADL_OK;
}

static void close_groups(struct adl_task *const *tasks, int n)
{
    for (int i = 0; i < n; i++) {
        struct adl_sum_group *g = tasks[i]->impl;
        tasks[i]->impl = NULL;
        if (!g)
            continue;
        adl_mpi_group_free(g->fast);
        free(g->members);
        free(g);
    }
}

static enum adl_status run_mpi(struct adl_transport *t, struct adl_task *const *tasks, int n,
                               enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                               struct adl_err *err)
{
    double met_s;
    enum adl_status status = ADL_OK;
    for (int i = 0; i < n; i++)
        tasks[i]->impl = NULL;
    /* clocks start together, and nobody creates communicators that others do not */
    ADL_TRY(meet_all(t, true, &met_s, err));
    for (int i = 0; status == ADL_OK && i < n; i++)
        status = open_group(t, tasks[i], err);
    if (status == ADL_OK)
        status = adl_crew_run(&t->crew, tasks, n, body, arg, err);
    else
        adl_crew_fail(&t->crew, status, err->message, true);
    struct adl_err everyone = {.status = ADL_OK};
    enum adl_status ended = meet_all(t, true, &met_s, &everyone);
    adl_crew_meet_tasks(&t->crew, tasks, n, met_s);
    close_groups(tasks, n);
    return status == ADL_OK && ended != ADL_OK ? adl_fail(err, ended, "%s", everyone.message)
                                               : status;
}

static enum adl_status for_each_mpi(struct adl_transport *t, struct adl_task *task,
                                    adl_worker_fn *fn, void *arg, const struct adl_work *work,
                                    double *compute_s)
{
    return adl_crew_for_each(&t->crew, task, fn, arg, work, compute_s);
}

/* ---- sums ---- */

struct adl_pending {
    const struct adl_reduction *reduction;
};

/* The transfer is the waiter's work: it begins with the wait. */
static enum adl_status allreduce_start_mpi(struct adl_transport *t, struct adl_task *task,
                                           const struct adl_reduction *reduction,
                                           struct adl_pending **out)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    struct adl_pending *pending = malloc(sizeof *pending);
    if (!pending)
        return adl_fail(&task->err, ADL_ERR_NOMEM, "no memory for a sum");
    pending->reduction = reduction;
    *out = pending;
    return ADL_OK;
}

static enum adl_status allreduce_wait_mpi(struct adl_transport *t, struct adl_task *task,
                                          struct adl_pending *pending)
{
    const struct adl_reduction *reduction = pending->reduction;
    free(pending);
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    enum adl_status status = adl_sum_meet(task->impl, reduction, task->n_local, &task->err);
    adl_crew_attribute(&t->crew, task, ADL_TIME_WAIT);
    if (status == ADL_OK)
        status = adl_sum(task->impl, reduction, task->n_local, &task->err);
    adl_crew_attribute(&t->crew, task, ADL_TIME_TRANSFER);
    return status;
}

static enum adl_status outer_step_mpi(struct adl_transport *t, struct adl_task *task)
{
    ADL_TRY(adl_crew_check(&t->crew, &task->err));
    adl_crew_attribute(&t->crew, task, ADL_TIME_OUTER);
    return ADL_OK;
}

/* ---- between epochs ---- */

struct rows {
    double *rows;
    const int *leaders;
    int n_rows, n_cols;
};

/* Of each row what its leader's process says. */
static void decide_rows(struct adl_transport *t, const char *all, void *arg)
{
    const struct rows *r = arg;
    size_t row = (size_t)r->n_cols * sizeof(double), table = (size_t)r->n_rows * row;
    for (int i = 0; i < r->n_rows; i++)
        memcpy(&r->rows[i * r->n_cols],
               all + (size_t)process_of_mpi(t, r->leaders[i]) * table + (size_t)i * row, row);
}

static enum adl_status gather_mpi(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                  const int *leaders, double charged_bytes, struct adl_err *err)
{
    (void)charged_bytes;
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    size_t bytes = (size_t)(n_rows * n_cols) * sizeof *rows;
    char *all = malloc((size_t)t->n * bytes + 1);
    double *mine = malloc(bytes + 1), met_s = 0;
    struct rows decide = {rows, leaders, n_rows, n_cols};
    enum adl_status status = ADL_OK;
    if (!all || !mine)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to gather %d rows", n_rows);
    if (status == ADL_OK) {
        memcpy(mine, rows, bytes);
        status = meet(t, mine, all, bytes, decide_rows, &decide, rows, bytes, false, err);
    }
    free(all);
    free(mine);
    if (status == ADL_OK)
        status = meet_all(t, false, &met_s, err);
    adl_crew_meet(&t->crew, ADL_TIME_WAIT, status == ADL_OK ? met_s : adl_crew_now_s(&t->crew));
    return status;
}

/* One move: along the processes of src and, then, of those dst that are elsewhere. */
static enum adl_status relay_move(struct adl_transport *t, const struct adl_move *m,
                                  struct adl_err *err)
{
    bool near = false;
    int *processes = malloc((size_t)(m->n_dst + 1) * sizeof *processes);
    if (!processes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a move");
    int n = adl_blocks_chain(&t->blocks, m->src, m->dst, m->n_dst, processes, &near);
    if (t->rank == processes[0] && near && m->into && m->into != m->data)
        t->crew.env.space->copy(m->into, m->data, m->bytes / 4, ADL_F32);
    void *into = m->into ? m->into : (void *)m->data;
    enum adl_status status =
        adl_relay(t->watch, t->ends, processes, n, m->data, into, m->bytes, err);
    free(processes);
    return status;
}

static enum adl_status move_mpi(struct adl_transport *t, const struct adl_move *moves, int n,
                                struct adl_err *err)
{
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    double met_s = 0;
    enum adl_status status = ADL_OK;
    for (int i = 0; status == ADL_OK && i < n; i++)
        status = relay_move(t, &moves[i], err);
    if (status == ADL_OK)
        status = meet_all(t, false, &met_s, err);
    adl_crew_meet(&t->crew, ADL_TIME_TRANSFER, status == ADL_OK ? met_s : adl_crew_now_s(&t->crew));
    return status;
}

static enum adl_status pass_mpi(struct adl_transport *t, int from, int to, void *data, size_t bytes,
                                struct adl_err *err)
{
    ADL_TRY(adl_crew_check(&t->crew, err));
    int *processes = malloc((size_t)t->n * sizeof *processes), n = 1;
    if (!processes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to pass something on");
    processes[0] = from;
    for (int p = 0; p < t->n; p++)
        if (p != from && (to == p || to == ADL_EVERY_PROCESS))
            processes[n++] = p;
    enum adl_status status = adl_relay(t->watch, t->ends, processes, n, data, data, bytes, err);
    free(processes);
    return status;
}

const struct adl_transport_ops adl_transport_mpi = {
    .plugin = {.name = "mpi",
               .doc = ADL_MPI_DOC,
               .options = adl_mpi_options,
               .config_size = sizeof(struct adl_mpi_config)},
    .simulated = false,
    .default_workers = adl_mpi_default_workers,
    .open = open_mpi,
    .close = close_mpi,
    .n_lanes = n_lanes_mpi,
    .local_workers = local_workers_mpi,
    .run = run_mpi,
    .for_each = for_each_mpi,
    .allreduce_start = allreduce_start_mpi,
    .allreduce_wait = allreduce_wait_mpi,
    .outer_step = outer_step_mpi,
    .gather = gather_mpi,
    .move = move_mpi,
    .process = process_mpi,
    .process_of = process_of_mpi,
    .pass = pass_mpi,
    .now_s = now_s_mpi,
    .sent = sent_mpi,
};
