/* SPDX-License-Identifier: Apache-2.0 */
#include "real/pool.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* One call of adl_pool_run, on its caller's stack. */
struct job {
    adl_pool_fn *fn;
    void *arg;
    int n, started, ended;
    int failed;         /* smallest failed item; n: none */
    struct adl_err err; /* of that item */
    enum adl_status status;
    pthread_cond_t done;
    struct job *behind; /* next in the queue */
};

struct lane {
    struct adl_pool *pool;
    pthread_t thread;
    int number;
};

struct adl_pool {
    pthread_mutex_t mutex; /* guards everything below and every job */
    pthread_cond_t work;   /* the queue is not empty, or the pool closes */
    bool closing;
    struct job *queue; /* jobs with items left to start, oldest first */
    int n_lanes;
    struct lane lanes[];
};

static void enqueue(struct adl_pool *pool, struct job *job)
{
    struct job **end = &pool->queue;
    while (*end)
        end = &(*end)->behind;
    *end = job;
}

/* Keeps the job's remaining items from being started. */
static void dequeue(struct adl_pool *pool, const struct job *job)
{
    struct job **at = &pool->queue;
    while (*at && *at != job)
        at = &(*at)->behind;
    if (*at)
        *at = job->behind;
}

/* Starts and ends one item of the oldest job; the mutex is held on entry and on return. */
static void run_item(struct adl_pool *pool, int lane)
{
    struct job *job = pool->queue;
    int i = job->started++;
    if (job->started == job->n)
        dequeue(pool, job);
    pthread_mutex_unlock(&pool->mutex);

    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = job->fn(job->arg, i, lane, &err);

    pthread_mutex_lock(&pool->mutex);
    if (status != ADL_OK) {
        dequeue(pool, job);
        if (i < job->failed) {
            job->failed = i;
            job->status = status;
            job->err = err;
        }
    }
    job->ended++;
    /* a job that is out of the queue starts no more items */
    if (job->ended == job->started && (job->started == job->n || job->failed < job->n))
        pthread_cond_signal(&job->done);
}

static void *lane_main(void *arg)
{
    struct lane *lane = arg;
    struct adl_pool *pool = lane->pool;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->closing) {
        if (pool->queue)
            run_item(pool, lane->number);
        else
            pthread_cond_wait(&pool->work, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

enum adl_status adl_pool_create(int n_threads, struct adl_pool **out, struct adl_err *err)
{
    struct adl_pool *pool = calloc(1, sizeof *pool + (size_t)n_threads * sizeof *pool->lanes);
    if (!pool)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a pool of %d threads", n_threads);
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    for (int i = 0; i < n_threads; i++) {
        struct lane *lane = &pool->lanes[i];
        lane->pool = pool;
        lane->number = i;
        int cause = pthread_create(&lane->thread, NULL, lane_main, lane);
        if (cause) {
            adl_pool_free(pool);
            return adl_fail(err, ADL_ERR_RUNTIME, "cannot start thread %d of a pool of %d: %s",
                            i + 1, n_threads, strerror(cause));
        }
        pool->n_lanes++; /* no lane reads it */
    }
    *out = pool;
    return ADL_OK;
}

void adl_pool_free(struct adl_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->closing = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->n_lanes; i++)
        pthread_join(pool->lanes[i].thread, NULL);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int adl_pool_n_lanes(const struct adl_pool *pool)
{
    return pool->n_lanes;
}

enum adl_status adl_pool_run(struct adl_pool *pool, int n, adl_pool_fn *fn, void *arg,
                             struct adl_err *err)
{
    if (n == 0)
        return ADL_OK;
    struct job job = {.fn = fn, .arg = arg, .n = n, .failed = n, .status = ADL_OK};
    pthread_cond_init(&job.done, NULL);
    pthread_mutex_lock(&pool->mutex);
    enqueue(pool, &job);
    pthread_cond_broadcast(&pool->work);
    while (job.ended < job.started || (job.started < n && job.failed == n))
        pthread_cond_wait(&job.done, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    pthread_cond_destroy(&job.done);
    if (job.status == ADL_OK)
        return ADL_OK;
    return adl_fail(err, job.status, "%s", job.err.message);
}
