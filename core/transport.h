/* SPDX-License-Identifier: Apache-2.0 */
/* A transport runs tasks, runs functions for workers, and sums vectors among a trainer's
 * workers; it owns the clock. Simulated or real, the controller above is the same.
 *
 * The world is workers 0..n-1, spread over processes in contiguous blocks of whole devices. In
 * each process there is one task for each trainer that has workers there. A task drives its
 * local workers: for_each runs a function for each of them (in parallel where real, charged to
 * simulated devices where simulated); then it hands their vectors, in order, to a collective.
 *
 * Rules for every implementation:
 * - Sums run in world order of the workers, one addition at a time, starting from the first
 *   worker's vector: the same bits on every transport (design 4, canonical order).
 * - A call blocks only its task. A task whose body fails ends the run: every other task's next
 *   or pending call returns ADL_ERR_PEER, run returns the first failure. A backend that leaves
 *   others blocked turns every later fault into a hung job.
 * - After a call returns, failure included, no peer touches the caller's memory: a zero-copy
 *   backend that leaves early when an outsider fails lets peers read freed memory.
 * - Time is attributed in the book given at open (core/account.h): compute by for_each, wait
 *   and transfer by collectives, outer step by outer_step, waiting at an epoch's end by run.
 *   Time starts at 0 with the first call of run.
 *
 * Adding one: 1. a file in sim/ or real/; 2. its ops table; 3. a row in core/app/registry.c;
 * 4. tests/conformance runs it by itself. */
#ifndef ADL_CORE_TRANSPORT_H
#define ADL_CORE_TRANSPORT_H

#include "core/link_use.h"
#include "core/plugin.h"
#include "core/settings.h"
#include "core/space.h"
#include "core/status.h"

struct adl_transport; /* the implementation's own */
struct adl_pending;   /* a started collective, the implementation's own */

/* What one inner step, and an outer step, ask of a device; real transports ignore it. */
struct adl_cost {
    double flops_per_sample; /* forward and backward */
    double step_bytes;       /* memory traffic of one inner step: weights and optimizer state */
    double outer_bytes;      /* memory traffic of one outer step */
    double vector_bytes;     /* S: one vector of parameters on the wire */
};

struct adl_transport_env {
    const struct adl_settings *settings;
    const char *platform_path; /* resolved; NULL without one */
    const char *base_dir;      /* of the experiment file: relative paths start there */
    const struct adl_space *space;
    const struct adl_cost *cost; /* filled by the caller before the first run, not at open */
    struct adl_book *book;
    /* Asked now and then (each round at least); true ends the run with ADL_ERR_CANCELLED. */
    bool (*cancelled)(void *arg);
    void *cancelled_arg;
};

/* One trainer's part in this process during one epoch. Owned by the controller. */
struct adl_task {
    int trainer;            /* index, unique among tasks that run at once */
    const int *workers;     /* [n_workers] world indices, ascending: the whole trainer */
    int n_workers;
    int first_local, n_local; /* workers[first_local .. first_local + n_local) are hosted here */
    void *user;             /* the controller's */
    void *impl;             /* the transport's, set by run */
    struct adl_err err;     /* why this task failed */
};

/* What a worker computes between two exchanges: `steps` inner steps, each of `samples` samples
 * as micro_batches micro-batches. */
struct adl_work {
    double steps, micro_batches, samples;
    uint64_t step0; /* number of the first of these steps in the worker's life: jitter's key */
    bool exchanged; /* one step, whose gradients are summed next: the backward pass may overlap */
};

/* fn of for_each: computes for workers[first_local + i]. lane < n_lanes is the executing
 * thread's own number: no two calls at once share one. */
typedef enum adl_status adl_worker_fn(struct adl_task *task, int i, int lane, void *arg,
                                      struct adl_err *err);

/* A sum over all of a trainer's workers. */
struct adl_reduction {
    const void *const *in; /* [n_local] vectors, each [count]; read only; unused if count = 0 */
    void *out;             /* [count] the sum; not one of `in` */
    size_t count;          /* the same on all; 0 still synchronises */
    enum adl_dtype dtype;
    const double *scalars_in; /* [n_local x n_scalars] row by worker: ride along */
    double *scalars_out;      /* [n_scalars] */
    size_t n_scalars;
    double charged_bytes;  /* payload charged to the network, apart from the data */
    double delay_s;        /* what a fault adds before it; charged where time is simulated */
    enum adl_cause cause;
};

/* A move of vectors between epochs: from one worker to others (merge, redistribution). */
struct adl_move {
    int src;                /* world index */
    const int *dst;         /* [n_dst] world indices, ascending; may include src, device mates */
    int n_dst;
    const void *data;       /* [bytes] valid where src is hosted */
    void *into;             /* [bytes] valid where any dst is hosted; NULL or == data: shared */
    size_t bytes;
    double charged_bytes;
    enum adl_cause cause;
};

enum { ADL_EVERY_PROCESS = -1 };

struct adl_transport_ops {
    struct adl_plugin plugin;
    bool simulated; /* its clock is the model's, its devices are described by a platform */

    /* The world size where the experiment does not set cluster.workers (design 7). */
    int (*default_workers)(const void *config, int n_devices, int workers_per_device);

    enum adl_status (*open)(const void *config, const struct adl_transport_env *env,
                            struct adl_transport **out, struct adl_err *err);
    void (*close)(struct adl_transport *t); /* NULL is fine */

    int (*n_lanes)(const struct adl_transport *t);
    /* The workers hosted here: [first, first + n). */
    void (*local_workers)(const struct adl_transport *t, int *first, int *n);

    /* Runs body(tasks[i], arg) for all tasks at once, returns when all are done; then everyone
     * has waited for the slowest (an epoch's end). */
    enum adl_status (*run)(struct adl_transport *t, struct adl_task *const *tasks, int n,
                           enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                           struct adl_err *err);

    /* Within a task's body: */

    /* Runs fn for each local worker; work [n_local] is what is charged (may be NULL: nothing).
     * compute_s [n_local] (may be NULL) receives each worker's seconds. */
    enum adl_status (*for_each)(struct adl_transport *t, struct adl_task *task, adl_worker_fn *fn,
                                void *arg, const struct adl_work *work, double *compute_s);
    /* Starts a sum; the reduction's memory must stay until wait, which must follow. */
    enum adl_status (*allreduce_start)(struct adl_transport *t, struct adl_task *task,
                                       const struct adl_reduction *reduction,
                                       struct adl_pending **out);
    enum adl_status (*allreduce_wait)(struct adl_transport *t, struct adl_task *task,
                                      struct adl_pending *pending);
    /* After the outer step's arithmetic: attributes its time (simulated: charges it). */
    enum adl_status (*outer_step)(struct adl_transport *t, struct adl_task *task);

    /* Between epochs, by the controller of every process alike: */

    /* rows [n_rows x n_cols]: row i is valid where workers[leaders[i]] is hosted; afterwards
     * everywhere. One exchange of charged_bytes among the leaders' devices. */
    enum adl_status (*gather)(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                              const int *leaders, double charged_bytes, struct adl_err *err);
    /* Performs the moves one after the other; all workers wait for the end. */
    enum adl_status (*move)(struct adl_transport *t, const struct adl_move *moves, int n,
                            struct adl_err *err);

    /* (optional, all three; NULL: one process hosts the world) Which of how many processes this
     * is, and which one hosts a worker. */
    void (*process)(const struct adl_transport *t, int *rank, int *n);
    int (*process_of)(const struct adl_transport *t, int worker);
    /* Between epochs, by every process alike: data [bytes], in host memory, of process `from` to
     * process `to`, or to ADL_EVERY_PROCESS. Out of band: not counted, not charged, no one's
     * time. */
    enum adl_status (*pass)(struct adl_transport *t, int from, int to, void *data, size_t bytes,
                            struct adl_err *err);

    /* (optional) Before the first run: the clock stands at s, where a resumed run left it, so that
     * what changes with time goes on from there. NULL: it starts at 0 all the same. */
    enum adl_status (*start_at)(struct adl_transport *t, double s, struct adl_err *err);
    /* Never decreases. Between epochs: the moment at which all workers last met, up to which
     * the book is complete, however long the controller thinks. */
    double (*now_s)(const struct adl_transport *t);
    /* (optional) peak flop/s of the world's devices together, for mfu; NULL: unknown */
    double (*peak_flops)(const struct adl_transport *t);
    /* (optional) messages and bytes that really crossed this process's network; NULL: unknown */
    void (*sent)(const struct adl_transport *t, double *messages, double *bytes);
    /* (optional) what the links carried in a run of time_s; NULL: unknown */
    enum adl_status (*links)(struct adl_transport *t, double time_s, struct adl_links *out,
                             struct adl_err *err);
};

#endif
