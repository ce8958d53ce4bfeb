/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint holds: all that the next epoch depends on, taken at an epoch's end. One
 * description serves both directions: every call below writes, or reads, the next piece. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/controller.h"

struct state {
    struct adl_controller *c;
    struct adl_checkpoint *file; /* process 0's; NULL elsewhere */
    bool load;
    enum adl_status status; /* of process 0's file; everyone goes on to the end all the same */
    struct adl_err *err;
};

static void file_bytes(struct state *s, void *data, size_t bytes)
{
    if (s->file && s->status == ADL_OK)
        s->status = adl_checkpoint_bytes(s->file, data, bytes, s->err);
}

/* A vector, in pieces through host memory where vectors lie elsewhere. */
static void file_vector(struct state *s, void *vector, size_t bytes)
{
    const struct adl_space *space = s->c->space;
    char host[ADL_VECTOR_PIECE_BYTES];
    if (space->on_host) {
        file_bytes(s, vector, bytes);
        return;
    }
    for (size_t at = 0; s->file && s->status == ADL_OK && at < bytes; at += sizeof host) {
        const size_t n = bytes - at < sizeof host ? bytes - at : sizeof host;
        char *x = (char *)vector + at;
        if (!s->load)
            s->status = space->get(host, x, n, s->err);
        file_bytes(s, host, n);
        if (s->load && s->status == ADL_OK)
            s->status = space->put(x, host, n, s->err);
    }
}

/* What everyone knows. */
static enum adl_status common(struct state *s, void *data, size_t bytes)
{
    file_bytes(s, data, bytes);
    if (!s->load)
        return ADL_OK;
    return adl_processes_pass(&s->c->processes, 0, ADL_EVERY_PROCESS, data, bytes, s->err);
}

/* What the process that hosts `worker` knows, and everyone has room for; on loading it goes to
 * all. */
static enum adl_status shared(struct state *s, int worker, void *data, size_t bytes)
{
    const struct adl_processes *p = &s->c->processes;
    if (!s->load)
        ADL_TRY(adl_processes_pass(p, adl_process_of(p, worker), 0, data, bytes, s->err));
    return common(s, data, bytes);
}

/* The same for a vector. */
static enum adl_status shared_vector(struct state *s, int worker, void *vector, size_t bytes)
{
    const struct adl_processes *p = &s->c->processes;
    if (!s->load)
        ADL_TRY(adl_share_vector(s->c, adl_process_of(p, worker), 0, vector, bytes, s->err));
    file_vector(s, vector, bytes);
    return s->load ? adl_share_vector(s->c, 0, ADL_EVERY_PROCESS, vector, bytes, s->err) : ADL_OK;
}

/* A worker's own vector, which exists in its process only: through c->average in process 0. */
static enum adl_status owned(struct state *s, int worker, void *data)
{
    struct adl_controller *c = s->c;
    const struct adl_processes *p = &c->processes;
    int host = adl_process_of(p, worker);
    size_t bytes = c->P * adl_dtype_bytes(c->dtype);
    void *at = p->rank == host ? data : c->average;
    if (!s->load)
        ADL_TRY(adl_share_vector(c, host, 0, at, bytes, s->err));
    file_vector(s, at, bytes);
    return s->load ? adl_share_vector(c, 0, host, at, bytes, s->err) : ADL_OK;
}

static enum adl_status run_state(struct state *s, struct adl_summary *summary)
{
    struct adl_controller *c = s->c;
    ADL_TRY(common(s, &c->round, sizeof c->round));
    ADL_TRY(common(s, &c->below, sizeof c->below));
    ADL_TRY(common(s, &c->loss, sizeof c->loss));
    ADL_TRY(common(s, &c->time_s, sizeof c->time_s));
    ADL_TRY(common(s, &c->counts, sizeof c->counts));
    ADL_TRY(common(s, &c->exchange_rounds, sizeof c->exchange_rounds));
    ADL_TRY(common(s, &c->merges, sizeof c->merges));
    ADL_TRY(common(s, &summary->loss_initial, sizeof summary->loss_initial));
    ADL_TRY(common(s, &summary->batch_initial, sizeof summary->batch_initial));
    ADL_TRY(common(s, c->owner, (size_t)c->n_workers * sizeof *c->owner));
    return s->load ? adl_apply_owner(c, NULL, s->err) : ADL_OK;
}

/* Which optimizers keep which vectors follows from the settings, the same in both directions. */
static enum adl_status trainer_state(struct state *s, struct adl_trainer *t)
{
    struct adl_controller *c = s->c;
    struct adl_trainer_row row = adl_trainer_row_of(t);
    ADL_TRY(common(s, &row, sizeof row));
    if (s->load)
        adl_trainer_take_row(t, &row);
    if (!t->alive)
        return ADL_OK;
    int leader = t->workers[0];
    void *vectors[] = {t->inner.m, t->inner.v};
    ADL_TRY(shared_vector(s, leader, t->theta, c->state_bytes));
    ADL_TRY(shared(s, leader, &t->inner.steps, sizeof t->inner.steps));
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        if (vectors[i])
            ADL_TRY(shared_vector(s, leader, vectors[i], c->P * adl_dtype_bytes(c->dtype)));
    return ADL_OK;
}

static enum adl_status worker_state(struct state *s, int index)
{
    struct adl_controller *c = s->c;
    struct adl_worker *w = &c->workers[index];
    int needs_m, needs_v;
    adl_inner_needs(c->settings, &needs_m, &needs_v);
    ADL_TRY(shared(s, index, &w->life_steps, sizeof w->life_steps));
    ADL_TRY(shared(s, index, &w->compute_s, sizeof w->compute_s));
    ADL_TRY(shared(s, index, &w->ran, sizeof w->ran));
    if (c->settings->outer.exchange == ADL_EXCHANGE_GRADIENTS)
        return ADL_OK; /* the trainer's optimizer is the only one */
    ADL_TRY(shared(s, index, &w->inner.steps, sizeof w->inner.steps));
    if (needs_m)
        ADL_TRY(owned(s, index, w->inner.m));
    return needs_v ? owned(s, index, w->inner.v) : ADL_OK;
}

static enum adl_status go_on_at(struct adl_controller *c, double now_s, struct adl_err *err)
{
    c->resumed = true;
    if (!c->transport_ops->start_at) {
        c->base_s = now_s;
        return ADL_OK;
    }
    adl_book_start(c->book, now_s);
    return c->transport_ops->start_at(c->transport, now_s, err);
}

/* Time goes on from where it stood, merges included. */
static enum adl_status time_state(struct state *s)
{
    struct adl_controller *c = s->c;
    double now_s = adl_now_s(c);
    ADL_TRY(common(s, &now_s, sizeof now_s));
    size_t bytes = adl_book_part_bytes();
    void *part = calloc(1, bytes);
    double sent[2] = {0, 0};
    if (!part)
        return adl_fail(s->err, ADL_ERR_NOMEM, "no memory for the totals of time");
    enum adl_status status = s->load ? ADL_OK : adl_share_parts(c, 0, part, sent, s->err);
    file_bytes(s, part, bytes);
    file_bytes(s, sent, sizeof sent);
    if (s->load) {
        status = go_on_at(c, now_s, s->err);
        memcpy(c->sent_before, sent, sizeof sent);
        if (c->processes.rank == 0)
            adl_book_add(c->book, part);
    }
    free(part);
    return status;
}

static enum adl_status all_state(struct state *s, struct adl_summary *summary)
{
    struct adl_controller *c = s->c;
    ADL_TRY(run_state(s, summary));
    for (int k = 0; k < c->n_trainers; k++)
        ADL_TRY(trainer_state(s, &c->trainers[k]));
    for (int w = 0; w < c->n_workers; w++)
        ADL_TRY(worker_state(s, w));
    ADL_TRY(time_state(s));
    return adl_processes_agree(&c->processes, s->status, s->err);
}

enum adl_status adl_controller_load(struct adl_controller *c, struct adl_checkpoint *file,
                                    struct adl_summary *summary, struct adl_err *err)
{
    struct state s = {.c = c, .file = file, .load = true, .err = err};
    return all_state(&s, summary);
}

/* Records so far belong to the checkpoint: they are on disk before it is. */
static enum adl_status settle_records(struct adl_controller *c, int64_t *bytes, struct adl_err *err)
{
    if (fflush(c->records) != 0 || fsync(fileno(c->records)) != 0)
        return adl_fail(err, ADL_ERR_IO, "cannot write the records: %s", strerror(errno));
    *bytes = ftell(c->records);
    return ADL_OK;
}

enum adl_status adl_controller_save(struct adl_controller *c, struct adl_summary *summary,
                                    struct adl_err *err)
{
    struct state s = {.c = c, .err = err};
    int64_t records_bytes = 0;
    if (c->processes.rank == 0) {
        s.status = settle_records(c, &records_bytes, err);
        if (s.status == ADL_OK)
            s.status = adl_checkpoint_create(c->dir, summary->run_id, c->round, records_bytes,
                                             &s.file, err);
    }
    enum adl_status status = all_state(&s, summary);
    if (status != ADL_OK) {
        adl_checkpoint_close(s.file);
        return status;
    }
    if (s.file)
        status = adl_checkpoint_commit(s.file, c->settings->checkpoint.keep, err);
    return adl_processes_agree(&c->processes, status, err);
}
