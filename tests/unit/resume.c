/* SPDX-License-Identifier: Apache-2.0 */
/* A run that was stopped after any epoch and resumed ends as if it had never stopped: records and
 * summary are the same but for times. And what becomes of broken checkpoints. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <sys/stat.h>

#include "build_config.h"
#include "core/checkpoint.h"
#include "resume_helper.h"

static char dir[] = "/tmp/adloco-resume-XXXXXX";

static void make_dir(void)
{
    cr_assert_not_null(mkdtemp(dir));
}

static void remove_dir(void)
{
    test_remove(dir);
}

TestSuite(resume, .init = make_dir, .fini = remove_dir);

static void expect_resumes(const struct identity_case *c, const char *transport)
{
    char what[IDENTITY_NAME], difference[300];
    identity_name(c, what);
    struct test_run whole = resume_run(dir, c, transport, ADL_RUN_OVERWRITE, 0);
    cr_assert_eq(whole.status, ADL_OK, "%s: %s", what, whole.err.message);
    for (int epochs = 1;; epochs++) {
        struct test_run part = resume_run(dir, c, transport, ADL_RUN_OVERWRITE, epochs);
        bool stopped = part.status == ADL_ERR_CANCELLED;
        cr_assert(stopped || epochs > 1, "%s was not stopped: %s", what, part.err.message);
        free(part.records);
        if (!stopped)
            break;
        struct test_run rest = resume_run(dir, c, transport, ADL_RUN_RESUME, 0);
        cr_assert_eq(rest.status, ADL_OK, "%s after %d: %s", what, epochs, rest.err.message);
        cr_assert(resume_same(&whole, &rest, difference, sizeof difference), "%s after %d: %s",
                  what, epochs, difference);
        cr_assert_lt(rest.summary.times.residual, 1e-9, "%s", what);
        free(rest.records);
    }
    free(whole.records);
}

ParameterizedTestParameters(resume, threads)
{
    return cr_make_param_array(struct identity_case, resume_cases, N_RESUME_CASES);
}

ParameterizedTest(struct identity_case *c, resume, threads)
{
    expect_resumes(c, "threads");
}

/* Stopped after every single epoch. */
Test(resume, again_and_again)
{
    char difference[300];
    struct identity_case *c = &resume_cases[0];
    struct test_run whole = resume_run(dir, c, "threads", ADL_RUN_OVERWRITE, 0), run;
    enum adl_run_mode mode = ADL_RUN_OVERWRITE;
    int n = 0;
    while ((run = resume_run(dir, c, "threads", mode, 1)).status == ADL_ERR_CANCELLED) {
        cr_assert_null(run.records);
        mode = ADL_RUN_RESUME;
        n++;
    }
    cr_assert_gt(n, 3);
    cr_assert_eq(run.status, ADL_OK, "%s", run.err.message);
    cr_assert(resume_same(&whole, &run, difference, sizeof difference), "%s", difference);
    free(whole.records);
    free(run.records);
}

/* ---- files ---- */

struct notices {
    struct resume_stop stop; /* first: the observer's argument serves both */
    int n;
    char last[1300];
};

static void keep_notice(void *arg, const char *line)
{
    struct notices *notices = arg;
    notices->n++;
    snprintf(notices->last, sizeof notices->last, "%s", line);
}

/* A run with a checkpoint after each of its first four epochs, stopped. */
static void stop_after_four(void)
{
    struct resume_stop stop = {.left = 4};
    struct adl_run_observer observer = {.stop = resume_told_to_stop, .arg = &stop};
    const char *sets[] = {"method=diloco", "checkpoint.every=1", "checkpoint.keep=3", NULL};
    struct test_run run = test_run_in(dir, RESUME_EXPERIMENT, sets, ADL_RUN_NEW, &observer);
    cr_assert_eq(run.status, ADL_ERR_CANCELLED, "%s", run.err.message);
    cr_assert(strstr(run.err.message, "--resume"), "%s", run.err.message);
}

static struct test_run go_on(const char *const *more, enum adl_run_mode mode,
                             struct notices *notices)
{
    struct adl_run_observer observer = {
        .stop = resume_told_to_stop, .notice = keep_notice, .arg = notices};
    const char *sets[4] = {"method=diloco", more ? more[0] : NULL};
    return test_run_in(dir, RESUME_EXPERIMENT, sets, mode, &observer);
}

static char *checkpoint_path(int round)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/out/checkpoint-%08d.adl", dir, round);
    return path;
}

static void expect_whole_run(const struct test_run *run)
{
    const char *sets[] = {"method=diloco", NULL};
    struct test_run whole = test_run_text(RESUME_EXPERIMENT, sets);
    char difference[300];
    cr_assert_eq(run->status, ADL_OK, "%s", run->err.message);
    cr_assert(resume_same(&whole, run, difference, sizeof difference), "%s", difference);
    free(whole.records);
}

Test(resume, keeps_the_newest)
{
    stop_after_four();
    cr_assert_neq(access(checkpoint_path(1), F_OK), 0);
    for (int round = 2; round <= 4; round++)
        cr_assert_eq(access(checkpoint_path(round), F_OK), 0);
}

/* Flips one bit at some place of the file. */
static void flip(const char *path, long at)
{
    FILE *file = fopen(path, "r+");
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    int byte = fgetc(file);
    fseek(file, -1, SEEK_CUR);
    fputc(byte ^ 4, file);
    fclose(file);
}

static long size_of(const char *path)
{
    FILE *file = fopen(path, "r");
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    fclose(file);
    return size;
}

Test(resume, a_flipped_bit_costs_one_checkpoint)
{
    static const long places[] = {0, 9, 41, 700, 5000, -1, -9, -17, -40};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct notices notices = {.n = 0};
        stop_after_four();
        flip(checkpoint_path(4), places[i]);
        struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
        cr_assert_eq(notices.n, 2, "%ld: %d notices, the last: %s", places[i], notices.n,
                     notices.last);
        cr_assert(strstr(notices.last, "after round 3"), "%s", notices.last);
        expect_whole_run(&run);
        free(run.records);
        test_remove(dir);
        cr_assert_eq(mkdir(dir, 0777), 0);
    }
}

Test(resume, a_truncated_file_costs_one_checkpoint)
{
    stop_after_four();
    long size = size_of(checkpoint_path(4));
    static const double shares[] = {0, 0.0001, 0.5, 0.99999};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        struct notices notices = {.stop.left = 0};
        cr_assert_eq(truncate(checkpoint_path(4), (off_t)(shares[i] * (double)size)), 0);
        notices.stop.left = 1;
        struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
        cr_assert_eq(run.status, ADL_ERR_CANCELLED, "%s", run.err.message);
        cr_assert_eq(notices.n, 2, "%g: %s", shares[i], notices.last);
        cr_assert(strstr(notices.last, "after round 3"), "%s", notices.last);
        cr_assert_eq(size_of(checkpoint_path(4)), size, "it was not written again");
    }
}

Test(resume, refuses_what_does_not_belong)
{
    struct notices notices = {.n = 0};
    stop_after_four();
    const char *other[] = {"inner.lr=0.05", NULL};
    struct test_run run = go_on(other, ADL_RUN_RESUME, &notices);
    cr_assert_eq(run.status, ADL_ERR_INPUT);
    cr_assert(strstr(run.err.message, "another run"), "%s", run.err.message);
    run = go_on(NULL, ADL_RUN_NEW, &notices);
    cr_assert_eq(run.status, ADL_ERR_INPUT);
    cr_assert(strstr(run.err.message, "--resume"), "%s", run.err.message);
    char id[] = "0123456789abcdef";
    struct adl_checkpoint *file;
    struct adl_err err = {.status = ADL_OK};
    char out[100];
    snprintf(out, sizeof out, "%s/out", dir);
    cr_assert_eq(adl_checkpoint_open(out, id, INT64_MAX, NULL, NULL, &file, &err), ADL_ERR_INPUT);
    cr_assert(strstr(err.message, "belongs to run"), "%s", err.message);
}

Test(resume, all_broken_is_an_error)
{
    struct notices notices = {.n = 0};
    stop_after_four();
    for (int round = 2; round <= 4; round++)
        flip(checkpoint_path(round), 100);
    struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
    cr_assert_eq(run.status, ADL_ERR_INPUT);
    cr_assert(strstr(run.err.message, "none of its 3 checkpoints"), "%s", run.err.message);
}

/* Records that are gone cannot be made up for. */
Test(resume, needs_the_records)
{
    struct notices notices = {.n = 0};
    char part[100];
    stop_after_four();
    snprintf(part, sizeof part, "%s/out/records.jsonl.part", dir);
    cr_assert_eq(truncate(part, size_of(part) - 1), 0);
    struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
    cr_assert(strstr(notices.last, "after round 3"), "%s", notices.last);
    expect_whole_run(&run);
    free(run.records);
}

/* A killed run has written on after its last checkpoint. */
Test(resume, drops_later_records)
{
    struct notices notices = {.n = 0};
    char part[100];
    stop_after_four();
    snprintf(part, sizeof part, "%s/out/records.jsonl.part", dir);
    FILE *file = fopen(part, "a");
    for (int i = 0; i < 10000; i++)
        fprintf(file, "{\"row\":\"round\",\"trainer\":0,\"round\":%d}\n", i);
    fclose(file);
    struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
    expect_whole_run(&run);
    free(run.records);
}

Test(resume, starts_where_there_is_nothing)
{
    struct notices notices = {.n = 0};
    struct test_run run = go_on(NULL, ADL_RUN_RESUME, &notices);
    cr_assert(strstr(notices.last, "no checkpoint"), "%s", notices.last);
    expect_whole_run(&run);
    free(run.records);
}
