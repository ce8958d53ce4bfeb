/* SPDX-License-Identifier: Apache-2.0 */
#include "real/rendezvous.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "real/clock.h"
#include "real/net.h"

static const char magic[8] = "adloco1\n";

struct hello {
    char magic[8];
    uint32_t rank, n;
    char token[ADL_TOKEN_MAX];
};
struct answer {
    char magic[8];
    uint32_t refused;
    char why[128];
};
_Static_assert(sizeof(struct hello) == 16 + ADL_TOKEN_MAX, "no gaps");
_Static_assert(sizeof(struct answer) == 140, "no gaps");

static const double hello_s = 10;  /* for a connection to say who it is */
static const double tick_s = 0.05; /* between questions whether to go on */
static const double connect_s = 3; /* for one try */

static enum adl_status check_cancelled(const struct adl_rendezvous *r, struct adl_err *err)
{
    if (r->cancelled && r->cancelled(r->arg))
        return adl_fail(err, ADL_ERR_CANCELLED, "cancelled");
    return ADL_OK;
}

/* ---- process 0 ---- */

enum { MOST_STRANGERS = 128 };

struct guest { /* a connection that has not said who it is */
    int fd;
    size_t got;
    double since_s;
    struct hello hello;
};

struct host {
    const struct adl_rendezvous *r;
    int listener;
    int *sockets;
    int n_missing;
    struct adl_clock clock;
    struct guest guests[MOST_STRANGERS];
    int n_guests;
    struct pollfd *polls; /* [1 + MOST_STRANGERS + n] */
    char last_refusal[200];
};

/* However the texts differ, it takes as long. */
static bool same_token(const char *a, const char *b)
{
    unsigned char differs = 0;
    for (size_t i = 0; i < ADL_TOKEN_MAX; i++)
        differs |= (unsigned char)(a[i] ^ b[i]);
    return differs == 0;
}

/* Both fit into any socket's buffer. */
static void welcome(int fd)
{
    adl_net_write(fd, magic, sizeof magic);
}

static void send_rest(int fd, const char *why)
{
    struct answer answer = {.refused = htonl(why != NULL)};
    if (why)
        snprintf(answer.why, sizeof answer.why, "%.*s", (int)sizeof answer.why - 1, why);
    adl_net_write(fd, &answer.refused, sizeof answer - sizeof answer.magic);
}

static void refuse(struct host *h, int fd, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void refuse(struct host *h, int fd, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(h->last_refusal, sizeof h->last_refusal, format, args);
    va_end(args);
    welcome(fd);
    send_rest(fd, h->last_refusal);
    close(fd);
}

/* A whole hello: takes its connection in, or closes it. */
static void greet(struct host *h, const struct guest *guest)
{
    const struct adl_rendezvous *r = h->r;
    const uint32_t rank = ntohl(guest->hello.rank), n = ntohl(guest->hello.n);
    if (memcmp(guest->hello.magic, magic, sizeof magic) != 0)
        close(guest->fd);
    else if (!same_token(guest->hello.token, r->token))
        refuse(h, guest->fd, "it named another token");
    else if (n != (uint32_t)r->n)
        refuse(h, guest->fd, "it expects %u processes, rank 0 expects %d", n, r->n);
    else if (rank == 0 || rank >= n)
        refuse(h, guest->fd, "it calls itself rank %u of %u", rank, n);
    else if (h->sockets[rank] >= 0)
        refuse(h, guest->fd, "there is a rank %u already", rank);
    else {
        h->sockets[rank] = guest->fd;
        h->n_missing--;
        welcome(guest->fd);
    }
}

static void forget(struct host *h, int i)
{
    h->guests[i] = h->guests[--h->n_guests];
}

static void let_in(struct host *h)
{
    int fd = accept(h->listener, NULL, NULL);
    if (fd < 0)
        return;
    if (h->n_guests == MOST_STRANGERS) { /* the one that has been silent longest goes */
        int oldest = 0;
        for (int i = 1; i < h->n_guests; i++)
            if (h->guests[i].since_s < h->guests[oldest].since_s)
                oldest = i;
        close(h->guests[oldest].fd);
        forget(h, oldest);
    }
    if (!adl_net_prepare(fd)) {
        close(fd);
        return;
    }
    h->guests[h->n_guests++] = (struct guest){.fd = fd, .since_s = adl_clock_s(&h->clock)};
}

/* Whether the guest stays a guest. */
static bool hear(struct host *h, struct guest *guest)
{
    ssize_t got = adl_net_read(guest->fd, (char *)&guest->hello + guest->got,
                               sizeof guest->hello - guest->got);
    if (got < 0 || (got == 0 && adl_clock_s(&h->clock) - guest->since_s > hello_s)) {
        close(guest->fd);
        return false;
    }
    guest->got += (size_t)got;
    if (guest->got < sizeof guest->hello)
        return true;
    greet(h, guest);
    return false;
}

/* One that has said who it is has nothing more to say: it can only go, and come again. */
static void miss(struct host *h)
{
    for (int p = 1; p < h->r->n; p++) {
        char byte;
        if (h->sockets[p] < 0 || adl_net_read(h->sockets[p], &byte, 1) == 0)
            continue;
        close(h->sockets[p]);
        h->sockets[p] = -1;
        h->n_missing++;
    }
}

static void wait_for_anyone(struct host *h)
{
    int n = 0;
    h->polls[n++] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    for (int i = 0; i < h->n_guests; i++)
        h->polls[n++] = (struct pollfd){.fd = h->guests[i].fd, .events = POLLIN};
    for (int p = 1; p < h->r->n; p++)
        h->polls[n++] = (struct pollfd){.fd = h->sockets[p], .events = POLLIN};
    poll(h->polls, (nfds_t)n, (int)(tick_s * 1000));
}

static enum adl_status fail_missing(const struct host *h, struct adl_err *err)
{
    char ranks[160] = "";
    int listed = 0;
    for (int p = 1; p < h->r->n && listed < 8; p++)
        if (h->sockets[p] < 0) {
            size_t used = strlen(ranks);
            snprintf(ranks + used, sizeof ranks - used, "%s%d", listed++ ? ", " : "", p);
        }
    return adl_fail(err, ADL_ERR_PEER,
                    "%d of %d processes did not come to port %d within %g s: rank %s%s%s%s",
                    h->n_missing, h->r->n, adl_net_port(h->listener), h->r->deadline_s, ranks,
                    h->n_missing > listed ? ", ..." : "",
                    *h->last_refusal ? "; one was refused: " : "", h->last_refusal);
}

static enum adl_status gather(struct host *h, struct adl_err *err)
{
    while (h->n_missing > 0) {
        ADL_TRY(check_cancelled(h->r, err));
        if (adl_clock_s(&h->clock) > h->r->deadline_s)
            return fail_missing(h, err);
        wait_for_anyone(h);
        let_in(h);
        for (int i = h->n_guests - 1; i >= 0; i--)
            if (!hear(h, &h->guests[i]))
                forget(h, i);
        miss(h);
    }
    return ADL_OK;
}

enum adl_status adl_rendezvous_accept(const struct adl_rendezvous *r, int listener, int *sockets,
                                      struct adl_err *err)
{
    struct host *h = calloc(1, sizeof *h);
    enum adl_status status = ADL_OK;
    for (int p = 0; p < r->n; p++)
        sockets[p] = -1;
    if (h)
        h->polls = calloc((size_t)(1 + MOST_STRANGERS + r->n), sizeof *h->polls);
    if (!h || !h->polls) {
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory to meet %d processes", r->n);
    } else {
        h->r = r;
        h->listener = listener;
        h->sockets = sockets;
        h->n_missing = r->n - 1;
        adl_clock_set(&h->clock, 0);
        status = gather(h, err);
        for (int i = 0; i < h->n_guests; i++)
            close(h->guests[i].fd);
    }
    for (int p = 1; p < r->n; p++) {
        if (sockets[p] < 0)
            continue;
        send_rest(sockets[p], status == ADL_OK ? NULL : err ? err->message : "rank 0 gave up");
        if (status != ADL_OK) {
            close(sockets[p]);
            sockets[p] = -1;
        }
    }
    close(listener);
    if (h)
        free(h->polls);
    free(h);
    return status;
}

enum adl_status adl_rendezvous_listen(struct adl_rendezvous *r, int *listener, struct adl_err *err)
{
    bool near = strcmp(r->hosts, "localhost") == 0 || strncmp(r->hosts, "127.", 4) == 0 ||
                strcmp(r->hosts, "::1") == 0;
    const char *why = "";
    *listener = adl_net_listen(near ? r->hosts : NULL, r->port, &why);
    if (*listener < 0)
        return adl_fail(err, ADL_ERR_RUNTIME, "rank 0 cannot listen at port %d: %s", r->port, why);
    r->port = adl_net_port(*listener);
    return ADL_OK;
}

/* ---- the others ---- */

struct call { /* one try */
    const struct adl_rendezvous *r;
    struct adl_clock clock;
    double left_s; /* then it is over */
    char *why;     /* [ADL_RENDEZVOUS_WHY] */
};

static bool left(const struct call *c)
{
    return adl_clock_s(&c->clock) < c->left_s;
}

/* Some bytes of the answer. False: there will be no more, and why. */
static bool hear_more(const struct call *c, int fd, struct answer *answer, size_t *got)
{
    adl_net_wait(fd, false, tick_s);
    ssize_t more = adl_net_read(fd, (char *)answer + *got, sizeof *answer - *got);
    if (more < 0) {
        snprintf(c->why, ADL_RENDEZVOUS_WHY, "the connection was closed");
        return false;
    }
    *got += (size_t)more;
    bool ours = *got < sizeof magic || memcmp(answer->magic, magic, sizeof magic) == 0;
    if (!ours || (*got < sizeof magic && adl_clock_s(&c->clock) > hello_s)) {
        snprintf(c->why, ADL_RENDEZVOUS_WHY, "what listens there is no adloco of this version");
        return false;
    }
    return true;
}

/* Waits for the answer, which is whole when all are there. *done: it is. */
static enum adl_status hear_answer(const struct call *c, int fd, bool *done, struct adl_err *err)
{
    struct answer answer;
    size_t got = 0;
    while (got < sizeof answer && left(c)) {
        ADL_TRY(check_cancelled(c->r, err));
        if (!hear_more(c, fd, &answer, &got))
            return ADL_OK;
    }
    *done = got == sizeof answer;
    if (!*done)
        snprintf(c->why, ADL_RENDEZVOUS_WHY, "other processes are missing");
    if (!*done || !answer.refused)
        return ADL_OK;
    answer.why[sizeof answer.why - 1] = '\0';
    return adl_fail(err, ADL_ERR_PEER, "rank 0 refuses rank %d: %s", c->r->rank, answer.why);
}

static enum adl_status call_at(struct call *c, const char *host, int *fd, struct adl_err *err)
{
    const char *why = "";
    struct hello hello = {.rank = htonl((uint32_t)c->r->rank), .n = htonl((uint32_t)c->r->n)};
    memcpy(hello.magic, magic, sizeof magic);
    memcpy(hello.token, c->r->token, sizeof hello.token);
    *fd = adl_net_connect(host, c->r->port, connect_s, &why);
    if (*fd < 0) {
        snprintf(c->why, ADL_RENDEZVOUS_WHY, "%s", why);
        return ADL_OK;
    }
    adl_net_write(*fd, &hello, sizeof hello);
    bool done = false;
    enum adl_status status = hear_answer(c, *fd, &done, err);
    if (status != ADL_OK || !done) {
        close(*fd);
        *fd = -1;
    }
    return status;
}

enum adl_status adl_rendezvous_try(const struct adl_rendezvous *r, double left_s, int *fd,
                                   char why[ADL_RENDEZVOUS_WHY], struct adl_err *err)
{
    struct call c = {.r = r, .why = why};
    struct adl_clock whole;
    adl_clock_set(&whole, 0);
    char hosts[sizeof r->hosts], *rest = NULL;
    memcpy(hosts, r->hosts, sizeof hosts);
    *fd = -1;
    for (char *host = strtok_r(hosts, " ", &rest); host && *fd < 0;
         host = strtok_r(NULL, " ", &rest)) {
        adl_clock_set(&c.clock, 0);
        c.left_s = left_s - adl_clock_s(&whole);
        ADL_TRY(check_cancelled(r, err));
        ADL_TRY(call_at(&c, host, fd, err));
    }
    return ADL_OK;
}

enum adl_status adl_rendezvous_join(const struct adl_rendezvous *r, int *fd, struct adl_err *err)
{
    char why[ADL_RENDEZVOUS_WHY] = "";
    struct adl_clock clock;
    adl_clock_set(&clock, 0);
    for (double left_s = r->deadline_s; left_s > 0; left_s = r->deadline_s - adl_clock_s(&clock)) {
        ADL_TRY(adl_rendezvous_try(r, left_s, fd, why, err));
        if (*fd >= 0)
            return ADL_OK;
        usleep((useconds_t)(1e6 * tick_s));
    }
    return adl_fail(err, ADL_ERR_PEER, "rank %d found no rank 0 at %s, port %d, within %g s: %s",
                    r->rank, r->hosts, r->port, r->deadline_s, why);
}
