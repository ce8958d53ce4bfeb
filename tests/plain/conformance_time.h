/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: the clock and the book of time. Nothing here expects any particular duration. */
#ifndef ADL_TESTS_CONFORMANCE_TIME_H
#define ADL_TESTS_CONFORMANCE_TIME_H

#include "tests/plain/conformance_sums.h"

struct time_case {
    struct world *w;
    struct sum_case sum;
    double last_s[MAX_WORKERS];    /* by trainer */
    double compute_s[MAX_WORKERS]; /* by worker, as for_each told */
};

static void check_clock(struct time_case *c, const struct adl_task *task)
{
    double now_s = c->w->ops->now_s(c->w->t), *last_s = &c->last_s[task->trainer];
    CHECK(now_s >= *last_s, "trainer %d: %.17g after %.17g", task->trainer, now_s, *last_s);
    *last_s = now_s;
}

static enum adl_status timed_body(struct adl_task *task, void *arg)
{
    struct time_case *c = arg;
    double compute_s[MAX_WORKERS];
    for (int round = 0; round < 5; round++) {
        check_clock(c, task);
        ADL_TRY(work_round(c->w, task, compute_s));
        for (int i = 0; i < task->n_local; i++) {
            int worker = local_worker(task, i);
            CHECK(compute_s[i] > 0, "worker %d computed for %g s", worker, compute_s[i]);
            c->compute_s[worker] += compute_s[i];
        }
        check_clock(c, task);
        ADL_TRY(sum_once(&c->sum, task));
        check_clock(c, task);
        ADL_TRY(c->w->ops->outer_step(c->w->t, task));
        check_clock(c, task);
    }
    return ADL_OK;
}

static struct time_case time_make(struct world *w)
{
    return (struct time_case){
        .w = w, .sum = {.w = w, .element = rough_element, .count = 4096, .dtype = ADL_F64}};
}

/* The cursor of all workers, which must have met; between epochs the clock stands there. */
static double meeting_s(const struct world *w)
{
    double s = adl_book_cursor(w->book, 0);
    for (int i = 1; i < w->n; i++)
        CHECK(adl_book_cursor(w->book, i) == s, "worker %d is at %.17g s, worker 0 at %.17g", i,
              adl_book_cursor(w->book, i), s);
    CHECK(w->ops->now_s(w->t) == s, "the clock shows %.17g s, the workers met at %.17g",
          w->ops->now_s(w->t), s);
    return s;
}

static void check_book(const struct world *w, struct adl_book_totals *totals)
{
    double end_s = meeting_s(w), all_s = w->n_local * end_s, sum_s = 0;
    adl_book_close(w->book, end_s, totals);
    for (int c = 0; c < ADL_N_TIMES; c++) {
        CHECK(totals->by_time_s[c] >= 0, "%s: %g s", adl_time_names[c], totals->by_time_s[c]);
        sum_s += totals->by_time_s[c];
    }
    CHECK(totals->residual < 1e-9, "the residual is %g", totals->residual);
    CHECK(fabs(sum_s - all_s) <= 1e-9 * all_s, "%.17g s of %.17g are attributed", sum_s, all_s);
}

/* What the book has of compute is what for_each told, no waiting for a processor in it. */
static void check_compute(const struct time_case *c, const struct adl_book_totals *totals)
{
    double told_s = 0, booked_s = totals->by_time_s[ADL_TIME_COMPUTE];
    for (int i = 0; i < c->w->n; i++)
        told_s += c->compute_s[i];
    CHECK(fabs(told_s - booked_s) <= 1e-9 * told_s, "%.17g s told, %.17g s in the book", told_s,
          booked_s);
}

static void clock_never_decreases(struct world *w)
{
    struct time_case c = time_make(w);
    CHECK(w->ops->now_s(w->t) == 0, "the clock runs before the first run");
    for (int k = 1; k <= w->n && k <= 3; k++) {
        double before_s = w->ops->now_s(w->t);
        world_run_ok(w, k, timed_body, &c);
        CHECK(w->ops->now_s(w->t) > before_s, "no time has passed in a run of %d tasks", k);
    }
    struct adl_book_totals totals;
    check_book(w, &totals);
    check_compute(&c, &totals);
    if (w->n > 1 && w->n_local > 0)
        CHECK(totals.by_time_s[ADL_TIME_TRANSFER] > 0, "sums took no time");
}

/* Uneven work in two epochs of other groups, a gather and a move between them. */
static void every_second_is_attributed(struct world *w)
{
    struct time_case c = time_make(w);
    struct adl_err err = {.status = ADL_OK};
    struct adl_book_totals totals;
    double rows[MAX_WORKERS] = {0}, data[16] = {0}, into[16];
    int leaders[MAX_WORKERS] = {0}, last = w->n - 1;
    struct adl_move move = {.src = 0,
                            .dst = &last,
                            .n_dst = 1,
                            .data = data,
                            .into = into,
                            .bytes = sizeof data,
                            .charged_bytes = 1e6,
                            .cause = ADL_CAUSE_MERGE};
    world_run_ok(w, w->n > 1 ? 2 : 1, timed_body, &c);
    double epoch_s = meeting_s(w);
    CHECK(w->ops->gather(w->t, rows, 1, 1, leaders, 8, &err) == ADL_OK, "%s", err.message);
    CHECK(w->ops->move(w->t, &move, 1, &err) == ADL_OK, "%s", err.message);
    CHECK(w->n > 1 ? meeting_s(w) > epoch_s : meeting_s(w) >= epoch_s, "a move took no time");
    world_run_ok(w, 1, timed_body, &c);
    check_book(w, &totals);
    check_compute(&c, &totals);
    CHECK(totals.by_time_s[ADL_TIME_IDLE] == 0, "idle without an idle worker");
    if (w->n_local == 0)
        return;
    CHECK(totals.by_time_s[ADL_TIME_COMPUTE] > 0, "no compute");
    CHECK(totals.by_time_s[ADL_TIME_OUTER] > 0, "no outer step");
    if (w->n > 1) {
        CHECK(totals.by_time_s[ADL_TIME_WAIT] > 0, "nobody waited for the slowest");
        CHECK(totals.by_time_s[ADL_TIME_TRANSFER] > 0, "no transfer");
        CHECK(totals.sync_sum_s > 0, "no sync delay");
    }
}

/* Only every k-th worker has a trainer. */
static void workers_without_trainer_idle(struct world *w)
{
    struct time_case c = time_make(w);
    struct adl_err err = {.status = ADL_OK};
    struct adl_book_totals totals;
    CHECK(world_run_some(w, w->n, 1, timed_body, &c, &err) == ADL_OK, "%s", err.message);
    double idle_s = (w->n_local - hosted(w, 0)) * meeting_s(w);
    check_book(w, &totals);
    CHECK(fabs(totals.by_time_s[ADL_TIME_IDLE] - idle_s) <= 1e-9 * idle_s,
          "%.17g s idle, not %.17g", totals.by_time_s[ADL_TIME_IDLE], idle_s);
}

static const struct conformance_case time_cases[] = {
    {"clock_never_decreases", clock_never_decreases},
    {"every_second_is_attributed", every_second_is_attributed},
    {"workers_without_trainer_idle", workers_without_trainer_idle},
    {NULL, NULL},
};

#endif
