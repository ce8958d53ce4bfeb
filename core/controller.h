/* SPDX-License-Identifier: Apache-2.0 */
/* The algorithm (design 5): epochs of rounds of inner steps, one task per trainer. Includes
 * interfaces only: it knows no transport, model or memory by name.
 *
 * Symbols: theta parameters, H inner.steps, B samples of a trainer's inner step (request), b_m a
 * worker's share, M a trainer's workers, K trainers, Delta pseudo-gradient (theta at the round's
 * start minus a worker's), S bytes charged for one vector.
 *
 *   controller_open.c  set-up                    controller.c  epochs, stopping
 *   round.c            one round of one trainer  merge.c       merging, redistribution
 *   worker.c           what a worker computes    observe.c     sums -> statistic -> request
 *   absence.c          faults
 *   exchange.c         counted collectives       records.c     rows
 *   share.c            what processes tell each   controller_state.c  what a checkpoint holds
 *                      other
 *
 * Every process runs the controller, makes the same decisions and calls alike. A trainer lives
 * (theta, momentum) in the processes that host its workers; after each epoch everyone knows all
 * that is not a vector. */
#ifndef ADL_CORE_CONTROLLER_H
#define ADL_CORE_CONTROLLER_H

#include <stdio.h>

#include "core/batch.h"
#include "core/faults.h"
#include "core/checkpoint.h"
#include "core/model.h"
#include "core/optimizer.h"
#include "core/policy.h"
#include "core/processes.h"
#include "core/run.h"
#include "core/transport.h"

/* Scalars that each worker adds to the round's exchange. Only those that a decision needs are
 * charged; the losses are monitoring. */
enum adl_scalar {
    ADL_SCALAR_Q, /* b_m |v_m|^2 of what is tested */
    ADL_SCALAR_S, /* the micro-batch statistic's four */
    ADL_SCALAR_U,
    ADL_SCALAR_S_IP,
    ADL_SCALAR_S_ORTH,
    ADL_SCALAR_LOSS,   /* sum of sample losses of the last explicit step */
    ADL_SCALAR_LOSS_N, /* their number; 0 where a shortcut left none */
    ADL_N_SCALARS
};

struct adl_worker {
    void *x; /* [P] own parameters; after the round, what goes into the sum */
    void *g; /* [P] last inner gradient; NULL unless the gradient statistic needs it */
    struct adl_inner_state inner;
    uint64_t life_steps;   /* inner steps so far, for the simulator's jitter */
    double compute_s, ran; /* seconds and samples so far: its measured speed */
    double busy_s;         /* this round's seconds */
    /* this round: */
    struct adl_step_plan step;
    int64_t steps;  /* H, or less under balance: steps */
    bool lost;      /* a fault takes its part of the sum: zeros instead */
    int64_t offset; /* of its slice within a step's samples */
    double share;   /* samples an inner step: step.samples, less where it took fewer steps */
    double weight;  /* of its vector in the sum: samples that ran / all that ran */
};

struct adl_lane {    /* scratch of one executing thread */
    void *g, *micro; /* [P] */
};

struct adl_trainer {
    int index;
    bool alive;
    int merged_into; /* by the last merge point: the survivor, or -1 */
    int *workers;    /* [n_workers] world indices, ascending */
    int n_workers;
    int *devices; /* [n_devices] distinct, ascending */
    int n_devices;

    void *theta, *v; /* [P]; v is the outer momentum, NULL without; one allocation, see state */
    void *sum, *stat_sum;         /* [P] averaged vectors; stat_sum: of last gradients, or NULL */
    struct adl_inner_state inner; /* ddp's shared optimizer state */

    int64_t initial, request; /* samples per inner step, all workers together */
    int64_t round;            /* rounds done */
    uint64_t cursor;          /* next sample of its stream */
    double samples;           /* that ran so far */
    double lost, faults;      /* of them lost to faults; workers struck, and repairs waited for */
    double smooth[3];         /* running means of S, S_ip, S_orth; NAN before the first */
    double loss, train_loss;  /* after the last round; NAN unknown */
    int64_t accumulation_max;
    struct adl_counts counts; /* its exchanges */
    double depth;             /* of them in sequence */
    FILE *rows;               /* records of the epoch, a memory stream */
    char *rows_text;
    size_t rows_size;
    const int64_t *recorded; /* [n_recorded] requests to replay */
    int64_t n_recorded;
    size_t n_scalars; /* ADL_N_SCALARS, and n_workers more where speeds are measured */
    double *scalars;  /* [n_workers x n_scalars] a row by local worker */
    double *sums;     /* [n_scalars] */
    const void **in;  /* [n_workers] */
    struct adl_task task;
};

/* What a trainer is beside its vectors and workers: what processes tell each other after an
 * epoch, and what a checkpoint holds. */
struct adl_trainer_row {
    int64_t alive, initial, request, round, accumulation_max;
    uint64_t cursor;
    double samples, lost, faults, depth, smooth[3], loss, train_loss;
    struct adl_counts counts;
    uint64_t rows_size;
};

struct adl_controller {
    const struct adl_settings *settings;
    const struct adl_model_ops *model_ops;
    struct adl_model *model;
    const struct adl_transport_ops *transport_ops;
    struct adl_transport *transport;
    const struct adl_space *space;
    enum adl_dtype dtype;
    const struct adl_batch_policy *policy;
    enum adl_stat_need need; /* the policy's, or batch.observe's */
    struct adl_layout layout;
    int gpus; /* of a device */
    size_t P;
    size_t state_bytes; /* of theta and, behind it, outer momentum: one move carries both */
    double S_bytes;
    double tokens_per_sample;
    const char *recorded_path; /* batch.recorded, found */
    bool plain_sgd;            /* no momentum, decay or clipping: a shortcut may apply */

    int n_workers, n_trainers;
    struct adl_worker *workers;   /* [n_workers] */
    double *speeds;               /* [n_workers] declared, relative */
    struct adl_trainer *trainers; /* [n_trainers] */
    struct adl_lane *lanes;       /* [n_lanes] */
    int n_lanes;
    int *owner;                /* [n_workers] trainer index */
    struct adl_faults *faults; /* NULL: none */
    bool *absent;              /* [n_workers] down in this epoch: has an owner, but no part */
    bool *at_home;             /* [n_trainers] all of its workers are on one node */
    void *average;             /* [P] demand-weighted average of the living trainers */

    struct adl_processes processes;
    struct adl_book *book;    /* borrowed: time so far, for progress */
    struct adl_counts counts; /* of the epochs' ends: gather, merge, redistribution, evaluation */
    double exchange_rounds;
    int64_t merges;
    int64_t round;         /* rounds done, of a trainer */
    int64_t below;         /* checks in a row below stop.loss */
    double loss;           /* of the run, at its last evaluation */
    double time_s;         /* end of the last synchronization */
    double base_s;         /* of it, what the transport's clock does not know of: a resumed run's */
    bool resumed;          /* from a checkpoint: what the links carried before is not known */
    double sent_before[2]; /* messages and bytes sent before that */
    FILE *records;         /* borrowed; NULL: none */
    const char *dir;       /* borrowed; where checkpoints go; NULL: nowhere */
    const struct adl_run_observer *observer;
};

/* ---- exchange.c: collectives that are counted alike on every transport */

/* Sums over the trainer's workers, counts one exchange unless all are on one device, adds to the
 * trainer's depth. */
enum adl_status adl_exchange(struct adl_controller *c, struct adl_trainer *t,
                             const struct adl_reduction *reduction);
/* Seconds since the run's start, before it was resumed included. */
double adl_now_s(const struct adl_controller *c);
/* A move between epochs, counted in c->counts. */
enum adl_status adl_exchange_move(struct adl_controller *c, const struct adl_move *move,
                                  struct adl_err *err);
int adl_device_of(const struct adl_controller *c, int worker);

/* ---- round.c */

/* One round of a trainer, within its task. */
enum adl_status adl_round(struct adl_controller *c, struct adl_trainer *t);
/* The body of a task: so many rounds, fewer where it diverges; arg is struct adl_epoch. */
struct adl_epoch {
    struct adl_controller *c;
    int64_t rounds;
};
enum adl_status adl_epoch_body(struct adl_task *task, void *arg);

/* ---- worker.c: what one worker computes, as functions for for_each; arg is struct adl_round */
struct adl_round_plan {
    struct adl_controller *c;
    struct adl_trainer *t;
    int64_t H, B;   /* B: samples of a step that run, all workers */
    double ran;     /* samples of the round, all workers */
    int64_t kept_B; /* B, ran and the workers without those lost to faults */
    double kept_ran;
    int n_kept;
    double delay_s;          /* what a fault adds to the round's first exchange */
    double *lr;              /* [H] */
    enum adl_statistic kind; /* in force: micro_batch where there is one worker */
    enum adl_stat_need need;
    bool explicit_last;  /* the last step is computed even where a shortcut exists */
    struct adl_hop *hop; /* for `hop_steps` steps of all workers, or NULL */
    int64_t hop_steps;
    int64_t step;     /* ddp: the step at hand */
    const void *mean; /* [P] inner-product tests: gb */
};
enum adl_status adl_worker_local_round(struct adl_task *task, int i, int lane, void *arg,
                                       struct adl_err *err);
enum adl_status adl_worker_gradient(struct adl_task *task, int i, int lane, void *arg,
                                    struct adl_err *err);
enum adl_status adl_worker_inner_product(struct adl_task *task, int i, int lane, void *arg,
                                         struct adl_err *err);

/* ---- observe.c */

/* From the round's sums (scalars [ADL_N_SCALARS], t->sum or t->stat_sum) to the statistic, and on
 * to t->request. Needs one more exchange for the inner-product tests. */
enum adl_status adl_observe(struct adl_round_plan *plan, const double *sums,
                            struct adl_stat *stat_out);
/* Scalars that the statistic in force needs: what is charged beside the vector. */
int adl_charged_scalars(const struct adl_round_plan *plan);

/* ---- absence.c: faults */

/* Before an epoch: who is down leaves its trainer's lists, who is back gets its parameters. A
 * trainer whose workers would all be gone keeps them. */
enum adl_status adl_faults_begin(struct adl_controller *c, struct adl_err *err);
/* Marks the round's lost workers; sets plan->delay_s. */
void adl_faults_strike(struct adl_round_plan *plan);

/* ---- merge.c */

/* The pair that merges: pure; requests [n], 0 = dead. *victim = -1: none. */
void adl_merge_pair(enum adl_merge_policy policy, const int64_t *requests, int n, int *survivor,
                    int *victim);
/* At an epoch's end: merges one pair (or all), redistributes the victims' workers. */
enum adl_status adl_merge(struct adl_controller *c, struct adl_err *err);
/* Sets the trainers' worker lists from c->owner; a worker that changed trainer starts with a
 * fresh inner state. previous [n_workers] may be NULL at the start. */
enum adl_status adl_apply_owner(struct adl_controller *c, const int *previous, struct adl_err *err);

/* ---- controller.c */

/* Everything for a run: transport and model are opened by the caller (core/run.c). */
enum adl_status adl_controller_open(struct adl_controller *c, struct adl_err *err);
void adl_controller_close(struct adl_controller *c);
/* Runs to the end; fills the summary's fields that the controller knows. */
enum adl_status adl_controller_run(struct adl_controller *c, struct adl_summary *summary,
                                   struct adl_err *err);
/* ---- controller_state.c */

/* At an epoch's end, by everyone: writes a checkpoint of this state to c->dir; or takes over the
 * state of one, opened by process 0 (file is NULL elsewhere), after adl_controller_open. The
 * summary gets what was measured at the run's start. */
enum adl_status adl_controller_save(struct adl_controller *c, struct adl_summary *summary,
                                    struct adl_err *err);
enum adl_status adl_controller_load(struct adl_controller *c, struct adl_checkpoint *file,
                                    struct adl_summary *summary, struct adl_err *err);

/* ---- share.c */

struct adl_trainer_row adl_trainer_row_of(const struct adl_trainer *t);
void adl_trainer_take_row(struct adl_trainer *t, const struct adl_trainer_row *row);

/* bytes of a vector from process `from` to process `to`, or to ADL_EVERY_PROCESS, out of band; in
 * pieces through host memory where vectors lie elsewhere. */
enum { ADL_VECTOR_PIECE_BYTES = 64 * 1024 };
enum adl_status adl_share_vector(struct adl_controller *c, int from, int to, void *vector,
                                 size_t bytes, struct adl_err *err);

/* After an epoch: everyone learns what each trainer's first worker's process knows of it, and
 * the workers' measured speeds. */
enum adl_status adl_share_trainers(struct adl_controller *c, struct adl_err *err);
/* The records of the epoch to process 0, which appends them to c->records; all start afresh. */
enum adl_status adl_share_records(struct adl_controller *c, struct adl_err *err);
/* c->average = sum of weights[k] x theta over the living trainers, in their order, valid in the
 * process that is returned. */
enum adl_status adl_share_average(struct adl_controller *c, const double *weights, int *process,
                                  struct adl_err *err);
/* Before the survivor takes the victim's state in: every process that hosts it has that state. */
enum adl_status adl_share_victim(struct adl_controller *c, const struct adl_trainer *survivor,
                                 struct adl_trainer *victim, struct adl_err *err);
/* Where gradients are exchanged, the optimizer's state goes to a trainer's new processes too;
 * from: a worker that the trainer had before. */
enum adl_status adl_share_inner(struct adl_controller *c, struct adl_trainer *t, int from,
                                struct adl_err *err);
/* At process 0: the totals of time of processes first and above, and what all have sent. */
enum adl_status adl_share_parts(struct adl_controller *c, int first, void *sum, double sent[2],
                                struct adl_err *err);
/* The totals of time of all processes, and what they sent, at process 0, for the summary. */
enum adl_status adl_share_totals(struct adl_controller *c, struct adl_summary *summary,
                                 struct adl_err *err);
/* Whether this process hosts one of the trainer's workers. */
bool adl_hosts(const struct adl_controller *c, const struct adl_trainer *t, int process);

/* The exact or held-out loss of the demand-weighted average of the living trainers. */
enum adl_status adl_controller_loss(struct adl_controller *c, double *loss, struct adl_err *err);
int64_t adl_living_request(const struct adl_controller *c); /* sum over living trainers */

#endif
