/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/controller.h"

struct speed_row {
    double compute_s, ran;
};

static int leader_process(const struct adl_controller *c, const struct adl_trainer *t)
{
    return adl_process_of(&c->processes, t->workers[0]);
}

bool adl_hosts(const struct adl_controller *c, const struct adl_trainer *t, int process)
{
    for (int i = 0; i < t->n_workers; i++)
        if (adl_process_of(&c->processes, t->workers[i]) == process)
            return true;
    return false;
}

struct adl_trainer_row adl_trainer_row_of(const struct adl_trainer *t)
{
    struct adl_trainer_row row = {.alive = t->alive,
                                  .initial = t->initial,
                                  .request = t->request,
                                  .round = t->round,
                                  .accumulation_max = t->accumulation_max,
                                  .cursor = t->cursor,
                                  .samples = t->samples,
                                  .lost = t->lost,
                                  .faults = t->faults,
                                  .depth = t->depth,
                                  .loss = t->loss,
                                  .train_loss = t->train_loss,
                                  .counts = t->counts,
                                  .rows_size = t->rows_size};
    memcpy(row.smooth, t->smooth, sizeof row.smooth);
    return row;
}

void adl_trainer_take_row(struct adl_trainer *t, const struct adl_trainer_row *row)
{
    t->alive = row->alive;
    t->initial = row->initial;
    t->request = row->request;
    t->round = row->round;
    t->accumulation_max = row->accumulation_max;
    t->cursor = row->cursor;
    t->samples = row->samples;
    t->lost = row->lost;
    t->faults = row->faults;
    t->depth = row->depth;
    t->loss = row->loss;
    t->train_loss = row->train_loss;
    t->counts = row->counts;
    t->rows_size = row->rows_size;
    memcpy(t->smooth, row->smooth, sizeof t->smooth);
}

enum adl_status adl_share_vector(struct adl_controller *c, int from, int to, void *vector,
                                 size_t bytes, struct adl_err *err)
{
    const struct adl_processes *p = &c->processes;
    const bool gives = p->rank == from;
    const bool takes = !gives && (to == ADL_EVERY_PROCESS || to == p->rank);
    char host[ADL_VECTOR_PIECE_BYTES];
    enum adl_status status = ADL_OK;
    if (c->space->on_host || p->n == 1 || from == to)
        return adl_processes_pass(p, from, to, vector, bytes, err);
    for (size_t at = 0; at < bytes; at += sizeof host) {
        const size_t n = bytes - at < sizeof host ? bytes - at : sizeof host;
        char *x = (char *)vector + at;
        if (gives && status == ADL_OK)
            status = c->space->get(host, x, n, err);
        ADL_TRY(adl_processes_pass(p, from, to, host, n, err));
        if (takes && status == ADL_OK)
            status = c->space->put(x, host, n, err);
    }
    return adl_processes_agree(p, status, err);
}

static enum adl_status share_speeds(struct adl_controller *c, struct adl_err *err)
{
    struct speed_row *rows = malloc((size_t)c->n_workers * sizeof *rows);
    int *owners = malloc((size_t)c->n_workers * sizeof *owners);
    enum adl_status status = ADL_OK;
    if (!rows || !owners)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for %d speeds", c->n_workers);
    for (int w = 0; status == ADL_OK && w < c->n_workers; w++) {
        owners[w] = adl_process_of(&c->processes, w);
        rows[w] = (struct speed_row){c->workers[w].compute_s, c->workers[w].ran};
    }
    if (status == ADL_OK)
        status = adl_processes_share(&c->processes, rows, sizeof *rows, c->n_workers, owners, err);
    for (int w = 0; status == ADL_OK && w < c->n_workers; w++) {
        c->workers[w].compute_s = rows[w].compute_s;
        c->workers[w].ran = rows[w].ran;
    }
    free(rows);
    free(owners);
    return status;
}

enum adl_status adl_share_trainers(struct adl_controller *c, struct adl_err *err)
{
    for (int k = 0; k < c->n_trainers; k++)
        if (fflush(c->trainers[k].rows) != 0)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for the records of trainer %d", k);
    if (c->processes.n == 1)
        return ADL_OK;
    size_t n = (size_t)c->n_trainers;
    struct adl_trainer_row *rows = calloc(n, sizeof *rows);
    int *owners = calloc(n, sizeof *owners);
    enum adl_status status = ADL_OK;
    if (!rows || !owners)
        status = adl_fail(err, ADL_ERR_NOMEM, "no memory for %d trainers", c->n_trainers);
    for (int k = 0; status == ADL_OK && k < c->n_trainers; k++) {
        rows[k] = adl_trainer_row_of(&c->trainers[k]);
        if (c->trainers[k].alive)
            owners[k] = leader_process(c, &c->trainers[k]);
    }
    if (status == ADL_OK)
        status = adl_processes_share(&c->processes, rows, sizeof *rows, c->n_trainers, owners, err);
    for (int k = 0; status == ADL_OK && k < c->n_trainers; k++)
        adl_trainer_take_row(&c->trainers[k], &rows[k]);
    free(rows);
    free(owners);
    if (status == ADL_OK && c->settings->cluster.measured)
        status = share_speeds(c, err);
    return status;
}

/* One trainer's text, which lies in its own stream where the process hosts its first worker. */
static enum adl_status share_text(struct adl_controller *c, struct adl_trainer *t,
                                  struct adl_err *err)
{
    int from = t->alive ? leader_process(c, t) : 0;
    bool remote = c->processes.rank == 0 && from != 0;
    char *text = remote ? malloc(t->rows_size + 1) : t->rows_text;
    if (!text)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the records of trainer %d", t->index);
    enum adl_status status = adl_processes_pass(&c->processes, from, 0, text, t->rows_size, err);
    if (status == ADL_OK && c->records && t->rows_size > 0)
        fwrite(text, 1, t->rows_size, c->records);
    if (remote)
        free(text);
    return status;
}

enum adl_status adl_share_records(struct adl_controller *c, struct adl_err *err)
{
    for (int k = 0; k < c->n_trainers; k++) {
        struct adl_trainer *t = &c->trainers[k];
        ADL_TRY(share_text(c, t, err));
        rewind(t->rows);
        t->rows_size = 0;
    }
    return ADL_OK;
}

enum adl_status adl_share_average(struct adl_controller *c, const double *weights, int *process,
                                  struct adl_err *err)
{
    int at = -1;
    size_t bytes = c->P * adl_dtype_bytes(c->dtype);
    c->space->zero(c->average, c->P, c->dtype);
    for (int k = 0; k < c->n_trainers; k++) {
        const struct adl_trainer *t = &c->trainers[k];
        if (!t->alive)
            continue;
        int next = leader_process(c, t);
        if (at >= 0)
            ADL_TRY(adl_share_vector(c, at, next, c->average, bytes, err));
        at = next;
        if (at == c->processes.rank)
            c->space->axpy(c->average, weights[k], t->theta, c->P, c->dtype);
    }
    *process = at;
    return ADL_OK;
}

enum adl_status adl_share_victim(struct adl_controller *c, const struct adl_trainer *survivor,
                                 struct adl_trainer *victim, struct adl_err *err)
{
    bool lacking = false;
    for (int p = 0; p < c->processes.n && !lacking; p++)
        lacking = adl_hosts(c, survivor, p) && !adl_hosts(c, victim, p);
    if (!lacking)
        return ADL_OK;
    return adl_share_vector(c, leader_process(c, victim), ADL_EVERY_PROCESS, victim->theta,
                            c->state_bytes, err);
}

enum adl_status adl_share_inner(struct adl_controller *c, struct adl_trainer *t, int from,
                                struct adl_err *err)
{
    int process = adl_process_of(&c->processes, from);
    size_t bytes = c->P * adl_dtype_bytes(c->dtype);
    void *vectors[] = {t->inner.m, t->inner.v};
    ADL_TRY(adl_processes_pass(&c->processes, process, ADL_EVERY_PROCESS, &t->inner.steps,
                               sizeof t->inner.steps, err));
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (vectors[i])
            ADL_TRY(adl_share_vector(c, process, ADL_EVERY_PROCESS, vectors[i], bytes, err));
    return ADL_OK;
}

/* One process's part, at process 0. */
static enum adl_status share_part(struct adl_controller *c, int from, void *part, double sent[2],
                                  struct adl_err *err)
{
    const struct adl_processes *p = &c->processes;
    if (p->rank == from) {
        adl_book_part(c->book, c->transport_ops->now_s(c->transport), part);
        sent[0] = sent[1] = NAN;
        if (c->transport_ops->sent)
            c->transport_ops->sent(c->transport, &sent[0], &sent[1]);
    }
    ADL_TRY(adl_processes_pass(p, from, 0, part, adl_book_part_bytes(), err));
    return adl_processes_pass(p, from, 0, sent, 2 * sizeof *sent, err);
}

enum adl_status adl_share_parts(struct adl_controller *c, int first, void *sum, double sent[2],
                                struct adl_err *err)
{
    void *part = malloc(adl_book_part_bytes());
    if (!part)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the totals of time");
    memset(sum, 0, adl_book_part_bytes());
    memcpy(sent, c->sent_before, 2 * sizeof *sent);
    enum adl_status status = ADL_OK;
    for (int from = 0; status == ADL_OK && from < c->processes.n; from++) {
        double its[2];
        status = share_part(c, from, part, its, err);
        if (status != ADL_OK || c->processes.rank != 0)
            continue;
        if (from >= first)
            adl_book_part_add(sum, part);
        sent[0] += its[0];
        sent[1] += its[1];
    }
    free(part);
    return status;
}

enum adl_status adl_share_totals(struct adl_controller *c, struct adl_summary *summary,
                                 struct adl_err *err)
{
    double sent[2] = {0};
    void *others = malloc(adl_book_part_bytes());
    if (!others)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the totals of time");
    enum adl_status status = adl_share_parts(c, 1, others, sent, err);
    if (status == ADL_OK && c->processes.rank == 0 && c->processes.n > 1)
        adl_book_add(c->book, others);
    free(others);
    summary->sent_messages = sent[0];
    summary->sent_bytes = sent[1];
    return status;
}
