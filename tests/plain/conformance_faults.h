/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: what becomes of a run when a task fails or the user stops it. Every body here
 * loops until a call fails, so a transport that leaves one waiting meets the deadline. */
#ifndef ADL_TESTS_CONFORMANCE_FAULTS_H
#define ADL_TESTS_CONFORMANCE_FAULTS_H

#include "tests/plain/conformance_sums.h"

struct fault_case {
    struct world *w;
    struct sum_case sum;
    int n_trainers;
    int failing;          /* trainer; -1: none */
    int at;               /* round of its failure */
    body_fn *endless;     /* what the others do */
    atomic_int freed;     /* tasks that were told of the failure */
    enum adl_status told; /* what they may be told instead of ADL_ERR_PEER */
};

/* Mostly sums; a sum within one device takes no simulated time, so some work lets it pass. */
static enum adl_status sums_forever(struct adl_task *task, void *arg)
{
    struct fault_case *c = arg;
    for (;;) {
        for (int i = 0; i < 4; i++)
            ADL_TRY(sum_once(&c->sum, task));
        ADL_TRY(work_round(c->w, task, NULL));
    }
}

static enum adl_status work_forever(struct adl_task *task, void *arg)
{
    struct fault_case *c = arg;
    for (;;)
        ADL_TRY(work_round(c->w, task, NULL));
}

static enum adl_status steps_forever(struct adl_task *task, void *arg)
{
    struct fault_case *c = arg;
    for (;;) {
        ADL_TRY(work_round(c->w, task, NULL));
        ADL_TRY(sum_once(&c->sum, task));
        ADL_TRY(c->w->ops->outer_step(c->w->t, task));
    }
}

static enum adl_status fault_body(struct adl_task *task, void *arg)
{
    struct fault_case *c = arg;
    if (task->trainer == c->failing) {
        for (int round = 0; round < c->at; round++)
            ADL_TRY(work_round(c->w, task, NULL));
        return adl_fail(&task->err, ADL_ERR_RUNTIME, "boom of trainer %d", task->trainer);
    }
    enum adl_status status = c->endless(task, arg);
    CHECK(status == c->told || status == ADL_ERR_PEER, "trainer %d was told %d, not %d: %s",
          task->trainer, (int)status, (int)c->told, task->err.message);
    CHECK(task->err.status == status, "the task's own error has status %d", (int)task->err.status);
    atomic_fetch_add(&c->freed, 1);
    return status;
}

static struct fault_case fault_make(struct world *w, body_fn *endless)
{
    return (struct fault_case){
        .w = w,
        .sum = {.w = w, .element = rough_element, .count = 4096, .dtype = ADL_F64, .n_scalars = 1},
        .failing = 0,
        .endless = endless,
        .told = ADL_ERR_PEER};
}

/* All tasks of this process came back but those of the failing trainer, whose first worker is
 * `failing` and which has every n-th of them. */
static void check_freed(struct fault_case *c, int failing)
{
    const struct world *w = c->w;
    bool here = false;
    for (int i = failing; i >= 0 && i < w->n; i += c->n_trainers)
        here = here || hosted(w, i);
    int others = w->n_tasks - here, freed = atomic_load(&c->freed);
    CHECK(freed == others, "%d of %d tasks came back", freed, others);
}

/* Trainer 0 fails after `at` rounds while the others, one in each group, go on. */
static void fail_while(struct world *w, body_fn *endless, int at)
{
    int k = w->n < 4 ? w->n : 3;
    struct fault_case c = fault_make(w, endless);
    c.at = at;
    c.n_trainers = k;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = world_run(w, k, fault_body, &c, &err);
    CHECK(status == ADL_ERR_RUNTIME, "run returned %d: %s", (int)status, err.message);
    CHECK(strstr(err.message, "boom of trainer 0"), "run's message is '%s'", err.message);
    check_freed(&c, 0);
}

static void task_fails_at_once(struct world *w)
{
    fail_while(w, steps_forever, 0);
}

static void task_fails_during_work(struct world *w)
{
    fail_while(w, work_forever, 3);
}

/* The failing one is no member of the groups that sum; their memory goes as the call returns. */
static void outsider_fails_during_sums(struct world *w)
{
    fail_while(w, sums_forever, 3);
}

static enum adl_status failing_worker(struct adl_task *task, int i, int lane, void *arg,
                                      struct adl_err *err)
{
    (void)lane;
    const struct world *w = arg;
    if (local_worker(task, i) == w->n - 1)
        return adl_fail(err, ADL_ERR_RUNTIME, "boom of worker %d", w->n - 1);
    return ADL_OK;
}

static enum adl_status failing_worker_body(struct adl_task *task, void *arg)
{
    struct fault_case *c = arg;
    bool mine = task->workers[task->n_workers - 1] == c->w->n - 1 && hosted(c->w, c->w->n - 1);
    if (!mine)
        return fault_body(task, arg);
    ADL_TRY(work_round(c->w, task, NULL));
    enum adl_status status = c->w->ops->for_each(c->w->t, task, failing_worker, c->w, NULL, NULL);
    CHECK(status == ADL_ERR_RUNTIME, "for_each returned %d", (int)status);
    return status;
}

static void worker_fails(struct world *w)
{
    int k = w->n > 1 ? 2 : 1;
    char boom[64];
    snprintf(boom, sizeof boom, "boom of worker %d", w->n - 1);
    struct fault_case c = fault_make(w, steps_forever);
    c.failing = -1;
    c.n_trainers = k;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = world_run(w, k, failing_worker_body, &c, &err);
    CHECK(status == ADL_ERR_RUNTIME, "run returned %d: %s", (int)status, err.message);
    CHECK(strstr(err.message, boom), "run's message is '%s'", err.message);
    int others = w->n_tasks - hosted(w, w->n - 1), freed = atomic_load(&c.freed);
    CHECK(freed == others, "%d of %d tasks came back", freed, others);
}

static void cancelled(struct world *w)
{
    int k = w->n > 1 ? 2 : 1;
    struct fault_case c = fault_make(w, steps_forever);
    c.failing = -1;
    c.told = ADL_ERR_CANCELLED;
    w->cancel_at = 25;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = world_run(w, k, fault_body, &c, &err);
    CHECK(status == ADL_ERR_CANCELLED, "run returned %d: %s", (int)status, err.message);
    CHECK(err.status == status && err.message[0], "run left no message");
    check_freed(&c, -1);
}

/* Calls between epochs may answer at once; the next epoch must. */
static void cancelled_between_epochs(struct world *w)
{
    struct fault_case c = fault_make(w, steps_forever);
    c.failing = -1;
    c.told = ADL_ERR_CANCELLED;
    world_run_ok(w, 1, nothing_body, NULL);
    w->cancel_at = 1;
    double row = 1;
    int leader = 0;
    struct adl_err err = {.status = ADL_OK};
    enum adl_status status = w->ops->gather(w->t, &row, 1, 1, &leader, 8, &err);
    CHECK(status == ADL_OK || status == ADL_ERR_CANCELLED, "gather returned %d", (int)status);
    err.status = ADL_OK;
    status = w->ops->move(w->t, NULL, 0, &err);
    CHECK(status == ADL_OK || status == ADL_ERR_CANCELLED, "move returned %d", (int)status);
    err.status = ADL_OK;
    status = world_run(w, 1, fault_body, &c, &err);
    CHECK(status == ADL_ERR_CANCELLED, "run returned %d: %s", (int)status, err.message);
}

static const struct conformance_case fault_cases[] = {
    {"task_fails_at_once", task_fails_at_once},
    {"task_fails_during_work", task_fails_during_work},
    {"outsider_fails_during_sums", outsider_fails_during_sums},
    {"worker_fails", worker_fails},
    {"cancelled", cancelled},
    {"cancelled_between_epochs", cancelled_between_epochs},
    {NULL, NULL},
};

#endif
