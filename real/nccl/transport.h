/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the nccl transport: real/transport_nccl.c has its table, its opening and epochs;
 * meeting.c meetings of all processes; between.c and move.c what happens between epochs. */
#ifndef ADL_REAL_NCCL_TRANSPORT_H
#define ADL_REAL_NCCL_TRANSPORT_H

#include "real/nccl/sum.h"

struct adl_transport {
    struct adl_crew crew;
    struct adl_blocks blocks;
    int rank, n;
    int first, n_local;          /* workers hosted here */
    struct adl_control *control; /* NULL: alone */
    struct adl_engine *engine;
    struct adl_nccl_groups groups;
    struct adl_nccl_sums sums;
};

/* ---- meeting.c: everyone tells everyone */

struct adl_nccl_word { /* what each brings to every meeting, before anything else */
    double clock_s;
    int32_t status;         /* ADL_OK, or this process has failed: */
    uint32_t message_bytes; /* with a message, behind all else */
};

struct adl_nccl_word adl_nccl_own_word(struct adl_transport *t);
/* Waits for everyone with what is brought, a word first; *visit has what all brought, its answer is
 * the caller's to free. *clock_s: the furthest clock. The first failure that was brought becomes
 * this process's too. */
enum adl_status adl_nccl_meet(struct adl_transport *t, enum adl_room_kind kind, const void *mine,
                              size_t bytes, struct adl_visit *visit, double *clock_s,
                              struct adl_err *err);
/* The same with nothing but words. */
enum adl_status adl_nccl_meet_all(struct adl_transport *t, enum adl_room_kind kind, double *clock_s,
                                  struct adl_err *err);
/* What a call that failed says: the first failure of all, which is the crew's from now on, and that
 * everyone is told of. */
enum adl_status adl_nccl_say_why(struct adl_transport *t, const struct adl_err *own,
                                 struct adl_err *err);

/* ---- between.c: of struct adl_transport_ops */

int adl_nccl_process_of(const struct adl_transport *t, int worker);
enum adl_status adl_nccl_gather(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                const int *leaders, double charged_bytes, struct adl_err *err);
enum adl_status adl_nccl_pass(struct adl_transport *t, int from, int to, void *data, size_t bytes,
                              struct adl_err *err);

/* ---- move.c: of them too */

enum adl_status adl_nccl_move(struct adl_transport *t, const struct adl_move *moves, int n,
                              struct adl_err *err);

#endif
