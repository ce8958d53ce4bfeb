/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/hub.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/clock.h"
#include "real/nccl/frame.h"
#include "real/net.h"

struct peer {
    int fd; /* -1: lost, or has left */
    double heard_s;
    struct adl_frame_reader in;
    char *out; /* [n_out] to be written, from `written` on */
    size_t n_out, written, room_out;
};

struct room {
    uint64_t key;
    int n_expected, n_here;
    struct adl_frame head; /* the first one's */
    char **parts;          /* [n] by rank; NULL: not here */
    uint32_t *bytes;       /* [n] */
    struct room *next;
};

struct adl_hub {
    int n;
    struct peer *peers;
    struct pollfd *polls; /* [n] */
    struct room *rooms;
    double deadline_s, beat_s, beat_due_s, ticked_s;
    struct adl_clock clock;
    pthread_t thread;
    bool out_of_memory;
};

static const double tick_s = 0.05;
/* Silence is given this much longer where this process itself did not run. */
static const double asleep_s = 1;

/* ---- writing ---- */

static void flush(struct adl_hub *h, int p)
{
    struct peer *peer = &h->peers[p];
    while (peer->fd >= 0 && peer->written < peer->n_out) {
        ssize_t sent =
            adl_net_write(peer->fd, peer->out + peer->written, peer->n_out - peer->written);
        if (sent <= 0)
            return; /* reading tells whether it is gone */
        peer->written += (size_t)sent;
    }
    peer->n_out = peer->written = 0;
}

static bool make_room(struct peer *peer, size_t bytes)
{
    if (peer->n_out + bytes <= peer->room_out)
        return true;
    size_t size = 2 * (peer->n_out + bytes);
    char *more = realloc(peer->out, size);
    if (!more)
        return false;
    peer->out = more;
    peer->room_out = size;
    return true;
}

static void put(struct peer *peer, const void *data, size_t bytes)
{
    if (bytes > 0)
        memcpy(peer->out + peer->n_out, data, bytes);
    peer->n_out += bytes;
}

static void send_frame(struct adl_hub *h, int p, const struct adl_frame *head, const void *body)
{
    struct peer *peer = &h->peers[p];
    if (peer->fd < 0)
        return;
    if (!make_room(peer, sizeof *head + head->bytes)) {
        h->out_of_memory = true;
        return;
    }
    put(peer, head, sizeof *head);
    put(peer, body, head->bytes);
    flush(h, p);
}

static void send_others(struct adl_hub *h, int but, const struct adl_frame *head, const void *body)
{
    for (int p = 0; p < h->n; p++)
        if (p != but)
            send_frame(h, p, head, body);
}

/* ---- who is not here any more ---- */

static void drop(struct adl_hub *h, int p)
{
    struct peer *peer = &h->peers[p];
    close(peer->fd);
    peer->fd = -1;
}

static void lose(struct adl_hub *h, int p, const char *why)
{
    char message[200];
    snprintf(message, sizeof message, "rank %d %s", p, why);
    struct adl_frame head = {.kind = ADL_FRAME_LOST, .peer = p, .bytes = (uint32_t)strlen(message)};
    drop(h, p);
    send_others(h, p, &head, message);
}

/* ---- rooms ---- */

static void free_room(struct adl_hub *h, struct room *room)
{
    for (int p = 0; room->parts && p < h->n; p++)
        free(room->parts[p]);
    free(room->parts);
    free(room->bytes);
    free(room);
}

static struct room *find_room(struct adl_hub *h, const struct adl_frame *head)
{
    for (struct room *room = h->rooms; room; room = room->next)
        if (room->key == head->room)
            return room;
    struct room *room = calloc(1, sizeof *room);
    if (!room)
        return NULL;
    room->key = head->room;
    room->head = *head;
    room->n_expected = head->number;
    room->parts = calloc((size_t)h->n, sizeof *room->parts);
    room->bytes = calloc((size_t)h->n, sizeof *room->bytes);
    if (!room->parts || !room->bytes) {
        free_room(h, room);
        return NULL;
    }
    room->next = h->rooms;
    h->rooms = room;
    return room;
}

static void answer(struct adl_hub *h, const struct room *room, const void *body, size_t bytes)
{
    struct adl_frame head = {.kind = ADL_FRAME_ANSWER, .room = room->key, .bytes = (uint32_t)bytes};
    for (int p = 0; p < h->n; p++)
        if (room->parts[p])
            send_frame(h, p, &head, body);
}

static void answer_all(struct adl_hub *h, const struct room *room)
{
    size_t total = 0, at = 0;
    for (int p = 0; p < h->n; p++)
        total += sizeof room->bytes[p] + room->bytes[p];
    char *body = malloc(total);
    if (!body || total > ADL_ANSWER_MOST) {
        h->out_of_memory = true;
        free(body);
        return;
    }
    for (int p = 0; p < h->n; p++) {
        memcpy(body + at, &room->bytes[p], sizeof room->bytes[p]);
        at += sizeof room->bytes[p];
        if (room->bytes[p] > 0)
            memcpy(body + at, room->parts[p], room->bytes[p]);
        at += room->bytes[p];
    }
    answer(h, room, body, total);
    free(body);
}

static void answer_sum(struct adl_hub *h, const struct room *room)
{
    size_t width = room->head.width, row = width * sizeof(double);
    double *sum = calloc(width + 1, sizeof *sum);
    if (!sum) {
        h->out_of_memory = true;
        return;
    }
    bool first = true;
    for (int p = 0; p < h->n; p++) {
        const double *rows = (const double *)(const void *)room->parts[p];
        for (size_t i = 0; rows && row > 0 && i < room->bytes[p] / row; i++, first = false)
            for (size_t k = 0; k < width; k++)
                sum[k] = first ? rows[i * width + k] : sum[k] + rows[i * width + k];
    }
    answer(h, room, sum, row);
    free(sum);
}

static void leave_room(struct adl_hub *h, struct room *room)
{
    struct room **at = &h->rooms;
    while (*at != room)
        at = &(*at)->next;
    *at = room->next;
    free_room(h, room);
}

/* Takes the body over. False: p says what cannot be. */
static bool enter(struct adl_hub *h, int p, const struct adl_frame *head, char *body)
{
    struct room *room = find_room(h, head);
    if (!room) {
        free(body);
        h->out_of_memory = true;
        return true;
    }
    if (room->parts[p] || room->n_expected != head->number || room->head.kind != head->kind ||
        room->head.width != head->width) {
        free(body);
        return false;
    }
    room->parts[p] = body;
    room->bytes[p] = head->bytes;
    if (++room->n_here < room->n_expected)
        return true;
    if (head->kind == ADL_FRAME_ENTER)
        answer_all(h, room);
    else
        answer_sum(h, room);
    leave_room(h, room);
    return true;
}

/* ---- reading ---- */

static bool pass_on(struct adl_hub *h, int p, struct adl_frame *head, const char *body)
{
    int to = head->peer;
    if (to < -1 || to >= h->n)
        return false;
    head->peer = p;
    if (to >= 0)
        send_frame(h, to, head, body);
    else
        send_others(h, p, head, body);
    return true;
}

/* A whole frame of p. False: it is none of ours. */
static bool take(struct adl_hub *h, int p)
{
    struct peer *peer = &h->peers[p];
    struct adl_frame head = peer->in.head;
    char *body = adl_frame_next(&peer->in);
    bool good = true;
    switch (head.kind) {
    case ADL_FRAME_ENTER:
    case ADL_FRAME_ADD:
        return enter(h, p, &head, body);
    case ADL_FRAME_DATA:
    case ADL_FRAME_TAKEN:
    case ADL_FRAME_FAILED:
        good = pass_on(h, p, &head, body);
        break;
    case ADL_FRAME_BYE:
        head.peer = p;
        head.bytes = 0;
        send_others(h, p, &head, NULL);
        drop(h, p);
        break;
    default: /* a sign of life */
        break;
    }
    free(body);
    return good;
}

/* n: processes. */
static bool sensible(const struct adl_frame *head, int n)
{
    const uint64_t row = (uint64_t)head->width * sizeof(double);
    if (head->kind >= ADL_N_FRAME_KINDS || head->bytes > ADL_FRAME_MOST)
        return false;
    if (head->kind == ADL_FRAME_ADD && (row ? head->bytes % row : head->bytes) != 0)
        return false; /* no whole rows */
    bool visit = head->kind == ADL_FRAME_ENTER || head->kind == ADL_FRAME_ADD;
    return !visit || (head->number > 0 && head->number <= n && row <= ADL_FRAME_MOST);
}

/* Some bytes of the head, or of what is behind it; whether there may be more. */
static bool read_some(struct adl_hub *h, int p)
{
    struct peer *peer = &h->peers[p];
    enum adl_frame_news news = adl_frame_read(&peer->in, peer->fd, sensible, h->n);
    if (news == ADL_FRAME_NOTHING)
        return false;
    peer->heard_s = adl_clock_s(&h->clock);
    if (news == ADL_FRAME_CLOSED)
        lose(h, p, "is gone: its connection was closed");
    else if (news == ADL_FRAME_NO_MEMORY)
        lose(h, p, "sends more than rank 0 has memory for");
    else if (news == ADL_FRAME_NONSENSE || (news == ADL_FRAME_WHOLE && !take(h, p)))
        lose(h, p, "says what no process of adloco says");
    return h->peers[p].fd >= 0;
}

/* ---- the thread ---- */

static void wait_for_anyone(struct adl_hub *h)
{
    for (int p = 0; p < h->n; p++) {
        struct peer *peer = &h->peers[p];
        short writes = peer->written < peer->n_out ? POLLOUT : 0;
        h->polls[p] = (struct pollfd){.fd = peer->fd, .events = (short)(POLLIN | writes)};
    }
    poll(h->polls, (nfds_t)h->n, (int)(tick_s * 1000));
}

static void beat(struct adl_hub *h, double now_s)
{
    const struct adl_frame alive = {.kind = ADL_FRAME_ALIVE};
    if (now_s < h->beat_due_s)
        return;
    h->beat_due_s = now_s + h->beat_s;
    for (int p = 0; p < h->n; p++)
        if (h->peers[p].n_out == 0) /* who does not read gets no more of them */
            send_frame(h, p, &alive, NULL);
}

static void miss(struct adl_hub *h, double now_s)
{
    char why[120];
    bool asleep = now_s - h->ticked_s > asleep_s;
    for (int p = 0; p < h->n; p++) {
        struct peer *peer = &h->peers[p];
        if (asleep)
            peer->heard_s = now_s;
        if (peer->fd < 0 || now_s - peer->heard_s < h->deadline_s)
            continue;
        snprintf(why, sizeof why,
                 "has given no sign of life for %g s (nccl.deadline): it has stopped or is cut off",
                 h->deadline_s);
        lose(h, p, why);
    }
    h->ticked_s = now_s;
}

static bool anyone(const struct adl_hub *h)
{
    for (int p = 0; p < h->n; p++)
        if (h->peers[p].fd >= 0)
            return true;
    return false;
}

static void tell_no_memory(struct adl_hub *h)
{
    static const char message[] = "rank 0 has no memory left for what processes tell each other";
    const struct adl_frame head = {
        .kind = ADL_FRAME_FAILED, .number = ADL_ERR_NOMEM, .bytes = sizeof message - 1};
    h->out_of_memory = false;
    send_others(h, -1, &head, message);
}

static void *hub_main(void *arg)
{
    struct adl_hub *h = arg;
    while (anyone(h)) {
        wait_for_anyone(h);
        for (int p = 0; p < h->n; p++) {
            if (h->polls[p].revents & POLLOUT)
                flush(h, p);
            if (h->polls[p].revents & (POLLIN | POLLHUP | POLLERR))
                while (h->peers[p].fd >= 0 && read_some(h, p))
                    ;
        }
        double now_s = adl_clock_s(&h->clock);
        beat(h, now_s);
        miss(h, now_s);
        if (h->out_of_memory)
            tell_no_memory(h);
    }
    return NULL;
}

/* ---- open, close ---- */

static void free_hub(struct adl_hub *h)
{
    while (h->rooms)
        leave_room(h, h->rooms);
    for (int p = 0; h->peers && p < h->n; p++) {
        if (h->peers[p].fd >= 0)
            close(h->peers[p].fd);
        free(h->peers[p].in.body);
        free(h->peers[p].out);
    }
    free(h->peers);
    free(h->polls);
    free(h);
}

enum adl_status adl_hub_open(const int *sockets, int n, double deadline_s, struct adl_hub **out,
                             struct adl_err *err)
{
    struct adl_hub *h = calloc(1, sizeof *h);
    if (h) {
        h->n = n;
        h->peers = calloc((size_t)n, sizeof *h->peers);
        h->polls = calloc((size_t)n, sizeof *h->polls);
    }
    if (!h || !h->peers || !h->polls) {
        for (int p = 0; p < n; p++)
            close(sockets[p]);
        if (h) {
            h->n = 0;
            free_hub(h);
        }
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a hub of %d processes", n);
    }
    h->deadline_s = deadline_s;
    h->beat_s = deadline_s < 10 ? deadline_s / 10 : 1;
    adl_clock_set(&h->clock, 0);
    for (int p = 0; p < n; p++)
        h->peers[p].fd = sockets[p];
    int cause = pthread_create(&h->thread, NULL, hub_main, h);
    if (cause) {
        free_hub(h);
        return adl_fail(err, ADL_ERR_RUNTIME, "cannot start a thread: %s", strerror(cause));
    }
    *out = h;
    return ADL_OK;
}

void adl_hub_close(struct adl_hub *h)
{
    if (!h)
        return;
    pthread_join(h->thread, NULL);
    free_hub(h);
}
