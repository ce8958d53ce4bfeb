/* SPDX-License-Identifier: Apache-2.0 */
/* Counting exchanges, and attributing every worker's time. */
#ifndef ADL_CORE_ACCOUNT_H
#define ADL_CORE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/collective.h"

enum adl_cause {
    ADL_CAUSE_INNER,          /* gradient exchanges of inner steps (ddp) */
    ADL_CAUSE_OUTER,          /* pseudo-gradients, parameters */
    ADL_CAUSE_STATISTICS,     /* the batch tests' own exchanges */
    ADL_CAUSE_MERGE,          /* merges, and the gathering at an epoch's end */
    ADL_CAUSE_REDISTRIBUTION, /* broadcasts to workers that change trainer */
    ADL_CAUSE_EVALUATION,     /* outside the headline counts */
    ADL_CAUSE_SHARD,          /* inside devices of several GPUs; outside them as well */
    ADL_N_CAUSES
};
extern const char *const adl_cause_names[ADL_N_CAUSES];

struct adl_counts { /* by cause; traffic by link class */
    double exchanges[ADL_N_CAUSES];
    double payload_bytes[ADL_N_CAUSES];
    struct adl_traffic traffic[ADL_N_CAUSES];
};
void adl_counts_add(struct adl_counts *sum, const struct adl_counts *x);
/* One exchange of payload bytes and its traffic. */
void adl_counts_exchange(struct adl_counts *counts, enum adl_cause cause, double payload_bytes,
                         const struct adl_traffic *traffic);
/* Headline totals: every cause but evaluation and what stays inside a device. */
double adl_counts_exchanges(const struct adl_counts *counts);
double adl_counts_payload(const struct adl_counts *counts);
double adl_counts_messages(const struct adl_counts *counts);
double adl_counts_wire_bytes(const struct adl_counts *counts);

/* Distribution of sync delays: log-spaced bins, 0.14% relative resolution, any number of
 * events in fixed memory; mean, sum and max are exact. */
struct adl_sketch;
struct adl_sketch *adl_sketch_create(void); /* NULL: no memory */
void adl_sketch_free(struct adl_sketch *sketch);
void adl_sketch_add(struct adl_sketch *sketch, double value); /* value >= 0 */
uint64_t adl_sketch_count(const struct adl_sketch *sketch);
double adl_sketch_sum(const struct adl_sketch *sketch);
double adl_sketch_max(const struct adl_sketch *sketch);
double adl_sketch_quantile(const struct adl_sketch *sketch, double q); /* NAN when empty */

/* The book of time. Each worker has a cursor: the moment up to which its time is attributed.
 * Transports move cursors forward; nothing is attributed twice, and what is not attributed
 * shows as a residual. Calls for different workers may come from different threads. */
enum adl_time {
    ADL_TIME_COMPUTE,  /* inner steps */
    ADL_TIME_WAIT,     /* for slower workers, at an exchange or at an epoch's end */
    ADL_TIME_TRANSFER, /* exposed transfer */
    ADL_TIME_OUTER,    /* outer step */
    ADL_TIME_IDLE,     /* has no trainer */
    ADL_N_TIMES
};
extern const char *const adl_time_names[ADL_N_TIMES];

struct adl_book;
struct adl_book *adl_book_create(int n_workers, int workers_per_device); /* NULL: no memory */
void adl_book_free(struct adl_book *book);

/* Before anything is attributed: all cursors stand at s, where a resumed run goes on. */
void adl_book_start(struct adl_book *book, double s);

/* Attributes [cursor, until_s] of a worker; until_s before the cursor attributes nothing and
 * counts as an inconsistency (see residual). COMPUTE closes the worker's open sync-delay event,
 * starts at cursor, and marks its device busy for that time; an event is the wait, transfer and
 * outer step since the last COMPUTE. */
void adl_book_advance(struct adl_book *book, int worker, enum adl_time what, double until_s);
/* The same for workers [n]. */
void adl_book_advance_all(struct adl_book *book, const int *workers, int n, enum adl_time what,
                          double until_s);
double adl_book_cursor(const struct adl_book *book, int worker);

struct adl_book_totals {
    double by_time_s[ADL_N_TIMES];                                      /* summed over workers */
    double sync_mean_s, sync_p50_s, sync_p99_s, sync_max_s, sync_sum_s; /* per event; sum: all */
    double busy_s;        /* union of compute per device, summed over devices */
    double residual;      /* max over workers of |end_s - attributed| / end_s */
    double compute_max_s; /* of one worker */
};
/* Closes open events and sums up for a run that lasted from its start to end_s. Call once. */
void adl_book_close(struct adl_book *book, double end_s, struct adl_book_totals *out);
/* The totals, here and below, are of workers [first, first + n) only: those hosted here. */
void adl_book_restrict(struct adl_book *book, int first, int n);
/* The totals so far as plain bytes [adl_book_part_bytes()]: a process's part of a run, or a run's
 * part before it was resumed; and adding such a part to what close returns. end_s as for close. */
size_t adl_book_part_bytes(void);
void adl_book_part(struct adl_book *book, double end_s, void *out);
void adl_book_part_add(void *sum, const void *part);
void adl_book_add(struct adl_book *book, const void *part);
/* Running totals without closing: sum over workers of compute, and of wait + transfer + outer. */
void adl_book_peek(const struct adl_book *book, double *compute_s, double *sync_s);

#endif
