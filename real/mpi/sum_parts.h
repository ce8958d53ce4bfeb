/* SPDX-License-Identifier: Apache-2.0 */
/* A reduction cut into blocks; the scalars are the last one. */
#ifndef ADL_REAL_MPI_SUM_PARTS_H
#define ADL_REAL_MPI_SUM_PARTS_H

#include "real/mpi/sum.h"

struct adl_sum_parts {
    const struct adl_reduction *r;
    const struct adl_space *space;
    int n_local;
    int64_t n, n_data; /* blocks; of them of the vector */
    size_t per_block;  /* elements */
    const void **in;   /* [n_local] room for a block's vectors */
};
enum adl_status adl_sum_parts_make(const struct adl_sum_group *group, const struct adl_reduction *r,
                                   int n_local, size_t block_bytes, struct adl_sum_parts *out,
                                   struct adl_err *err);
void adl_sum_parts_free(struct adl_sum_parts *parts);

size_t adl_sum_part_bytes(const struct adl_sum_parts *parts, int64_t block);
/* Where its sum goes; where local worker i's part of it is. */
void *adl_sum_part_out(const struct adl_sum_parts *parts, int64_t block);
const void *adl_sum_part_in(const struct adl_sum_parts *parts, int i, int64_t block);
/* out = the local workers' sum, or out += them, in order. */
void adl_sum_part_local(const struct adl_sum_parts *parts, int64_t block, bool onto);
/* out = x, or out += x. */
void adl_sum_part_add(const struct adl_sum_parts *parts, int64_t block, const void *x, bool onto);

/* The two ways, see sum.h. */
enum adl_status adl_sum_chain(const struct adl_sum_group *group, const struct adl_reduction *r,
                              int n_local, struct adl_err *err);
enum adl_status adl_sum_owners(const struct adl_sum_group *group, const struct adl_reduction *r,
                               struct adl_err *err);

#endif
