/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/validate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/csv.h"

/* The table's grid: 50 points from 0.1 to 1000 Gbit/s. */
static const double grid_ratio = 1.206792640639329; /* 10^(4/49) */

struct validating {
    const char *dir;
    const struct adl_formulas *formulas;
    struct adl_validation *out;
    struct adl_err *err;
};

typedef enum adl_status row_fn(struct validating *v, const struct adl_csv *table, size_t row);

enum adl_verdict adl_validate_verdict(const struct adl_validate_row *row)
{
    if (isnan(row->low))
        return ADL_VERDICT_NONE;
    return row->ratio >= row->low && row->ratio <= row->high ? ADL_VERDICT_PASS : ADL_VERDICT_FAIL;
}

/* Appends a row; its ratio and the counts follow. */
static enum adl_status add(struct validating *v, struct adl_validate_row row)
{
    struct adl_validation *out = v->out;
    if (out->n == out->cap) {
        const size_t cap = out->cap ? 2 * out->cap : 64;
        struct adl_validate_row *rows = realloc(out->rows, cap * sizeof *rows);
        if (!rows)
            return adl_fail(v->err, ADL_ERR_NOMEM, "no memory for %zu rows", cap);
        out->rows = rows;
        out->cap = cap;
    }
    row.ratio = row.published / row.ours;
    const enum adl_verdict verdict = adl_validate_verdict(&row);
    out->n_judged += verdict != ADL_VERDICT_NONE;
    out->n_failed += verdict == ADL_VERDICT_FAIL;
    out->rows[out->n++] = row;
    return ADL_OK;
}

static enum adl_status numbers(struct validating *v, const struct adl_csv *table, size_t row,
                               const char *const *columns, double *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ADL_TRY(adl_csv_named_number(table, row, columns[i], &out[i], v->err));
    return ADL_OK;
}

/* ---- Streaming DiLoCo */

static double first_grid_point(const struct adl_formulas *formulas, const struct adl_streaming *s,
                               double utilization)
{
    double gbit = 0.1;
    while (gbit < 1e6 && formulas->streaming_queue(s, gbit * 1e9) < utilization)
        gbit *= grid_ratio;
    return gbit;
}

struct streaming_cell {
    const char *model, *method;
    struct adl_streaming s;
    double target, published;
    bool ours; /* data parallel and DiLoCo; the others have fragments and overlap */
    bool dry;  /* bandwidth so large that the queue runs dry: the two cells that are not judged */
};

static enum adl_status read_cell(struct validating *v, const struct adl_csv *table, size_t row,
                                 struct streaming_cell *cell)
{
    enum { PARAMS, STEP, INNER, TARGET, PUBLISHED, N };
    static const char *const columns[N] = {"params", "step_time_s", "inner_steps",
                                           "target_utilization", "bandwidth_gbit_per_s"};
    double x[N];
    ADL_TRY(adl_csv_named(table, row, "model", &cell->model, v->err));
    ADL_TRY(adl_csv_named(table, row, "method", &cell->method, v->err));
    ADL_TRY(numbers(v, table, row, columns, x, N));
    const bool parallel = !strcmp(cell->method, "data_parallel");
    cell->ours = parallel || !strcmp(cell->method, "diloco");
    cell->dry = parallel && x[TARGET] == 0.99 && strcmp(cell->model, "100B") != 0;
    cell->s = (struct adl_streaming){2, x[PARAMS], 16, x[STEP], x[INNER]};
    cell->target = x[TARGET];
    cell->published = x[PUBLISHED];
    return ADL_OK;
}

static enum adl_status add_cell(struct validating *v, const struct streaming_cell *cell,
                                const char *source, double ours, double low, double high)
{
    struct adl_validate_row r = {.source = source,
                                 .published = cell->published,
                                 .ours = ours,
                                 .low = cell->dry ? NAN : low,
                                 .high = cell->dry ? NAN : high};
    snprintf(r.row, sizeof r.row, "%s %s, utilization %g: Gbit/s", cell->model, cell->method,
             cell->target);
    return add(v, r);
}

static enum adl_status streaming_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    struct streaming_cell cell;
    ADL_TRY(read_cell(v, table, row, &cell));
    if (!cell.ours)
        return ADL_OK;
    return add_cell(v, &cell, "Streaming DiLoCo table 4, closed form",
                    v->formulas->streaming_bandwidth(&cell.s, cell.target) / 1e9, 0.82, 1.02);
}

/* One grid point to either side, and half a point for the rounding of what is printed. */
static enum adl_status queue_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    struct streaming_cell cell;
    ADL_TRY(read_cell(v, table, row, &cell));
    if (!cell.ours)
        return ADL_OK;
    return add_cell(v, &cell, "Streaming DiLoCo table 4, queue",
                    first_grid_point(v->formulas, &cell.s, cell.target), pow(grid_ratio, -1.5),
                    pow(grid_ratio, 1.5));
}

/* ---- scaling laws */

/* The appendix's formula as it is printed: what ours, made of rings, must equal. */
static double appendix_s(const struct adl_scaling_law *l)
{
    const double steps = l->steps, twice = 2.0 * l->params;
    return 6.0 * l->params * l->tokens / (l->chips * l->flops) +
           steps * (twice / l->inner_rate * (1.0 - l->replicas / l->chips) + l->inner_s) +
           steps / l->inner_steps * (twice / l->outer_rate * (1.0 - 1.0 / l->chips) + l->outer_s);
}

/* 10 billion parameters on 20 tokens each, in steps of 4 Mi tokens, on 1024 chips; bf16 on the
 * wire; DiLoCo's H. */
static enum adl_status read_law(struct validating *v, const struct adl_csv *table, size_t row,
                                const char **network, struct adl_scaling_law *law)
{
    static const char *const columns[2] = {"link_bit_per_s", "latency_s"};
    double inner[2], outer[2];
    ADL_TRY(numbers(v, table, 0, columns, inner, 2)); /* inside a replica: the high one */
    ADL_TRY(numbers(v, table, row, columns, outer, 2));
    ADL_TRY(adl_csv_named(table, row, "network", network, v->err));
    *law = (struct adl_scaling_law){.params = 10e9,
                                    .tokens = 200e9,
                                    .steps = 200e9 / 4194304,
                                    .chips = 1024,
                                    .flops = 300e12,
                                    .inner_steps = 30,
                                    .inner_rate = inner[0] / 16,
                                    .inner_s = inner[1],
                                    .outer_rate = outer[0] / 16,
                                    .outer_s = outer[1]};
    return ADL_OK;
}

static const double replicas[] = {1, 2, 4, 8};
enum { N_REPLICAS = sizeof replicas / sizeof *replicas };

static enum adl_status scaling_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    const char *network;
    struct adl_scaling_law law;
    ADL_TRY(read_law(v, table, row, &network, &law));
    for (size_t i = 0; i < N_REPLICAS; i++) {
        law.replicas = replicas[i];
        struct adl_validate_row r = {.source = "DiLoCo scaling laws, wall clock",
                                     .published = appendix_s(&law),
                                     .ours = v->formulas->wall_clock_s(&law),
                                     .low = 1.0 - 1e-9,
                                     .high = 1.0 + 1e-9};
        snprintf(r.row, sizeof r.row, "%s network, %g replicas, H %g: seconds", network,
                 law.replicas, law.inner_steps);
        ADL_TRY(add(v, r));
    }
    return ADL_OK;
}

/* Their bound: from H = W0/W1 on, outer communication is at most half of the total. */
static enum adl_status scaling_bound_row(struct validating *v, const struct adl_csv *table,
                                         size_t row)
{
    const char *network;
    struct adl_scaling_law law;
    ADL_TRY(read_law(v, table, row, &network, &law));
    law.inner_steps = ceil(law.inner_rate / law.outer_rate);
    law.inner_s = law.outer_s = 0.0;
    for (size_t i = 0; i < N_REPLICAS; i++) {
        law.replicas = replicas[i];
        struct adl_validate_row r = {.source = "DiLoCo scaling laws, bound",
                                     .published = 0.5,
                                     .ours = v->formulas->outer_s(&law) /
                                             v->formulas->wall_clock_s(&law),
                                     .low = 1.0,
                                     .high = INFINITY};
        snprintf(r.row, sizeof r.row, "%s network, %g replicas, H %g: outer share at most", network,
                 law.replicas, law.inner_steps);
        ADL_TRY(add(v, r));
    }
    return ADL_OK;
}

/* ---- INTELLECT-1 */

static enum adl_status intellect_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    static const char *const columns[3] = {"inner_minutes", "sync_s", "compute_utilization"};
    const char *region;
    double x[3];
    ADL_TRY(adl_csv_named(table, row, "region", &region, v->err));
    ADL_TRY(numbers(v, table, row, columns, x, 3));
    struct adl_validate_row r = {.source = "INTELLECT-1",
                                 .published = x[2],
                                 .ours = v->formulas->utilization(60 * x[0], x[1])};
    r.low = 1.0 - 0.001 / r.ours; /* a tenth of a point */
    r.high = 1.0 + 0.001 / r.ours;
    snprintf(r.row, sizeof r.row, "%s: utilization", region);
    return add(v, r);
}

/* ---- measured runs */

struct measured_run {
    char name[64];
    double inner_steps, link_bit_per_s, compute_s, sync_s, utilization; /* as published */
    double predicted_s;
    enum adl_measured_kind kind;
};

static enum adl_status read_run(struct validating *v, const struct adl_csv *table, size_t row,
                                struct measured_run *run)
{
    enum { INNER, LINK, REPEAT, WORKERS, PARAMS, BYTES, STEP, SYNC, USED, N };
    static const char *const columns[N] = {"inner_steps",
                                           "link_bit_per_s",
                                           "repeat",
                                           "workers",
                                           "params",
                                           "bytes_per_param",
                                           "compute_s_per_step",
                                           "sync_s_median",
                                           "compute_utilization"};
    const char *algorithm;
    double x[N];
    ADL_TRY(adl_csv_named(table, row, "algorithm", &algorithm, v->err));
    ADL_TRY(numbers(v, table, row, columns, x, N));
    *run = (struct measured_run){.inner_steps = x[INNER],
                                 .link_bit_per_s = x[LINK],
                                 .compute_s = x[INNER] * x[STEP],
                                 .sync_s = x[SYNC],
                                 .utilization = x[USED],
                                 .kind = ADL_MEASURED_WARM};
    run->predicted_s = v->formulas->ring_s(x[WORKERS], x[PARAMS] * x[BYTES], 0.0, 8.0 / x[LINK]);
    if (!strcmp(algorithm, "ddp"))
        run->kind = ADL_MEASURED_DDP;
    else if (x[INNER] == 128)
        run->kind = ADL_MEASURED_COLD;
    snprintf(run->name, sizeof run->name, "%s H %g, %g Gbit/s, run %g%s", algorithm, x[INNER],
             x[LINK] / 1e9, x[REPEAT], run->kind == ADL_MEASURED_COLD ? ", cold" : "");
    return ADL_OK;
}

static enum adl_status sync_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    struct measured_run run;
    ADL_TRY(read_run(v, table, row, &run));
    const bool judged =
        run.kind == ADL_MEASURED_WARM && run.link_bit_per_s >= 1e9 && run.link_bit_per_s <= 5e9;
    struct adl_validate_row r = {.source = "measured over shaped Ethernet, synchronization",
                                 .published = run.sync_s,
                                 .ours = run.predicted_s,
                                 .low = judged ? 0.9 : NAN,
                                 .high = judged ? 1.1 : NAN,
                                 .measured = run.kind,
                                 .link_bit_per_s = run.link_bit_per_s};
    snprintf(r.row, sizeof r.row, "%s: seconds", run.name);
    return add(v, r);
}

static enum adl_status utilization_row(struct validating *v, const struct adl_csv *table,
                                       size_t row)
{
    struct measured_run run;
    ADL_TRY(read_run(v, table, row, &run));
    struct adl_validate_row r = {
        .source = "measured over shaped Ethernet, utilization",
        .published = run.utilization,
        .ours = v->formulas->utilization(run.compute_s, run.predicted_s),
        .low = NAN,
        .high = NAN,
    };
    snprintf(r.row, sizeof r.row, "%s: utilization", run.name);
    return add(v, r);
}

/* ---- NCCL: shown, not judged */

static enum adl_status nccl_row(struct validating *v, const struct adl_csv *table, size_t row)
{
    /* data sheets: NVLink 450 GB/s and a 400 Gbit/s interface a GPU, each direction */
    const double inside = 450e9, between = 50e9;
    static const char *const columns[4] = {"gpus", "nodes", "bytes", "busbw_gbyte_per_s"};
    double x[4];
    ADL_TRY(numbers(v, table, row, columns, x, 4));
    const double time_s =
        v->formulas->multi_ring_s(x[1], x[0] / x[1], x[2], 0.0, 1 / inside, 0.0, 1 / between);
    struct adl_validate_row r = {.source = "NCCL on 2 x 8 H200",
                                 .published = x[3],
                                 .ours = 2 * (x[0] - 1) / x[0] * x[2] / time_s / 1e9,
                                 .low = NAN,
                                 .high = NAN};
    snprintf(r.row, sizeof r.row, "%g GiB: bus bandwidth GB/s", x[2] / 0x1p30);
    return add(v, r);
}

/* ---- all */

static const struct {
    const char *file;
    row_fn *fn;
} tables[] = {{"streaming_diloco_table4.csv", streaming_row},
              {"streaming_diloco_table4.csv", queue_row},
              {"scaling_law_networks.csv", scaling_row},
              {"scaling_law_networks.csv", scaling_bound_row},
              {"intellect1.csv", intellect_row},
              {"diloco_measured_cu.csv", sync_row},
              {"diloco_measured_cu.csv", utilization_row},
              {"nccl_allreduce.csv", nccl_row}};

static enum adl_status validate_table(struct validating *v, const char *file, row_fn *fn)
{
    struct adl_csv *table;
    ADL_TRY(adl_csv_read(file, v->dir, &table, v->err));
    enum adl_status status = ADL_OK;
    for (size_t row = 0; row < table->n_rows && status == ADL_OK; row++)
        status = fn(v, table, row);
    adl_csv_free(table);
    return status;
}

enum adl_status adl_validate(const char *dir, const struct adl_formulas *formulas,
                             struct adl_validation *out, struct adl_err *err)
{
    struct validating v = {dir, formulas, out, err};
    enum adl_status status = ADL_OK;
    *out = (struct adl_validation){0};
    for (size_t i = 0; i < sizeof tables / sizeof *tables && status == ADL_OK; i++)
        status = validate_table(&v, tables[i].file, tables[i].fn);
    if (status != ADL_OK)
        adl_validation_free(out);
    return status;
}

void adl_validation_free(struct adl_validation *validation)
{
    free(validation->rows);
    *validation = (struct adl_validation){0};
}
