/* SPDX-License-Identifier: Apache-2.0 */
#include "real/mpi/sum.h"

#include <stdlib.h>

#include "real/mpi/sum_parts.h"

/* With more members the owners' blocks become small and their messages many. */
enum { MOST_OWNERS = 16 };

/* ---- parts ---- */

enum adl_status adl_sum_parts_make(const struct adl_sum_group *group, const struct adl_reduction *r,
                                   int n_local, size_t block_bytes, struct adl_sum_parts *out,
                                   struct adl_err *err)
{
    size_t per_block = block_bytes / adl_dtype_bytes(r->dtype);
    int64_t n_data = (int64_t)((r->count + per_block - 1) / per_block);
    *out = (struct adl_sum_parts){.r = r,
                                  .space = group->space,
                                  .n_local = n_local,
                                  .n = n_data + 1,
                                  .n_data = n_data,
                                  .per_block = per_block,
                                  .in = malloc((size_t)n_local * sizeof *out->in)};
    if (!out->in)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to sum up %d workers", n_local);
    return ADL_OK;
}

void adl_sum_parts_free(struct adl_sum_parts *parts)
{
    free(parts->in);
}

static size_t count_of(const struct adl_sum_parts *p, int64_t block)
{
    size_t start = (size_t)block * p->per_block;
    return p->r->count - start < p->per_block ? p->r->count - start : p->per_block;
}

static size_t offset_of(const struct adl_sum_parts *p, int64_t block)
{
    return (size_t)block * p->per_block * adl_dtype_bytes(p->r->dtype);
}

size_t adl_sum_part_bytes(const struct adl_sum_parts *p, int64_t block)
{
    return block < p->n_data ? count_of(p, block) * adl_dtype_bytes(p->r->dtype)
                             : p->r->n_scalars * sizeof(double);
}

void *adl_sum_part_out(const struct adl_sum_parts *p, int64_t block)
{
    return block < p->n_data ? (char *)p->r->out + offset_of(p, block) : (void *)p->r->scalars_out;
}

const void *adl_sum_part_in(const struct adl_sum_parts *p, int i, int64_t block)
{
    if (block < p->n_data)
        return (const char *)p->r->in[i] + offset_of(p, block);
    return p->r->n_scalars ? &p->r->scalars_in[(size_t)i * p->r->n_scalars] : NULL;
}

void adl_sum_part_local(const struct adl_sum_parts *p, int64_t block, bool onto)
{
    bool data = block < p->n_data;
    struct adl_reduction part = *p->r;
    part.count = data ? count_of(p, block) : 0;
    part.n_scalars = data ? 0 : p->r->n_scalars;
    part.in = p->in;
    part.out = data ? adl_sum_part_out(p, block) : NULL;
    for (int i = 0; data && i < p->n_local; i++)
        p->in[i] = adl_sum_part_in(p, i, block);
    adl_crew_sum(p->space, &part, p->n_local, onto);
}

void adl_sum_part_add(const struct adl_sum_parts *p, int64_t block, const void *x, bool onto)
{
    void *out = adl_sum_part_out(p, block);
    const double *scalars = x;
    if (block < p->n_data && onto)
        p->space->axpy(out, 1.0, x, count_of(p, block), p->r->dtype);
    else if (block < p->n_data)
        p->space->copy(out, x, count_of(p, block), p->r->dtype);
    else
        for (size_t k = 0; k < p->r->n_scalars; k++)
            p->r->scalars_out[k] = onto ? p->r->scalars_out[k] + scalars[k] : scalars[k];
}

/* ---- which way ---- */

enum adl_status adl_sum_meet(const struct adl_sum_group *g, const struct adl_reduction *r,
                             int n_local, struct adl_err *err)
{
    struct adl_reduction first = *r;
    first.count = 0;
    if (!g->fast)
        first.n_scalars = 0;
    return g->n > 1 ? adl_sum_chain(g, &first, n_local, err) : ADL_OK;
}

/* MPI's own sum blocks; but everyone has met, and the scalars are done. */
static void sum_fast(const struct adl_sum_group *g, const struct adl_reduction *r, int n_local)
{
    struct adl_reduction vector = *r;
    vector.n_scalars = 0;
    if (n_local > 1)
        adl_crew_sum(g->space, &vector, n_local, false);
    if (r->count > 0)
        adl_mpi_group_sum(g->fast, n_local > 1 ? r->out : r->in[0], r->out, r->count, r->dtype);
}

enum adl_status adl_sum(const struct adl_sum_group *g, const struct adl_reduction *r, int n_local,
                        struct adl_err *err)
{
    if (g->n == 1) {
        adl_crew_sum(g->space, r, n_local, false);
        return ADL_OK;
    }
    if (g->fast) {
        sum_fast(g, r, n_local);
        return ADL_OK;
    }
    if (g->one_each && g->n <= MOST_OWNERS)
        return adl_sum_owners(g, r, err);
    return adl_sum_chain(g, r, n_local, err);
}
