/* SPDX-License-Identifier: Apache-2.0 */
/* The conformance suite for the nccl transport, on 1, 2, 3 and 8 processes with tests/nccl_double
 * in place of NCCL. Where each process hosts one worker, or one process all, sums are canonical to
 * the bit, since the double adds up by rank; else within rounding. Once more with wires that round,
 * with vectors that the transport takes for the device's, and on a device that runs one exchange at
 * a time. Usage: nccl_conformance [CASE] */
#include "nccl_ranks.h"

#include "tests/plain/conformance_faults.h"
#include "tests/plain/conformance_sums.h"
#include "tests/plain/conformance_time.h"

#include "real/transport_nccl.h"

static struct adl_space device_space;

struct suite {
    const char *name, *only;
    const struct conformance_case *lists[3]; /* NULL-ended */
    const char *sets[5];                     /* of options, NULL-ended */
    double rounding;                         /* of the wire */
    bool device;                             /* vectors are not on the host */
    int n, sizes[3];                         /* 0-ended */
};

static int run_case(const struct suite *s, const struct conformance_case *test, int n_workers)
{
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    int before = atomic_load(&n_failed_checks), rank = 0, n = 1;
    ranks_meet_anew();
    enum adl_status status = world_open(&w, &adl_transport_nccl, n_workers, &err);
    if (status == ADL_OK) {
        w.ops->process(w.t, &rank, &n);
        w.rounding = n_workers > n && n > 1 ? 1e-5 : 0;
        w.rounding += s->rounding;
        test->run(&w);
    } else {
        printf("%s: %s\n", test->name, err.message);
    }
    world_close(&w);
    if (status == ADL_OK && atomic_load(&n_failed_checks) == before)
        return 0;
    printf("FAILED nccl/%s/%s/%d workers, rank %d of %d\n", s->name, test->name, n_workers, rank,
           n);
    return 1;
}

static int run_suite(void *arg)
{
    const struct suite *s = arg;
    int failed = 0;
    device_space = adl_space_cpu;
    device_space.on_host = false;
    world_sets = s->sets[0] ? s->sets : NULL;
    world_space = s->device ? &device_space : NULL;
    for (const struct conformance_case *const *list = s->lists; *list; list++)
        for (const struct conformance_case *test = *list; test->name; test++)
            for (const int *size = s->sizes; *size; size++)
                if (!s->only || strcmp(s->only, test->name) == 0)
                    failed += run_case(s, test, *size);
    return failed > 0;
}

/* From a process to all others, in pieces of which the last one is small; twice, so that the end of
 * one meets the beginning of the next. */
static void pieces(struct world *w)
{
    enum { N = 5 * 1000 * 1000 + 3 };
    float *v = calloc(N, sizeof *v);
    int all[MAX_WORKERS], src[] = {0, w->n / 2};
    struct adl_err err = {.status = ADL_OK};
    if (!v)
        exit(1);
    for (int i = 0; i < w->n; i++)
        all[i] = i;
    world_run_ok(w, w->n, nothing_body, NULL);
    for (size_t i = 0; i < N && hosted(w, src[0]); i++)
        v[i] = (float)i;
    struct adl_move list[2];
    for (int m = 0; m < 2; m++)
        list[m] = (struct adl_move){.src = src[m],
                                    .dst = all,
                                    .n_dst = w->n,
                                    .data = v,
                                    .into = v,
                                    .bytes = N * sizeof *v,
                                    .cause = ADL_CAUSE_MERGE};
    CHECK(w->ops->move(w->t, list, 2, &err) == ADL_OK, "%s", err.message);
    size_t wrong = 0;
    for (size_t i = 0; i < N; i++)
        wrong += v[i] != (float)i;
    CHECK(wrong == 0, "%zu elements are others", wrong);
    free(v);
}

static const struct conformance_case piece_cases[] = {{"pieces", pieces}, {NULL, NULL}};

/* What rank 0 sent, in two moves of which it begins the first: the vector once, to the next; and
 * once more where the other chain has it in the middle. */
static int check_sent(const char *log)
{
    const long vector = 4L * (5 * 1000 * 1000 + 3);
    char what[32];
    long a, b, sent = 0, to_others = 0;
    FILE *in = fopen(log, "r");
    if (!in)
        return 1;
    while (fscanf(in, "%31s %ld %ld", what, &a, &b) == 3)
        if (strcmp(what, "send") == 0) {
            sent += a;
            to_others += b != 1;
        }
    fclose(in);
    if (sent == 2 * vector && to_others == 0)
        return 0;
    printf("FAILED: rank 0 sent %ld bytes, %ld pieces not to the next one\n", sent, to_others);
    return 1;
}

static const struct conformance_case vector_cases[] = {
    {"integer_sums", integer_sums},
    {"canonical_order", canonical_order},
    {"groups", groups},
    {"start_and_wait_apart", start_and_wait_apart},
    {"moves", moves},
    {NULL, NULL},
};

int main(int argc, char **argv)
{
    struct suite suites[] = {
        {.name = "alone", .lists = {sum_cases, fault_cases}, .n = 1, .sizes = {1, 3}},
        {.name = "two", .lists = {sum_cases, fault_cases}, .n = 2, .sizes = {2, 8}},
        {.name = "three", .lists = {sum_cases, time_cases}, .n = 3, .sizes = {2, 3}},
        {.name = "eight", .lists = {sum_cases}, .n = 8, .sizes = {8}},
        {.name = "device", .lists = {vector_cases}, .n = 3, .sizes = {3}, .device = true},
        {.name = "pieces", .lists = {piece_cases}, .n = 4, .sizes = {4}},
        {.name = "pieces of a device",
         .lists = {piece_cases},
         .n = 3,
         .sizes = {6},
         .device = true},
        {.name = "bf16",
         .lists = {vector_cases},
         .n = 3,
         .sizes = {3},
         .sets = {"nccl.wire", "bf16"},
         .rounding = 0.02},
        {.name = "f16",
         .lists = {vector_cases},
         .n = 2,
         .sizes = {4},
         .device = true,
         .sets = {"nccl.wire", "f16"},
         .rounding = 2e-3},
        {.name = "int8",
         .lists = {vector_cases},
         .n = 3,
         .sizes = {3},
         .sets = {"nccl.wire", "int8"},
         .rounding = 0.02},
    };
    int failed = 0, codes[RANKS_MOST], n = (int)(sizeof suites / sizeof *suites);
    setenv("ADL_NCCL_DOUBLE_RESIDENT", "1", 1);
    for (int i = 0; i < n; i++) {
        bool counts = strcmp(suites[i].name, "pieces") == 0 && argc == 1;
        char log[] = "/tmp/adloco-test-XXXXXX";
        int fd = counts ? mkstemp(log) : -1;
        if (fd >= 0) {
            close(fd);
            setenv("ADL_NCCL_DOUBLE_LOG", log, 1);
        }
        suites[i].only = argc > 1 ? argv[1] : NULL;
        int ended = ranks_run(suites[i].n, run_suite, &suites[i], codes);
        unsetenv("ADL_NCCL_DOUBLE_LOG");
        failed += counts && check_sent(log);
        if (fd >= 0)
            unlink(log);
        if (ended == 0)
            continue;
        failed++;
        for (int rank = 0; rank < suites[i].n; rank++)
            printf("FAILED %s: rank %d ended with %d\n", suites[i].name, rank, codes[rank]);
    }
    printf("nccl_conformance: %d suites, %d failed\n", n, failed);
    return failed > 0;
}
