/* SPDX-License-Identifier: Apache-2.0 */
#include "core/processes.h"

#include <stdlib.h>
#include <string.h>

struct adl_processes adl_processes_of(const struct adl_transport_ops *ops,
                                      struct adl_transport *transport)
{
    struct adl_processes p = {.ops = ops, .transport = transport, .n = 1};
    if (ops->process)
        ops->process(transport, &p.rank, &p.n);
    return p;
}

int adl_process_of(const struct adl_processes *p, int worker)
{
    return p->n > 1 ? p->ops->process_of(p->transport, worker) : 0;
}

enum adl_status adl_processes_pass(const struct adl_processes *p, int from, int to, void *data,
                                   size_t bytes, struct adl_err *err)
{
    if (p->n == 1 || from == to || bytes == 0)
        return ADL_OK;
    return p->ops->pass(p->transport, from, to, data, bytes, err);
}

/* mine [bytes] of each process to process 0, into all [n x bytes] there. */
static enum adl_status collect(const struct adl_processes *p, const void *mine, size_t bytes,
                               char *all, struct adl_err *err)
{
    memcpy(all + (size_t)p->rank * bytes, mine, bytes);
    for (int from = 1; from < p->n; from++)
        ADL_TRY(adl_processes_pass(p, from, 0, all + (size_t)from * bytes, bytes, err));
    return ADL_OK;
}

/* The first failure of all processes' [n], after collecting it: to everyone. */
static enum adl_status spread_failure(const struct adl_processes *p, struct adl_err *all,
                                      struct adl_err *err)
{
    int first = 0;
    while (p->rank == 0 && first < p->n - 1 && all[first].status == ADL_OK)
        first++;
    struct adl_err *verdict = &all[p->rank == 0 ? first : 0];
    ADL_TRY(adl_processes_pass(p, 0, ADL_EVERY_PROCESS, verdict, sizeof *verdict, err));
    if (verdict->status == ADL_OK)
        return ADL_OK;
    return adl_fail(err, verdict->status, "%s", verdict->message);
}

enum adl_status adl_processes_agree(const struct adl_processes *p, enum adl_status status,
                                    struct adl_err *err)
{
    if (p->n == 1)
        return status;
    struct adl_err *all = calloc((size_t)p->n, sizeof *all), mine = {.status = ADL_OK}, own = mine;
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d processes", p->n);
    if (status != ADL_OK)
        adl_fail(&mine, status, "%s", err->message);
    enum adl_status agreed = collect(p, &mine, sizeof mine, (char *)all, &own);
    if (agreed == ADL_OK)
        agreed = spread_failure(p, all, &own);
    free(all);
    if (agreed == ADL_OK || status != ADL_OK)
        return status;
    return adl_fail(err, agreed, "%s", own.message);
}

enum adl_status adl_processes_largest(const struct adl_processes *p, double *x, struct adl_err *err)
{
    double *all = malloc((size_t)p->n * sizeof *all);
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d processes", p->n);
    enum adl_status status = collect(p, x, sizeof *x, (char *)all, err);
    for (int i = 0; status == ADL_OK && p->rank == 0 && i < p->n; i++)
        *x = all[i] > *x ? all[i] : *x;
    free(all);
    ADL_TRY(status);
    return adl_processes_pass(p, 0, ADL_EVERY_PROCESS, x, sizeof *x, err);
}

/* The rows of one owner, packed: the fewest messages. */
static enum adl_status share_of(const struct adl_processes *p, char *rows, size_t bytes, int n,
                                const int *owners, int owner, char *packed, struct adl_err *err)
{
    size_t used = 0;
    for (int i = 0; i < n; i++)
        if (owners[i] == owner) {
            memcpy(packed + used, rows + (size_t)i * bytes, bytes);
            used += bytes;
        }
    ADL_TRY(adl_processes_pass(p, owner, ADL_EVERY_PROCESS, packed, used, err));
    used = 0;
    for (int i = 0; i < n; i++)
        if (owners[i] == owner) {
            memcpy(rows + (size_t)i * bytes, packed + used, bytes);
            used += bytes;
        }
    return ADL_OK;
}

enum adl_status adl_processes_share(const struct adl_processes *p, void *rows, size_t bytes, int n,
                                    const int *owners, struct adl_err *err)
{
    if (p->n == 1 || n == 0)
        return ADL_OK;
    char *packed = malloc((size_t)n * bytes);
    if (!packed)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to share %d rows", n);
    enum adl_status status = ADL_OK;
    for (int owner = 0; status == ADL_OK && owner < p->n; owner++)
        status = share_of(p, rows, bytes, n, owners, owner, packed, err);
    free(packed);
    return status;
}

enum adl_status adl_processes_same_run(const struct adl_processes *p, const char run_id[17],
                                       struct adl_err *err)
{
    char first[17];
    memcpy(first, run_id, sizeof first);
    ADL_TRY(adl_processes_pass(p, 0, ADL_EVERY_PROCESS, first, sizeof first, err));
    enum adl_status status = ADL_OK;
    if (memcmp(first, run_id, sizeof first) != 0)
        status = adl_fail(err, ADL_ERR_INPUT,
                          "rank %d plans run %s, rank 0 plans %s: they do not read the same "
                          "experiment",
                          p->rank, run_id, first);
    return adl_processes_agree(p, status, err);
}
