/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "real/nccl/transport.h"

int adl_nccl_process_of(const struct adl_transport *t, int worker)
{
    return adl_blocks_process_of(&t->blocks, worker);
}

/* Of each row what its leader's process brought. */
static enum adl_status take_rows(struct adl_transport *t, const struct adl_visit *visit,
                                 double *rows, int n_rows, int n_cols, const int *leaders,
                                 struct adl_err *err)
{
    size_t row = (size_t)n_cols * sizeof *rows;
    size_t *at = calloc((size_t)t->n, sizeof *at);
    enum adl_status status = ADL_OK;
    if (!at)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to gather %d rows", n_rows);
    for (int i = 0; status == ADL_OK && i < n_rows; i++) {
        size_t bytes = 0;
        int process = adl_nccl_process_of(t, leaders[i]);
        const char *part = adl_visit_part(visit, process, &bytes);
        if (!part || bytes < sizeof(struct adl_nccl_word) + at[process] + row)
            status = adl_fail(err, ADL_ERR_BUG, "rank %d did not bring row %d", process, i);
        else
            memcpy(&rows[(size_t)i * (size_t)n_cols],
                   part + sizeof(struct adl_nccl_word) + at[process], row);
        at[process] += row;
    }
    free(at);
    return status;
}

static enum adl_status exchange_rows(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                     const int *leaders, double *clock_s, struct adl_err *err)
{
    size_t row = (size_t)n_cols * sizeof *rows, bytes = sizeof(struct adl_nccl_word);
    struct adl_nccl_word word = adl_nccl_own_word(t);
    struct adl_visit visit;
    char *mine = malloc(bytes + (size_t)n_rows * row);
    if (!mine)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to gather %d rows", n_rows);
    memcpy(mine, &word, sizeof word);
    for (int i = 0; i < n_rows; i++)
        if (adl_nccl_process_of(t, leaders[i]) == t->rank) {
            memcpy(mine + bytes, &rows[(size_t)i * (size_t)n_cols], row);
            bytes += row;
        }
    enum adl_status status = adl_nccl_meet(t, ADL_ROOM_CALL, mine, bytes, &visit, clock_s, err);
    free(mine);
    ADL_TRY(status);
    status = take_rows(t, &visit, rows, n_rows, n_cols, leaders, err);
    free(visit.answer);
    return status;
}

enum adl_status adl_nccl_gather(struct adl_transport *t, double *rows, int n_rows, int n_cols,
                                const int *leaders, double charged_bytes, struct adl_err *err)
{
    (void)charged_bytes;
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    struct adl_err own = {.status = ADL_OK};
    double met_s = adl_crew_now_s(&t->crew);
    enum adl_status status =
        t->control ? exchange_rows(t, rows, n_rows, n_cols, leaders, &met_s, &own) : ADL_OK;
    adl_crew_meet(&t->crew, ADL_TIME_WAIT, met_s);
    return status == ADL_OK ? ADL_OK : adl_nccl_say_why(t, &own, err);
}

/* Processes [*n] other than src that host one of a move's workers, ascending. */
static enum adl_status receivers_of(const struct adl_transport *t, const struct adl_move *m,
                                    int **out, int *n, bool *near, struct adl_err *err)
{
    int src = adl_nccl_process_of(t, m->src);
    bool *member = calloc((size_t)t->n, sizeof *member);
    *out = malloc((size_t)t->n * sizeof **out);
    *n = 0;
    if (!member || !*out) {
        free(member);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a move");
    }
    for (int i = 0; i < m->n_dst; i++)
        member[adl_nccl_process_of(t, m->dst[i])] = true;
    *near = member[src];
    for (int p = 0; p < t->n; p++)
        if (member[p] && p != src)
            (*out)[(*n)++] = p;
    free(member);
    return ADL_OK;
}

/* From one device to others; through memory of the device's where vectors are on the host. */
static enum adl_status send_over(struct adl_transport *t, const struct adl_move *m, bool sends,
                                 const int *ranks, int n, struct adl_err *err)
{
    const struct adl_nccl_module *module = t->sums.module;
    bool copies = t->crew.env.space->on_host;
    void *into = m->into ? m->into : (void *)m->data;
    void *data = sends ? (void *)m->data : into;
    void *device = copies ? module->alloc(m->bytes) : data;
    if (!device)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory of the device to move %zu bytes", m->bytes);
    enum adl_status status = ADL_OK;
    struct adl_op op = {.kind = sends ? ADL_OP_SEND : ADL_OP_RECEIVE,
                        .comm = adl_engine_world(t->engine),
                        .data = device,
                        .count = m->bytes,
                        .ranks = ranks,
                        .n = n};
    if (copies && sends)
        status = module->copy(device, data, m->bytes, err);
    if (status == ADL_OK) {
        adl_engine_ask(t->engine, &op);
        status = adl_engine_wait(t->engine, &op, err);
    }
    if (status == ADL_OK && copies && !sends)
        status = module->copy(data, device, m->bytes, err);
    if (copies)
        module->free(device);
    return status;
}

static enum adl_status move_one(struct adl_transport *t, const struct adl_move *m,
                                struct adl_err *err)
{
    int src = adl_nccl_process_of(t, m->src), *ranks = NULL, n = 0;
    bool near = false, receives = false;
    enum adl_status status = receivers_of(t, m, &ranks, &n, &near, err);
    for (int i = 0; status == ADL_OK && i < n; i++)
        receives = receives || ranks[i] == t->rank;
    if (status == ADL_OK && t->rank == src && near && m->into && m->into != m->data)
        t->crew.env.space->copy(m->into, m->data, m->bytes / 4, ADL_F32);
    if (status == ADL_OK && m->bytes > 0 && n > 0 && (t->rank == src || receives))
        status = send_over(t, m, t->rank == src, t->rank == src ? ranks : &src,
                           t->rank == src ? n : 1, err);
    free(ranks);
    return status;
}

enum adl_status adl_nccl_move(struct adl_transport *t, const struct adl_move *moves, int n,
                              struct adl_err *err)
{
    ADL_TRY(adl_crew_check(&t->crew, err));
    adl_crew_resume(&t->crew);
    struct adl_err own = {.status = ADL_OK};
    enum adl_status status = ADL_OK;
    for (int i = 0; status == ADL_OK && i < n; i++)
        status = move_one(t, &moves[i], &own);
    double met_s = adl_crew_now_s(&t->crew);
    if (status == ADL_OK)
        status = adl_nccl_meet_all(t, ADL_ROOM_CALL, &met_s, &own);
    adl_crew_meet(&t->crew, ADL_TIME_TRANSFER, met_s);
    return status == ADL_OK ? ADL_OK : adl_nccl_say_why(t, &own, err);
}

enum adl_status adl_nccl_pass(struct adl_transport *t, int from, int to, void *data, size_t bytes,
                              struct adl_err *err)
{
    struct adl_err own = {.status = ADL_OK};
    ADL_TRY(adl_crew_check(&t->crew, err));
    if (!t->control || adl_control_pass(t->control, from, to, data, bytes, &own) == ADL_OK)
        return ADL_OK;
    return adl_nccl_say_why(t, &own, err);
}
