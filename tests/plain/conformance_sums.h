/* SPDX-License-Identifier: Apache-2.0 */
/* Conformance: what is computed. Sums, scalars, gathers, moves, and who runs what on which lane. */
#ifndef ADL_TESTS_CONFORMANCE_SUMS_H
#define ADL_TESTS_CONFORMANCE_SUMS_H

#include "tests/plain/conformance_world.h"

/* What a sum's body needs to know. */
struct sum_case {
    struct world *w;
    double (*element)(int worker, size_t k);
    size_t count;
    enum adl_dtype dtype;
    int n_scalars, rounds;
    bool apart; /* work between start and wait */
};

/* Integers below 2^13, so that sums are exact in both types. */
static double integer_element(int worker, size_t k)
{
    return (double)((worker + 1) * (int)(k % 997)) - 321;
}

/* Magnitudes of seven decades, so that any other order of summing changes bits. */
static double rough_element(int worker, size_t k)
{
    static const double scale[] = {1, 1e3, 1e-2, 1e4, 1e-1, 1e2, 1e1};
    return scale[((size_t)worker * 5 + k) % 7] / (3.0 + worker);
}

static void put(void *v, size_t k, enum adl_dtype dtype, double x)
{
    if (dtype == ADL_F64)
        ((double *)v)[k] = x;
    else
        ((float *)v)[k] = (float)x;
}

/* expected = the sum over the task's workers, one by one in the element type. */
static void sum_in_order(const struct sum_case *c, const struct adl_task *task, void *expected)
{
    for (size_t k = 0; k < c->count; k++) {
        double wide = c->element(task->workers[0], k);
        float narrow = (float)wide;
        for (int i = 1; i < task->n_workers; i++) {
            wide += c->element(task->workers[i], k);
            narrow += (float)c->element(task->workers[i], k);
        }
        put(expected, k, c->dtype, c->dtype == ADL_F64 ? wide : (double)narrow);
    }
}

static void check_scalars(const struct sum_case *c, const struct adl_task *task,
                          const double *scalars)
{
    for (int s = 0; s < c->n_scalars; s++) {
        double expected = rough_element(task->workers[0], (size_t)s);
        for (int i = 1; i < task->n_workers; i++)
            expected += rough_element(task->workers[i], (size_t)s);
        CHECK(scalars[s] == expected, "scalar %d is %.17g, not %.17g", s, scalars[s], expected);
    }
}

static enum adl_status sum_round(const struct sum_case *c, struct adl_task *task, void **in,
                                 void *out, double *scalars_in, double *scalars_out)
{
    struct adl_reduction r = {.in = (const void *const *)in,
                              .out = out,
                              .count = c->count,
                              .dtype = c->dtype,
                              .scalars_in = scalars_in,
                              .scalars_out = scalars_out,
                              .n_scalars = (size_t)c->n_scalars,
                              .charged_bytes = 8.0 * (double)c->count,
                              .cause = ADL_CAUSE_OUTER};
    if (!c->apart)
        return reduce(c->w, task, &r);
    struct adl_pending *pending = NULL;
    ADL_TRY(c->w->ops->allreduce_start(c->w->t, task, &r, &pending));
    enum adl_status worked = work_round(c->w, task, NULL);
    enum adl_status summed = c->w->ops->allreduce_wait(c->w->t, task, pending);
    return worked == ADL_OK ? summed : worked;
}

static double element_of(const void *v, size_t k, enum adl_dtype dtype)
{
    return dtype == ADL_F64 ? ((const double *)v)[k] : (double)((const float *)v)[k];
}

static bool same_sum(const struct sum_case *c, const void *out, const void *expected)
{
    double largest = 0, apart = 0;
    for (size_t k = 0; k < c->count; k++) {
        double x = element_of(expected, k, c->dtype);
        largest = fmax(largest, fabs(x));
        apart = fmax(apart, fabs(x - element_of(out, k, c->dtype)));
    }
    if (c->w->rounding > 0)
        return apart <= c->w->rounding * largest;
    return c->count == 0 || memcmp(out, expected, c->count * adl_dtype_bytes(c->dtype)) == 0;
}

/* One sum in memory of its own, freed right after the call whatever became of it. */
static enum adl_status sum_once(const struct sum_case *c, struct adl_task *task)
{
    size_t bytes = c->count * adl_dtype_bytes(c->dtype);
    void *in[MAX_WORKERS], *out = malloc(bytes), *expected = malloc(bytes);
    double *scalars_in = malloc(sizeof(double) * (size_t)(task->n_local * c->n_scalars));
    double *scalars_out = malloc(sizeof(double) * (size_t)c->n_scalars);
    for (int i = 0; i < task->n_local; i++) {
        in[i] = malloc(bytes);
        for (size_t k = 0; k < c->count; k++)
            put(in[i], k, c->dtype, c->element(local_worker(task, i), k));
        for (int s = 0; s < c->n_scalars; s++)
            scalars_in[i * c->n_scalars + s] = rough_element(local_worker(task, i), (size_t)s);
    }
    sum_in_order(c, task, expected);
    enum adl_status status = sum_round(c, task, in, out, scalars_in, scalars_out);
    if (status == ADL_OK) {
        CHECK(same_sum(c, out, expected), "trainer %d of %d workers", task->trainer,
              task->n_workers);
        check_scalars(c, task, scalars_out);
    }
    for (int i = 0; i < task->n_local; i++)
        free(in[i]);
    free(out);
    free(expected);
    free(scalars_in);
    free(scalars_out);
    return status;
}

static enum adl_status sum_body(struct adl_task *task, void *arg)
{
    struct sum_case c = *(struct sum_case *)arg;
    for (int round = 0; round < c.rounds; round++) {
        ADL_TRY(sum_once(&c, task));
        c.count += (size_t)task->trainer; /* trainers drift apart */
    }
    return ADL_OK;
}

static void integer_sums(struct world *w)
{
    struct sum_case c = {.w = w, .element = integer_element, .count = 1000, .rounds = 1};
    for (int dtype = ADL_F32; dtype <= ADL_F64; dtype++) {
        c.dtype = (enum adl_dtype)dtype;
        world_run_ok(w, 1, sum_body, &c);
    }
}

static void canonical_order(struct world *w)
{
    struct sum_case c = {.w = w, .element = rough_element, .count = 1001, .rounds = 1};
    for (int dtype = ADL_F32; dtype <= ADL_F64; dtype++) {
        c.dtype = (enum adl_dtype)dtype;
        world_run_ok(w, 1, sum_body, &c);
    }
}

/* Several tasks at once, over disjoint groups that change from epoch to epoch. */
static void groups(struct world *w)
{
    struct sum_case c = {.w = w,
                         .element = rough_element,
                         .count = 300,
                         .dtype = ADL_F64,
                         .n_scalars = 2,
                         .rounds = 20};
    for (int k = 1; k <= w->n; k++)
        world_run_ok(w, k, sum_body, &c);
}

static void scalars_ride_along(struct world *w)
{
    struct sum_case c = {.w = w,
                         .element = integer_element,
                         .count = 10,
                         .dtype = ADL_F32,
                         .n_scalars = 5,
                         .rounds = 2};
    world_run_ok(w, 1, sum_body, &c);
    c.count = 0; /* scalars alone */
    world_run_ok(w, 1, sum_body, &c);
}

static enum adl_status zero_length_body(struct adl_task *task, void *arg)
{
    struct adl_reduction nothing = {.in = NULL, .cause = ADL_CAUSE_OUTER};
    ADL_TRY(reduce(arg, task, &nothing));
    return reduce(arg, task, &nothing);
}

static void zero_length(struct world *w)
{
    world_run_ok(w, 1, zero_length_body, w);
}

static void start_and_wait_apart(struct world *w)
{
    struct sum_case c = {.w = w,
                         .element = rough_element,
                         .count = 500,
                         .dtype = ADL_F64,
                         .n_scalars = 1,
                         .rounds = 3,
                         .apart = true};
    world_run_ok(w, w->n > 2 ? 2 : 1, sum_body, &c);
}

struct lane_case {
    struct world *w;
    atomic_int busy[1024]; /* by lane */
    atomic_int calls[MAX_WORKERS];
};

static enum adl_status lane_work(struct adl_task *task, int i, int lane, void *arg,
                                 struct adl_err *err)
{
    (void)err;
    struct lane_case *c = arg;
    bool in_range = lane >= 0 && lane < c->w->ops->n_lanes(c->w->t) && lane < 1024;
    CHECK(in_range, "lane %d", lane);
    if (!in_range)
        return ADL_OK;
    CHECK(atomic_exchange(&c->busy[lane], 1) == 0, "lane %d serves two calls at once", lane);
    atomic_fetch_add(&c->calls[local_worker(task, i)], 1);
    usleep(200);
    atomic_store(&c->busy[lane], 0);
    return ADL_OK;
}

static enum adl_status lane_body(struct adl_task *task, void *arg)
{
    struct lane_case *c = arg;
    for (int round = 0; round < 5; round++)
        ADL_TRY(c->w->ops->for_each(c->w->t, task, lane_work, c, NULL, NULL));
    return ADL_OK;
}

static void lanes(struct world *w)
{
    struct lane_case c = {.w = w};
    world_run_ok(w, w->n > 2 ? 3 : 1, lane_body, &c);
    for (int i = w->first; i < w->first + w->n_local; i++)
        CHECK(atomic_load(&c.calls[i]) == 5, "worker %d was called %d times, not 5", i,
              atomic_load(&c.calls[i]));
}

static enum adl_status nothing_body(struct adl_task *task, void *arg)
{
    (void)task;
    (void)arg;
    return ADL_OK;
}

static void gather_rows(struct world *w)
{
    enum { N_COLS = 3 };
    double rows[MAX_WORKERS * N_COLS];
    int leaders[MAX_WORKERS];
    for (int i = 0; i < w->n; i++) {
        leaders[i] = w->n - 1 - i;
        for (int k = 0; k < N_COLS; k++)
            rows[i * N_COLS + k] = hosted(w, leaders[i]) ? rough_element(i, (size_t)k) : NAN;
    }
    struct adl_err err = {.status = ADL_OK};
    world_run_ok(w, w->n, nothing_body, NULL);
    enum adl_status status = w->ops->gather(w->t, rows, w->n, N_COLS, leaders, 1e6, &err);
    CHECK(status == ADL_OK, "%s", err.message);
    for (int i = 0; i < w->n; i++)
        for (int k = 0; k < N_COLS; k++)
            CHECK(rows[i * N_COLS + k] == rough_element(i, (size_t)k), "row %d, column %d", i, k);
}

/* The second move passes on what the first brought: they run one after the other. */
static void moves(struct world *w)
{
    enum { N = 100 };
    double a[N], b[N] = {0}, c[N] = {0}, nothing[N] = {0};
    for (int k = 0; k < N; k++)
        a[k] = rough_element(3, (size_t)k);
    int last = w->n - 1, all[MAX_WORKERS];
    for (int i = 0; i < w->n; i++)
        all[i] = i;
    struct adl_move list[] = {
        {.src = last, .dst = all, .n_dst = w->n, .data = hosted(w, last) ? a : nothing, .into = b},
        {.src = 0, .dst = all, .n_dst = w->n, .data = b, .into = c},
        {.src = 0, .dst = all, .n_dst = w->n, .data = c, .into = c},
        {.src = 0, .dst = all, .n_dst = w->n, .data = c, .into = NULL},
    };
    int n = (int)(sizeof list / sizeof list[0]);
    for (int i = 0; i < n; i++) {
        list[i].bytes = sizeof a;
        list[i].charged_bytes = 1e6;
        list[i].cause = ADL_CAUSE_REDISTRIBUTION;
    }
    struct adl_err err = {.status = ADL_OK};
    world_run_ok(w, w->n, nothing_body, NULL);
    enum adl_status status = w->ops->move(w->t, list, n, &err);
    CHECK(status == ADL_OK, "%s", err.message);
    if (w->n_local == 0)
        return;
    CHECK(memcmp(b, a, sizeof a) == 0, "the first move brought something else");
    CHECK(memcmp(c, a, sizeof a) == 0, "the second move brought something else");
}

static const struct conformance_case sum_cases[] = {
    {"integer_sums", integer_sums},
    {"canonical_order", canonical_order},
    {"groups", groups},
    {"scalars_ride_along", scalars_ride_along},
    {"zero_length", zero_length},
    {"start_and_wait_apart", start_and_wait_apart},
    {"lanes", lanes},
    {"gather_rows", gather_rows},
    {"moves", moves},
    {NULL, NULL},
};

#endif
