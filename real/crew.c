/* SPDX-License-Identifier: Apache-2.0 */
#include "real/crew.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* More threads than workers would only cost their scratch memory. */
static int pool_size(int64_t n_threads, int n_local)
{
    long count = n_threads > 0 ? (long)n_threads : sysconf(_SC_NPROCESSORS_ONLN);
    if (count > n_local)
        count = n_local;
    return count < 1 ? 1 : (int)count;
}

enum adl_status adl_crew_open(struct adl_crew *crew, const struct adl_transport_env *env,
                              int64_t n_threads, int n_local, struct adl_err *err)
{
    crew->env = *env;
    crew->n_world = (int)env->settings->cluster.workers;
    pthread_mutex_init(&crew->mutex, NULL);
    crew->world = malloc((size_t)crew->n_world * sizeof *crew->world);
    if (!crew->world)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a world of %d workers", crew->n_world);
    for (int w = 0; w < crew->n_world; w++)
        crew->world[w] = w;
    return adl_pool_create(pool_size(n_threads, n_local), &crew->pool, err);
}

void adl_crew_close(struct adl_crew *crew)
{
    adl_pool_free(crew->pool);
    if (crew->n_world > 0)
        pthread_mutex_destroy(&crew->mutex);
    free(crew->world);
}

/* ---- failure ---- */

enum adl_status adl_crew_check(struct adl_crew *crew, struct adl_err *err)
{
    const struct adl_transport_env *env = &crew->env;
    pthread_mutex_lock(&crew->mutex);
    bool stop =
        crew->failure.status == ADL_OK && env->cancelled && env->cancelled(env->cancelled_arg);
    enum adl_status status = crew->failure.status;
    if (status == ADL_ERR_CANCELLED)
        adl_fail(err, status, "%s", crew->failure.message);
    else if (status != ADL_OK)
        status = adl_fail(err, ADL_ERR_PEER, "another task failed: %s", crew->failure.message);
    pthread_mutex_unlock(&crew->mutex);
    if (stop) {
        adl_crew_fail(crew, ADL_ERR_CANCELLED, "cancelled", true);
        return adl_fail(err, ADL_ERR_CANCELLED, "cancelled");
    }
    return status;
}

bool adl_crew_failed(struct adl_crew *crew)
{
    pthread_mutex_lock(&crew->mutex);
    bool failed = crew->failure.status != ADL_OK;
    pthread_mutex_unlock(&crew->mutex);
    return failed;
}

void adl_crew_fail(struct adl_crew *crew, enum adl_status status, const char *message, bool told)
{
    pthread_mutex_lock(&crew->mutex);
    bool first = crew->failure.status == ADL_OK;
    adl_fail(&crew->failure, status, "%s", message);
    pthread_mutex_unlock(&crew->mutex);
    if (first && told && crew->on_failure)
        crew->on_failure(crew->on_failure_arg, &crew->failure);
}

/* ---- tasks ---- */

struct runner { /* a task's thread */
    struct adl_crew *crew;
    struct adl_task *task;
    enum adl_status (*body)(struct adl_task *task, void *arg);
    void *arg;
    pthread_t thread;
};

static void fail_task(struct adl_crew *crew, struct adl_task *task, enum adl_status status)
{
    adl_fail(&task->err, status, "the task of trainer %d failed", task->trainer);
    adl_crew_fail(crew, status, task->err.message, true);
}

static void *runner_main(void *arg)
{
    struct runner *runner = arg;
    struct adl_crew *crew = runner->crew;
    enum adl_status status = runner->body(runner->task, runner->arg);
    if (status != ADL_OK)
        fail_task(crew, runner->task, status);
    if (crew->on_end)
        crew->on_end(crew->on_failure_arg, runner->task, status);
    return NULL;
}

/* Starts all runners and waits for their ends. */
static void run_all(struct runner *runners, int n)
{
    int started = 0;
    for (; started < n; started++) {
        struct runner *r = &runners[started];
        int cause = pthread_create(&r->thread, NULL, runner_main, r);
        if (cause) {
            fail_task(r->crew, r->task,
                      adl_fail(&r->task->err, ADL_ERR_RUNTIME,
                               "cannot start a thread for trainer %d: %s", r->task->trainer,
                               strerror(cause)));
            break;
        }
    }
    for (int i = 0; i < started; i++)
        pthread_join(runners[i].thread, NULL);
}

enum adl_status adl_crew_run(struct adl_crew *crew, struct adl_task *const *tasks, int n,
                             enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                             struct adl_err *err)
{
    struct runner *runners = calloc((size_t)n + 1, sizeof *runners);
    if (!runners)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d tasks", n);
    for (int i = 0; i < n; i++)
        runners[i] = (struct runner){.crew = crew, .task = tasks[i], .body = body, .arg = arg};
    adl_crew_resume(crew);
    run_all(runners, n);
    free(runners);
    if (crew->failure.status == ADL_OK)
        return ADL_OK;
    return adl_fail(err, crew->failure.status, "%s", crew->failure.message);
}

/* ---- workers ---- */

struct each { /* one call of for_each */
    struct adl_crew *crew;
    struct adl_task *task;
    adl_worker_fn *fn;
    void *arg;
    bool charged;
    double *compute_s;
};

static enum adl_status each_item(void *arg, int i, int lane, struct adl_err *err)
{
    const struct each *each = arg;
    struct adl_crew *crew = each->crew;
    int worker = each->task->workers[each->task->first_local + i];
    ADL_TRY(adl_crew_check(crew, err));
    double start_s = adl_crew_now_s(crew);
    enum adl_status status = each->fn(each->task, i, lane, each->arg, err);
    if (status != ADL_OK)
        return adl_fail(err, status, "worker %d failed", worker); /* unless it says why */
    double end_s = adl_crew_now_s(crew);
    if (each->compute_s)
        each->compute_s[i] = end_s - start_s;
    if (each->charged) {
        adl_book_advance(crew->env.book, worker, ADL_TIME_WAIT, start_s);
        adl_book_advance(crew->env.book, worker, ADL_TIME_COMPUTE, end_s);
    }
    return ADL_OK;
}

enum adl_status adl_crew_for_each(struct adl_crew *crew, struct adl_task *task, adl_worker_fn *fn,
                                  void *arg, const struct adl_work *work, double *compute_s)
{
    ADL_TRY(adl_crew_check(crew, &task->err));
    struct each each = {.crew = crew,
                        .task = task,
                        .fn = fn,
                        .arg = arg,
                        .charged = work != NULL,
                        .compute_s = compute_s};
    return adl_pool_run(crew->pool, task->n_local, each_item, &each, &task->err);
}

/* ---- time ---- */

double adl_crew_now_s(const struct adl_crew *crew)
{
    return crew->running ? adl_clock_s(&crew->clock) : crew->met_s;
}

void adl_crew_attribute(struct adl_crew *crew, const struct adl_task *task, enum adl_time what)
{
    adl_book_advance_all(crew->env.book, task->workers + task->first_local, task->n_local, what,
                         adl_crew_now_s(crew));
}

void adl_crew_resume(struct adl_crew *crew)
{
    adl_clock_set(&crew->clock, crew->met_s);
    crew->running = true;
}

static void stop_clock(struct adl_crew *crew, double s)
{
    crew->running = false;
    crew->met_s = s;
}

void adl_crew_meet(struct adl_crew *crew, enum adl_time what, double s)
{
    stop_clock(crew, s);
    adl_book_advance_all(crew->env.book, crew->world, crew->n_world, what, s);
}

void adl_crew_meet_tasks(struct adl_crew *crew, struct adl_task *const *tasks, int n, double s)
{
    stop_clock(crew, s);
    for (int i = 0; i < n; i++)
        adl_book_advance_all(crew->env.book, tasks[i]->workers, tasks[i]->n_workers, ADL_TIME_WAIT,
                             s);
    adl_book_advance_all(crew->env.book, crew->world, crew->n_world, ADL_TIME_IDLE, s);
}

void adl_crew_sum(const struct adl_space *space, const struct adl_reduction *r, int n, bool onto)
{
    int first = onto ? 0 : 1;
    if (r->count > 0) {
        if (!onto)
            space->copy(r->out, r->in[0], r->count, r->dtype);
        for (int i = first; i < n; i++)
            space->axpy(r->out, 1.0, r->in[i], r->count, r->dtype);
    }
    for (size_t k = 0; k < r->n_scalars; k++) {
        double total = onto ? r->scalars_out[k] : r->scalars_in[k];
        for (int i = first; i < n; i++)
            total += r->scalars_in[(size_t)i * r->n_scalars + k];
        r->scalars_out[k] = total;
    }
}
