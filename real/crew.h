/* SPDX-License-Identifier: Apache-2.0 */
/* What the real transports have in common: tasks as threads, their workers on a pool of threads,
 * the clock, and one failure that ends them all. A transport holds a crew and adds what it does
 * about sums, moves and other processes.
 *
 * The clock stands still between epochs: adl_crew_run and adl_crew_resume let it go on from where
 * the workers last met, adl_crew_meet stops it. What the controller thinks is no one's time. */
#ifndef ADL_REAL_CREW_H
#define ADL_REAL_CREW_H

#include <pthread.h>

#include "core/transport.h"
#include "real/clock.h"
#include "real/pool.h"

struct adl_crew {
    struct adl_transport_env env;
    struct adl_pool *pool;
    struct adl_clock clock;
    bool running; /* tasks are, or a call between epochs */
    double met_s; /* when all workers last met */
    int *world;   /* [n_world] 0, 1, 2, ... */
    int n_world;
    pthread_mutex_t mutex;  /* guards failure; cancelled is asked by one thread at a time */
    struct adl_err failure; /* the first; ADL_OK: none */
    /* (optional) Told once of each failure that came up here, by the thread that failed. */
    void (*on_failure)(void *arg, const struct adl_err *failure);
    void *on_failure_arg;
    /* (optional) A task's thread has left its body, with this status. */
    void (*on_end)(void *arg, struct adl_task *task, enum adl_status status);
};

/* n_threads: asked for; 0: one for each processor; never more than n_local workers. */
enum adl_status adl_crew_open(struct adl_crew *crew, const struct adl_transport_env *env,
                              int64_t n_threads, int n_local, struct adl_err *err);
void adl_crew_close(struct adl_crew *crew); /* also of one that did not open */

/* Whether all still goes well: every call begins here. ADL_ERR_CANCELLED where the user stopped
 * the run, ADL_ERR_PEER where another task failed. */
enum adl_status adl_crew_check(struct adl_crew *crew, struct adl_err *err);
/* The same without asking whether the user wants to stop, or wording an error. */
bool adl_crew_failed(struct adl_crew *crew);
/* Records a failure, unless there is one: from here on adl_crew_check fails. `told` says whether
 * on_failure is to be called: not for a failure that somebody else told of. */
void adl_crew_fail(struct adl_crew *crew, enum adl_status status, const char *message, bool told);

/* Runs body(tasks[i], arg) for all tasks at once, each in a thread, until all have ended. */
enum adl_status adl_crew_run(struct adl_crew *crew, struct adl_task *const *tasks, int n,
                             enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                             struct adl_err *err);
/* for_each of struct adl_transport_ops. */
enum adl_status adl_crew_for_each(struct adl_crew *crew, struct adl_task *task, adl_worker_fn *fn,
                                  void *arg, const struct adl_work *work, double *compute_s);

double adl_crew_now_s(const struct adl_crew *crew);
/* A task's workers have been at `what` until now. */
void adl_crew_attribute(struct adl_crew *crew, const struct adl_task *task, enum adl_time what);
void adl_crew_resume(struct adl_crew *crew);
/* All workers have met at s on the crew's clock, which stops there; what led here is `what`. */
void adl_crew_meet(struct adl_crew *crew, enum adl_time what, double s);
/* The same at the end of tasks [n]: their workers waited, all others were idle. */
void adl_crew_meet_tasks(struct adl_crew *crew, struct adl_task *const *tasks, int n, double s);

/* Canonical order: out = in[0] + in[1] + ... one addition at a time, over local workers [n]; with
 * `onto` they are added to what out and scalars_out hold. */
void adl_crew_sum(const struct adl_space *space, const struct adl_reduction *r, int n, bool onto);

#endif
