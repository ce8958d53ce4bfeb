/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/sum_parts.h"

enum { UP = 0, DOWN = 1 };

static const size_t block_bytes = 256 << 10;

/* A member's view: partial sums come up from below, totals come down from above. */
struct chain {
    struct adl_sum_parts parts;
    struct adl_stream from_below, to_above, from_above, to_below;
    bool bottom, top;
    int64_t added; /* blocks that hold this member's part */
};

static bool settle(struct chain *c)
{
    bool moved = adl_stream_settle(&c->from_below);
    moved = adl_stream_settle(&c->to_above) || moved;
    moved = adl_stream_settle(&c->from_above) || moved;
    return adl_stream_settle(&c->to_below) || moved;
}

static void receive(struct chain *c, struct adl_stream *from)
{
    adl_stream_receive(from, adl_sum_part_out(&c->parts, from->posted),
                       adl_sum_part_bytes(&c->parts, from->posted));
}

static void send(struct chain *c, struct adl_stream *to, const void *data)
{
    adl_stream_send(to, data, adl_sum_part_bytes(&c->parts, to->posted));
}

/* Adds the local part to the next block and sends it on: up, or at the top back down. A lone
 * worker at the bottom is sent as it is. */
static void add_next(struct chain *c)
{
    int64_t block = c->added++;
    bool as_it_is = c->bottom && c->parts.n_local == 1;
    if (!as_it_is)
        adl_sum_part_local(&c->parts, block, !c->bottom);
    send(c, c->top ? &c->to_below : &c->to_above,
         as_it_is ? adl_sum_part_in(&c->parts, 0, block) : adl_sum_part_out(&c->parts, block));
}

static enum adl_progress chain_progress(void *arg)
{
    struct chain *c = arg;
    int64_t n = c->parts.n;
    bool moved = settle(c);
    while (!c->bottom && c->from_below.posted < n && adl_stream_has_room(&c->from_below))
        receive(c, &c->from_below);
    const struct adl_stream *on = c->top ? &c->to_below : &c->to_above;
    while (c->added < (c->bottom ? n : c->from_below.done) && adl_stream_has_room(on))
        add_next(c);
    /* the total takes the place of the partial sum, once that is gone */
    while (!c->top && c->from_above.posted < c->to_above.done &&
           adl_stream_has_room(&c->from_above))
        receive(c, &c->from_above);
    while (!c->top && !c->bottom && c->to_below.posted < c->from_above.done &&
           adl_stream_has_room(&c->to_below))
        send(c, &c->to_below, adl_sum_part_out(&c->parts, c->to_below.posted));
    if ((c->top || c->from_above.done == n) && (c->bottom || c->to_below.done == n))
        return ADL_DONE;
    return moved ? ADL_MOVED : ADL_STUCK;
}

enum adl_status adl_sum_chain(const struct adl_sum_group *g, const struct adl_reduction *r,
                              int n_local, struct adl_err *err)
{
    struct chain c = {.bottom = g->me == 0, .top = g->me == g->n - 1};
    ADL_TRY(adl_sum_parts_make(g, r, n_local, block_bytes, &c.parts, err));
    int below = c.bottom ? 0 : g->members[g->me - 1], above = c.top ? 0 : g->members[g->me + 1];
    c.from_below = (struct adl_stream){.wire = g->wire, .peer = below, .tag = g->tag + UP};
    c.to_above = (struct adl_stream){.wire = g->wire, .peer = above, .tag = g->tag + UP};
    c.from_above = (struct adl_stream){.wire = g->wire, .peer = above, .tag = g->tag + DOWN};
    c.to_below = (struct adl_stream){.wire = g->wire, .peer = below, .tag = g->tag + DOWN};
    enum adl_status status = adl_watch_wait(g->watch, chain_progress, &c, false, err);
    if (status != ADL_OK)
        adl_streams_call_off(g->watch, g->wire,
                             (struct adl_stream *[]){&c.from_below, &c.from_above}, 2,
                             (struct adl_stream *[]){&c.to_above, &c.to_below}, 2);
    adl_sum_parts_free(&c.parts);
    return status;
}
