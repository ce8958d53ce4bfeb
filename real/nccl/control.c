/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/control_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "real/nccl/hub.h"
#include "real/net.h"

static const double tick_s = 0.05;
/* Silence is given this much longer where this process itself did not run. */
static const double asleep_s = 1;
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

enum adl_status adl_control_send(struct adl_control *c, const struct adl_frame *head,
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
    if (c)
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
    snprintf(message, sizeof message, "%.*s", (int)c->in.head.bytes, c->in.body);
    if (c->in.head.kind == ADL_FRAME_LOST)
        lose(c, message);
    else
        adl_crew_fail(c->crew, (enum adl_status)c->in.head.number, message, false);
}

/* The visit is out of the list before it is told, and done after: so long it lives. */
static void hear_answer(struct adl_control *c)
{
    struct adl_visit **at = &c->visits;
    while (*at && (*at)->room != c->in.head.room)
        at = &(*at)->next;
    struct adl_visit *visit = *at;
    if (!visit) /* somebody has given up waiting */
        return;
    *at = visit->next;
    visit->answer = c->in.body;
    visit->bytes = c->in.head.bytes;
    c->in.body = NULL;
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
    *parcel =
        (struct parcel){.from = c->in.head.peer, .data = c->in.body, .bytes = c->in.head.bytes};
    c->in.body = NULL;
    while (*at)
        at = &(*at)->next;
    *at = parcel;
}

static void take(struct adl_control *c)
{
    pthread_mutex_lock(&c->mutex);
    switch (c->in.head.kind) {
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
        c->one_left = c->in.head.peer;
        break;
    default:
        break;
    }
    pthread_cond_broadcast(&c->news);
    pthread_mutex_unlock(&c->mutex);
    free(adl_frame_next(&c->in));
}

static void lose_hub(struct adl_control *c, const char *why)
{
    if (!c->lost && !c->ending)
        lose(c, why);
}

static bool fits(const struct adl_frame *head, int n)
{
    (void)n;
    return head->bytes <= ADL_ANSWER_MOST;
}

/* Whether there may be more to read. */
static bool read_some(struct adl_control *c)
{
    enum adl_frame_news news = adl_frame_read(&c->in, c->fd, fits, 0);
    switch (news) {
    case ADL_FRAME_NOTHING:
        return false;
    case ADL_FRAME_CLOSED:
        c->gone = true;
        lose_hub(c, "rank 0 is gone: its connection was closed");
        return false;
    case ADL_FRAME_NONSENSE:
    case ADL_FRAME_NO_MEMORY:
        c->gone = true;
        lose_hub(c, "rank 0 sends more than there is memory for");
        return false;
    default:
        break;
    }
    c->heard_s = adl_clock_s(&c->clock);
    if (news == ADL_FRAME_WHOLE)
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

/* ---- open, close ---- */

bool adl_control_lost(struct adl_control *c)
{
    return c && c->lost;
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
        c->ending = true; /* first: that the hub hangs up on a goodbye is no loss */
        send_frame(c, &bye, NULL);
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
    free(c->in.body);
    pthread_cond_destroy(&c->news);
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->writing);
    free(c);
}
