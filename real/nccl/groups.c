/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/groups.h"

#include <stdlib.h>
#include <string.h>

/* Blocks of a device that all communicators of a process take together: those of an NVIDIA GPU are
 * more, and what computes wants some too. */
enum { CTAS_TOGETHER = 32 };

/* ---- telling: int32_t trainer, members, and these */

enum adl_status adl_nccl_groups_tell(const struct adl_blocks *blocks, int rank,
                                     struct adl_task *const *tasks, int n, const void *head,
                                     size_t head_bytes, char **out, size_t *bytes,
                                     struct adl_err *err)
{
    size_t most = head_bytes + 1;
    for (int i = 0; i < n; i++)
        most += (2 + (size_t)tasks[i]->n_workers) * sizeof(int32_t);
    *out = malloc(most);
    int *members = malloc(most);
    if (!*out || !members) {
        free(*out);
        free(members);
        return adl_fail(err, ADL_ERR_NOMEM, "no memory to tell of %d trainers", n);
    }
    memcpy(*out, head, head_bytes);
    *bytes = head_bytes;
    for (int i = 0; i < n; i++) {
        int32_t line[2] = {tasks[i]->trainer, 0};
        line[1] = adl_blocks_hosts(blocks, tasks[i]->workers, tasks[i]->n_workers, members);
        if (members[0] != rank)
            continue;
        memcpy(*out + *bytes, line, sizeof line);
        *bytes += sizeof line;
        for (int m = 0; m < line[1]; m++) {
            int32_t member = members[m];
            memcpy(*out + *bytes, &member, sizeof member);
            *bytes += sizeof member;
        }
    }
    free(members);
    return ADL_OK;
}

/* ---- hearing ---- */

static void free_group(struct adl_nccl_group *g)
{
    struct adl_buffer *buffers[] = {&g->packed, &g->collected, &g->staged, &g->staged_all};
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (buffers[i]->x)
            buffers[i]->free(buffers[i]->x);
    free(g->members);
}

static void free_all(struct adl_nccl_group *of, int n)
{
    for (int i = 0; i < n; i++)
        free_group(&of[i]);
    free(of);
}

static int by_trainer(const void *a, const void *b)
{
    return ((const struct adl_nccl_group *)a)->trainer -
           ((const struct adl_nccl_group *)b)->trainer;
}

/* One process's lines, appended to of [*n]. */
static enum adl_status read_lines(struct adl_nccl_groups *groups, const char *at, size_t bytes,
                                  struct adl_nccl_group **of, int *n, struct adl_err *err)
{
    while (bytes > 0) {
        int32_t line[2] = {0, 0};
        if (bytes >= sizeof line)
            memcpy(line, at, sizeof line);
        if (line[1] < 1 || line[1] > groups->n_processes ||
            bytes < sizeof line + (size_t)line[1] * sizeof(int32_t))
            return adl_fail(err, ADL_ERR_BUG, "a process tells nonsense of its trainers");
        struct adl_nccl_group *more = realloc(*of, (size_t)(*n + 1) * sizeof *more);
        if (!more)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d trainers", *n + 1);
        *of = more;
        struct adl_nccl_group *g = &more[*n];
        *g = (struct adl_nccl_group){.trainer = line[0], .n = line[1], .me = -1};
        g->members = malloc((size_t)g->n * sizeof *g->members);
        if (!g->members)
            return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d processes", g->n);
        (*n)++;
        at += sizeof line;
        for (int m = 0; m < g->n; m++, at += sizeof(int32_t)) {
            int32_t member;
            memcpy(&member, at, sizeof member);
            g->members[m] = member;
            if (member == groups->rank)
                g->me = m;
        }
        bytes -= sizeof line + (size_t)g->n * sizeof(int32_t);
    }
    return ADL_OK;
}

static enum adl_status read_all(struct adl_nccl_groups *groups, const struct adl_visit *told,
                                size_t head_bytes, struct adl_nccl_group **of, int *n,
                                struct adl_err *err)
{
    for (int p = 0; p < groups->n_processes; p++) {
        size_t bytes;
        const char *part = adl_visit_part(told, p, &bytes);
        if (!part || bytes < head_bytes)
            return adl_fail(err, ADL_ERR_BUG, "a process tells nothing of its trainers");
        ADL_TRY(read_lines(groups, part + head_bytes, bytes - head_bytes, of, n, err));
    }
    if (*n > 0)
        qsort(*of, (size_t)*n, sizeof **of, by_trainer);
    return ADL_OK;
}

/* ---- communicators ---- */

static bool same(const struct adl_nccl_group *a, const struct adl_nccl_group *b)
{
    return a->n == b->n && a->ctas == b->ctas &&
           memcmp(a->members, b->members, (size_t)a->n * sizeof *a->members) == 0;
}

/* Sums within one process need none; but where that is the whole world, they go by NCCL all the
 * same: one GPU then does what many do. */
static bool needs_one(const struct adl_nccl_groups *groups, const struct adl_nccl_group *g)
{
    return g->n > 1 || groups->n_processes == 1;
}

/* The same on all members: each communicator may take so many blocks, since those of one process
 * may all be on its device at once. */
static int ctas_of(const struct adl_nccl_groups *groups)
{
    int most = 0;
    if (groups->ctas > 0)
        return groups->ctas;
    for (int p = 0; p < groups->n_processes; p++) {
        int n = 0;
        for (int i = 0; i < groups->n; i++)
            for (int m = 0; m < groups->of[i].n; m++)
                n += groups->of[i].members[m] == p;
        most = n > most ? n : most;
    }
    return most <= 1 ? 0 : most < CTAS_TOGETHER ? CTAS_TOGETHER / most : 1;
}

/* Takes over what stays as it was, from groups before [n], and closes the rest; in the trainers'
 * order, as everywhere. */
static void take_over(struct adl_nccl_groups *groups, struct adl_nccl_group *before, int n)
{
    for (int i = 0; i < n; i++) {
        struct adl_nccl_group *g = adl_nccl_groups_find(groups, before[i].trainer);
        if (g && same(g, &before[i])) {
            struct adl_nccl_group kept = *g;
            *g = before[i];
            before[i] = kept;
        } else {
            adl_engine_close_split(groups->engine, before[i].comm);
        }
    }
}

enum adl_status adl_nccl_groups_make(struct adl_nccl_groups *groups, const struct adl_visit *told,
                                     size_t head_bytes, struct adl_err *err)
{
    struct adl_nccl_group *before = groups->of, *of = NULL;
    int n_before = groups->n, n = 0;
    enum adl_status status = read_all(groups, told, head_bytes, &of, &n, err);
    if (status != ADL_OK) {
        free_all(of, n);
        return status;
    }
    groups->of = of;
    groups->n = n;
    int ctas = ctas_of(groups);
    for (int i = 0; i < n; i++)
        of[i].ctas = ctas;
    take_over(groups, before, n_before);
    free_all(before, n_before);
    for (int i = 0; status == ADL_OK && i < n; i++) {
        if (of[i].made || !needs_one(groups, &of[i]))
            continue;
        status = adl_engine_split(groups->engine, of[i].me >= 0 ? of[i].trainer : -1, ctas,
                                  &of[i].comm, err);
        of[i].made = true;
    }
    return status;
}

struct adl_nccl_group *adl_nccl_groups_find(struct adl_nccl_groups *groups, int trainer)
{
    for (int i = 0; i < groups->n; i++)
        if (groups->of[i].trainer == trainer)
            return &groups->of[i];
    return NULL;
}

void adl_nccl_groups_free(struct adl_nccl_groups *groups)
{
    free_all(groups->of, groups->n);
    groups->of = NULL;
    groups->n = 0;
}
