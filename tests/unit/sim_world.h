/* SPDX-License-Identifier: Apache-2.0 */
/* A simulated world for tests: trainers of given workers follow a script of rounds, and the
 * moments they were at are kept. Criterion gives each test a process, so each has its engine. */
#ifndef ADL_TESTS_UNIT_SIM_WORLD_H
#define ADL_TESTS_UNIT_SIM_WORLD_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build_config.h"
#include "core/account.h"
#include "core/transport.h"
#include "sim/options.h"
#include "sim/platform.h"
#include "sim/transport_sim.h"

/* Options that leave devices as the platform has them. */
#define AS_PLATFORM .overhead_s = NAN, .half_samples = NAN

enum { WORLD_MAX = 1024, ROUNDS_MAX = 64 };

struct world {
    struct adl_settings settings;
    struct adl_sim_options options;
    struct adl_cost cost;
    struct adl_book *book;
    struct adl_transport *t;
    struct adl_err err;
    bool (*cancelled)(void *arg);
    void *cancelled_arg;
    char path[512];
};

struct script {
    struct world *world;
    int rounds;
    struct adl_work work;      /* of every worker; steps 0: none */
    double slower[ROUNDS_MAX]; /* factor on the samples of local worker i; 0: 1 */
    double bytes;
    bool outer;
    double end_s[ROUNDS_MAX];    /* after each round */
    double compute_s[WORLD_MAX]; /* of the last round */
    double total;                /* last sum */
};

static inline void world_platform(struct world *w, const char *name)
{
    snprintf(w->path, sizeof w->path, "%s/platforms/%s.xml", ADL_SOURCE_DIR, name);
}

/* Opens with what is set. */
static inline enum adl_status world_try(struct world *w)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    struct adl_transport_env env = {.settings = &w->settings,
                                    .platform_path = w->path,
                                    .space = &adl_space_cpu,
                                    .cost = &w->cost,
                                    .book = w->book,
                                    .cancelled = w->cancelled,
                                    .cancelled_arg = w->cancelled_arg};
    return adl_transport_sim.open(&w->options, &env, &w->t, &w->err);
}

/* platform: a shipped name, or NULL where the path is set. */
static inline void world_open(struct world *w, const char *platform, int workers, int per_device)
{
    if (!adl_engine())
        cr_skip_test("the simulator is not in this build");
    if (platform)
        world_platform(w, platform);
    struct adl_platform_facts facts;
    enum adl_status status = adl_sim_platform_reader.read(w->path, &facts, &w->err);
    cr_assert(status == ADL_OK, "%s", w->err.message);
    free(facts.speeds);
    w->settings.cluster.workers = workers;
    w->settings.cluster.workers_per_device = per_device;
    w->settings.cluster.devices_per_node = facts.devices_per_node;
    w->settings.cluster.nodes_per_site = facts.nodes_per_site;
    w->settings.cluster.nics_per_node = facts.nics_per_node;
    w->book = adl_book_create(workers, per_device);
    status = world_try(w);
    cr_assert(status == ADL_OK, "%s", w->err.message);
}

static inline void world_close(struct world *w, struct adl_book_totals *totals)
{
    struct adl_book_totals own;
    adl_book_close(w->book, adl_transport_sim.now_s(w->t), totals ? totals : &own);
    adl_transport_sim.close(w->t);
    adl_book_free(w->book);
}

static inline enum adl_status world_nothing(struct adl_task *task, int i, int lane, void *arg,
                                            struct adl_err *err)
{
    (void)task, (void)i, (void)lane, (void)arg, (void)err;
    return ADL_OK;
}

/* Sums the world indices of the task's workers, charging s->bytes. */
static inline enum adl_status world_sum(struct adl_task *task, struct script *s)
{
    static double values[WORLD_MAX];
    static const void *in[WORLD_MAX];
    for (int i = 0; i < task->n_local; i++) {
        values[task->workers[i]] = task->workers[i];
        in[i] = &values[task->workers[i]];
    }
    struct adl_reduction r = {.in = in,
                              .out = &s->total,
                              .count = 1,
                              .dtype = ADL_F64,
                              .charged_bytes = s->bytes,
                              .cause = ADL_CAUSE_OUTER};
    struct adl_pending *pending;
    ADL_TRY(adl_transport_sim.allreduce_start(s->world->t, task, &r, &pending));
    return adl_transport_sim.allreduce_wait(s->world->t, task, pending);
}

static inline enum adl_status world_body(struct adl_task *task, void *arg)
{
    (void)arg;
    struct script *s = task->user;
    struct adl_transport *t = s->world->t;
    for (int k = 0; k < s->rounds; k++) {
        static struct adl_work work[WORLD_MAX];
        for (int i = 0; i < task->n_local; i++) {
            work[i] = s->work;
            work[i].samples *= i < ROUNDS_MAX && s->slower[i] > 0 ? s->slower[i] : 1;
        }
        if (s->work.steps > 0)
            ADL_TRY(adl_transport_sim.for_each(t, task, world_nothing, NULL, work, s->compute_s));
        if (s->bytes >= 0)
            ADL_TRY(world_sum(task, s));
        if (s->outer)
            ADL_TRY(adl_transport_sim.outer_step(t, task));
        s->end_s[k] = adl_transport_sim.now_s(t);
    }
    return ADL_OK;
}

/* A task of workers first, first + stride, ...; its workers are freed by nobody: tests end. */
static inline struct adl_task *world_task(struct script *s, int trainer, int first, int stride,
                                          int n)
{
    struct adl_task *task = calloc(1, sizeof *task);
    int *workers = malloc((size_t)n * sizeof *workers);
    for (int i = 0; i < n; i++)
        workers[i] = first + i * stride;
    *task = (struct adl_task){
        .trainer = trainer, .workers = workers, .n_workers = n, .n_local = n, .user = s};
    return task;
}

static inline void world_task_free(struct adl_task *task)
{
    free((void *)task->workers);
    free(task);
}

/* Runs one trainer of all workers once. */
static inline void world_run_one(struct world *w, struct script *s)
{
    s->world = w;
    struct adl_task *task = world_task(s, 0, 0, 1, (int)w->settings.cluster.workers);
    enum adl_status status = adl_transport_sim.run(w->t, &task, 1, world_body, NULL, &w->err);
    cr_assert(status == ADL_OK, "%s", w->err.message);
    world_task_free(task);
}

static inline void world_run_two(struct world *w, struct adl_task *a, struct adl_task *b)
{
    struct adl_task *tasks[] = {a, b};
    enum adl_status status = adl_transport_sim.run(w->t, tasks, 2, world_body, NULL, &w->err);
    cr_assert(status == ADL_OK, "%s", w->err.message);
    world_task_free(a);
    world_task_free(b);
}

/* Numbers out [n] that fn finds in a process, and so with an engine, of its own. */
static inline void in_child(void (*fn)(const void *arg, double *out), const void *arg, double *out,
                            int n)
{
    size_t size = (size_t)n * sizeof *out;
    double *shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert(shared != MAP_FAILED);
    for (int i = 0; i < n; i++)
        shared[i] = NAN;
    pid_t child = fork();
    if (child == 0) {
        fn(arg, shared);
        _exit(0);
    }
    int how;
    cr_assert(child > 0 && waitpid(child, &how, 0) == child);
    bool well = WIFEXITED(how) && WEXITSTATUS(how) == 0;
    cr_assert(well, "a simulation in a child failed");
    memcpy(out, shared, size);
    munmap(shared, size);
}

/* |a - b| <= tolerance |b| */
static inline void near(double a, double b, double tolerance, const char *what)
{
    cr_assert(fabs(a - b) <= tolerance * fabs(b), "%s: %.17g is not %.17g within %g", what, a, b,
              tolerance);
}

#endif
