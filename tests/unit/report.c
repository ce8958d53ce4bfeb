/* SPDX-License-Identifier: Apache-2.0 */
/* Reports on hand-made sweep directories. */
#include <criterion/criterion.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/curves.h"
#include "analysis/groups.h"
#include "analysis/human.h"
#include "analysis/leaves.h"
#include "analysis/report.h"
#include "analysis/results.h"
#include "build_config.h"

#ifdef ADL_HAVE_SQLITE
#include <sqlite3.h>
#endif

static char dir[] = "/tmp/adloco-report-XXXXXX";

static void make_dir(void)
{
    cr_assert(mkdtemp(dir));
}

static void remove_dir(void)
{
    char command[PATH_MAX];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    cr_assert_eq(system(command), 0);
}

/* Writes a file below the directory, with its parents. */
static void write_file(const char *name, const char *text)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *slash = path + strlen(dir); (slash = strchr(slash + 1, '/'));) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    FILE *out = fopen(path, "w");
    cr_assert(out, "%s", path);
    fputs(text, out);
    fclose(out);
}

static char *read_file(const char *name)
{
    static char text[1 << 16];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *in = fopen(path, "r");
    if (!in)
        return NULL;
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    fclose(in);
    return text;
}

static void write_summary(const char *id, const char *variant, int seed, double time_s,
                          double exchanges, double wire_bytes)
{
    char name[64], text[1024];
    snprintf(name, sizeof name, "runs/%s/summary.json", id);
    snprintf(text, sizeof text,
             "{\"run_id\": \"%s\", \"variant\": \"%s\", \"seed\": %d, \"status\": "
             "\"target_reached\", \"world\": 4, \"time_s\": %g, \"time_to_target_s\": %g, "
             "\"samples_to_target\": 1e6, \"exchanges_to_target\": %g, \"exchange_rounds\": %g, "
             "\"wire_bytes\": %g, \"sync_delay_s\": {\"mean\": null, \"sum\": %g}, "
             "\"batch_final\": 64}",
             id, variant, seed, time_s, time_s, exchanges, exchanges, wire_bytes, 2 * time_s);
    write_file(name, text);
}

/* Two platforms, two variants, three seeds; on the second platform one run failed and one
 * diverged. */
static void write_sweep(void)
{
    static const char *const platforms[] = {"fast", "slow"}, *const variants[] = {"ddp", "local"};
    char plan[8192] = "{\"id\": \"1\", \"name\": \"demo\", \"comment\": \"Who waits?\", "
                      "\"swept\": [\"cluster.platform\"], \"runs\": [";
    for (int i = 0; i < 12; i++) {
        int p = i / 6, v = i / 3 % 2, seed = i % 3 + 1;
        char id[17];
        snprintf(id, sizeof id, "%016d", i);
        snprintf(plan + strlen(plan), sizeof plan - strlen(plan),
                 "%s{\"run_id\": \"%s\", \"name\": \"demo\", \"variant\": \"%s\", \"point\": "
                 "\"cluster.platform=%s\", \"platform\": \"%s\", \"method\": \"m\", "
                 "\"transport\": \"sim\", \"seed\": %d, \"target_loss\": 0.001}",
                 i ? ", " : "", id, variants[v], platforms[p], platforms[p], seed);
        if (i < 10)
            write_summary(id, variants[v], seed, (p ? 100 : 10) * (1 + v) + 2 * seed, v ? 50 : 400,
                          v ? 3e9 : 2.4e10);
    }
    strcat(plan, "]}");
    write_file("plan.json", plan);
    write_file("runs/0000000000000010/failed.json",
               "{\"run_id\": \"0000000000000010\", \"seed\": 2, \"status\": \"failed\", "
               "\"error\": \"a \\\"broken\\\" file, line 3\"}");
    write_file("runs/0000000000000011/summary.json",
               "{\"status\": \"diverged\", \"world\": 4, \"time_to_target_s\": null}");
    write_file("runs/0000000000000000/experiment.yaml",
               "name: demo  # x.yaml:1\nmodel.kind: quadratic  # x.yaml:2\n"
               "model.hetero.curvature: 0  # default\n");
}

static char *run_report(const struct adl_report_ops *report)
{
    static char text[1 << 14];
    struct adl_err err = {0};
    FILE *out = fmemopen(text, sizeof text, "w");
    enum adl_status status = report->make(dir, out, &err);
    fclose(out);
    cr_assert_eq(status, ADL_OK, "%s", err.message);
    return text;
}

Test(report, csv_is_golden, .init = make_dir, .fini = remove_dir)
{
    write_sweep();
    run_report(&adl_report_results);
    char *csv = read_file("results.csv");
    static const char *const lines[] = {
        "run_id,name,variant,point,platform,method,transport,seed,status,target_loss,world,time_s,"
        "time_to_target_s,samples_to_target,exchanges_to_target,exchange_rounds,wire_bytes,"
        "sync_delay_s_mean,sync_delay_s_sum,batch_final,error\n",
        "\n0000000000000000,demo,ddp,cluster.platform=fast,fast,m,sim,1,target_reached,0.001,4,12,"
        "12,1e6,400,400,2.4e+10,,24,64,\n",
        "\n0000000000000010,demo,local,cluster.platform=slow,slow,m,sim,2,failed,0.001,,,,,,,,,,,"
        "\"a \"\"broken\"\" file, line 3\"\n",
        "\n0000000000000011,demo,local,cluster.platform=slow,slow,m,sim,3,diverged,0.001,4,,,,,,,,,"
        ",\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *from = i ? strstr(csv, lines[i]) : csv;
        cr_expect(from && strncmp(from, lines[i], strlen(lines[i])) == 0, "no %s in:\n%s", lines[i],
                  csv);
    }
    int n_lines = 0;
    for (const char *c = csv; *c; c++)
        n_lines += *c == '\n';
    cr_expect_eq(n_lines, 13);
    cr_expect_null(read_file("results.csv.part"));
}

#ifdef ADL_HAVE_SQLITE
static char *ask(sqlite3 *db, const char *sql)
{
    static char text[256];
    sqlite3_stmt *s;
    cr_assert_eq(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    cr_assert_eq(sqlite3_step(s), SQLITE_ROW, "%s: %s", sql, sqlite3_errmsg(db));
    const unsigned char *said = sqlite3_column_text(s, 0);
    snprintf(text, sizeof text, "%s", said ? (const char *)said : "null");
    sqlite3_finalize(s);
    return text;
}
#endif

Test(report, database_answers, .init = make_dir, .fini = remove_dir)
{
#ifndef ADL_HAVE_SQLITE
    cr_skip_test("no SQLite in this build");
#else
    static const char *const answers[][2] = {
        {"select count(*) from runs", "12"},
        {"select run_id from runs where seed = 2 and status = 'failed'", "0000000000000010"},
        {"select typeof(time_s) from runs where run_id = '0000000000000000'", "integer"},
        {"select avg(time_to_target_s) from runs where variant = 'ddp' and platform = 'fast'",
         "14.0"},
        {"select time_to_target_s from runs where status = 'diverged'", "null"},
        {"select error from runs where status = 'failed'", "a \"broken\" file, line 3"},
        {"select count(*) from evals", "2"},
        {"select loss from evals join runs using (run_id) where variant = 'ddp' and round = 5",
         "0.25"},
        {"select perplexity from evals where round = 5", "null"},
        {"select sum(samples) from evals", "30"},
    };
    char path[PATH_MAX];
    sqlite3 *db;
    write_sweep();
    write_file("runs/0000000000000000/records.jsonl",
               "{\"row\":\"run\",\"seed\":1}\n"
               "{\"row\":\"eval\",\"round\":5,\"loss\":0.25,\"perplexity\":null,\"samples\":10}\n"
               "{\"row\":\"sync\",\"round\":5,\"samples\":7}\n"
               "{\"row\":\"eval\",\"round\":6,\"loss\":0.125,\"samples\":20}\n");
    cr_expect(strstr(run_report(&adl_report_database), "/results.db\n"));
    run_report(&adl_report_database); /* over the former */
    snprintf(path, sizeof path, "%s/results.db", dir);
    cr_assert_eq(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        cr_expect_str_eq(ask(db, answers[i][0]), answers[i][1], "%s", answers[i][0]);
    sqlite3_close(db);
    cr_expect_null(read_file("results.db.part"));
#endif
}

/* A record that is broken is no reason to crash, nor to leave half a file. */
Test(report, database_refuses_broken_records, .init = make_dir, .fini = remove_dir)
{
#ifndef ADL_HAVE_SQLITE
    cr_skip_test("no SQLite in this build");
#endif
    struct adl_err err = {0};
    write_sweep();
    write_file("runs/0000000000000000/records.jsonl", "{\"row\":\"eval\",\"round\":}\n");
    cr_expect_eq(adl_report_database.make(dir, stdout, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "records.jsonl"), "%s", err.message);
    cr_expect_null(read_file("results.db"));
    cr_expect_null(read_file("results.db.part"));
}

Test(report, table_is_golden, .init = make_dir, .fini = remove_dir)
{
    write_sweep();
    static const char head[] =
        "demo\nWho waits?\n\n"
        "On fast, to the loss 0.001:\n"
        "variant  reached   exchanges   rounds      wire     time   sync delay   share   samples   "
        "batch \n"
        "ddp          3/3         400      400   24.0 GB   14.0 s*      7.00 s*  50.0%    1.00e6   "
        "   64 \n"
        "local        3/3          50*      50*  3.00 GB*  24.0 s       12.0 s   50.0%    1.00e6   "
        "   64 \n"
        "\n"
        "On slow, to the loss 0.001:\n";
    const char *text = run_report(&adl_report_table);
    cr_expect(strncmp(text, head, strlen(head)) == 0, "%s\n\n%s", text, head);
    /* of three seeds one reached the loss: no median, no mark, and the reasons behind */
    const char *bad = strstr(strstr(text, "On slow"), "\nlocal");
    cr_assert(bad);
    char line[256];
    snprintf(line, sizeof line, "%.*s", (int)strcspn(bad + 1, "\n"), bad + 1);
    cr_expect(strstr(line, "1/3"), "%s", line);
    cr_expect(strstr(line, " - "), "%s", line);
    cr_expect(strstr(line, "1 diverged  1 failed"), "%s", line);
    cr_expect_null(strchr(line, '*'), "%s", line);
    cr_expect(strstr(text, "so H (inner.steps) is free"), "the caveat is missing");
}

Test(report, caveat_is_for_homogeneous_quadratics_only, .init = make_dir, .fini = remove_dir)
{
    write_sweep();
    write_file("runs/0000000000000000/experiment.yaml",
               "model.kind: quadratic  # x.yaml:2\nmodel.hetero.shift: 0.5  # x.yaml:3\n");
    cr_expect_null(strstr(run_report(&adl_report_table), "is free"));
    write_file("runs/0000000000000000/experiment.yaml", "model.kind: llama  # x.yaml:2\n");
    cr_expect_null(strstr(run_report(&adl_report_table), "is free"));
}

/* Seven points are a tuning grid: only the best stands in the table. */
Test(report, a_grid_shows_its_best_point, .init = make_dir, .fini = remove_dir)
{
    char plan[8192] = "{\"id\": \"1\", \"name\": \"grid\", "
                      "\"swept\": [\"cluster.platform\", \"inner.lr\"], \"runs\": [";
    for (int i = 0; i < 21; i++) {
        int point = i / 3;
        char id[17];
        snprintf(id, sizeof id, "%016d", i);
        snprintf(plan + strlen(plan), sizeof plan - strlen(plan),
                 "%s{\"run_id\": \"%s\", \"variant\": \"v\", \"point\": "
                 "\"cluster.platform=p inner.lr=%d\", \"platform\": \"p\", \"seed\": %d, "
                 "\"target_loss\": 1}",
                 i ? ", " : "", id, point, i % 3);
        /* the fastest point of all reached the target with two seeds only */
        if (i != 6)
            write_summary(id, "v", i % 3, point == 2 ? 1 : point == 4 ? 10 : 20 + point, 1, 1);
    }
    strcat(plan, "]}");
    write_file("plan.json", plan);
    const char *text = run_report(&adl_report_table);
    cr_expect(strstr(text, "3/3"), "%s", text);
    cr_expect(strstr(text, "  inner.lr=4 (best of 7)\n"), "%s", text);
    cr_expect_null(strstr(text, "inner.lr=2"), "%s", text);
    cr_expect_null(strstr(text, "*  "), "one line has nothing to be better than:\n%s", text);
}

/* Few exchanges are no merit of a run that never arrived. */
Test(report, only_what_arrived_can_be_best, .init = make_dir, .fini = remove_dir)
{
    write_file("plan.json", "{\"name\": \"t\", \"runs\": ["
                            "{\"run_id\": \"a\", \"variant\": \"x\", \"target_loss\": 1},"
                            "{\"run_id\": \"b\", \"variant\": \"y\", \"target_loss\": 1},"
                            "{\"run_id\": \"c\", \"variant\": \"z\", \"target_loss\": 1}]}");
    write_summary("a", "x", 1, 10, 33, 1);
    write_summary("b", "y", 1, 20, 44, 1);
    write_file("runs/c/summary.json", "{\"status\": \"diverged\", \"exchange_rounds\": 22}");
    const char *text = run_report(&adl_report_table);
    cr_expect(strstr(text, " 33*      33* "), "%s", text);
    cr_expect(strstr(text, " 22 "), "%s", text);
}

Test(report, without_a_target_totals_are_compared, .init = make_dir, .fini = remove_dir)
{
    write_file("plan.json", "{\"name\": \"t\", \"runs\": ["
                            "{\"run_id\": \"a\", \"variant\": \"x\", \"target_loss\": null},"
                            "{\"run_id\": \"b\", \"variant\": \"y\", \"target_loss\": null}]}");
    write_file("runs/a/summary.json", "{\"status\": \"completed\", \"exchanges\": 7}");
    write_file("runs/b/summary.json", "{\"status\": \"completed\", \"exchanges\": 9}");
    const char *text = run_report(&adl_report_table);
    cr_expect(strstr(text, "7*"), "%s", text);
    cr_expect(strstr(text, "seeds"), "%s", text);
    cr_expect_null(strstr(text, "reached"), "%s", text);
}

Test(report, medians)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 2, 8}, late[] = {NAN, 1, NAN}, half[] = {NAN, 1};
    cr_expect_eq(adl_median(odd, 3), 2);
    cr_expect_eq(adl_median(even, 4), 3);
    cr_expect(isnan(adl_median(late, 3)));
    cr_expect(isnan(adl_median(half, 2)));
    cr_expect(isnan(adl_median(NULL, 0)));
    double one_late[] = {NAN, 1, 5};
    cr_expect_eq(adl_median(one_late, 3), 5);
}

Test(report, the_median_seed_is_drawn, .init = make_dir, .fini = remove_dir)
{
    write_sweep();
    write_summary("0000000000000001", "ddp", 2, 99, 1, 1);
    struct adl_results *results;
    struct adl_groups groups;
    cr_assert_eq(adl_results_load(dir, &results, NULL), ADL_OK);
    cr_assert_eq(adl_groups_make(results, &groups, NULL), ADL_OK);
    cr_expect_eq(groups.n, 4);
    cr_expect_eq(adl_group_median_row(results, &groups.v[0]), 2); /* of 12, 99, 16 s */
    cr_expect_eq(adl_group_median_row(results, &groups.v[3]), 9); /* the one that arrived */
    adl_groups_free(&groups);
    adl_results_free(results);
}

Test(report, broken_directories_are_refused_in_a_line, .init = make_dir, .fini = remove_dir)
{
    static const char *const plans[] = {"",
                                        "{",
                                        "[1, 2",
                                        "{\"name\": \"x\"}",
                                        "{\"name\": \"x\", \"runs\": [{\"seed\": 1}]}",
                                        "{\"name\": nonsense}",
                                        "{\"name\": \"x\\q\"}",
                                        "{\"name\" \"x\"}",
                                        "{\"name\": \"x\", \"runs\": [{\"run_id\": \"1\"}]} {}"};
    FILE *out = fopen("/dev/null", "w");
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        struct adl_err err = {0};
        write_file("plan.json", plans[i]);
        cr_expect_eq(adl_report_table.make(dir, out, &err), ADL_ERR_INPUT, "%s", plans[i]);
        cr_expect(strstr(err.message, "plan.json"), "%s", err.message);
    }
    struct adl_err err = {0};
    cr_expect_eq(adl_report_results.make("/nonexistent", out, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "/nonexistent/plan.json"), "%s", err.message);
    fclose(out);
}

static enum adl_status join_leaf(void *arg, const char *path, const char *text, struct adl_err *err)
{
    (void)err;
    char *all = arg;
    sprintf(all + strlen(all), "%s=%s;", path, text ? text : "NULL");
    return ADL_OK;
}

Test(report, leaves_of_json)
{
    char all[256] = "";
    cr_expect_eq(adl_leaves_parse("t",
                                  " {\"a\": {\"b\": -1.5e3, \"c\": [true, null, []]},\n"
                                  "\"d\": \"\\u00e9\\u4e2d\\n\\\"\", \"e\": {}} ",
                                  join_leaf, all, NULL),
                 ADL_OK);
    cr_expect_str_eq(all, "a.b=-1.5e3;a.c.0=true;a.c.1=NULL;d=\xc3\xa9\xe4\xb8\xad\n\";");
    char deep[64] = "";
    memset(deep, '[', 40);
    struct adl_err err = {0};
    cr_expect_eq(adl_leaves_parse("t", deep, join_leaf, all, &err), ADL_ERR_INPUT);
    cr_expect_str_eq(err.message, "t: broken JSON at byte 17: expected fewer levels");
}

Test(report, numbers_for_people)
{
    char t[32];
    cr_expect_str_eq(adl_human_count(725, t, sizeof t), "725");
    cr_expect_str_eq(adl_human_count(2.5, t, sizeof t), "2.5");
    cr_expect_str_eq(adl_human_count(99999, t, sizeof t), "99999");
    cr_expect_str_eq(adl_human_count(1234567, t, sizeof t), "1.23e6");
    cr_expect_str_eq(adl_human_count(NAN, t, sizeof t), "-");
    cr_expect_str_eq(adl_human_bytes(999, t, sizeof t), "999 B");
    cr_expect_str_eq(adl_human_bytes(999.6, t, sizeof t), "1.00 kB");
    cr_expect_str_eq(adl_human_bytes(54.32e9, t, sizeof t), "54.3 GB");
    cr_expect_str_eq(adl_human_seconds(41700, t, sizeof t), "41700 s");
    cr_expect_str_eq(adl_human_seconds(33.06, t, sizeof t), "33.1 s");
    cr_expect_str_eq(adl_human_seconds(0.0012, t, sizeof t), "1.20 ms");
    cr_expect_str_eq(adl_human_seconds(5e-6, t, sizeof t), "5.00 us");
    cr_expect_str_eq(adl_human_seconds(0, t, sizeof t), "0 s");
    cr_expect_str_eq(adl_human_share(0.1234, t, sizeof t), "12.3%");
    cr_expect_str_eq(adl_human_share(0.0123, t, sizeof t), "1.23%");
}

Test(report, curves_are_the_eval_rows, .init = make_dir, .fini = remove_dir)
{
    char path[PATH_MAX];
    struct adl_curve curve;
    struct adl_err err = {0};
    snprintf(path, sizeof path, "%s/records.jsonl", dir);
    write_file("records.jsonl",
               "{\"row\":\"round\",\"loss\":9}\n"
               "{\"row\":\"eval\",\"loss\":2,\"time_s\":1.5,\"samples\":10,\"exchanges\":3}\n"
               "{\"row\":\"eval\",\"loss\":null,\"time_s\":2.5}\n"
               "{\"row\":\"eval\",\"lo");
    cr_assert_eq(adl_curve_load(path, &curve, &err), ADL_OK, "%s", err.message);
    cr_assert_eq(curve.n, 2);
    cr_expect_eq(curve.v[0].loss, 2);
    cr_expect_eq(curve.v[0].x[ADL_AXIS_TIME], 1.5);
    cr_expect_eq(curve.v[0].x[ADL_AXIS_SAMPLES], 10);
    cr_expect_eq(curve.v[0].x[ADL_AXIS_EXCHANGES], 3);
    cr_expect(isnan(curve.v[1].loss));
    adl_curve_free(&curve);
    write_file("records.jsonl", "{\"row\":\"eval\",\"lo\n{}\n");
    cr_expect_eq(adl_curve_load(path, &curve, &err), ADL_ERR_INPUT);
    cr_expect(strstr(err.message, "records.jsonl:1: "), "%s", err.message);
}

Test(report, pictures_are_named_after_platforms, .init = make_dir, .fini = remove_dir)
{
    static const char *const names[] = {"loss-time-fast.svg", "loss-samples-fast.svg",
                                        "loss-exchanges-fast.svg"};
    if (system("gnuplot --version >/dev/null 2>&1") != 0)
        cr_skip_test("gnuplot is not installed");
    write_sweep();
    write_file("runs/0000000000000001/records.jsonl",
               "{\"row\":\"eval\",\"loss\":2,\"time_s\":1,\"samples\":10,\"exchanges\":1}\n"
               "{\"row\":\"eval\",\"loss\":1,\"time_s\":2,\"samples\":20,\"exchanges\":2}\n");
    const char *said = run_report(&adl_report_plots);
    for (int i = 0; i < 3; i++) {
        cr_expect(strstr(said, names[i]), "%s", said);
        const char *svg = read_file(names[i]);
        cr_assert(svg, "%s", names[i]);
        cr_expect(strstr(svg, "<svg"));
        cr_expect(strstr(svg, "ddp"));
        cr_expect_null(strstr(svg, ">local<"), "it has no records");
    }
    cr_expect_null(read_file("loss-time-slow.svg"), "no run there has records");
}

Test(report, no_gnuplot_is_unsupported, .init = make_dir, .fini = remove_dir)
{
    write_sweep();
    write_file("runs/0000000000000001/records.jsonl",
               "{\"row\":\"eval\",\"loss\":2,\"time_s\":1,\"samples\":10,\"exchanges\":1}\n");
    char *path = strdup(getenv("PATH"));
    struct adl_err err = {0};
    setenv("PATH", "/nonexistent", 1);
    FILE *out = fopen("/dev/null", "w");
    enum adl_status status = adl_report_plots.make(dir, out, &err);
    fclose(out);
    setenv("PATH", path, 1);
    free(path);
    cr_expect_eq(status, ADL_ERR_UNSUPPORTED);
    cr_expect(strstr(err.message, "gnuplot is not installed"), "%s", err.message);
}

/* ---- swept keys without an effect ---- */

/* Two seeds on two platforms at two values of `x y` and of sim.k, whose time is a function of
 * these. */
static void write_effects(double (*time_s)(int p, int x, int k), bool mixed)
{
    static const char *const platforms[] = {"fat_tree(gpus=8, nics=2)", "flat"};
    char plan[16384] = "{\"id\": \"1\", \"name\": \"demo\", \"comment\": \"\", \"swept\": "
                       "[\"cluster.platform\", \"model.x\", \"sim.k\"], \"runs\": [";
    for (int i = 0; i < 16; i++) {
        int p = i / 8, x = i / 4 % 2, k = i / 2 % 2, seed = i % 2;
        char id[17], name[64], text[512];
        snprintf(id, sizeof id, "%016d", i);
        snprintf(plan + strlen(plan), sizeof plan - strlen(plan),
                 "%s{\"run_id\": \"%s\", \"variant\": \"v\", \"point\": \"cluster.platform=%s "
                 "model.x=[%d, 2] sim.k=%d\", \"platform\": \"%s\", \"seed\": %d}",
                 i ? ", " : "", id, platforms[p], x, k, platforms[p], seed);
        snprintf(name, sizeof name, "runs/%s/summary.json", id);
        snprintf(text, sizeof text,
                 "{\"run_id\": \"%s\", \"seed\": %d, \"status\": \"completed\", \"samples\": %d, "
                 "\"time_s\": %.17g, \"bottleneck\": \"%s\"}",
                 id, seed, 100 + seed, time_s(p, x, k), mixed && seed ? "latency" : "compute");
        write_file(name, text);
    }
    strcat(plan, "]}");
    write_file("plan.json", plan);
}

static double by_platform(int p, int x, int k)
{
    (void)x, (void)k;
    return 10 + p;
}

static double by_platform_and_k(int p, int x, int k)
{
    (void)x;
    return p == 1 ? 10 + k : 20; /* k matters on one platform only */
}

Test(report, effects_of_swept_keys, .init = make_dir, .fini = remove_dir)
{
    write_effects(by_platform, false);
    cr_assert_str_eq(run_report(&adl_report_effects),
                     "warning: swept key 'model.x' changed nothing in any run's result: what held "
                     "all of them up was compute\n"
                     "warning: swept key 'sim.k' changed nothing in any run's result: what held "
                     "all of them up was compute\n");
    write_effects(by_platform_and_k, true);
    cr_assert_str_eq(run_report(&adl_report_effects),
                     "warning: swept key 'model.x' changed nothing in any run's result; see column "
                     "bottleneck of results.csv\n");
}
