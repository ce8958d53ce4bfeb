/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kept {
    struct adl_nccl *comm;
    uint64_t begun; /* number of its last exchange, from 1; 0: none */
};

struct adl_engine {
    struct adl_crew *crew;
    const struct adl_nccl_module *m;
    int rank;
    double deadline_s;
    struct adl_clock clock;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex; /* guards what follows, and ops' states */
    pthread_cond_t news;
    struct adl_op *first, *last; /* asked for */
    bool ending;
    pthread_mutex_t calls; /* held in every call of the module's; guards what follows */
    struct kept *comms;    /* [n_comms] as they were made, the world first */
    size_t n_comms;
    uint64_t n_begun; /* exchanges */
    bool aborted;
};

static const double tick_s = 0.02;
/* How long NCCL gets to let go of its kernels. */
static const double last_words_s = 15;

static void pause_for(double s)
{
    const struct timespec pause = {.tv_nsec = (long)(1e9 * s)};
    nanosleep(&pause, NULL);
}

/* In each of the engine's failures: says which process it is. */
static enum adl_status fail(const struct adl_engine *e, struct adl_err *err,
                            const struct adl_err *why)
{
    return adl_fail(err, why->status, "rank %d: %s", e->rank, why->message);
}

/* ---- calls of the module's ---- */

/* Of a failed run that does not come to its end: `late` is when. What NCCL holds, its owner would
 * take for free. */
static void end_if_late(const struct adl_engine *e, double late_s)
{
    if (adl_clock_s(&e->clock) < late_s || !adl_crew_failed(e->crew))
        return;
    fprintf(stderr, "adloco: %s; and NCCL does not let go of the device\n",
            e->crew->failure.message);
    _exit(1);
}

/* For a call. One that does not return keeps all others out: then the run fails, and in the end
 * this process. */
static void lock_calls(struct adl_engine *e)
{
    const double since_s = adl_clock_s(&e->clock);
    const double limit_s = e->deadline_s < last_words_s ? e->deadline_s : last_words_s;
    double late_s = since_s + e->deadline_s + limit_s;
    char why[160];
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until); /* the one that mutexes know everywhere */
        until.tv_sec++;
        if (pthread_mutex_timedlock(&e->calls, &until) == 0)
            return;
        if (adl_crew_failed(e->crew) && late_s > adl_clock_s(&e->clock) + limit_s)
            late_s = adl_clock_s(&e->clock) + limit_s;
        if (adl_clock_s(&e->clock) - since_s > e->deadline_s && !adl_crew_failed(e->crew)) {
            snprintf(why, sizeof why,
                     "rank %d: a call of NCCL's has not returned within %g s (nccl.deadline)",
                     e->rank, e->deadline_s);
            adl_crew_fail(e->crew, ADL_ERR_RUNTIME, why, true);
        }
        end_if_late(e, late_s);
    }
}

static void unlock_calls(struct adl_engine *e)
{
    pthread_mutex_unlock(&e->calls);
}

/* ---- communicators ---- */

/* These are called between lock_calls and unlock_calls. */

static bool keep(struct adl_engine *e, struct adl_nccl *comm)
{
    struct kept *more = realloc(e->comms, (e->n_comms + 1) * sizeof *more);
    if (!more)
        return false;
    e->comms = more;
    e->comms[e->n_comms++] = (struct kept){.comm = comm};
    return true;
}

static struct kept *find(const struct adl_engine *e, const struct adl_nccl *comm)
{
    for (size_t i = 0; i < e->n_comms; i++)
        if (e->comms[i].comm == comm)
            return &e->comms[i];
    return NULL;
}

static void forget(struct adl_engine *e, struct kept *kept)
{
    size_t after = (size_t)(e->comms + e->n_comms - (kept + 1));
    memmove(kept, kept + 1, after * sizeof *kept);
    e->n_comms--;
}

/* Whether a is to be aborted before b, which was made after it. */
static bool goes_first(const struct kept *a, const struct kept *b)
{
    return b->begun == 0 || (a->begun > 0 && a->begun < b->begun);
}

/* From now on nothing happens on the device any more. Whose exchange began first goes first: it may
 * keep the others' from the device, and they cannot end before they have begun. Those that began
 * none go last, as they were made: among them are splits under way, which NCCL still writes to
 * until the world is aborted. */
static void abort_all(struct adl_engine *e)
{
    while (e->n_comms > 0) {
        struct kept *first = e->comms;
        for (size_t i = 1; i < e->n_comms; i++)
            if (!goes_first(first, &e->comms[i]))
                first = &e->comms[i];
        struct adl_nccl *comm = first->comm;
        forget(e, first);
        e->m->abort(comm);
    }
    e->aborted = true;
}

typedef enum adl_nccl_state asked_fn(struct adl_nccl *c, struct adl_err *err);

/* One question to a communicator that may have been aborted meanwhile. */
static enum adl_nccl_state ask(struct adl_engine *e, struct adl_nccl *comm, asked_fn *fn,
                               struct adl_err *err)
{
    struct adl_err why = {.status = ADL_OK};
    lock_calls(e);
    enum adl_nccl_state state = e->aborted ? ADL_NCCL_BROKEN : fn(comm, &why);
    bool aborted = e->aborted;
    unlock_calls(e);
    if (aborted)
        adl_crew_check(e->crew, err);
    else if (state == ADL_NCCL_BROKEN)
        fail(e, err, &why);
    return state;
}

/* What is waited for, and how long; option: of that time. */
struct awaited {
    struct adl_nccl *comm;
    asked_fn *fn;
    const char *what, *option;
    double since_s, deadline_s;
};

static enum adl_status fail_late(const struct adl_engine *e, const struct awaited *a,
                                 struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_PEER,
                    "rank %d: %s has not come to its end within %g s (%s): another process is "
                    "stuck, or cut off from this one",
                    e->rank, a->what, a->deadline_s, a->option);
}

/* Until the communicator is ready, or never will be. */
static enum adl_status await(struct adl_engine *e, const struct awaited *a, struct adl_err *err)
{
    for (int64_t tries = 0;; tries++) {
        enum adl_nccl_state state = ask(e, a->comm, a->fn, err);
        if (state == ADL_NCCL_READY)
            return ADL_OK;
        if (state == ADL_NCCL_BROKEN)
            return err->status;
        if (adl_clock_s(&e->clock) - a->since_s > a->deadline_s)
            return fail_late(e, a, err);
        if (tries % 64 == 0 || tries > 1000)
            ADL_TRY(adl_crew_check(e->crew, err));
        if (tries > 200)
            pause_for(tries < 2000 ? 20e-6 : 200e-6);
    }
}

/* After a failure: returns when nothing happens on the device any more. */
static void await_abort(struct adl_engine *e)
{
    for (bool aborted = false; !aborted;) {
        lock_calls(e);
        aborted = e->aborted;
        unlock_calls(e);
        if (!aborted)
            pause_for(1e-3);
    }
}

/* Tells everyone. */
static enum adl_status give_up(struct adl_engine *e, const struct adl_err *err)
{
    adl_crew_fail(e->crew, err->status, err->message, true);
    await_abort(e);
    return err->status;
}

/* ---- the thread ---- */

static enum adl_status begin(struct adl_engine *e, struct adl_op *op, struct adl_err *err)
{
    struct kept *kept = find(e, op->comm);
    if (kept)
        kept->begun = ++e->n_begun;
    switch (op->kind) {
    case ADL_OP_SUM:
        return e->m->sum(op->comm, op->data, op->count, op->type, err);
    case ADL_OP_COLLECT:
        return e->m->collect(op->comm, op->data, op->all, op->count, err);
    default:
        return e->m->relay(op->comm, &op->in, &op->out, err);
    }
}

static void mark(struct adl_engine *e, struct adl_op *op, bool begun)
{
    pthread_mutex_lock(&e->mutex);
    op->state = begun ? ADL_OP_BEGUN : ADL_OP_FAILED;
    pthread_cond_broadcast(&e->news);
    pthread_mutex_unlock(&e->mutex);
}

/* Begins it, and waits until NCCL has taken it over: the next one may be another communicator's,
 * and must not overtake it. */
static void begin_and_mark(struct adl_engine *e, struct adl_op *op)
{
    struct adl_err why = {.status = ADL_OK}, told = {.status = ADL_OK};
    op->begun_s = adl_clock_s(&e->clock);
    lock_calls(e);
    enum adl_status status = e->aborted ? ADL_ERR_PEER : begin(e, op, &why);
    unlock_calls(e);
    if (why.status != ADL_OK)
        fail(e, &told, &why);
    const struct awaited taken = {op->comm,        e->m->state, "the start of an exchange",
                                  "nccl.deadline", op->begun_s, e->deadline_s};
    if (status == ADL_OK)
        status = await(e, &taken, &told);
    if (told.status != ADL_OK)
        adl_crew_fail(e->crew, told.status, told.message, true);
    mark(e, op, status == ADL_OK);
}

/* Aborts where something has failed; else looks for errors that come up by themselves. */
static void look_around(struct adl_engine *e, bool idle)
{
    struct adl_err why = {.status = ADL_OK}, told = {.status = ADL_OK};
    lock_calls(e);
    if (!e->aborted && adl_crew_failed(e->crew))
        abort_all(e);
    for (size_t i = 0; idle && i < e->n_comms && why.status == ADL_OK; i++)
        e->m->state(e->comms[i].comm, &why);
    unlock_calls(e);
    if (why.status == ADL_OK)
        return;
    fail(e, &told, &why);
    adl_crew_fail(e->crew, told.status, told.message, true);
}

/* The oldest of what is asked for, after a moment at most; NULL: nothing is. */
static struct adl_op *next_op(struct adl_engine *e, bool *ending)
{
    const struct timespec until = adl_clock_in(tick_s);
    pthread_mutex_lock(&e->mutex);
    if (!e->first && !e->ending)
        pthread_cond_timedwait(&e->news, &e->mutex, &until);
    struct adl_op *op = e->first;
    if (op)
        e->first = op->next;
    if (!e->first)
        e->last = NULL;
    *ending = e->ending;
    pthread_mutex_unlock(&e->mutex);
    return op;
}

static void *engine_main(void *arg)
{
    struct adl_engine *e = arg;
    for (bool ending = false; !ending;) {
        struct adl_op *op = next_op(e, &ending);
        look_around(e, !op);
        if (op)
            begin_and_mark(e, op);
    }
    return NULL;
}

/* ---- what happens ---- */

void adl_engine_ask(struct adl_engine *e, struct adl_op *op)
{
    op->state = ADL_OP_ASKED;
    op->next = NULL;
    pthread_mutex_lock(&e->mutex);
    if (e->last)
        e->last->next = op;
    else
        e->first = op;
    e->last = op;
    pthread_cond_broadcast(&e->news);
    pthread_mutex_unlock(&e->mutex);
}

enum adl_status adl_engine_wait(struct adl_engine *e, struct adl_op *op, struct adl_err *err)
{
    pthread_mutex_lock(&e->mutex);
    while (op->state == ADL_OP_ASKED) {
        const struct timespec until = adl_clock_in(1);
        pthread_cond_timedwait(&e->news, &e->mutex, &until);
        pthread_mutex_unlock(&e->mutex);
        lock_calls(e); /* ends the process where the thread does not come back from a call */
        unlock_calls(e);
        pthread_mutex_lock(&e->mutex);
    }
    bool failed = op->state == ADL_OP_FAILED;
    pthread_mutex_unlock(&e->mutex);
    const struct awaited end = {op->comm,        e->m->done,  "an exchange",
                                "nccl.deadline", op->begun_s, e->deadline_s};
    enum adl_status status = failed ? adl_crew_check(e->crew, err) : await(e, &end, err);
    return status == ADL_OK ? ADL_OK : give_up(e, err);
}

/* Between lock_calls and unlock_calls: a communicator that is being made is the engine's to close.
 */
static enum adl_status keep_or_fail(struct adl_engine *e, struct adl_nccl *comm,
                                    struct adl_err *err)
{
    if (!comm || keep(e, comm))
        return ADL_OK;
    e->m->abort(comm);
    return adl_fail(err, ADL_ERR_NOMEM, "no memory for a communicator");
}

enum adl_status adl_engine_join(struct adl_engine *e, const void *id, int n, double start_s,
                                struct adl_err *err)
{
    struct awaited joined = {.fn = e->m->state,
                             .what = "joining the world of NCCL",
                             .option = "nccl.start",
                             .since_s = adl_clock_s(&e->clock),
                             .deadline_s = start_s};
    struct adl_err why = {.status = ADL_OK};
    lock_calls(e);
    enum adl_status status = e->m->join(id, e->rank, n, &joined.comm, &why);
    if (status == ADL_OK)
        status = keep_or_fail(e, joined.comm, &why);
    unlock_calls(e);
    status = status == ADL_OK ? await(e, &joined, err) : fail(e, err, &why);
    return status == ADL_OK ? ADL_OK : give_up(e, err);
}

struct adl_nccl *adl_engine_world(struct adl_engine *e)
{
    lock_calls(e);
    struct adl_nccl *world = e->n_comms > 0 ? e->comms[0].comm : NULL;
    unlock_calls(e);
    return world;
}

enum adl_status adl_engine_split(struct adl_engine *e, int color, int ctas, struct adl_nccl **out,
                                 struct adl_err *err)
{
    struct awaited split = {.fn = e->m->state,
                            .what = "splitting a communicator",
                            .option = "nccl.deadline",
                            .since_s = adl_clock_s(&e->clock),
                            .deadline_s = e->deadline_s};
    struct adl_err why = {.status = ADL_OK};
    enum adl_status status = ADL_OK;
    *out = NULL;
    lock_calls(e);
    bool aborted = e->aborted;
    if (!aborted)
        status = e->m->split(e->comms[0].comm, color, e->rank, ctas, out, &why);
    if (!aborted && status == ADL_OK)
        status = keep_or_fail(e, *out, &why);
    if (!aborted)
        split.comm = *out ? *out : e->comms[0].comm;
    unlock_calls(e);
    if (aborted)
        return adl_crew_check(e->crew, err);
    status = status == ADL_OK ? await(e, &split, err) : fail(e, err, &why);
    return status == ADL_OK ? ADL_OK : give_up(e, err);
}

void adl_engine_close_split(struct adl_engine *e, struct adl_nccl *comm)
{
    if (!comm)
        return;
    lock_calls(e);
    struct kept *kept = find(e, comm);
    if (kept) { /* not aborted */
        forget(e, kept);
        e->m->close(comm);
    }
    unlock_calls(e);
}

/* ---- open, close ---- */

enum adl_status adl_engine_open(struct adl_crew *crew, const struct adl_nccl_module *module,
                                int rank, double deadline_s, struct adl_engine **out,
                                struct adl_err *err)
{
    struct adl_engine *e = calloc(1, sizeof *e);
    pthread_condattr_t attributes;
    if (!e)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for NCCL");
    *out = e;
    e->crew = crew;
    e->m = module;
    e->rank = rank;
    e->deadline_s = deadline_s;
    adl_clock_set(&e->clock, 0);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&e->news, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&e->mutex, NULL);
    pthread_mutex_init(&e->calls, NULL);
    int cause = pthread_create(&e->thread, NULL, engine_main, e);
    if (cause)
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot start a thread: %s", strerror(cause));
    e->started = true;
    return ADL_OK;
}

void adl_engine_close(struct adl_engine *e)
{
    if (!e)
        return;
    if (e->started && adl_crew_failed(e->crew))
        await_abort(e);
    pthread_mutex_lock(&e->mutex);
    e->ending = true;
    pthread_cond_broadcast(&e->news);
    pthread_mutex_unlock(&e->mutex);
    if (e->started)
        pthread_join(e->thread, NULL);
    while (e->n_comms > 0)
        e->m->close(e->comms[--e->n_comms].comm);
    free(e->comms);
    pthread_cond_destroy(&e->news);
    pthread_mutex_destroy(&e->mutex);
    pthread_mutex_destroy(&e->calls);
    free(e);
}
