/* SPDX-License-Identifier: Apache-2.0 */
#include "core/app/sweep_process.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/app/sweep_child.h"
#include "core/app/sweep_dir.h"

enum { POLL_MS = 200, MAX_MESSAGES = 10 };

static volatile sig_atomic_t stop_asked;

static void ask_stop(int signal_number)
{
    (void)signal_number;
    stop_asked = 1;
}

/* The processes at work. */
struct crew {
    struct adl_sweep *sweep;
    struct adl_child *children; /* [n] of room for `most` */
    struct pollfd *fds;
    size_t n, most;
    double start_s;
};

static double clock_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void record_failure(struct adl_sweep *sweep, size_t job, const char *message)
{
    const struct adl_planned *run = &sweep->plan->runs[job];
    struct adl_err err = {0};
    sweep->jobs.v[job].state = ADL_JOB_FAILED;
    size_t n_failed = adl_jobs_standing(&sweep->jobs, 0).failed;
    if (n_failed <= MAX_MESSAGES) {
        adl_line_break(&sweep->line);
        fprintf(sweep->messages, "adloco: run %s (%s%s%s%sseed %lld) failed: %s\n", run->run_id,
                run->variant, *run->variant ? ", " : "", run->point, *run->point ? ", " : "",
                (long long)run->settings.seed, message);
    }
    if (n_failed == MAX_MESSAGES)
        fprintf(sweep->messages, "adloco: further failures are only recorded\n");
    if (adl_sweep_dir_fail(sweep->dir, run, message, &err) != ADL_OK)
        fprintf(sweep->messages, "adloco: %s\n", err.message);
}

/* Starts runs until all hands are busy or none is left. */
static void start_runs(struct crew *crew)
{
    struct adl_sweep *sweep = crew->sweep;
    while (crew->n < crew->most) {
        size_t job = adl_jobs_take(&sweep->jobs);
        if (job == sweep->jobs.n)
            return;
        struct adl_err err = {0};
        struct adl_child *child = &crew->children[crew->n];
        adl_sweep_dir_forget(sweep->dir, &sweep->plan->runs[job]);
        if (adl_child_start(sweep->registry, sweep->plan, job, sweep->dir, child, &err) == ADL_OK)
            crew->n++;
        else
            record_failure(sweep, job, err.message);
    }
}

static void conclude(struct crew *crew, size_t i)
{
    struct adl_child *child = &crew->children[i];
    if (adl_child_finish(child))
        crew->sweep->jobs.v[child->job].state = ADL_JOB_DONE;
    else
        record_failure(crew->sweep, child->job, child->error.message);
    crew->children[i] = crew->children[--crew->n];
}

static void listen_to_runs(struct crew *crew)
{
    for (size_t i = 0; i < crew->n; i++)
        crew->fds[i] = (struct pollfd){.fd = crew->children[i].pipe, .events = POLLIN};
    if (poll(crew->fds, crew->n, POLL_MS) <= 0)
        return;
    /* backwards, because conclude() moves the last child into the place of one that is done */
    for (size_t i = crew->n; i-- > 0;) {
        struct adl_child *child = &crew->children[i];
        if (crew->fds[i].revents == 0)
            continue;
        bool ended = adl_child_listen(child);
        crew->sweep->jobs.v[child->job].fraction = child->fraction;
        if (ended && !stop_asked)
            conclude(crew, i);
    }
}

static void show(struct crew *crew)
{
    struct adl_standing standing = adl_jobs_standing(&crew->sweep->jobs, clock_s() - crew->start_s);
    adl_line_show(&crew->sweep->line, &standing);
}

static enum adl_status work(struct crew *crew, struct adl_err *err)
{
    start_runs(crew);
    while (crew->n > 0) {
        show(crew);
        listen_to_runs(crew);
        if (stop_asked) {
            for (size_t i = 0; i < crew->n; i++)
                adl_child_kill(&crew->children[i]);
            return adl_fail(err, ADL_ERR_CANCELLED, "stopped");
        }
        start_runs(crew);
    }
    show(crew);
    return ADL_OK;
}

static size_t n_cores(void)
{
    cpu_set_t set;
    const int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (size_t)n : 1;
}

enum adl_status adl_sweep_execute(struct adl_sweep *sweep, struct adl_err *err)
{
    struct crew crew = {.sweep = sweep, .start_s = clock_s()};
    crew.most = sweep->n_parallel ? sweep->n_parallel : n_cores();
    if (crew.most > sweep->plan->n_runs)
        crew.most = sweep->plan->n_runs;
    crew.children = calloc(crew.most, sizeof *crew.children);
    crew.fds = calloc(crew.most, sizeof *crew.fds);
    enum adl_status status = ADL_ERR_NOMEM;
    if (crew.children && crew.fds) {
        struct sigaction action = {.sa_handler = ask_stop}, old_int, old_term;
        stop_asked = 0;
        sigaction(SIGINT, &action, &old_int);
        sigaction(SIGTERM, &action, &old_term);
        status = work(&crew, err);
        sigaction(SIGINT, &old_int, NULL);
        sigaction(SIGTERM, &old_term, NULL);
    } else {
        adl_fail(err, status, "no memory for %zu processes", crew.most);
    }
    adl_line_break(&sweep->line);
    free(crew.children);
    free(crew.fds);
    return status;
}
