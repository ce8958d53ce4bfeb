/* SPDX-License-Identifier: Apache-2.0 */
/* results.db, for questions that a table does not answer:
 *   runs   what results.csv holds: a row a run, a column a key of the summaries
 *   evals  each loss along a run: run_id, round, trainers, request, loss, perplexity, samples,
 *          exchanges, time_s
 * e.g. sqlite3 DIR/results.db 'select variant, avg(time_to_target_s) from runs group by variant' */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/leaves.h"
#include "analysis/report.h"
#include "analysis/results.h"
#include "build_config.h"
#include "core/records.h"

#ifdef ADL_HAVE_SQLITE
#include <sqlite3.h>

/* Never numbers, whatever they look like: half of all ids are digits with an e. */
static const char *const texts[] = {"run_id", "name",      "variant", "point", "platform",
                                    "method", "transport", "status",  NULL};
static const char *const eval_columns[] = {"run_id",     "round",   "trainers",  "request", "loss",
                                           "perplexity", "samples", "exchanges", "time_s"};
enum { N_EVAL_COLUMNS = sizeof eval_columns / sizeof *eval_columns };

static enum adl_status said(sqlite3 *db, const char *path, struct adl_err *err)
{
    return adl_fail(err, ADL_ERR_IO, "%s: %s", path, sqlite3_errmsg(db));
}

static bool is_text(const char *column)
{
    for (size_t i = 0; texts[i]; i++)
        if (strcmp(column, texts[i]) == 0)
            return true;
    return false;
}

/* Numbers are taken for what they are by the columns' affinity. */
static enum adl_status create(sqlite3 *db, const char *path, const char *table,
                              const char *const *columns, size_t n, sqlite3_stmt **insert,
                              struct adl_err *err)
{
    sqlite3_str *make = sqlite3_str_new(db), *add = sqlite3_str_new(db);
    sqlite3_str_appendf(make, "create table %w(", table);
    sqlite3_str_appendf(add, "insert into %w values(", table);
    for (size_t i = 0; i < n; i++) {
        sqlite3_str_appendf(make, "%s\"%w\" %s", i ? "," : "", columns[i],
                            is_text(columns[i]) ? "text" : "numeric");
        sqlite3_str_appendf(add, "%s?", i ? "," : "");
    }
    sqlite3_str_appendchar(make, 1, ')');
    sqlite3_str_appendchar(add, 1, ')');
    char *make_sql = sqlite3_str_finish(make), *add_sql = sqlite3_str_finish(add);
    bool good = make_sql && add_sql && sqlite3_exec(db, make_sql, NULL, NULL, NULL) == SQLITE_OK &&
                sqlite3_prepare_v2(db, add_sql, -1, insert, NULL) == SQLITE_OK;
    sqlite3_free(make_sql);
    sqlite3_free(add_sql);
    return good ? ADL_OK : said(db, path, err);
}

/* A row of texts [n], where NULL is null. */
static enum adl_status insert_row(sqlite3 *db, const char *path, sqlite3_stmt *insert,
                                  char *const *cells, size_t n, struct adl_err *err)
{
    sqlite3_clear_bindings(insert);
    for (size_t i = 0; i < n; i++)
        if (cells[i] &&
            sqlite3_bind_text(insert, (int)i + 1, cells[i], -1, SQLITE_TRANSIENT) != SQLITE_OK)
            return said(db, path, err);
    bool done = sqlite3_step(insert) == SQLITE_DONE;
    return sqlite3_reset(insert) == SQLITE_OK && done ? ADL_OK : said(db, path, err);
}

struct target { /* where rows go */
    sqlite3 *db;
    const char *path;
    sqlite3_stmt *runs, *evals;
};

/* One line of records being taken apart. */
struct eval {
    char cells[N_EVAL_COLUMNS][64];
    char *row[N_EVAL_COLUMNS]; /* into cells; NULL: null or absent */
};

static enum adl_status take_leaf(void *arg, const char *path, const char *text, struct adl_err *err)
{
    struct eval *eval = arg;
    (void)err;
    for (size_t i = 1; text && i < N_EVAL_COLUMNS; i++)
        if (strcmp(path, eval_columns[i]) == 0) {
            snprintf(eval->cells[i], sizeof eval->cells[i], "%s", text);
            eval->row[i] = eval->cells[i];
        }
    return ADL_OK;
}

/* A run that failed left no records. */
static enum adl_status add_evals(const struct target *to, const char *dir, const char *run_id,
                                 struct adl_err *err)
{
    char path[PATH_MAX], *line = NULL;
    size_t size = 0;
    enum adl_status status = ADL_OK;
    snprintf(path, sizeof path, "%s/runs/%s/records.jsonl", dir, run_id);
    FILE *in = fopen(path, "r");
    while (in && status == ADL_OK && getline(&line, &size, in) > 0) {
        if (!adl_record_is(line, "eval"))
            continue;
        struct eval eval = {0};
        snprintf(eval.cells[0], sizeof eval.cells[0], "%s", run_id);
        eval.row[0] = eval.cells[0];
        status = adl_leaves_parse(path, line, take_leaf, &eval, err);
        if (status == ADL_OK)
            status = insert_row(to->db, to->path, to->evals, eval.row, N_EVAL_COLUMNS, err);
    }
    free(line);
    if (in)
        fclose(in);
    return status;
}

static enum adl_status add_runs(const struct target *to, const char *dir,
                                const struct adl_results *results, struct adl_err *err)
{
    for (size_t i = 0; i < results->n_rows; i++) {
        const struct adl_result_row *row = &results->rows[i];
        if (!row->present)
            continue;
        ADL_TRY(insert_row(to->db, to->path, to->runs, row->cells, row->n_cells, err));
        ADL_TRY(add_evals(to, dir, adl_result_text(results, i, "run_id"), err));
    }
    return ADL_OK;
}

/* Nobody reads it before it has its name, so that it needs no journal. */
static enum adl_status fill(struct target *to, const char *dir, const struct adl_results *results,
                            struct adl_err *err)
{
    if (sqlite3_exec(to->db, "pragma journal_mode=off; pragma synchronous=off; begin", NULL, NULL,
                     NULL) != SQLITE_OK)
        return said(to->db, to->path, err);
    ADL_TRY(create(to->db, to->path, "runs", (const char *const *)results->columns,
                   results->n_columns, &to->runs, err));
    ADL_TRY(create(to->db, to->path, "evals", eval_columns, N_EVAL_COLUMNS, &to->evals, err));
    ADL_TRY(add_runs(to, dir, results, err));
    return sqlite3_exec(to->db, "create index evals_by_run on evals(run_id); commit", NULL, NULL,
                        NULL) == SQLITE_OK
               ? ADL_OK
               : said(to->db, to->path, err);
}

static enum adl_status write_database(const struct adl_results *results, const char *dir,
                                      struct adl_err *err)
{
    char path[PATH_MAX], part[PATH_MAX];
    snprintf(path, sizeof path, "%s/results.db", dir);
    snprintf(part, sizeof part, "%s/results.db.part", dir);
    unlink(part);
    struct target to = {.path = part};
    enum adl_status status = sqlite3_open(part, &to.db) == SQLITE_OK ? fill(&to, dir, results, err)
                                                                     : said(to.db, part, err);
    sqlite3_finalize(to.runs);
    sqlite3_finalize(to.evals);
    if (sqlite3_close(to.db) != SQLITE_OK && status == ADL_OK)
        status = said(to.db, part, err);
    if (status == ADL_OK && rename(part, path) != 0)
        status = adl_fail(err, ADL_ERR_IO, "%s: %s", part, strerror(errno));
    if (status != ADL_OK)
        unlink(part);
    return status;
}

static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    struct adl_results *results;
    ADL_TRY(adl_results_load(dir, &results, err));
    enum adl_status status = write_database(results, dir, err);
    if (status == ADL_OK)
        fprintf(out, "%s/results.db\n", dir);
    adl_results_free(results);
    return status;
}

#else
static enum adl_status make(const char *dir, FILE *out, struct adl_err *err)
{
    (void)dir;
    (void)out;
    return adl_fail(err, ADL_ERR_UNSUPPORTED,
                    "no results.db: SQLite is not in this build (libsqlite3-dev)");
}
#endif

const struct adl_report_ops adl_report_database = {
    .name = "database",
    .doc = "results.db: the same and each loss along a run, as tables of SQLite",
    .make = make,
};
