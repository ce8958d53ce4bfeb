/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/watch.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum news_kind { ALIVE, FAILED, LEAVING, LOST };

struct news {
    int kind;   /* enum news_kind */
    int from;   /* the process that tells it */
    int status; /* FAILED: enum adl_status */
    char message[1024];
};

struct outbox { /* one piece of news to every other process */
    struct news news;
    struct adl_mpi_request *requests; /* [n] */
};

struct adl_watch {
    struct adl_crew *crew;
    struct adl_mpi *wire;
    int rank, n;
    double deadline_s, beat_s, tick_s;
    struct adl_clock clock;
    pthread_t thread;
    bool started;
    atomic_bool ending, lost;
    atomic_int n_left; /* other processes that have said goodbye */
    struct news heard; /* being received */
    struct adl_mpi_request hearing, beating;
    struct news alive;
    double heard_s, beat_due_s, ticked_s, lost_s;
    bool neighbour_left;
    struct outbox failure, goodbye, loss;
};

/* Silence is given this much longer where this process itself did not run. */
static const double asleep_ticks = 20;
/* How long a waiting call looks for what a process sent before it left. */
static const double farewell_s = 1;
/* How long a process that has lost another gets to end in good order. */
static const double last_words_s = 5;

static int neighbour(const struct adl_watch *w)
{
    return (w->rank + w->n - 1) % w->n;
}

static void tell_all(struct adl_watch *w, struct outbox *box, enum news_kind kind)
{
    box->news.kind = kind;
    box->news.from = w->rank;
    for (int p = 0; p < w->n; p++)
        if (p != w->rank)
            adl_mpi_send(w->wire, p, 0, &box->news, sizeof box->news, &box->requests[p]);
}

static bool told_all(struct adl_watch *w, struct outbox *box)
{
    bool all = true;
    for (int p = 0; p < w->n; p++)
        all = adl_mpi_test(&box->requests[p]) && all;
    return all;
}

void adl_watch_tell(struct adl_watch *w, const struct adl_err *failure)
{
    w->failure.news.status = (int)failure->status;
    snprintf(w->failure.news.message, sizeof w->failure.news.message, "%s", failure->message);
    tell_all(w, &w->failure, FAILED);
}

static void listen(struct adl_watch *w)
{
    adl_mpi_receive(w->wire, ADL_MPI_ANY, 0, &w->heard, sizeof w->heard, &w->hearing);
}

static void lose(struct adl_watch *w, const char *message, double now_s)
{
    if (w->lost)
        return;
    w->lost_s = now_s;
    adl_mpi_give_up();
    adl_crew_fail(w->crew, ADL_ERR_PEER, message, false);
    w->lost = true;
}

static void take(struct adl_watch *w, double now_s)
{
    const struct news *news = &w->heard;
    switch ((enum news_kind)news->kind) {
    case ALIVE:
        w->heard_s = now_s;
        break;
    case FAILED:
        adl_crew_fail(w->crew, (enum adl_status)news->status, news->message, false);
        break;
    case LEAVING:
        w->neighbour_left = w->neighbour_left || news->from == neighbour(w);
        w->n_left++;
        break;
    case LOST:
        lose(w, news->message, now_s);
        break;
    }
}

static void hear(struct adl_watch *w, double now_s)
{
    while (adl_mpi_test(&w->hearing)) {
        take(w, now_s);
        listen(w);
    }
}

static void beat(struct adl_watch *w, double now_s)
{
    if (now_s < w->beat_due_s || !adl_mpi_test(&w->beating))
        return;
    w->beat_due_s = now_s + w->beat_s;
    adl_mpi_send(w->wire, (w->rank + 1) % w->n, 0, &w->alive, sizeof w->alive, &w->beating);
}

/* Misses the neighbour, unless it has left or this process was asleep itself. */
static void miss(struct adl_watch *w, double now_s)
{
    if (now_s - w->ticked_s > asleep_ticks * w->tick_s || w->neighbour_left)
        w->heard_s = now_s;
    if (now_s - w->heard_s < w->deadline_s || w->lost)
        return;
    snprintf(w->loss.news.message, sizeof w->loss.news.message,
             "rank %d has given no sign of life for %g s (mpi.deadline): it has stopped or is cut "
             "off",
             neighbour(w), w->deadline_s);
    tell_all(w, &w->loss, LOST);
    lose(w, w->loss.news.message, now_s);
}

/* A thread that is stuck within MPI cannot be called back. */
static void end_if_stuck(struct adl_watch *w, double now_s)
{
    if (!w->lost || now_s - w->lost_s < last_words_s)
        return;
    fprintf(stderr, "adloco: %s\n", w->crew->failure.message);
    adl_mpi_abort();
}

static void *watch_main(void *arg)
{
    struct adl_watch *w = arg;
    while (!w->ending) {
        double now_s = adl_clock_s(&w->clock);
        hear(w, now_s);
        beat(w, now_s);
        miss(w, now_s);
        end_if_stuck(w, now_s);
        w->ticked_s = now_s;
        struct timespec pause = {.tv_nsec = (long)(1e9 * w->tick_s)};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

enum adl_status adl_watch_open(struct adl_crew *crew, double deadline_s, struct adl_watch **out,
                               struct adl_err *err)
{
    struct adl_watch *w = calloc(1, sizeof *w);
    if (!w)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a watch");
    *out = w;
    w->crew = crew;
    ADL_TRY(adl_mpi_open(&w->wire, err));
    w->rank = adl_mpi_rank(w->wire);
    w->n = adl_mpi_size(w->wire);
    w->deadline_s = deadline_s;
    w->beat_s = deadline_s < 10 ? deadline_s / 10 : 1;
    w->tick_s = 0.02;
    w->failure.requests = calloc((size_t)w->n, sizeof *w->failure.requests);
    w->goodbye.requests = calloc((size_t)w->n, sizeof *w->goodbye.requests);
    w->loss.requests = calloc((size_t)w->n, sizeof *w->loss.requests);
    if (!w->failure.requests || !w->goodbye.requests || !w->loss.requests)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a watch of %d processes", w->n);
    adl_clock_set(&w->clock, 0);
    if (w->n == 1)
        return ADL_OK;
    listen(w);
    int cause = pthread_create(&w->thread, NULL, watch_main, w);
    if (cause)
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot start a thread: %s", strerror(cause));
    w->started = true;
    return ADL_OK;
}

bool adl_watch_lost(const struct adl_watch *w)
{
    return w->lost;
}

/* ---- waiting ---- */

/* First at full speed, for the latency; then out of the way of those waited for. */
static void stand_back(int64_t tries)
{
    if (tries < 200)
        return;
    if (tries < 2000) {
        sched_yield();
        return;
    }
    struct timespec pause = {.tv_nsec = tries < 4000 ? 20000 : 200000};
    nanosleep(&pause, NULL);
}

/* Why there is no point in going on; ADL_OK: there is. */
static enum adl_status bad_news(struct adl_watch *w, double *since_s, bool stubborn,
                                struct adl_err *err)
{
    if (w->lost || !stubborn)
        ADL_TRY(adl_crew_check(w->crew, err));
    double now_s = adl_clock_s(&w->clock);
    if (w->n_left == 0 || *since_s < 0)
        *since_s = now_s;
    if (now_s - *since_s > farewell_s)
        return adl_fail(err, ADL_ERR_PEER, "another process has left the run");
    return ADL_OK;
}

enum adl_status adl_watch_wait(struct adl_watch *w, enum adl_progress (*progress)(void *arg),
                               void *arg, bool stubborn, struct adl_err *err)
{
    double since_s = -1;
    int64_t tries = 0;
    for (;;) {
        enum adl_progress got = progress(arg);
        if (got == ADL_DONE)
            return ADL_OK;
        if (got == ADL_MOVED) {
            tries = 0;
            since_s = -1;
        }
        if (tries % 64 == 0 || tries > 2000)
            ADL_TRY(bad_news(w, &since_s, stubborn, err));
        stand_back(tries++);
    }
}

/* ---- the end ---- */

static bool settled(struct adl_watch *w)
{
    return w->n_left == w->n - 1 && told_all(w, &w->failure) && told_all(w, &w->goodbye);
}

/* After everyone's goodbye only signs of life are under way. */
static void stop_listening(struct adl_watch *w)
{
    w->ending = true;
    pthread_join(w->thread, NULL);
    adl_mpi_cancel(&w->hearing);
    while (!adl_mpi_test(&w->hearing) || !adl_mpi_test(&w->beating))
        adl_mpi_drop(w->wire);
}

static bool say_goodbye(struct adl_watch *w, struct adl_mpi *const *wires, int n)
{
    tell_all(w, &w->goodbye, LEAVING);
    for (int64_t tries = 0; !w->lost && !settled(w); tries++) {
        for (int i = 0; i < n; i++)
            while (adl_mpi_drop(wires[i]))
                ;
        stand_back(tries);
    }
    if (!w->lost)
        stop_listening(w);
    return !w->lost;
}

bool adl_watch_close(struct adl_watch *w, struct adl_mpi *const *wires, int n)
{
    if (!w)
        return true;
    /* where one is lost, the thread sees to the end of the process, and keeps its memory */
    if (w->started && !say_goodbye(w, wires, n))
        return false;
    adl_mpi_close(w->wire);
    free(w->failure.requests);
    free(w->goodbye.requests);
    free(w->loss.requests);
    free(w);
    return true;
}
