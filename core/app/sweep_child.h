/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a sweep in a process of its own, and its words to the parent through a pipe. */
#ifndef ADL_APP_SWEEP_CHILD_H
#define ADL_APP_SWEEP_CHILD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "core/plan.h"

struct adl_child {
    pid_t pid;
    int pipe;    /* what it reports; readable without blocking */
    FILE *words; /* what it printed: the last of it explains a crash */
    size_t job;
    double fraction;      /* of its run, as last reported */
    struct adl_err error; /* of its run; ADL_OK until it reports one */
    bool finished;        /* it reported its run's end */
};

/* Forks. ADL_ERR_RUNTIME where the system has no process or file left. */
enum adl_status adl_child_start(const struct adl_registry *registry, const struct adl_plan *plan,
                                size_t job, const char *dir, struct adl_child *out,
                                struct adl_err *err);
/* Reads what has arrived; true at the end of the pipe: the process is gone or going. */
bool adl_child_listen(struct adl_child *child);
/* Waits for the process and frees what it held. false: the run failed, child->error says why. */
bool adl_child_finish(struct adl_child *child);
/* Ends it at once, whatever it is doing. */
void adl_child_kill(struct adl_child *child);

#endif
