/* SPDX-License-Identifier: Apache-2.0 */
#include "core/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const adl_cause_names[ADL_N_CAUSES] = {
    "inner", "outer", "statistics", "merge", "redistribution", "evaluation", "shard"};
const char *const adl_time_names[ADL_N_TIMES] = {"compute", "wait", "transfer", "outer", "idle"};

static void traffic_add(struct adl_traffic *sum, const struct adl_traffic *x)
{
    for (int c = 0; c < ADL_N_LINK_CLASSES; c++) {
        sum->messages[c] += x->messages[c];
        sum->bytes[c] += x->bytes[c];
    }
}

void adl_counts_add(struct adl_counts *sum, const struct adl_counts *x)
{
    for (int i = 0; i < ADL_N_CAUSES; i++) {
        sum->exchanges[i] += x->exchanges[i];
        sum->payload_bytes[i] += x->payload_bytes[i];
        traffic_add(&sum->traffic[i], &x->traffic[i]);
    }
}

void adl_counts_exchange(struct adl_counts *counts, enum adl_cause cause, double payload_bytes,
                         const struct adl_traffic *traffic)
{
    counts->exchanges[cause] += 1;
    counts->payload_bytes[cause] += payload_bytes;
    traffic_add(&counts->traffic[cause], traffic);
}

/* Evaluation and what follows it are outside the headline. */
static double headline(const double by_cause[ADL_N_CAUSES])
{
    double sum = 0;
    for (int i = 0; i < ADL_CAUSE_EVALUATION; i++)
        sum += by_cause[i];
    return sum;
}

double adl_counts_exchanges(const struct adl_counts *counts)
{
    return headline(counts->exchanges);
}

double adl_counts_payload(const struct adl_counts *counts)
{
    return headline(counts->payload_bytes);
}

double adl_counts_messages(const struct adl_counts *counts)
{
    double sum = 0;
    for (int i = 0; i < ADL_CAUSE_EVALUATION; i++)
        for (int c = 0; c < ADL_N_LINK_CLASSES; c++)
            sum += counts->traffic[i].messages[c];
    return sum;
}

double adl_counts_wire_bytes(const struct adl_counts *counts)
{
    double sum = 0;
    for (int i = 0; i < ADL_CAUSE_EVALUATION; i++)
        for (int c = 0; c < ADL_N_LINK_CLASSES; c++)
            sum += counts->traffic[i].bytes[c];
    return sum;
}

/* Bins: value 0 and below 2^-40 s in bin 0, then 512 to an octave up to 2^40 s. */
enum { OCTAVES = 80, PER_OCTAVE = 512, LOWEST = -40, N_BINS = OCTAVES * PER_OCTAVE + 1 };

struct adl_sketch {
    uint64_t count;
    double sum, max;
    uint64_t bins[N_BINS];
};

struct adl_sketch *adl_sketch_create(void)
{
    return calloc(1, sizeof(struct adl_sketch));
}

void adl_sketch_free(struct adl_sketch *sketch)
{
    free(sketch);
}

void adl_sketch_add(struct adl_sketch *sketch, double value)
{
    sketch->count++;
    sketch->sum += value;
    if (value > sketch->max)
        sketch->max = value;
    double place = value > 0 ? (log2(value) - LOWEST) * PER_OCTAVE : -1;
    int bin = 0;
    if (place >= 0)
        bin = place < N_BINS - 2 ? 1 + (int)place : N_BINS - 1;
    sketch->bins[bin]++;
}

uint64_t adl_sketch_count(const struct adl_sketch *sketch)
{
    return sketch->count;
}

double adl_sketch_sum(const struct adl_sketch *sketch)
{
    return sketch->sum;
}

double adl_sketch_max(const struct adl_sketch *sketch)
{
    return sketch->max;
}

double adl_sketch_quantile(const struct adl_sketch *sketch, double q)
{
    if (sketch->count == 0)
        return NAN;
    uint64_t rank = (uint64_t)(q * (double)(sketch->count - 1) + 0.5), seen = 0;
    for (int bin = 0; bin < N_BINS; bin++) {
        seen += sketch->bins[bin];
        if (seen > rank)
            return bin == 0 ? 0 : fmin(sketch->max, exp2((bin - 0.5) / PER_OCTAVE + LOWEST));
    }
    return sketch->max;
}

struct interval {
    double start_s, end_s;
};

/* Compute intervals of a device that several workers share, for the union of its busy time. */
struct device_log {
    struct interval *v;
    size_t n, capacity;
    double busy_s; /* of intervals already merged away */
};

struct worker_book {
    double cursor_s, event_start_s;
    double by_time_s[ADL_N_TIMES];
    double backwards_s; /* attributed before the cursor: an inconsistency */
    bool event_open;    /* a sync-delay event runs since event_start_s */
};

struct part { /* totals, and the distribution of sync delays */
    double by_time_s[ADL_N_TIMES];
    double busy_s, residual, compute_max_s;
    struct adl_sketch sketch;
};

struct adl_book {
    int n_workers, workers_per_device, n_devices;
    double start_s;
    int first, n;       /* the workers that totals are about */
    struct part *added; /* by adl_book_add; NULL: nothing */
    struct worker_book *workers;
    struct device_log *devices; /* NULL where no device is shared */
    struct adl_sketch *sketch;
    int lock; /* spin: sketch and device logs, touched from several threads */
};

struct adl_book *adl_book_create(int n_workers, int workers_per_device)
{
    struct adl_book *book = calloc(1, sizeof *book);
    if (!book)
        return NULL;
    book->n_workers = book->n = n_workers;
    book->workers_per_device = workers_per_device;
    book->n_devices = (n_workers + workers_per_device - 1) / workers_per_device;
    book->workers = calloc((size_t)n_workers, sizeof *book->workers);
    book->sketch = adl_sketch_create();
    if (workers_per_device > 1)
        book->devices = calloc((size_t)book->n_devices, sizeof *book->devices);
    if (!book->workers || !book->sketch || (workers_per_device > 1 && !book->devices)) {
        adl_book_free(book);
        return NULL;
    }
    return book;
}

void adl_book_free(struct adl_book *book)
{
    if (!book)
        return;
    if (book->devices)
        for (int d = 0; d < book->n_devices; d++)
            free(book->devices[d].v);
    free(book->devices);
    free(book->added);
    free(book->workers);
    adl_sketch_free(book->sketch);
    free(book);
}

void adl_book_start(struct adl_book *book, double s)
{
    book->start_s = s;
    for (int w = 0; w < book->n_workers; w++)
        book->workers[w].cursor_s = book->workers[w].event_start_s = s;
}

static void lock_book(struct adl_book *book)
{
    while (__atomic_exchange_n(&book->lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void unlock_book(struct adl_book *book)
{
    __atomic_store_n(&book->lock, 0, __ATOMIC_RELEASE);
}

static int by_start(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;
    return (x->start_s > y->start_s) - (x->start_s < y->start_s);
}

static void merge_intervals(struct device_log *log)
{
    if (log->n == 0)
        return;
    qsort(log->v, log->n, sizeof *log->v, by_start);
    double end_s = -INFINITY;
    for (size_t i = 0; i < log->n; i++) {
        if (log->v[i].end_s <= end_s)
            continue;
        log->busy_s += log->v[i].end_s - fmax(log->v[i].start_s, end_s);
        end_s = log->v[i].end_s;
    }
    log->n = 0;
}

/* Adds an interval; when the log is full and memory short, merges what is there: busy time is
 * then at most overestimated by overlaps across the cut. */
static void log_interval(struct device_log *log, double start_s, double end_s)
{
    if (log->n == log->capacity) {
        size_t capacity = log->capacity ? 2 * log->capacity : 64;
        struct interval *v = realloc(log->v, capacity * sizeof *v);
        if (!v) {
            merge_intervals(log);
            if (log->capacity == 0)
                return;
        } else {
            log->v = v;
            log->capacity = capacity;
        }
    }
    log->v[log->n++] = (struct interval){start_s, end_s};
}

static void close_event(struct adl_book *book, struct worker_book *w)
{
    if (!w->event_open)
        return;
    w->event_open = false;
    lock_book(book);
    adl_sketch_add(book->sketch, fmax(0, w->cursor_s - w->event_start_s));
    unlock_book(book);
}

/* A worker may be held up before it has ever computed. */
static void open_event(struct worker_book *w, double start_s)
{
    if (w->event_open)
        return;
    w->event_open = true;
    w->event_start_s = start_s;
}

void adl_book_advance(struct adl_book *book, int worker, enum adl_time what, double until_s)
{
    struct worker_book *w = &book->workers[worker];
    double start_s = w->cursor_s, span_s = until_s - start_s;
    if (span_s < 0) {
        w->backwards_s -= span_s;
        return;
    }
    if (what == ADL_TIME_COMPUTE)
        close_event(book, w);
    w->by_time_s[what] += span_s;
    w->cursor_s = until_s;
    if (what == ADL_TIME_IDLE)
        w->event_start_s += span_s;
    else
        open_event(w, what == ADL_TIME_COMPUTE ? until_s : start_s);
    if (what != ADL_TIME_COMPUTE)
        return;
    if (book->devices) {
        lock_book(book);
        log_interval(&book->devices[worker / book->workers_per_device], start_s, until_s);
        unlock_book(book);
    }
}

void adl_book_advance_all(struct adl_book *book, const int *workers, int n, enum adl_time what,
                          double until_s)
{
    for (int i = 0; i < n; i++)
        adl_book_advance(book, workers[i], what, until_s);
}

double adl_book_cursor(const struct adl_book *book, int worker)
{
    return book->workers[worker].cursor_s;
}

static double attributed_s(const struct worker_book *w)
{
    double sum = 0;
    for (int c = 0; c < ADL_N_TIMES; c++)
        sum += w->by_time_s[c];
    return sum;
}

void adl_book_part_add(void *sum_bytes, const void *x_bytes)
{
    struct part *sum = sum_bytes;
    const struct part *x = x_bytes;
    for (int c = 0; c < ADL_N_TIMES; c++)
        sum->by_time_s[c] += x->by_time_s[c];
    sum->busy_s += x->busy_s;
    sum->residual = fmax(sum->residual, x->residual);
    sum->compute_max_s = fmax(sum->compute_max_s, x->compute_max_s);
    sum->sketch.count += x->sketch.count;
    sum->sketch.sum += x->sketch.sum;
    sum->sketch.max = fmax(sum->sketch.max, x->sketch.max);
    for (int i = 0; i < N_BINS; i++)
        sum->sketch.bins[i] += x->sketch.bins[i];
}

void adl_book_restrict(struct adl_book *book, int first, int n)
{
    book->first = first;
    book->n = n;
}

size_t adl_book_part_bytes(void)
{
    return sizeof(struct part);
}

/* lasted_s: the run, from where this process began it. */
static void add_worker(const struct worker_book *w, double lasted_s, struct part *out)
{
    for (int c = 0; c < ADL_N_TIMES; c++)
        out->by_time_s[c] += w->by_time_s[c];
    out->compute_max_s = fmax(out->compute_max_s, w->by_time_s[ADL_TIME_COMPUTE]);
    double off_s = fabs(lasted_s - attributed_s(w)) + w->backwards_s;
    out->residual = fmax(out->residual, lasted_s > 0 ? off_s / lasted_s : off_s);
    if (w->event_open)
        adl_sketch_add(&out->sketch, fmax(0, w->cursor_s - w->event_start_s));
}

void adl_book_part(struct adl_book *book, double end_s, void *bytes)
{
    struct part *out = bytes;
    memset(out, 0, sizeof *out);
    out->sketch = *book->sketch;
    for (int i = book->first; i < book->first + book->n; i++)
        add_worker(&book->workers[i], end_s - book->start_s, out);
    for (int d = 0; book->devices && d < book->n_devices; d++) {
        int first = d * book->workers_per_device;
        merge_intervals(&book->devices[d]);
        if (first >= book->first && first < book->first + book->n)
            out->busy_s += book->devices[d].busy_s;
    }
    if (!book->devices)
        out->busy_s = out->by_time_s[ADL_TIME_COMPUTE];
    if (book->added)
        adl_book_part_add(out, book->added);
}

void adl_book_add(struct adl_book *book, const void *part)
{
    if (!book->added)
        book->added = calloc(1, sizeof *book->added);
    if (book->added)
        adl_book_part_add(book->added, part);
}

void adl_book_close(struct adl_book *book, double end_s, struct adl_book_totals *out)
{
    struct part *all = malloc(sizeof *all);
    memset(out, 0, sizeof *out);
    if (!all)
        return;
    adl_book_part(book, end_s, all);
    memcpy(out->by_time_s, all->by_time_s, sizeof out->by_time_s);
    out->busy_s = all->busy_s;
    out->residual = all->residual;
    out->compute_max_s = all->compute_max_s;
    uint64_t events = adl_sketch_count(&all->sketch);
    out->sync_sum_s = adl_sketch_sum(&all->sketch);
    out->sync_mean_s = events ? out->sync_sum_s / (double)events : NAN;
    out->sync_p50_s = adl_sketch_quantile(&all->sketch, 0.5);
    out->sync_p99_s = adl_sketch_quantile(&all->sketch, 0.99);
    out->sync_max_s = events ? adl_sketch_max(&all->sketch) : NAN;
    free(all);
}

void adl_book_peek(const struct adl_book *book, double *compute_s, double *sync_s)
{
    *compute_s = *sync_s = 0;
    for (int i = book->first; i < book->first + book->n; i++) {
        const double *t = book->workers[i].by_time_s;
        *compute_s += t[ADL_TIME_COMPUTE];
        *sync_s += t[ADL_TIME_WAIT] + t[ADL_TIME_TRANSFER] + t[ADL_TIME_OUTER];
    }
}
