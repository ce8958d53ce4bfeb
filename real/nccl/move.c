/* SPDX-License-Identifier: Apache-2.0 */
/* Moves, along a chain of the source's process and then the receivers': each sends on the last
 * piece while it receives the next, so that no link carries the vector twice, and the move takes as
 * long as one vector and one piece for each process.
 *
 * Nobody waits in a ring: step k of a chain's process p meets step k of the one before it and step
 * k - 1 of the one behind, counted from the source's first; NCCL runs the two halves of a step at
 * once. All meet after each move, so no two of one call are ever under way together, and
 * nccl.deadline counts for a step: a process waits for its first piece as long as those before it
 * take for one each, and from then on for a piece at a time, however large the vector is. */
#include <stdlib.h>

#include "real/nccl/transport.h"

/* Takes a network longer than a step takes to be started. */
static const size_t piece_bytes = 8 << 20;

struct chain {
    struct adl_transport *t;
    int before, after; /* ranks; -1: none */
    char *data;        /* [bytes] sent by the first, received by the others */
    size_t bytes;
    void *staged[2]; /* even and odd pieces, where vectors are the host's; else NULL */
};

static size_t size_of(const struct chain *c, size_t piece)
{
    size_t left = c->bytes - piece * piece_bytes;
    return left < piece_bytes ? left : piece_bytes;
}

static struct adl_nccl_part part_of(const struct chain *c, size_t piece, int rank)
{
    void *staged = c->staged[piece % 2];
    return (struct adl_nccl_part){.data = staged ? staged : c->data + piece * piece_bytes,
                                  .bytes = size_of(c, piece),
                                  .rank = rank};
}

/* Between the vector, where it is the host's, and the device's memory. */
static enum adl_status stage(const struct chain *c, size_t piece, bool in, struct adl_err *err)
{
    void *staged = c->staged[piece % 2], *own = c->data + piece * piece_bytes;
    if (!staged)
        return ADL_OK;
    return c->t->sums.module->copy(in ? own : staged, in ? staged : own, size_of(c, piece), err);
}

static enum adl_status take_step(const struct chain *c, size_t step, size_t n_pieces,
                                 struct adl_err *err)
{
    const bool first = c->before < 0;
    const bool receives = !first && step < n_pieces, sends = c->after >= 0 && (first || step > 0);
    struct adl_op op = {.kind = ADL_OP_RELAY, .comm = adl_engine_world(c->t->engine)};
    if (receives)
        op.in = part_of(c, step, c->before);
    if (sends)
        op.out = part_of(c, first ? step : step - 1, c->after);
    if (first)
        ADL_TRY(stage(c, step, false, err));
    adl_engine_ask(c->t->engine, &op);
    ADL_TRY(adl_engine_wait(c->t->engine, &op, err));
    return receives ? stage(c, step, true, err) : ADL_OK;
}

static enum adl_status relay(struct chain *c, struct adl_err *err)
{
    const struct adl_nccl_module *module = c->t->sums.module;
    const size_t n_pieces = (c->bytes + piece_bytes - 1) / piece_bytes;
    const size_t n_steps = n_pieces + (c->before >= 0 && c->after >= 0 ? 1 : 0);
    enum adl_status status = ADL_OK;
    for (size_t i = 0; c->t->crew.env.space->on_host && i < 2 && i < n_pieces; i++) {
        c->staged[i] = module->alloc(size_of(c, i));
        if (!c->staged[i])
            status = adl_fail(err, ADL_ERR_NOMEM, "no memory of the device to move %zu bytes",
                              size_of(c, i));
    }
    for (size_t step = 0; status == ADL_OK && step < n_steps; step++)
        status = take_step(c, step, n_pieces, err);
    module->free(c->staged[0]);
    module->free(c->staged[1]);
    return status;
}

/* This process's part of a move along processes [n], the source's first. */
static enum adl_status follow(struct adl_transport *t, const struct adl_move *m,
                              const int *processes, int n, struct adl_err *err)
{
    int me = 0;
    while (me < n && processes[me] != t->rank)
        me++;
    if (me == n || n < 2 || m->bytes == 0)
        return ADL_OK;
    struct chain c = {.t = t,
                      .before = me > 0 ? processes[me - 1] : -1,
                      .after = me + 1 < n ? processes[me + 1] : -1,
                      .data = me > 0 && m->into ? m->into : (void *)m->data,
                      .bytes = m->bytes};
    return relay(&c, err);
}

static enum adl_status move_one(struct adl_transport *t, const struct adl_move *m,
                                struct adl_err *err)
{
    bool near = false;
    int *processes = malloc((size_t)(m->n_dst + 1) * sizeof *processes);
    if (!processes)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a move");
    int n = adl_blocks_chain(&t->blocks, m->src, m->dst, m->n_dst, processes, &near);
    if (t->rank == processes[0] && near && m->into && m->into != m->data)
        t->crew.env.space->copy(m->into, m->data, m->bytes / 4, ADL_F32);
    enum adl_status status = follow(t, m, processes, n, err);
    free(processes);
    return status;
}

enum adl_status adl_nccl_move(struct adl_transport *t, const struct adl_move *moves, int n,
                              struct adl_err *err)
{
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    struct adl_err own = {.status = ADL_OK};
    enum adl_status status = ADL_OK;
    double met_s = adl_crew_now_s(&t->crew);
    for (int i = 0; status == ADL_OK && i < n; i++) {
        status = move_one(t, &moves[i], &own);
        if (status == ADL_OK)
            status = adl_nccl_meet_all(t, ADL_ROOM_CALL, &met_s, &own);
    }
    adl_crew_meet(&t->crew, ADL_TIME_TRANSFER, met_s);
    return status == ADL_OK ? ADL_OK : adl_nccl_say_why(t, &own, err);
}
