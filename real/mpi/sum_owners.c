/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "real/mpi/sum_parts.h"

enum { PARTS = 2, TOTALS = 3 };

static const size_t block_bytes = 256 << 10;

/* One turn is m blocks, one owned by each of the m members. For every other member j: parts that
 * go to j and come from j, totals likewise. Streams keep the turns in order. */
struct owners {
    struct adl_sum_parts parts;
    int m, me;
    int64_t summed;             /* own blocks that are summed up */
    struct adl_stream *streams; /* [m x N_STREAMS] */
    size_t room_bytes;          /* for a block */
    char *received; /* [ADL_STREAM_WINDOW x m x room_bytes] others' parts of own blocks */
};
enum { PART_TO, PART_FROM, TOTAL_TO, TOTAL_FROM, N_STREAMS };

static struct adl_stream *stream(const struct owners *o, int j, int which)
{
    return &o->streams[j * N_STREAMS + which];
}

/* Blocks that member j owns: j, j + m, ... */
static int64_t n_owned(const struct owners *o, int j)
{
    return (o->parts.n - j + o->m - 1) / o->m;
}

static int64_t block_of(const struct owners *o, int j, int64_t turn)
{
    return turn * o->m + j;
}

static void *room_for(const struct owners *o, int j, int64_t turn)
{
    return o->received + (size_t)(turn % ADL_STREAM_WINDOW * o->m + j) * o->room_bytes;
}

/* What goes to and comes from member j without anything summed here. */
static void exchange(struct owners *o, int j)
{
    struct adl_stream *part_to = stream(o, j, PART_TO), *total_from = stream(o, j, TOTAL_FROM);
    struct adl_stream *part_from = stream(o, j, PART_FROM);
    while (part_to->posted < n_owned(o, j) && adl_stream_has_room(part_to)) {
        int64_t block = block_of(o, j, part_to->posted);
        adl_stream_send(part_to, adl_sum_part_in(&o->parts, 0, block),
                        adl_sum_part_bytes(&o->parts, block));
    }
    while (total_from->posted < n_owned(o, j) && adl_stream_has_room(total_from)) {
        int64_t block = block_of(o, j, total_from->posted);
        adl_stream_receive(total_from, adl_sum_part_out(&o->parts, block),
                           adl_sum_part_bytes(&o->parts, block));
    }
    while (part_from->posted < n_owned(o, o->me) &&
           part_from->posted < o->summed + ADL_STREAM_WINDOW && adl_stream_has_room(part_from)) {
        int64_t turn = part_from->posted;
        adl_stream_receive(part_from, room_for(o, j, turn),
                           adl_sum_part_bytes(&o->parts, block_of(o, o->me, turn)));
    }
}

/* Whether the next own block has all its parts and its total may go out. */
static bool ready(const struct owners *o)
{
    if (o->summed == n_owned(o, o->me))
        return false;
    for (int j = 0; j < o->m; j++)
        if (j != o->me && (stream(o, j, PART_FROM)->done <= o->summed ||
                           !adl_stream_has_room(stream(o, j, TOTAL_TO))))
            return false;
    return true;
}

static void sum_up(struct owners *o)
{
    int64_t turn = o->summed++, block = block_of(o, o->me, turn);
    for (int j = 0; j < o->m; j++)
        adl_sum_part_add(&o->parts, block,
                         j == o->me ? adl_sum_part_in(&o->parts, 0, block) : room_for(o, j, turn),
                         j > 0);
    for (int j = 0; j < o->m; j++)
        if (j != o->me)
            adl_stream_send(stream(o, j, TOTAL_TO), adl_sum_part_out(&o->parts, block),
                            adl_sum_part_bytes(&o->parts, block));
}

static bool finished(const struct owners *o)
{
    for (int j = 0; j < o->m; j++)
        if (j != o->me && (stream(o, j, PART_TO)->done < n_owned(o, j) ||
                           stream(o, j, TOTAL_FROM)->done < n_owned(o, j) ||
                           stream(o, j, TOTAL_TO)->done < n_owned(o, o->me)))
            return false;
    return o->summed == n_owned(o, o->me);
}

static enum adl_progress owners_progress(void *arg)
{
    struct owners *o = arg;
    bool moved = false;
    for (int j = 0; j < o->m; j++) {
        if (j == o->me)
            continue;
        for (int which = 0; which < N_STREAMS; which++)
            moved = adl_stream_settle(stream(o, j, which)) || moved;
        exchange(o, j);
    }
    while (ready(o)) {
        sum_up(o);
        moved = true;
    }
    if (finished(o))
        return ADL_DONE;
    return moved ? ADL_MOVED : ADL_STUCK;
}

static enum adl_status open_streams(struct owners *o, const struct adl_sum_group *g,
                                    struct adl_err *err)
{
    static const int tags[N_STREAMS] = {PARTS, PARTS, TOTALS, TOTALS};
    size_t scalars_bytes = adl_sum_part_bytes(&o->parts, o->parts.n_data);
    o->room_bytes = scalars_bytes > block_bytes ? scalars_bytes : block_bytes;
    o->streams = calloc((size_t)o->m * N_STREAMS, sizeof *o->streams);
    o->received = malloc((size_t)(ADL_STREAM_WINDOW * o->m) * o->room_bytes);
    if (!o->streams || !o->received)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to sum up %d processes", o->m);
    for (int j = 0; j < o->m; j++)
        for (int which = 0; which < N_STREAMS; which++)
            *stream(o, j, which) = (struct adl_stream){
                .wire = g->wire, .peer = g->members[j], .tag = g->tag + tags[which]};
    return ADL_OK;
}

static void call_off(struct owners *o, const struct adl_sum_group *g)
{
    for (int j = 0; j < o->m; j++)
        adl_streams_call_off(
            g->watch, g->wire,
            (struct adl_stream *[]){stream(o, j, PART_FROM), stream(o, j, TOTAL_FROM)}, 2,
            (struct adl_stream *[]){stream(o, j, PART_TO), stream(o, j, TOTAL_TO)}, 2);
}

enum adl_status adl_sum_owners(const struct adl_sum_group *g, const struct adl_reduction *r,
                               struct adl_err *err)
{
    struct owners o = {.m = g->n, .me = g->me};
    enum adl_status status = adl_sum_parts_make(g, r, 1, block_bytes, &o.parts, err);
    if (status == ADL_OK)
        status = open_streams(&o, g, err);
    if (status == ADL_OK) {
        status = adl_watch_wait(g->watch, owners_progress, &o, false, err);
        if (status != ADL_OK)
            call_off(&o, g);
    }
    adl_sum_parts_free(&o.parts);
    free(o.streams);
    free(o.received);
    return status;
}
