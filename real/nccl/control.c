/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/control.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/nccl/frame.h"
#include "real/nccl/hub.h"
#include "real/net.h"

enum { PIECE = 64 * 1024 };

struct parcel { /* bytes that another process passes */
    int from;
    char *data;
    size_t bytes;
    struct parcel *next;
};

struct adl_control {
    struct adl_crew *crew;
    struct adl_hub *hub; /* rank 0's */
    int rank, n, fd;
    double deadline_s, beat_s, beat_due_s, heard_s, ticked_s;
    struct adl_clock clock;
    pthread_t thread;
    bool started;
    atomic_bool ending, lost;
    bool gone; /* the hub has closed the connection */
    pthread_mutex_t writing;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t news;
    struct adl_visit *visits;
    struct parcel *parcels;
    uint64_t n_taken;      /* pieces that others have taken of this process's */
    int n_left;            /* others that have said goodbye */
    int one_left;          /* one of them */
    uint64_t counts[2];    /* rooms entered, by enum adl_room_kind */
    struct adl_frame head; /* being read */
    size_t got;
    char *body;
};

static const double tick_s = 0.05;
/* Silence is given this much longer where this process itself did not run. */
static const double asleep_s = 1;
/* How long a waiting call looks for what a process sent before it left. */
static const double farewell_s = 1;
/* How long this process's own goodbye may take. */
static const double last_words_s = 5;

/* ---- sending ---- */

static bool write_all(struct adl_control *c, const void *data, size_t bytes)
{
    double until_s = adl_clock_s(&c->clock) + c->deadline_s;
    for (size_t done = 0; done < bytes;) {
        ssize_t sent = adl_net_write(c->fd, (const char *)data + done, bytes - done);
        if (sent < 0 || c->lost || adl_clock_s(&c->clock) > until_s)
            return false;
        done += (size_t)sent;
        if (done < bytes)
            adl_net_wait(c->fd, true, tick_s);
    }
    return true;
}

static bool send_frame(struct adl_control *c, const struct adl_frame *head, const void *body)
{
    pthread_mutex_lock(&c->writing);
    bool sent = write_all(c, head, sizeof *head) && write_all(c, body, head->bytes);
    pthread_mutex_unlock(&c->writing);
    return sent;
}

static enum adl_status send_or_fail(struct adl_control *c, const struct adl_frame *head,
                                    const void *body, struct adl_err *err)
{
    if (send_frame(c, head, body))
        return ADL_OK;
    ADL_TRY(adl_crew_check(c->crew, err)); /* which knows better */
    return adl_fail(err, ADL_ERR_PEER, "rank 0 is not listening any more");
}

void adl_control_tell(struct adl_control *c, const struct adl_err *failure)
{
    const struct adl_frame head = {.kind = ADL_FRAME_FAILED,
                                   .peer = -1,
                                   .number = (int32_t)failure->status,
                                   .bytes = (uint32_t)strlen(failure->message)};
    send_frame(c, &head, failure->message);
}

/* ---- hearing ---- */

static void lose(struct adl_control *c, const char *message)
{
    adl_crew_fail(c->crew, ADL_ERR_PEER, message, false);
    c->lost = true;
}

static void hear_failure(struct adl_control *c)
{
    char message[sizeof((struct adl_err *)0)->message];
    snprintf(message, sizeof message, "%.*s", (int)c->head.bytes, c->body);
    if (c->head.kind == ADL_FRAME_LOST)
        lose(c, message);
    else
        adl_crew_fail(c->crew, (enum adl_status)c->head.number, message, false);
}

/* The visit is out of the list before it is told, and done after: so long it lives. */
static void hear_answer(struct adl_control *c)
{
    struct adl_visit **at = &c->visits;
    while (*at && (*at)->room != c->head.room)
        at = &(*at)->next;
    struct adl_visit *visit = *at;
    if (!visit) /* somebody has given up waiting */
        return;
    *at = visit->next;
    visit->answer = c->body;
    visit->bytes = c->head.bytes;
    c->body = NULL;
    if (visit->arrived)
        visit->arrived(visit->arg);
    visit->done = true;
}

static void hear_data(struct adl_control *c)
{
    struct parcel *parcel = malloc(sizeof *parcel), **at = &c->parcels;
    if (!parcel) {
        adl_crew_fail(c->crew, ADL_ERR_NOMEM, "no memory for what another process passes", false);
        return;
    }
    *parcel = (struct parcel){.from = c->head.peer, .data = c->body, .bytes = c->head.bytes};
    c->body = NULL;
    while (*at)
        at = &(*at)->next;
    *at = parcel;
}

static void take(struct adl_control *c)
{
    pthread_mutex_lock(&c->mutex);
    switch (c->head.kind) {
    case ADL_FRAME_ANSWER:
        hear_answer(c);
        break;
    case ADL_FRAME_DATA:
        hear_data(c);
        break;
    case ADL_FRAME_TAKEN:
        c->n_taken++;
        break;
    case ADL_FRAME_FAILED:
    case ADL_FRAME_LOST:
        hear_failure(c);
        break;
    case ADL_FRAME_BYE:
        c->n_left++;
        c->one_left = c->head.peer;
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->mutex);
    free(c->body);
    c->body = NULL;
    c->got = 0;
}

static void lose_hub(struct adl_control *c, const char *why)
{
    if (!c->lost && !c->ending)
        lose(c, why);
}

/* Whether there may be more to read. */
static bool read_some(struct adl_control *c)
{
    size_t head = sizeof c->head;
    bool in_head = c->got < head;
    char *to = in_head ? (char *)&c->head + c->got : c->body + (c->got - head);
    size_t bytes = in_head ? head - c->got : head + c->head.bytes - c->got;
    ssize_t got = adl_net_read(c->fd, to, bytes);
    if (got < 0) {
        c->gone = true;
        lose_hub(c, "rank 0 is gone: its connection was closed");
    }
    if (got <= 0)
        return false;
    c->heard_s = adl_clock_s(&c->clock);
    c->got += (size_t)got;
    if (in_head && c->got == head) {
        c->body = c->head.bytes <= ADL_ANSWER_MOST ? malloc((size_t)c->head.bytes + 1) : NULL;
        if (!c->body) {
            lose_hub(c, "rank 0 sends more than there is memory for");
            return false;
        }
    }
    if (c->got >= head && c->got == head + c->head.bytes)
        take(c);
    return true;
}

/* A sign of life, unless somebody is sending something anyway. */
static void beat(struct adl_control *c, double now_s)
{
    const struct adl_frame alive = {.kind = ADL_FRAME_ALIVE};
    if (now_s < c->beat_due_s || pthread_mutex_trylock(&c->writing) != 0)
        return;
    c->beat_due_s = now_s + c->beat_s;
    if (adl_net_wait(c->fd, true, 0))
        write_all(c, &alive, sizeof alive);
    pthread_mutex_unlock(&c->writing);
}

static void miss(struct adl_control *c, double now_s)
{
    char why[160];
    if (now_s - c->ticked_s > asleep_s)
        c->heard_s = now_s;
    c->ticked_s = now_s;
    if (now_s - c->heard_s < c->deadline_s)
        return;
    snprintf(why, sizeof why,
             "rank 0 has given no sign of life for %g s (nccl.deadline): it has stopped or is cut "
             "off",
             c->deadline_s);
    lose_hub(c, why);
}

/* Whether this process has said goodbye, and the hub has heard it: what is left unread would take
 * the goodbye with it. */
static bool ended(const struct adl_control *c, double now_s, double *until_s)
{
    if (!c->ending)
        *until_s = now_s + last_words_s;
    return c->ending && (c->gone || c->lost || now_s > *until_s);
}

static void *control_main(void *arg)
{
    struct adl_control *c = arg;
    double until_s = 0;
    for (double now_s = 0; !ended(c, now_s, &until_s); now_s = adl_clock_s(&c->clock)) {
        beat(c, now_s);
        miss(c, now_s);
        if (c->gone) {
            const struct timespec pause = {.tv_nsec = (long)(1e9 * tick_s)};
            nanosleep(&pause, NULL); /* its socket is always ready to be read */
        } else if (adl_net_wait(c->fd, false, tick_s)) {
            while (read_some(c))
                ;
        }
    }
    return NULL;
}

/* ---- waiting ---- */

/* What is under the mutex may have changed, or a moment has passed. */
static void await_news(struct adl_control *c)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(1e9 * tick_s);
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&c->news, &c->mutex, &until);
}

/* Why there is no point in waiting on; since_s: when it began. */
static enum adl_status bad_news(struct adl_control *c, double *since_s, bool stubborn,
                                struct adl_err *err)
{
    if (c->lost || !stubborn)
        ADL_TRY(adl_crew_check(c->crew, err));
    double now_s = adl_clock_s(&c->clock);
    if (c->n_left == 0)
        *since_s = now_s;
    if (now_s - *since_s > farewell_s)
        return adl_fail(err, ADL_ERR_PEER, "rank %d has left the run", c->one_left);
    return ADL_OK;
}

/* Until `arrived` says so, which is asked under the mutex. */
static enum adl_status wait_until(struct adl_control *c, bool (*arrived)(void *arg), void *arg,
                                  bool stubborn, struct adl_err *err)
{
    enum adl_status status = ADL_OK;
    double since_s = adl_clock_s(&c->clock);
    pthread_mutex_lock(&c->mutex);
    while (status == ADL_OK && !arrived(arg)) {
        /* the crew asks the user, who must not hold up the news */
        pthread_mutex_unlock(&c->mutex);
        status = bad_news(c, &since_s, stubborn, err);
        pthread_mutex_lock(&c->mutex);
        if (status == ADL_OK && !arrived(arg))
            await_news(c);
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ---- rooms ---- */

static void withdraw(struct adl_control *c, struct adl_visit *visit)
{
    pthread_mutex_lock(&c->mutex);
    struct adl_visit **at = &c->visits;
    while (*at && *at != visit)
        at = &(*at)->next;
    if (*at)
        *at = visit->next;
    pthread_mutex_unlock(&c->mutex);
    free(visit->answer);
    visit->answer = NULL;
}

enum { TRAINER_ROOMS = 2 }; /* kinds of rooms: the two of calls, then trainers' */

static enum adl_status enter(struct adl_control *c, struct adl_visit *visit,
                             const struct adl_frame *head, const void *body, size_t bytes,
                             struct adl_err *err)
{
    if (bytes > ADL_FRAME_MOST)
        return adl_fail(err, ADL_ERR_RUNTIME,
                        "%zu bytes are too many to tell all processes (at most %u)", bytes,
                        (unsigned)ADL_FRAME_MOST);
    visit->room = head->room;
    visit->done = false;
    visit->answer = NULL;
    pthread_mutex_lock(&c->mutex);
    visit->next = c->visits;
    c->visits = visit;
    pthread_mutex_unlock(&c->mutex);
    enum adl_status status = send_or_fail(c, head, body, err);
    if (status != ADL_OK)
        withdraw(c, visit);
    return status;
}

enum adl_status adl_control_enter_all(struct adl_control *c, struct adl_visit *visit,
                                      enum adl_room_kind kind, const void *mine, size_t bytes,
                                      struct adl_err *err)
{
    const struct adl_frame head = {.kind = ADL_FRAME_ENTER,
                                   .number = c->n,
                                   .bytes = (uint32_t)bytes,
                                   .room = c->counts[kind]++ << 32 | (uint64_t)kind};
    return enter(c, visit, &head, mine, bytes, err);
}

enum adl_status adl_control_enter_sum(struct adl_control *c, struct adl_visit *visit, int trainer,
                                      int n, const double *rows, size_t n_rows, size_t width,
                                      struct adl_err *err)
{
    const size_t bytes = n_rows * width * sizeof *rows;
    const struct adl_frame head = {.kind = ADL_FRAME_ADD,
                                   .number = n,
                                   .width = (uint32_t)width,
                                   .bytes = (uint32_t)bytes,
                                   .room = (uint64_t)(TRAINER_ROOMS + trainer)};
    return enter(c, visit, &head, rows, bytes, err);
}

static bool visit_done(void *arg)
{
    return ((struct adl_visit *)arg)->done;
}

enum adl_status adl_control_wait(struct adl_control *c, struct adl_visit *visit, bool stubborn,
                                 struct adl_err *err)
{
    enum adl_status status = wait_until(c, visit_done, visit, stubborn, err);
    if (status != ADL_OK)
        withdraw(c, visit);
    return status;
}

const char *adl_visit_part(const struct adl_visit *visit, int rank, size_t *bytes)
{
    size_t at = 0;
    for (int p = 0;; p++) {
        uint32_t size;
        if (at + sizeof size > visit->bytes)
            return NULL;
        memcpy(&size, visit->answer + at, sizeof size);
        at += sizeof size;
        if (size > visit->bytes - at)
            return NULL;
        if (p == rank) {
            *bytes = size;
            return visit->answer + at;
        }
        at += size;
    }
}

enum adl_status adl_visit_alone(struct adl_visit *visit, const void *mine, size_t bytes,
                                struct adl_err *err)
{
    const uint32_t size = (uint32_t)bytes;
    *visit = (struct adl_visit){.done = true, .bytes = sizeof size + bytes};
    visit->answer = malloc(visit->bytes);
    if (!visit->answer)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a meeting");
    memcpy(visit->answer, &size, sizeof size);
    memcpy(visit->answer + sizeof size, mine, bytes);
    return ADL_OK;
}

/* ---- passing ---- */

struct taken {
    const struct adl_control *c;
    uint64_t n;
};

static bool all_taken(void *arg)
{
    const struct taken *t = arg;
    return t->c->n_taken >= t->n;
}

static enum adl_status give(struct adl_control *c, int to, const char *data, size_t bytes,
                            struct adl_err *err)
{
    const struct adl_frame head = {.kind = ADL_FRAME_DATA, .peer = to, .bytes = (uint32_t)bytes};
    pthread_mutex_lock(&c->mutex);
    struct taken taken = {c, c->n_taken + (uint64_t)(to < 0 ? c->n - 1 : 1)};
    pthread_mutex_unlock(&c->mutex);
    ADL_TRY(send_or_fail(c, &head, data, err));
    return wait_until(c, all_taken, &taken, false, err);
}

struct expected {
    struct adl_control *c;
    int from;
    struct parcel *parcel;
};

static bool parcel_here(void *arg)
{
    struct expected *e = arg;
    struct parcel **at = &e->c->parcels;
    while (*at && (*at)->from != e->from)
        at = &(*at)->next;
    e->parcel = *at;
    if (*at)
        *at = (*at)->next;
    return e->parcel != NULL;
}

static enum adl_status receive(struct adl_control *c, int from, char *data, size_t bytes,
                               struct adl_err *err)
{
    struct expected e = {.c = c, .from = from};
    ADL_TRY(wait_until(c, parcel_here, &e, false, err));
    enum adl_status status = ADL_OK;
    if (e.parcel->bytes == bytes)
        memcpy(data, e.parcel->data, bytes);
    else
        status = adl_fail(err, ADL_ERR_BUG, "rank %d passes %zu bytes, rank %d expects %zu", from,
                          e.parcel->bytes, c->rank, bytes);
    free(e.parcel->data);
    free(e.parcel);
    ADL_TRY(status);
    const struct adl_frame taken = {.kind = ADL_FRAME_TAKEN, .peer = from};
    return send_or_fail(c, &taken, NULL, err);
}

enum adl_status adl_control_pass(struct adl_control *c, int from, int to, void *data, size_t bytes,
                                 struct adl_err *err)
{
    bool takes = c->rank != from && (to == ADL_EVERY_PROCESS || to == c->rank);
    for (size_t at = 0; (takes || c->rank == from) && at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        if (takes)
            ADL_TRY(receive(c, from, (char *)data + at, n, err));
        else
            ADL_TRY(give(c, to == ADL_EVERY_PROCESS ? -1 : to, (char *)data + at, n, err));
    }
    return ADL_OK;
}

/* ---- open, close ---- */

bool adl_control_lost(struct adl_control *c)
{
    return c->lost;
}

static void init(struct adl_control *c)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&c->news, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_mutex_init(&c->writing, NULL);
    adl_clock_set(&c->clock, 0);
    c->beat_s = c->deadline_s < 10 ? c->deadline_s / 10 : 1;
}

void adl_control_close_sockets(const int *sockets, int n)
{
    for (int p = 0; p < n; p++)
        if (sockets[p] >= 0)
            close(sockets[p]);
}

/* Rank 0 talks to its hub as the others do. */
static enum adl_status open_hub(struct adl_control *c, const int *sockets, struct adl_err *err)
{
    int pair[2], *all = malloc((size_t)c->n * sizeof *all);
    if (!all || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
        free(all);
        adl_control_close_sockets(sockets, c->n);
        return adl_fail(err, ADL_ERR_RUNTIME, "no sockets for %d processes: %s", c->n,
                        strerror(errno));
    }
    adl_net_prepare(pair[0]);
    adl_net_prepare(pair[1]);
    memcpy(all, sockets, (size_t)c->n * sizeof *all);
    all[0] = pair[0];
    c->fd = pair[1];
    enum adl_status status = adl_hub_open(all, c->n, c->deadline_s, &c->hub, err);
    free(all);
    return status;
}

enum adl_status adl_control_open(struct adl_crew *crew, int rank, int n, const int *sockets,
                                 double deadline_s, struct adl_control **out, struct adl_err *err)
{
    struct adl_control *c = calloc(1, sizeof *c);
    if (!c) {
        adl_control_close_sockets(sockets, n);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the control network");
    }
    *out = c;
    *c = (struct adl_control){
        .crew = crew, .rank = rank, .n = n, .deadline_s = deadline_s, .fd = sockets[0]};
    init(c);
    if (rank == 0)
        ADL_TRY(open_hub(c, sockets, err));
    int cause = pthread_create(&c->thread, NULL, control_main, c);
    if (cause)
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot start a thread: %s", strerror(cause));
    c->started = true;
    return ADL_OK;
}

void adl_control_close(struct adl_control *c)
{
    if (!c)
        return;
    const struct adl_frame bye = {.kind = ADL_FRAME_BYE, .peer = -1};
    if (c->started) {
        send_frame(c, &bye, NULL);
        c->ending = true;
        pthread_join(c->thread, NULL);
    }
    if (c->fd >= 0)
        close(c->fd);
    adl_hub_close(c->hub);
    while (c->parcels) {
        struct parcel *next = c->parcels->next;
        free(c->parcels->data);
        free(c->parcels);
        c->parcels = next;
    }
    free(c->body);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->writing);
    free(c);
}
