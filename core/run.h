/* SPDX-License-Identifier: Apache-2.0 */
/* One planned run, start to finish: controller x transport x model -> records and summary. */
#ifndef ADL_CORE_RUN_H
#define ADL_CORE_RUN_H

#include "core/plan.h"
#include "core/summary.h"

struct adl_progress {      /* after each epoch */
    int64_t round, rounds; /* done, at most */
    int trainers;
    double loss;       /* of the run, at its last evaluation */
    bool exact;        /* that is a known loss; else of held-out samples, in nats */
    double train_loss; /* of the last steps' samples, the trainers' mean by request; NAN unknown */
    double request;    /* sum over trainers */
    int64_t accumulation_max; /* micro-batches of a step */
    double tokens;            /* so far */
    double time_s, sync_share;
    double sync_s; /* sync delay so far, the mean of this process's workers */
    double exchanges, wire_bytes;
};

struct adl_run_observer {
    void (*progress)(void *arg, const struct adl_progress *progress); /* may be NULL */
    bool (*cancelled)(void *arg);                                     /* may be NULL */
    void *arg;
    /* (may be NULL) Asked at each epoch's end of a run with an output directory: true writes a
     * checkpoint and ends it with ADL_ERR_CANCELLED. */
    bool (*stop)(void *arg);
    void (*notice)(void *arg, const char *line); /* may be NULL: what one should know */
};

enum adl_run_mode {
    ADL_RUN_NEW, /* the directory must hold nothing but an unfinished run without checkpoint */
    ADL_RUN_OVERWRITE, /* what it holds is removed */
    ADL_RUN_RESUME     /* goes on from the newest whole checkpoint, or starts where there is none */
};

/* Runs it. out_dir: where experiment.yaml, records.jsonl, checkpoints and, last, summary.json go
 * (created; NULL: nothing is written). A directory that holds another run is refused; one that
 * holds the same run complete is refused too unless it is overwritten. A resumed run ends as if it
 * had never stopped, on any number of processes. experiment_path: for relative paths.
 * *out is filled also for diverged runs, which are results; a failed run returns its error. */
enum adl_status adl_run(const struct adl_registry *registry, const struct adl_planned *planned,
                        const char *experiment_path, const char *out_dir, enum adl_run_mode mode,
                        const struct adl_run_observer *observer, struct adl_summary *out,
                        struct adl_err *err);

#endif
