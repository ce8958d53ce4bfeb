/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an experiment given as text, in this process, and hands back its summary and records. */
#ifndef ADL_TESTS_RUN_HELPER_H
#define ADL_TESTS_RUN_HELPER_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/plan.h"
#include "core/records.h"
#include "core/run.h"

struct test_run {
    enum adl_status status;
    struct adl_err err;
    struct adl_summary summary;
    char *records; /* text of records.jsonl; NULL if there is none */
};

static inline char *test_read_file(const char *path)
{
    FILE *in = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    if (!in)
        return NULL;
    if (getdelim(&text, &size, '\0', in) < 0) {
        free(text);
        text = strdup("");
    }
    fclose(in);
    return text;
}

static inline void test_remove(const char *dir)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command) != 0)
        fprintf(stderr, "cannot remove %s\n", dir);
}

/* Plans the text, put into dir/e.yaml, with --set `sets` (NULL-ended, may be NULL) and runs its
 * only run in dir/out. */
static inline struct test_run test_run_in(const char *dir, const char *yaml,
                                          const char *const *sets, enum adl_run_mode mode,
                                          const struct adl_run_observer *observer)
{
    struct test_run r = {0};
    char path[256], draft[300], out[256], records[300];
    snprintf(path, sizeof path, "%s/e.yaml", dir);
    snprintf(out, sizeof out, "%s/out", dir);
    snprintf(records, sizeof records, "%s/records.jsonl", out);
    /* renamed: other processes may write, and read, the same file */
    snprintf(draft, sizeof draft, "%s.%d", path, (int)getpid());
    FILE *file = fopen(draft, "w");
    if (!file) {
        r.status = adl_fail(&r.err, ADL_ERR_IO, "cannot write %s", path);
        return r;
    }
    fputs(yaml, file);
    fclose(file);
    rename(draft, path);
    size_t n = 0;
    while (sets && sets[n])
        n++;
    struct adl_plan *plan = NULL;
    r.status = adl_plan_load(adl_registry(), path, sets, n, NULL, &plan, &r.err);
    if (r.status == ADL_OK && plan->n_runs != 1)
        r.status = adl_fail(&r.err, ADL_ERR_BUG, "%zu runs planned, not one", plan->n_runs);
    if (r.status == ADL_OK) {
        r.status =
            adl_run(adl_registry(), &plan->runs[0], path, out, mode, observer, &r.summary, &r.err);
        r.records = test_read_file(records);
    }
    adl_plan_free(plan);
    return r;
}

/* The same, new, in a directory that is gone afterwards. */
static inline struct test_run test_run_text(const char *yaml, const char *const *sets)
{
    struct test_run r = {0};
    char dir[] = "/tmp/adloco-test-XXXXXX";
    if (!mkdtemp(dir)) {
        r.status = adl_fail(&r.err, ADL_ERR_IO, "cannot make a temporary directory");
        return r;
    }
    r = test_run_in(dir, yaml, sets, ADL_RUN_NEW, NULL);
    test_remove(dir);
    return r;
}

/* Number `key` of the n-th row of a kind (from 0); NAN if there is none. */
static inline double test_record(const struct test_run *r, const char *row, int n, const char *key)
{
    const char *line = r->records;
    double value = NAN;
    while (line && *line) {
        const char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) : strlen(line);
        char *copy = strndup(line, length);
        bool found = adl_record_is(copy, row) && n-- == 0;
        if (found && !adl_record_number(copy, key, &value))
            value = NAN;
        free(copy);
        if (found)
            return value;
        line = end ? end + 1 : NULL;
    }
    return NAN;
}

static inline int test_count_records(const struct test_run *r, const char *row)
{
    int n = 0;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "{\"row\":\"%s\"", row);
    for (const char *at = r->records; at && (at = strstr(at, wanted)); at++)
        n++;
    return n;
}

#endif
