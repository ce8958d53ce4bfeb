/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the simulated transport: what its files share. */
#ifndef ADL_SIM_SIMULATION_H
#define ADL_SIM_SIMULATION_H

#include "sim/capacity.h"
#include "sim/courses.h"
#include "sim/device.h"
#include "sim/fidelity.h"
#include "sim/links.h"
#include "sim/share.h"

struct adl_transport {
    const struct adl_sim_options *options;
    struct adl_transport_env env;
    const struct adl_engine_ops *engine;
    struct adl_sim_platform platform;
    struct adl_devices devices; /* of the platform's GPUs */
    struct adl_layout layout;   /* of the devices */
    int n_workers, per_device;
    double now_s;
    bool failed; /* a task has failed: the run is over */

    bool *has_trainer; /* [n_workers] in the last run */
    int *streams;      /* [n_devices] workers of this run's tasks */
    double *free_at_s; /* [n_devices] turns: when the device is next free */
    struct adl_share *shares; /* [n_devices] who computes there at once */
    double *backward_s;       /* [n_workers] of the last micro-batch computed */

    struct adl_courses courses;    /* of this run's tasks */
    struct adl_capacity *capacity; /* NULL: links do not change */
    struct adl_link_book links;
    double sent_messages, sent_bytes; /* fidelity `message` */
    bool direct; /* this run's tasks need no engine: one after the other, each from its start */
};

/* Follows a collective to its end while the task computes. */
struct adl_follower {
    struct adl_transport *t;
    struct adl_engine_gate *done;
    struct adl_engine_actor actor;
    enum adl_status status;
    struct adl_err err;
};

struct adl_made;

struct adl_pending {
    struct adl_pending *next; /* of the task */
    double bytes;
    struct adl_made *made; /* owned; not NULL: overlaps with computing (sim/overlap.h) */
    struct adl_course *course;
    double start_s;                 /* when all workers had arrived */
    double end_s;
    double start_clock_s;           /* the engine's clock when the present phase started */
    struct adl_activity **activity; /* [n_streams] of that phase; NULL: none */
    struct adl_follower *follower;  /* NULL: the task follows it itself */
    struct adl_performance *performance; /* of a script; else NULL */
};

/* A task while it runs. */
struct adl_sim_task {
    struct adl_transport *t;
    struct adl_task *task;
    enum adl_status (*body)(struct adl_task *task, void *arg);
    void *arg;
    struct adl_engine_actor actor;
    int number; /* of the run's tasks: whose courses */
    struct adl_pending *pending; /* started and not waited for */
    bool overlaps;               /* its last compute does with the sum that follows */
    int *order;                  /* [n_local] scratch, as what follows */
    struct adl_block *blocks;
    struct adl_job *jobs;
    bool *is_shared; /* whether jobs[i] is on its way */
    double *started_s;
    bool done;
    enum adl_status status;
    bool failed_first; /* its failure is the run's */
};

int adl_sim_device_of(const struct adl_transport *t, int worker);

/* Distinct devices of workers [n], in order of appearance where those of a device are neighbours,
 * leaving out `except`. Returns how many. */
int adl_sim_distinct_devices(const struct adl_transport *t, const int *workers, int n, int except,
                             int *devices);

/* Waits, in an actor, until this moment. */
void adl_sim_sleep_until(const struct adl_transport *t, double until_s);
/* The latest cursor of a task's workers. */
double adl_sim_slowest(const struct adl_sim_task *task);
/* Brings the task to its slowest worker's time, which it returns. */
double adl_sim_settle(struct adl_sim_task *task);

enum adl_status adl_sim_open_scratch(struct adl_sim_task *task, struct adl_err *err);
void adl_sim_free_scratch(struct adl_sim_task *task);
/* At an epoch's start: the streams of a device set off one after the other. */
void adl_sim_stagger(struct adl_transport *t, const struct adl_task *task);
/* Charges work [n_local] to the task's devices. compute_s [n_local] may be NULL. */
enum adl_status adl_sim_compute(struct adl_sim_task *task, const struct adl_work *work,
                                double *compute_s);

/* Starts a collective of p->bytes now; p->start_s is when that is. */
enum adl_status adl_sim_start(struct adl_transport *t, struct adl_course *course,
                              struct adl_pending *p, struct adl_err *err);
/* Follows a started collective to its end. */
enum adl_status adl_sim_follow(struct adl_transport *t, struct adl_pending *p, double *end_s,
                               struct adl_err *err);

enum adl_status adl_sim_run(struct adl_transport *t, struct adl_task *const *tasks, int n,
                            enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                            struct adl_err *err);
enum adl_status adl_sim_gather(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                               const int *leaders, double charged_bytes, struct adl_err *err);
enum adl_status adl_sim_move(struct adl_transport *t, const struct adl_move *moves, int n,
                             struct adl_err *err);

#endif
