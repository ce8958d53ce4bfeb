/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of an nccl run when a device, NCCL or a process fails, at every step of its life:
 * all other processes end in time, with the same reason, which names the rank. On
 * tests/nccl_double. LD_LIBRARY_PATH=build/tests/nccl_double build/tests/plain_nccl_failures [CASE]
 */
#include "nccl_ranks.h"

#include "tests/plain/conformance_sums.h"

#include "real/transport_nccl.h"

enum { N = 3, MUST_END_S = 40 };

struct failure_case {
    const char *name;
    const char *fault; /* of the double; NULL: none */
    void (*run)(struct world *w, struct adl_err *err);
    enum adl_status expected;
    const char *message; /* part of it, on each rank that ends by itself */
    int culprit, code;   /* rank that ends otherwise, and how; -1: none */
    bool soon;           /* deadlines are short: one is to be met, or something hangs */
};

/* ---- what the ranks do ---- */

static enum adl_status sums_body(struct adl_task *task, void *arg)
{
    struct sum_case c = {
        .w = arg, .element = rough_element, .count = 6000, .dtype = ADL_F64, .n_scalars = 2};
    for (int round = 0; round < 6; round++) {
        c.apart = round % 2;
        ADL_TRY(sum_once(&c, task));
    }
    return ADL_OK;
}

static void run_sums(struct world *w, struct adl_err *err)
{
    world_run(w, 1, sums_body, w, err);
}

/* Each process has a part in each of two trainers. */
static void run_two(struct world *w, struct adl_err *err)
{
    world_run(w, 2, sums_body, w, err);
}

static void run_move(struct world *w, struct adl_err *err)
{
    static double data[5000];
    int all[MAX_WORKERS];
    for (int i = 0; i < w->n; i++)
        all[i] = i;
    struct adl_move move = {.src = 0,
                            .dst = all,
                            .n_dst = w->n,
                            .data = data,
                            .into = data,
                            .bytes = sizeof data,
                            .cause = ADL_CAUSE_MERGE};
    if (world_run(w, w->n, nothing_body, NULL, err) == ADL_OK)
        w->ops->move(w->t, &move, 1, err);
}

/* The world has already done something when its first split hangs. */
static void run_move_and_sums(struct world *w, struct adl_err *err)
{
    run_move(w, err);
    if (err->status == ADL_OK)
        run_sums(w, err);
}

static void run_gather(struct world *w, struct adl_err *err)
{
    double rows[2] = {1, 2};
    int leaders[2] = {0, w->n - 1};
    if (world_run(w, 1, nothing_body, NULL, err) != ADL_OK)
        return;
    if (hosted(w, w->n - 1))
        raise(SIGKILL);
    w->ops->gather(w->t, rows, 2, 1, leaders, 8, err);
}

static void run_pass(struct world *w, struct adl_err *err)
{
    static char data[300000];
    if (hosted(w, 2))
        raise(SIGKILL);
    w->ops->pass(w->t, 0, ADL_EVERY_PROCESS, data, sizeof data, err);
}

static enum adl_status stopping_body(struct adl_task *task, void *arg)
{
    struct world *w = arg;
    ADL_TRY(sums_body(task, arg));
    if (hosted(w, 2))
        raise(SIGSTOP);
    return sums_body(task, arg);
}

static void run_stopping(struct world *w, struct adl_err *err)
{
    world_run(w, 1, stopping_body, w, err);
}

static enum adl_status hub_stopping_body(struct adl_task *task, void *arg)
{
    struct world *w = arg;
    ADL_TRY(sums_body(task, arg));
    if (hosted(w, 0))
        raise(SIGSTOP);
    return sums_body(task, arg);
}

static void run_hub_stopping(struct world *w, struct adl_err *err)
{
    world_run(w, 1, hub_stopping_body, w, err);
}

/* One leaves although the others have something to do with it. */
static void run_leaving(struct world *w, struct adl_err *err)
{
    if (hosted(w, 1)) {
        w->ops->close(w->t);
        exit(9);
    }
    world_run(w, 1, sums_body, w, err);
}

static enum adl_status failing_body(struct adl_task *task, void *arg)
{
    const struct world *w = arg;
    ADL_TRY(sums_body(task, arg));
    if (hosted(w, 1))
        return adl_fail(&task->err, ADL_ERR_IO, "boom of rank 1");
    return sums_body(task, arg);
}

static void run_failing(struct world *w, struct adl_err *err)
{
    world_run(w, 1, failing_body, w, err);
}

static const struct failure_case cases[] = {
    {"no fault", NULL, run_sums, ADL_OK, "", -1, 0, false},
    {"no driver", "no-driver:-1", run_sums, ADL_ERR_UNSUPPORTED, "no usable CUDA device", -1, 0,
     false},
    {"no device", "no-device:2", run_sums, ADL_ERR_UNSUPPORTED,
     "rank 2: no usable CUDA device: there are none", -1, 0, false},
    {"old device", "old-device:1", run_sums, ADL_ERR_UNSUPPORTED,
     "rank 1: no usable CUDA device: device 0 has compute capability 7.0", -1, 0, false},
    {"old NCCL", "old-nccl:0", run_sums, ADL_ERR_UNSUPPORTED,
     "rank 0: no usable NCCL: version 2.17.1 was found", -1, 0, false},
    {"join fails", "join-error:1", run_sums, ADL_ERR_RUNTIME,
     "rank 1: NCCL: joining the world: the double failed (error 2): as it was told to", -1, 0,
     false},
    {"join hangs", "join-hang:1", run_sums, ADL_ERR_PEER,
     "joining the world of NCCL has not come to its end within 3 s (nccl.start)", -1, 0, true},
    {"split fails", "split-error:2", run_sums, ADL_ERR_RUNTIME,
     "rank 2: NCCL: splitting a communicator", -1, 0, false},
    {"second split fails", "split-error:0:2", run_two, ADL_ERR_RUNTIME,
     "rank 0: NCCL: splitting a communicator", -1, 0, false},
    {"split hangs", "split-hang:1", run_sums, ADL_ERR_PEER,
     "splitting a communicator has not come to its end within 2 s (nccl.deadline)", -1, 0, true},
    {"split hangs later", "split-hang:1", run_move_and_sums, ADL_ERR_PEER,
     "splitting a communicator has not come to its end within 2 s (nccl.deadline)", -1, 0, true},
    {"start fails", "start-error:1:3", run_sums, ADL_ERR_RUNTIME, "rank 1: NCCL: an all-reduce", -1,
     0, false},
    {"start hangs", "start-hang:1:2", run_two, ADL_ERR_PEER, "within 2 s (nccl.deadline)", -1, 0,
     true},
    {"error while it runs", "late-error:2:3", run_sums, ADL_ERR_RUNTIME,
     "rank 2: NCCL: a communicator has failed: remote error", -1, 0, false},
    {"exchange hangs", "hang:1:4", run_sums, ADL_ERR_PEER,
     "an exchange has not come to its end within 2 s (nccl.deadline)", -1, 0, true},
    {"exchange of two hangs", "hang:2:5", run_two, ADL_ERR_PEER, "within 2 s (nccl.deadline)", -1,
     0, true},
    {"killed in an exchange", "die:2:3", run_two, ADL_ERR_PEER,
     "rank 2 is gone: its connection was closed", 2, -SIGKILL, false},
    {"rank 0 killed", "die:0:3", run_sums, ADL_ERR_PEER,
     "rank 0 is gone: its connection was closed", 0, -SIGKILL, false},
    {"killed in a move", "die:1", run_move, ADL_ERR_PEER, "rank 1 is gone", 1, -SIGKILL, false},
    {"move hangs", "hang:1", run_move, ADL_ERR_PEER, "within 2 s (nccl.deadline)", -1, 0, true},
    {"killed before rows", NULL, run_gather, ADL_ERR_PEER, "rank 2 is gone", 2, -SIGKILL, false},
    {"killed before bytes", NULL, run_pass, ADL_ERR_PEER, "rank 2 is gone", 2, -SIGKILL, false},
    {"stands still", NULL, run_stopping, ADL_ERR_PEER,
     "rank 2 has given no sign of life for 2 s (nccl.deadline)", 2, -SIGSTOP, true},
    {"rank 0 stands still", NULL, run_hub_stopping, ADL_ERR_PEER,
     "rank 0 has given no sign of life for 2 s (nccl.deadline)", 0, -SIGSTOP, true},
    {"leaves", NULL, run_leaving, ADL_ERR_PEER, "rank 1 has left the run", 1, 9, false},
    {"task fails", NULL, run_failing, ADL_ERR_IO, "boom of rank 1", -1, 0, false},
    {"call hangs", "call-hang:2:3", run_sums, ADL_ERR_PEER, "within 2 s (nccl.deadline)", 2, 1,
     true},
    {"abort hangs", "abort-hang:2", run_failing, ADL_ERR_IO, "boom of rank 1", 2, 1, true},
};

enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- one rank ---- */

static int run_rank(void *arg)
{
    const struct failure_case *c = arg;
    const char *const sets[] = {"nccl.deadline", c->soon ? "2" : "30", "nccl.start",
                                c->soon ? "3" : "60", NULL};
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    alarm(MUST_END_S);
    world_sets = sets;
    ranks_meet_anew();
    if (world_open(&w, &adl_transport_nccl, c->run == run_two ? 2 * N : N, &err) == ADL_OK) {
        w.rounding = 1e-6;
        c->run(&w, &err);
    }
    CHECK(err.status == c->expected, "status %d: %s", (int)err.status, err.message);
    CHECK(strstr(err.message, c->message), "%s", err.message);
    world_close(&w);
    return atomic_load(&n_failed_checks) > 0;
}

static int run_case(const struct failure_case *c)
{
    int codes[RANKS_MOST], failed = 0;
    if (c->fault)
        setenv("ADL_NCCL_DOUBLE", c->fault, 1);
    else
        unsetenv("ADL_NCCL_DOUBLE");
    ranks_run(N, run_rank, (void *)(uintptr_t)c, codes);
    for (int rank = 0; rank < N; rank++) {
        int expected = rank == c->culprit ? c->code : 0;
        if (codes[rank] == expected)
            continue;
        printf("FAILED %s: rank %d ended with %d, not %d\n", c->name, rank, codes[rank], expected);
        failed = 1;
    }
    return failed;
}

/* ---- communicators, as the double's log has them ---- */

static int count_lines(const char *path, const char *line)
{
    char *text = NULL;
    size_t size = 0;
    int n = 0;
    FILE *in = fopen(path, "r");
    while (in && getline(&text, &size, in) > 0)
        n += strncmp(text, line, strlen(line)) == 0;
    free(text);
    if (in)
        fclose(in);
    return n;
}

/* A trainer that stays as it is keeps its communicator; two on a device share it out. */
static int run_epochs(void *arg)
{
    const char *path = arg;
    struct world w;
    struct adl_err err = {.status = ADL_OK};
    ranks_meet_anew();
    if (world_open(&w, &adl_transport_nccl, 4, &err) == ADL_OK) {
        w.rounding = 1e-6;
        for (int epoch = 0; epoch < 3; epoch++)
            world_run_ok(&w, 1, sums_body, &w);
        CHECK(getenv("RANK")[0] != '0' || count_lines(path, "split 0 ") == 1, "no split of one");
        for (int epoch = 0; epoch < 3; epoch++)
            world_run_ok(&w, 2, sums_body, &w);
        world_run_ok(&w, 4, sums_body, &w); /* each within a process: no communicator */
    }
    CHECK(err.status == ADL_OK, "%s", err.message);
    world_close(&w);
    return atomic_load(&n_failed_checks) > 0;
}

static int check_epochs(void)
{
    char path[] = "/tmp/adloco-test-XXXXXX";
    int codes[RANKS_MOST], fd = mkstemp(path);
    if (fd < 0)
        return 1;
    close(fd);
    unsetenv("ADL_NCCL_DOUBLE");
    setenv("ADL_NCCL_DOUBLE_LOG", path, 1);
    int failed = ranks_run(2, run_epochs, path, codes);
    unsetenv("ADL_NCCL_DOUBLE_LOG");
    CHECK(count_lines(path, "split ") == 3, "%d splits", count_lines(path, "split "));
    CHECK(count_lines(path, "split 0 16") == 1 && count_lines(path, "split 1 16") == 1,
          "communicators used at once do not share the device");
    CHECK(count_lines(path, "close ") == 4, "%d closed", count_lines(path, "close "));
    CHECK(count_lines(path, "abort ") == 0, "communicators were aborted");
    CHECK(count_lines(path, "exchange ") == 6 * 3 + 2 * 6 * 3, "%d exchanges",
          count_lines(path, "exchange "));
    unlink(path);
    return failed + atomic_load(&n_failed_checks) > 0;
}

/* Cases mostly wait: several at once. */
enum { AT_ONCE = 10 };

static void start_case(int i)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        exit(i < N_CASES ? run_case(&cases[i]) : check_epochs());
    if (pid < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : NULL;
    int running = 0, failed = 0, n = 0, status;
    setenv("ADL_NCCL_DOUBLE_RESIDENT", "1", 1);
    for (int i = 0; i <= N_CASES; i++) {
        if (only && strcmp(only, i < N_CASES ? cases[i].name : "epochs") != 0)
            continue;
        for (; running == AT_ONCE; running--)
            failed += wait(&status) < 0 || status != 0;
        start_case(i);
        running++;
        n++;
    }
    for (; running > 0; running--)
        failed += wait(&status) < 0 || status != 0;
    printf("nccl_failures: %d cases, %d failed\n", n, failed);
    return failed > 0;
}
