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
    enum adl_status status = exchange_rows(t, rows, n_rows, n_cols, leaders, &met_s, &own);
    adl_crew_meet(&t->crew, ADL_TIME_WAIT, met_s);
    return status == ADL_OK ? ADL_OK : adl_nccl_say_why(t, &own, err);
}

enum adl_status adl_nccl_pass(struct adl_transport *t, int from, int to, void *data, size_t bytes,
                              struct adl_err *err)
{
    struct adl_err own = {.status = ADL_OK};
    ADL_TRY(adl_crew_check(&t->crew, err));
    if (adl_control_pass(t->control, from, to, data, bytes, &own) == ADL_OK)
        return ADL_OK;
    return adl_nccl_say_why(t, &own, err);
}
