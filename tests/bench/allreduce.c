/* SPDX-License-Identifier: Apache-2.0 */
/* All-reduces of the mpi transport beside a bare MPI_Allreduce, in turns in one run:
 *   tests/mpirun.sh -n 2 build/tests/bench_allreduce [MIB]      (64)
 * Process 0 prints a table: the best and the middle time of each, bandwidth, and the ratio of the
 * middle times to MPI's (the best one of a busy machine is luck). Exit 1 where a sum is wrong or a
 * ratio misses its target (0.95 fast, 0.85 canonical, at 64 MiB on 2 processes). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/transport.h"
#include "core/space.h"
#include "real/mpi/options.h"
#include "real/transport_mpi.h"

enum { TURNS = 12, REPEATS = 4, N_WAYS = 3 };
enum way { BARE, FAST, CANONICAL };
static const char *const names[N_WAYS] = {"MPI_Allreduce", "fast", "canonical"};
static const double targets[N_WAYS] = {1, 0.95, 0.85};

struct bench {
    int rank, n;
    size_t count;
    float *in, *out;
    double times_s[N_WAYS][TURNS * REPEATS];
    int done[N_WAYS];
    struct adl_settings settings[N_WAYS];
    struct adl_transport *transports[N_WAYS];
    struct adl_book *book;
    enum way way; /* of the run that is on */
    int wrong;
};

static void keep(struct bench *b, double start_s)
{
    b->times_s[b->way][b->done[b->way]++] = MPI_Wtime() - start_s;
    double expected = 0;
    for (int p = 0; p < b->n; p++)
        expected += p + 1;
    if (b->out[b->count - 1] != expected || b->out[b->count / 2] != expected)
        b->wrong++;
    memset(b->out, 0, 1024);
}

static void repeat_bare(struct bench *b)
{
    for (int i = 0; i < REPEATS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start_s = MPI_Wtime();
        MPI_Allreduce(b->in, b->out, (int)b->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        keep(b, start_s);
    }
}

static enum adl_status body(struct adl_task *task, void *arg)
{
    struct bench *b = arg;
    const void *in[] = {b->in};
    struct adl_reduction nothing = {.in = NULL};
    struct adl_reduction sum = {.in = in, .out = b->out, .count = b->count, .dtype = ADL_F32};
    struct adl_transport *t = b->transports[b->way];
    for (int i = 0; i < REPEATS; i++) {
        struct adl_pending *pending;
        ADL_TRY(adl_transport_mpi.allreduce_start(t, task, &nothing, &pending));
        ADL_TRY(adl_transport_mpi.allreduce_wait(t, task, pending));
        double start_s = MPI_Wtime();
        ADL_TRY(adl_transport_mpi.allreduce_start(t, task, &sum, &pending));
        ADL_TRY(adl_transport_mpi.allreduce_wait(t, task, pending));
        keep(b, start_s);
    }
    return ADL_OK;
}

static enum adl_status repeat(struct bench *b, struct adl_err *err)
{
    int *workers = malloc((size_t)b->n * sizeof *workers);
    for (int p = 0; workers && p < b->n; p++)
        workers[p] = p;
    struct adl_task task = {
        .workers = workers, .n_workers = b->n, .first_local = b->rank, .n_local = 1};
    struct adl_task *tasks[] = {&task};
    enum adl_status status = adl_transport_mpi.run(b->transports[b->way], tasks, 1, body, b, err);
    free(workers);
    return status;
}

static enum adl_status open_way(struct bench *b, enum way way, int n, struct adl_err *err)
{
    struct adl_settings *s = &b->settings[way];
    s->cluster.workers = n;
    s->cluster.workers_per_device = 1;
    s->reduction = way == FAST ? ADL_REDUCTION_FAST : ADL_REDUCTION_CANONICAL;
    struct adl_mpi_config config = {.threads = 1, .deadline_s = 60};
    struct adl_transport_env env = {.settings = s, .space = &adl_space_cpu, .book = b->book};
    return adl_transport_mpi.open(&config, &env, &b->transports[way], err);
}

static enum adl_status measure(struct bench *b, struct adl_err *err)
{
    for (int turn = 0; turn < TURNS; turn++)
        for (int way = 0; way < N_WAYS; way++) {
            b->way = (enum way)way;
            if (way == BARE)
                repeat_bare(b);
            else
                ADL_TRY(repeat(b, err));
        }
    return ADL_OK;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int print(struct bench *b)
{
    int missed = 0;
    double bytes = (double)b->count * sizeof(float);
    bool judged = b->n == 2 && b->count == 64u << 18;
    printf("%-14s %10s %10s %10s %8s %8s\n", "", "best ms", "middle ms", "GB/s", "ratio", "target");
    for (int way = 0; way < N_WAYS; way++) {
        double *t = b->times_s[way];
        qsort(t, TURNS * REPEATS, sizeof *t, by_value);
        double middle_s = t[TURNS * REPEATS / 2];
        double ratio = b->times_s[BARE][TURNS * REPEATS / 2] / middle_s;
        printf("%-14s %10.2f %10.2f %10.2f %8.3f %8.2f\n", names[way], 1e3 * t[0], 1e3 * middle_s,
               1e-9 * bytes / middle_s, ratio, targets[way]);
        missed += judged && ratio < targets[way];
    }
    return missed;
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct adl_err err = {.status = ADL_OK};
    size_t mib = argc > 1 ? (size_t)atoi(argv[1]) : 64;
    int n = adl_mpi_default_workers(NULL, 0, 1), bad = 0;
    b.count = mib << 18;
    b.book = adl_book_create(n, 1);
    enum adl_status status = open_way(&b, CANONICAL, n, &err);
    if (status == ADL_OK)
        status = open_way(&b, FAST, n, &err);
    /* after the transport's settings of the allocator */
    b.in = malloc(b.count * sizeof *b.in);
    b.out = malloc(b.count * sizeof *b.out);
    if (status == ADL_OK && b.book && b.in && b.out && b.count > 0) {
        adl_transport_mpi.process(b.transports[CANONICAL], &b.rank, &b.n);
        for (size_t k = 0; k < b.count; k++)
            b.in[k] = (float)(b.rank + 1);
        status = measure(&b, &err);
    }
    if (status != ADL_OK)
        fprintf(stderr, "%s\n", err.message);
    else if (b.rank == 0)
        bad = print(&b);
    if (b.wrong)
        printf("%d sums are wrong\n", b.wrong);
    adl_transport_mpi.close(b.transports[CANONICAL]);
    adl_transport_mpi.close(b.transports[FAST]);
    adl_book_free(b.book);
    free(b.in);
    free(b.out);
    return status != ADL_OK || bad || b.wrong;
}
