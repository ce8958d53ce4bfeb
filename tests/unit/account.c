/* SPDX-License-Identifier: Apache-2.0 */
/* Counts, the sketch of sync delays, and the book of time. */
#include <criterion/criterion.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/account.h"
#include "core/rng.h"

Test(counts, headline_leaves_evaluation_out)
{
    struct adl_counts counts = {{0}, {0}, {{{0}, {0}}}}, sum = counts;
    struct adl_traffic traffic = {.messages = {1, 2, 3}, .bytes = {10, 20, 30}};
    for (int cause = 0; cause < ADL_N_CAUSES; cause++)
        adl_counts_exchange(&counts, (enum adl_cause)cause, 100, &traffic);
    adl_counts_add(&sum, &counts);
    adl_counts_add(&sum, &counts);
    cr_expect_eq(adl_counts_exchanges(&sum), 10);
    cr_expect_eq(adl_counts_payload(&sum), 1000);
    cr_expect_eq(adl_counts_messages(&sum), 60);
    cr_expect_eq(adl_counts_wire_bytes(&sum), 600);
    cr_expect_eq(sum.exchanges[ADL_CAUSE_EVALUATION], 2);
    cr_expect_eq(sum.traffic[ADL_CAUSE_MERGE].bytes[ADL_LINK_WAN], 60);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Delays over eight decades. */
Test(sketch, quantiles_within_a_fifth_of_a_percent)
{
    enum { N = 20001 };
    static double values[N];
    struct adl_rng rng = adl_rng_make(5, ADL_RNG_TEST, 0, 0);
    struct adl_sketch *sketch = adl_sketch_create();
    double sum = 0;
    for (int i = 0; i < N; i++) {
        values[i] = pow(10, 8 * adl_rng_uniform(&rng, (uint64_t)i) - 6);
        sum += values[i];
        adl_sketch_add(sketch, values[i]);
    }
    qsort(values, N, sizeof values[0], ascending);
    for (int percent = 0; percent <= 100; percent++) {
        double want = values[(N - 1) * percent / 100],
               got = adl_sketch_quantile(sketch, percent / 100.0);
        cr_expect_float_eq(got, want, 2e-3 * want, "p%d: %.17g, not %.17g", percent, got, want);
    }
    cr_expect_eq(adl_sketch_count(sketch), N);
    cr_expect_eq(adl_sketch_sum(sketch), sum);
    cr_expect_eq(adl_sketch_max(sketch), values[N - 1]);
    adl_sketch_free(sketch);
}

Test(sketch, edges)
{
    struct adl_sketch *sketch = adl_sketch_create();
    cr_expect(isnan(adl_sketch_quantile(sketch, 0.5)), "empty");
    adl_sketch_add(sketch, 0);
    cr_expect_eq(adl_sketch_quantile(sketch, 0.5), 0, "no delay is zero, not a smallest bin");
    adl_sketch_add(sketch, 1e-300);
    adl_sketch_add(sketch, 1e300);
    cr_expect_eq(adl_sketch_count(sketch), 3);
    cr_expect_eq(adl_sketch_max(sketch), 1e300);
    cr_expect_eq(adl_sketch_quantile(sketch, 0), 0);
    cr_expect_float_eq(adl_sketch_quantile(sketch, 1), 0x1p40, 2e-3 * 0x1p40,
                       "beyond the bins: the last one");
    adl_sketch_free(sketch);
}

/* Worker 0 computes to 1, waits to 3, transfers to 4, steps to 4.5, computes to 6; worker 1
 * computes to 3 and so on with it, then idles. */
static struct adl_book *two_workers(void)
{
    struct adl_book *book = adl_book_create(2, 1);
    int both[] = {0, 1};
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 1);
    adl_book_advance(book, 1, ADL_TIME_COMPUTE, 3);
    adl_book_advance_all(book, both, 2, ADL_TIME_WAIT, 3);
    adl_book_advance_all(book, both, 2, ADL_TIME_TRANSFER, 4);
    adl_book_advance_all(book, both, 2, ADL_TIME_OUTER, 4.5);
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 6);
    adl_book_advance(book, 1, ADL_TIME_IDLE, 6);
    return book;
}

Test(book, sums_and_sync_delays)
{
    struct adl_book *book = two_workers();
    struct adl_book_totals t;
    double compute_s, sync_s;
    adl_book_peek(book, &compute_s, &sync_s);
    cr_expect_eq(compute_s, 5.5);
    cr_expect_eq(sync_s, 5);
    cr_expect_eq(adl_book_cursor(book, 1), 6);
    adl_book_close(book, 6, &t);
    cr_expect_eq(t.by_time_s[ADL_TIME_COMPUTE], 5.5);
    cr_expect_eq(t.by_time_s[ADL_TIME_WAIT], 2);
    cr_expect_eq(t.by_time_s[ADL_TIME_TRANSFER], 2);
    cr_expect_eq(t.by_time_s[ADL_TIME_OUTER], 1);
    cr_expect_eq(t.by_time_s[ADL_TIME_IDLE], 1.5);
    cr_expect_eq(t.residual, 0);
    cr_expect_eq(t.compute_max_s, 3);
    cr_expect_eq(t.busy_s, 5.5);
    cr_expect_eq(t.sync_max_s, 3.5); /* worker 0, from 1 to 4.5 */
    adl_book_free(book);
}

Test(book, events_end_where_compute_begins)
{
    struct adl_book *book = adl_book_create(1, 1);
    struct adl_book_totals t;
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 1);
    adl_book_advance(book, 0, ADL_TIME_WAIT, 3);
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 5);
    adl_book_advance(book, 0, ADL_TIME_TRANSFER, 6);
    adl_book_close(book, 6, &t);
    cr_expect_eq(t.sync_sum_s, 3);
    cr_expect_eq(t.sync_mean_s, 1.5);
    cr_expect_eq(t.sync_max_s, 2);
    cr_expect_float_eq(t.sync_p99_s, 2, 4e-3);
    adl_book_free(book);
}

Test(book, what_is_not_attributed_shows)
{
    struct adl_book_totals t;
    struct adl_book *book = two_workers();
    adl_book_close(book, 8, &t); /* two seconds that nobody booked */
    cr_expect_float_eq(t.residual, 0.25, 1e-15);
    adl_book_free(book);

    book = two_workers();
    adl_book_advance(book, 0, ADL_TIME_WAIT, 5.4); /* before the cursor */
    cr_expect_eq(adl_book_cursor(book, 0), 6, "a cursor goes forward only");
    adl_book_close(book, 6, &t);
    cr_expect_float_eq(t.residual, 0.1, 1e-15);
    adl_book_free(book);
}

/* Two streams of a device: [2, 3] is told before [0, 10], which holds it. */
Test(book, busy_is_a_union_per_device)
{
    struct adl_book *book = adl_book_create(4, 2);
    struct adl_book_totals t;
    adl_book_advance(book, 0, ADL_TIME_WAIT, 2);
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 3);
    adl_book_advance(book, 1, ADL_TIME_COMPUTE, 10);
    adl_book_advance(book, 0, ADL_TIME_WAIT, 9);
    adl_book_advance(book, 0, ADL_TIME_COMPUTE, 12);
    adl_book_advance(book, 2, ADL_TIME_COMPUTE, 12); /* another device */
    adl_book_advance_all(book, (int[]){0, 1, 2, 3}, 4, ADL_TIME_IDLE, 12);
    adl_book_close(book, 12, &t);
    cr_expect_eq(t.busy_s, 24);
    cr_expect_eq(t.residual, 0);
    adl_book_free(book);
}

enum { THREADS = 4, STEPS = 60000 };
static pthread_barrier_t together;

static void *keep_book(void *arg)
{
    static atomic_int next;
    struct adl_book *book = arg;
    int worker = atomic_fetch_add(&next, 1);
    pthread_barrier_wait(&together);
    for (int i = 0; i < STEPS; i++) {
        adl_book_advance(book, worker, ADL_TIME_COMPUTE, i + 0.5);
        adl_book_advance(book, worker, ADL_TIME_WAIT, i + 1);
    }
    return NULL;
}

/* Two workers a device, so that the threads share device logs as well as the sketch. */
Test(book, kept_by_several_threads)
{
    pthread_t threads[THREADS];
    struct adl_book *book = adl_book_create(THREADS, 2);
    pthread_barrier_init(&together, NULL, THREADS);
    struct adl_book_totals t;
    for (int i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, keep_book, book), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    adl_book_close(book, STEPS, &t);
    cr_expect_eq(t.residual, 0);
    cr_expect_eq(t.sync_sum_s, 0.5 * THREADS * STEPS);
    cr_expect_eq(t.sync_mean_s, 0.5);
    cr_expect_eq(t.busy_s, 0.5 * STEPS * 2);
    adl_book_free(book);
}
