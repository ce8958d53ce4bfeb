/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the simulated transport: what its files share. */
#ifndef ADL_SIM_SIMULATION_H
#define ADL_SIM_SIMULATION_H

#include "sim/device.h"
#include "sim/network.h"

struct adl_transport {
    const struct adl_sim_options *options;
    struct adl_transport_env env;
    const struct adl_engine_ops *engine;
    struct adl_sim_platform platform;
    struct adl_layout layout;
    int n_workers, per_device;
    double now_s;
    bool failed; /* a task has failed: the run is over */

    bool *has_trainer; /* [n_workers] in the last run */
    int *streams;      /* [n_devices] workers of this run's tasks */
    double *free_at_s; /* [n_devices] turns: when the device is next free */

    /* What the courses below were worked out for. */
    int *groups; /* [n_courses] number of devices, then the devices, for each task */
    size_t n_groups;
    struct adl_course *courses; /* [n_courses] */
    int n_courses;
};

struct adl_pending {
    struct adl_pending *next; /* of the task */
    double bytes;
    double start_s;                 /* when all workers had arrived */
    double start_clock_s;           /* the engine's clock when the present phase started */
    struct adl_activity **activity; /* [n_streams] of that phase; NULL: none */
};

/* A task while it runs. */
struct adl_sim_task {
    struct adl_transport *t;
    struct adl_task *task;
    enum adl_status (*body)(struct adl_task *task, void *arg);
    void *arg;
    struct adl_engine_actor actor;
    const struct adl_course *course;
    struct adl_pending *pending; /* started and not waited for */
    int *order;                  /* [n_local] scratch */
    struct adl_activity **jobs;  /* [n_local] scratch */
    double *started_s;           /* [n_local] scratch */
    bool done;
    enum adl_status status;
    bool failed_first; /* its failure is the run's */
};

int adl_sim_device_of(const struct adl_transport *t, int worker);

/* Waits, in an actor, until this moment. */
void adl_sim_sleep_until(const struct adl_transport *t, double until_s);
/* The latest cursor of a task's workers. */
double adl_sim_slowest(const struct adl_sim_task *task);
/* Brings the task to its slowest worker's time, which it returns. */
double adl_sim_settle(struct adl_sim_task *task);

/* Charges work [n_local] to the task's devices. compute_s [n_local] may be NULL. */
enum adl_status adl_sim_compute(struct adl_sim_task *task, const struct adl_work *work,
                                double *compute_s);

/* Starts a pending collective's first phase now. */
enum adl_status adl_sim_start(const struct adl_transport *t, const struct adl_course *course,
                              struct adl_pending *pending, struct adl_err *err);
/* Follows a started collective to its end. A later phase that has flows of its own starts when the
 * task gets here, so that of a hierarchical collective under contention only the first phase
 * overlaps with computing. */
enum adl_status adl_sim_follow(const struct adl_transport *t, const struct adl_course *course,
                               struct adl_pending *pending, double *end_s, struct adl_err *err);

enum adl_status adl_sim_run(struct adl_transport *t, struct adl_task *const *tasks, int n,
                            enum adl_status (*body)(struct adl_task *task, void *arg), void *arg,
                            struct adl_err *err);
enum adl_status adl_sim_gather(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                               const int *leaders, double charged_bytes, struct adl_err *err);
enum adl_status adl_sim_move(struct adl_transport *t, const struct adl_move *moves, int n,
                             struct adl_err *err);

#endif
