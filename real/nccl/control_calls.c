/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "real/nccl/control_parts.h"

enum { PIECE = 64 * 1024 };

static const double tick_s = 0.05;
/* How long a waiting call looks for what a process sent before it left. */
static const double farewell_s = 1;

/* ---- waiting ---- */

/* Why there is no point in waiting on; since_s: when it began. */
static enum adl_status bad_news(struct adl_control *c, double *since_s, bool stubborn,
                                struct adl_err *err)
{
    if (c->lost || !stubborn)
        ADL_TRY(adl_crew_check(c->crew, err));
    double now_s = adl_clock_s(&c->clock);
    pthread_mutex_lock(&c->mutex);
    int n_left = c->n_left, one_left = c->one_left;
    pthread_mutex_unlock(&c->mutex);
    if (n_left == 0)
        *since_s = now_s;
    if (now_s - *since_s > farewell_s)
        return adl_fail(err, ADL_ERR_PEER, "rank %d has left the run", one_left);
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
        const struct timespec until = adl_clock_in(tick_s);
        if (status == ADL_OK && !arrived(arg))
            pthread_cond_timedwait(&c->news, &c->mutex, &until);
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ---- rooms ---- */

/* False: too late, all are there. */
static bool withdraw(struct adl_control *c, struct adl_visit *visit)
{
    pthread_mutex_lock(&c->mutex);
    struct adl_visit **at = &c->visits;
    while (*at && *at != visit)
        at = &(*at)->next;
    bool waiting = *at != NULL;
    if (waiting)
        *at = visit->next;
    pthread_mutex_unlock(&c->mutex);
    return waiting;
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
    enum adl_status status = adl_control_send(c, head, body, err);
    if (status != ADL_OK)
        withdraw(c, visit);
    return status;
}

/* Alone, a process hears at once what it brought. */
static enum adl_status answer_alone(struct adl_visit *visit, const void *mine, size_t bytes,
                                    struct adl_err *err)
{
    const uint32_t size = (uint32_t)bytes;
    visit->bytes = sizeof size + bytes;
    visit->answer = malloc(visit->bytes);
    if (!visit->answer)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a meeting");
    memcpy(visit->answer, &size, sizeof size);
    memcpy(visit->answer + sizeof size, mine, bytes);
    if (visit->arrived)
        visit->arrived(visit->arg);
    visit->done = true;
    return ADL_OK;
}

enum adl_status adl_control_enter_all(struct adl_control *c, struct adl_visit *visit,
                                      enum adl_room_kind kind, const void *mine, size_t bytes,
                                      struct adl_err *err)
{
    if (!c)
        return answer_alone(visit, mine, bytes, err);
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
    struct adl_err why = {.status = ADL_OK};
    if (!c)
        return ADL_OK;
    enum adl_status status = wait_until(c, visit_done, visit, stubborn, &why);
    if (status == ADL_OK || !withdraw(c, visit))
        return ADL_OK; /* what its arrival has set going is the caller's to wait for */
    return adl_fail(err, status, "%s", why.message);
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
    ADL_TRY(adl_control_send(c, &head, data, err));
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
    if (e->parcel) /* asked again */
        return true;
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
    return adl_control_send(c, &taken, NULL, err);
}

enum adl_status adl_control_pass(struct adl_control *c, int from, int to, void *data, size_t bytes,
                                 struct adl_err *err)
{
    if (!c)
        return ADL_OK;
    bool takes = c->rank != from && (to == ADL_EVERY_PROCESS || to == c->rank);
    for (size_t at = 0; (takes || c->rank == from) && at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        if (takes)
            ADL_TRY(receive(c, from, (char *)data + at, n, err));
        else
            ADL_TRY(give(c, to, (char *)data + at, n, err));
    }
    return ADL_OK;
}
