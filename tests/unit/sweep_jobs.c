/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <math.h>

#include "core/app/sweep_jobs.h"
#include "core/app/sweep_line.h"

Test(sweep_jobs, are_taken_in_order_and_kept_ones_are_passed_over)
{
    struct adl_jobs jobs;
    cr_assert_eq(adl_jobs_init(&jobs, 4), 0);
    jobs.v[0].state = jobs.v[2].state = ADL_JOB_KEPT;
    cr_expect_eq(adl_jobs_take(&jobs), 1);
    cr_expect_eq(jobs.v[1].state, ADL_JOB_RUNNING);
    cr_expect_eq(adl_jobs_take(&jobs), 3);
    cr_expect_eq(adl_jobs_take(&jobs), 4);
    adl_jobs_free(&jobs);
}

Test(sweep_jobs, time_left_follows_from_work_done_here)
{
    struct adl_jobs jobs;
    cr_assert_eq(adl_jobs_init(&jobs, 10), 0);
    cr_expect(isnan(adl_jobs_standing(&jobs, 5).left_s));
    for (int i = 0; i < 4; i++)
        jobs.v[i].state = ADL_JOB_KEPT;
    jobs.v[4].state = ADL_JOB_DONE;
    jobs.v[5].state = ADL_JOB_FAILED;
    jobs.v[6] = (struct adl_job){ADL_JOB_RUNNING, 0.5};
    struct adl_standing s = adl_jobs_standing(&jobs, 10);
    cr_expect_eq(s.complete, 6);
    cr_expect_eq(s.running, 1);
    cr_expect_eq(s.failed, 1);
    cr_expect_eq(s.kept, 4);
    /* 2.5 of 6 runs took 10 s */
    cr_expect_float_eq(s.left_s, 14, 1e-12);
    for (int i = 4; i < 10; i++)
        jobs.v[i].state = ADL_JOB_DONE;
    cr_expect_eq(adl_jobs_standing(&jobs, 10).left_s, 0);
    adl_jobs_free(&jobs);
}

Test(sweep_jobs, progress_reads_well)
{
    char text[160];
    struct adl_standing s = {
        .total = 60, .complete = 12, .running = 2, .elapsed_s = 72.4, .left_s = 3725};
    cr_expect_str_eq(adl_line_text(&s, text, sizeof text),
                     "12/60 runs, 2 at work, 1:12, about 1:02:05 left");
    s = (struct adl_standing){.total = 2, .complete = 2, .failed = 1, .elapsed_s = 3};
    cr_expect_str_eq(adl_line_text(&s, text, sizeof text), "2/2 runs, 0 at work, 1 failed, 0:03");
}

Test(sweep_jobs, off_a_terminal_a_line_appears_at_each_tenth)
{
    char shown[1024] = "";
    FILE *out = fmemopen(shown, sizeof shown, "w");
    struct adl_line line = adl_line_open(out);
    for (size_t i = 0; i <= 100; i++) {
        struct adl_standing s = {
            .total = 100, .complete = i, .elapsed_s = 0.01 * (double)i, .left_s = NAN};
        adl_line_show(&line, &s);
    }
    adl_line_break(&line);
    fclose(out);
    int lines = 0;
    for (const char *c = shown; *c; c++)
        lines += *c == '\n';
    cr_expect_eq(lines, 10, "%s", shown);
}
