/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/sum.h"

#include <stdlib.h>
#include <string.h>

#include "core/wire.h"

/* ---- memory ---- */

static enum adl_status reserve(struct adl_buffer *buffer, size_t bytes, void *fresh,
                               void (*free_fn)(void *x), struct adl_err *err)
{
    if (!fresh)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %zu bytes on their way", bytes);
    if (buffer->x)
        buffer->free(buffer->x);
    *buffer = (struct adl_buffer){fresh, bytes, free_fn};
    return ADL_OK;
}

static enum adl_status reserve_space(struct adl_nccl_sums *s, struct adl_buffer *buffer,
                                     size_t bytes, struct adl_err *err)
{
    const struct adl_space *space = s->crew->env.space;
    if (buffer->bytes >= bytes)
        return ADL_OK;
    return reserve(buffer, bytes, space->alloc((bytes + 3) / 4, ADL_F32), space->free, err);
}

static enum adl_status reserve_device(struct adl_nccl_sums *s, struct adl_buffer *buffer,
                                      size_t bytes, struct adl_err *err)
{
    if (buffer->bytes >= bytes)
        return ADL_OK;
    return reserve(buffer, bytes, s->module->alloc(bytes), s->module->free, err);
}

/* ---- what goes ---- */

static enum adl_nccl_type type_of(const struct adl_pending *p)
{
    if (p->reduction->dtype == ADL_F64)
        return ADL_NCCL_F64;
    if (!p->packs)
        return ADL_NCCL_F32;
    return p->sums->wire == ADL_WIRE_F16 ? ADL_NCCL_F16 : ADL_NCCL_BF16;
}

/* Parts of int8 start at multiples of 16 bytes, as unpacking wants. */
static size_t wire_bytes(const struct adl_pending *p)
{
    const struct adl_reduction *r = p->reduction;
    if (!p->packs)
        return r->count * adl_dtype_bytes(r->dtype);
    return (adl_wire_size(p->sums->wire, r->count) + 15) / 16 * 16;
}

/* From the local sum to what is exchanged, in the device's memory. */
static enum adl_status prepare(struct adl_pending *p, struct adl_err *err)
{
    struct adl_nccl_sums *s = p->sums;
    struct adl_nccl_group *g = p->group;
    const struct adl_space *space = s->crew->env.space;
    const struct adl_reduction *r = p->reduction;
    bool gathers = p->packs && s->wire == ADL_WIRE_INT8;
    size_t all_bytes = (size_t)g->n * p->bytes;
    void *data = r->out, *all = NULL;
    if (p->packs) {
        ADL_TRY(reserve_space(s, &g->packed, p->bytes, err));
        space->pack(g->packed.x, r->out, r->count, s->wire);
        data = g->packed.x;
    }
    if (gathers) {
        ADL_TRY(reserve_space(s, &g->collected, all_bytes, err));
        all = g->collected.x;
    }
    if (p->copies) {
        ADL_TRY(reserve_device(s, &g->staged, p->bytes, err));
        ADL_TRY(s->module->copy(g->staged.x, data, p->bytes, err));
        data = g->staged.x;
    }
    if (p->copies && gathers) {
        ADL_TRY(reserve_device(s, &g->staged_all, all_bytes, err));
        all = g->staged_all.x;
    }
    p->op = (struct adl_op){.kind = gathers ? ADL_OP_COLLECT : ADL_OP_SUM,
                            .comm = g->comm,
                            .data = data,
                            .all = all,
                            .count = gathers ? p->bytes : r->count,
                            .type = type_of(p)};
    return ADL_OK;
}

/* From what was exchanged to the sum. */
static enum adl_status unpack(struct adl_pending *p, struct adl_err *err)
{
    struct adl_nccl_sums *s = p->sums;
    struct adl_nccl_group *g = p->group;
    const struct adl_space *space = s->crew->env.space;
    const struct adl_reduction *r = p->reduction;
    bool gathers = p->op.kind == ADL_OP_COLLECT;
    void *to = gathers ? g->collected.x : p->packs ? g->packed.x : r->out;
    if (p->copies)
        ADL_TRY(s->module->copy(to, gathers ? p->op.all : p->op.data,
                                gathers ? (size_t)g->n * p->bytes : p->bytes, err));
    if (!p->packs)
        return ADL_OK;
    for (int m = 0; m < (gathers ? g->n : 1); m++)
        space->unpack(r->out, (const char *)to + (size_t)m * p->bytes, r->count, s->wire, m > 0);
    return ADL_OK;
}

/* ---- its course ---- */

/* All are there: all processes begin what is asked for in the order in which they hear it. */
static void begin(void *arg)
{
    struct adl_pending *p = arg;
    adl_engine_ask(p->sums->engine, &p->op);
}

static void sum_scalars(const struct adl_reduction *r, int n_local)
{
    struct adl_reduction scalars = *r;
    scalars.count = 0;
    adl_crew_sum(NULL, &scalars, n_local, false);
}

enum adl_status adl_nccl_sum_start(struct adl_nccl_sums *sums, struct adl_nccl_group *group,
                                   const struct adl_reduction *r, int n_local,
                                   struct adl_pending *p, struct adl_err *err)
{
    const struct adl_space *space = sums->crew->env.space;
    struct adl_reduction vector = *r;
    vector.n_scalars = 0;
    *p = (struct adl_pending){.sums = sums,
                              .group = group,
                              .reduction = r,
                              .packs = r->dtype == ADL_F32 && sums->wire != ADL_WIRE_F32,
                              .copies = space->on_host};
    p->bytes = wire_bytes(p);
    adl_crew_sum(space, &vector, n_local, false);
    bool moves = group->comm && r->count > 0;
    if (moves)
        ADL_TRY(prepare(p, err));
    if (group->n > 1) {
        p->visit = (struct adl_visit){.arrived = moves ? begin : NULL, .arg = p};
        return adl_control_enter_sum(sums->control, &p->visit, group->trainer, group->n,
                                     r->scalars_in, (size_t)n_local, r->n_scalars, err);
    }
    sum_scalars(r, n_local);
    if (moves)
        begin(p);
    return ADL_OK;
}

enum adl_status adl_nccl_sum_meet(struct adl_pending *p, struct adl_err *err)
{
    const struct adl_reduction *r = p->reduction;
    if (p->group->n == 1)
        return ADL_OK;
    enum adl_status status = adl_control_wait(p->sums->control, &p->visit, false, err);
    if (status == ADL_OK && p->visit.bytes != r->n_scalars * sizeof *r->scalars_out)
        status = adl_fail(err, ADL_ERR_BUG, "a sum came with %zu bytes of scalars", p->visit.bytes);
    if (status == ADL_OK && r->n_scalars > 0)
        memcpy(r->scalars_out, p->visit.answer, r->n_scalars * sizeof *r->scalars_out);
    free(p->visit.answer);
    return status;
}

enum adl_status adl_nccl_sum_finish(struct adl_pending *p, struct adl_err *err)
{
    if (!p->op.comm)
        return ADL_OK;
    ADL_TRY(adl_engine_wait(p->sums->engine, &p->op, err));
    return unpack(p, err);
}
