/* SPDX-License-Identifier: Apache-2.0 */
/* What processes tell each other beside NCCL: who is there, what fails, small data. One process's
 * end of it, with a thread that listens and gives signs of life; rank 0 has the hub too.
 *
 * A process alone has none: where control is NULL there is nobody to tell, nothing is lost, and what
 * all are to bring is there at once. (Not in enter_sum: a trainer has others then.)
 *
 * Why nothing hangs: no wait is longer than it takes to learn that a task failed somewhere, that a
 * process has left, or that one is lost, whose rank the message names. */
#ifndef ADL_REAL_NCCL_CONTROL_H
#define ADL_REAL_NCCL_CONTROL_H

#include "real/crew.h"

struct adl_control; /* opaque */

/* sockets [n] of adl_rendezvous_meet, taken over, whatever comes. Failures are recorded in the
 * crew, which must outlive it. */
enum adl_status adl_control_open(struct adl_crew *crew, int rank, int n, const int *sockets,
                                 double deadline_s, struct adl_control **out, struct adl_err *err);
/* What open takes over, where it is not called. */
void adl_control_close_sockets(const int *sockets, int n);
/* Says goodbye; rank 0 waits until all have. NULL is fine. */
void adl_control_close(struct adl_control *control);

/* Tells every other process of a failure of this one. */
void adl_control_tell(struct adl_control *control, const struct adl_err *failure);
/* Whether some process is lost. */
bool adl_control_lost(struct adl_control *control);

/* A stay in a room: from entering until all are there. Several at once, in rooms of their own.
 * Owned by the caller, alive until wait has returned. */
struct adl_visit {
    /* (may be NULL) Called once all are there, by the control's thread, which must go on: all
     * processes' visits are told in one order. */
    void (*arrived)(void *arg);
    void *arg;
    /* The control's: */
    uint64_t room;
    bool done;
    char *answer; /* [bytes] malloc'ed */
    size_t bytes;
    struct adl_visit *next;
};
/* Rooms that all processes enter in the same order name themselves. */
enum adl_room_kind {
    ADL_ROOM_CALL,     /* between epochs; not entered any more once something failed */
    ADL_ROOM_STUBBORN, /* entered even then */
};
/* Enters with what this process brings; n processes are to come. */
enum adl_status adl_control_enter_all(struct adl_control *control, struct adl_visit *visit,
                                      enum adl_room_kind kind, const void *mine, size_t bytes,
                                      struct adl_err *err);
/* Enters a trainer's room with rows [n_rows x width], to be added up. */
enum adl_status adl_control_enter_sum(struct adl_control *control, struct adl_visit *visit,
                                      int trainer, int n, const double *rows, size_t n_rows,
                                      size_t width, struct adl_err *err);
/* Until all are there. stubborn: in spite of failures, unless a process is lost. The answer is the
 * caller's to free. After a failure the visit is over too, and nobody touches it any more. */
enum adl_status adl_control_wait(struct adl_control *control, struct adl_visit *visit,
                                 bool stubborn, struct adl_err *err);
/* What a process brought, within the answer to adl_control_enter_all; NULL: not that long. */
const char *adl_visit_part(const struct adl_visit *visit, int rank, size_t *bytes);

/* data [bytes] of process `from` to process `to` or ADL_EVERY_PROCESS, in pieces, each of which is
 * taken before the next one goes. */
enum adl_status adl_control_pass(struct adl_control *control, int from, int to, void *data,
                                 size_t bytes, struct adl_err *err);

#endif
