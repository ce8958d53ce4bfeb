/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/relay.h"

static const size_t block_bytes = 1 << 20;

bool adl_stream_settle(struct adl_stream *s)
{
    int64_t before = s->done;
    while (s->done < s->posted && adl_mpi_test(&s->requests[s->done % ADL_STREAM_WINDOW]))
        s->done++;
    return s->done > before;
}

bool adl_stream_has_room(const struct adl_stream *s)
{
    return s->posted - s->done < ADL_STREAM_WINDOW;
}

void adl_stream_send(struct adl_stream *s, const void *data, size_t bytes)
{
    adl_mpi_send(s->wire, s->peer, s->tag, data, bytes,
                 &s->requests[s->posted++ % ADL_STREAM_WINDOW]);
}

void adl_stream_receive(struct adl_stream *s, void *data, size_t bytes)
{
    adl_mpi_receive(s->wire, s->peer, s->tag, data, bytes,
                    &s->requests[s->posted++ % ADL_STREAM_WINDOW]);
}

static void cancel(struct adl_stream *s)
{
    for (int64_t i = s->done; i < s->posted; i++)
        adl_mpi_cancel(&s->requests[i % ADL_STREAM_WINDOW]);
}

static bool over(struct adl_stream *s)
{
    adl_stream_settle(s);
    return s->done == s->posted;
}

void adl_streams_call_off(struct adl_watch *watch, struct adl_mpi *wire,
                          struct adl_stream *const *receiving, int n_receiving,
                          struct adl_stream *const *sending, int n_sending)
{
    for (int i = 0; i < n_receiving; i++)
        cancel(receiving[i]);
    for (bool all = false; !all && !adl_watch_lost(watch);) {
        all = true;
        for (int i = 0; i < n_receiving; i++)
            all = over(receiving[i]) && all;
        for (int i = 0; i < n_sending; i++)
            all = over(sending[i]) && all;
        adl_mpi_drop(wire);
    }
}

struct relay {
    struct adl_stream in, out;
    bool first, last;
    const char *data;
    char *into;
    size_t bytes;
    int64_t n; /* blocks */
};

static size_t size_of(const struct relay *r, int64_t block)
{
    size_t start = (size_t)block * block_bytes;
    return r->bytes - start < block_bytes ? r->bytes - start : block_bytes;
}

static enum adl_progress relay_progress(void *arg)
{
    struct relay *r = arg;
    bool moved = adl_stream_settle(&r->in);
    moved = adl_stream_settle(&r->out) || moved;
    while (!r->first && r->in.posted < r->n && adl_stream_has_room(&r->in))
        adl_stream_receive(&r->in, r->into + (size_t)r->in.posted * block_bytes,
                           size_of(r, r->in.posted));
    while (!r->last && r->out.posted < (r->first ? r->n : r->in.done) &&
           adl_stream_has_room(&r->out))
        adl_stream_send(&r->out, r->data + (size_t)r->out.posted * block_bytes,
                        size_of(r, r->out.posted));
    if ((r->first || r->in.done == r->n) && (r->last || r->out.done == r->n))
        return ADL_DONE;
    return moved ? ADL_MOVED : ADL_STUCK;
}

enum adl_status adl_relay(struct adl_watch *watch, struct adl_mpi *wire, const int *processes,
                          int n, const void *data, void *into, size_t bytes, struct adl_err *err)
{
    int me = 0;
    while (me < n && processes[me] != adl_mpi_rank(wire))
        me++;
    if (me == n || n < 2)
        return ADL_OK;
    struct relay r = {.first = me == 0,
                      .last = me == n - 1,
                      .data = me == 0 ? data : into,
                      .into = into,
                      .bytes = bytes,
                      .n = (int64_t)((bytes + block_bytes - 1) / block_bytes)};
    r.in = (struct adl_stream){.wire = wire, .peer = r.first ? 0 : processes[me - 1]};
    r.out = (struct adl_stream){.wire = wire, .peer = r.last ? 0 : processes[me + 1]};
    enum adl_status status = adl_watch_wait(watch, relay_progress, &r, false, err);
    if (status != ADL_OK)
        adl_streams_call_off(watch, wire, (struct adl_stream *[]){&r.in}, 1,
                             (struct adl_stream *[]){&r.out}, 1);
    return status;
}
