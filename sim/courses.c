/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/courses.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/simulation.h"

void adl_sim_courses_take(struct adl_transport *t)
{
    struct adl_courses *c = &t->courses;
    adl_link_book_take(&t->links, c->main, c->main ? c->n : 0);
    for (int i = 0; c->few && i < 2 * c->n; i++)
        adl_link_book_take(&t->links, c->few[i], c->few[i] ? 1 : 0);
}

void adl_sim_courses_free(struct adl_transport *t)
{
    struct adl_courses *c = &t->courses;
    adl_sim_courses_take(t);
    adl_courses_free(c->main, c->n);
    for (int i = 0; c->few && i < 2 * c->n; i++)
        adl_courses_free(c->few[i], 1);
    free(c->few);
    free(c->group);
    free(c->groups);
    *c = (struct adl_courses){0};
}

/* ---- solving by fidelity ---- */

/* A script for every pattern; what it moves is on watched links. */
static enum adl_status write_scripts(struct adl_transport *t, const struct adl_pattern *patterns,
                                     int n, struct adl_course *courses, struct adl_err *err)
{
    for (int k = 0; k < n; k++) {
        ADL_TRY(adl_script_create(t->engine, &t->platform, &patterns[k], &courses[k].script, err));
        for (int i = 0; i < courses[k].n_loads; i++) {
            courses[k].loads[i].peak = 0;
            t->engine->watch(courses[k].loads[i].watched);
        }
    }
    return ADL_OK;
}

static enum adl_status solve(struct adl_transport *t, const struct adl_pattern *patterns, int n,
                             enum adl_fidelity fidelity, bool apart, struct adl_course **out,
                             struct adl_err *err)
{
    ADL_TRY(adl_network_solve(t->engine, &t->platform, patterns, n,
                              adl_capacity_changes(t->capacity),
                              apart || fidelity != ADL_FIDELITY_FLOW, out, err));
    if (fidelity != ADL_FIDELITY_MESSAGE)
        return ADL_OK;
    enum adl_status status = write_scripts(t, patterns, n, *out, err);
    if (status != ADL_OK) {
        adl_courses_free(*out, n);
        *out = NULL;
    }
    return status;
}

enum adl_status adl_sim_single_course(struct adl_transport *t, const struct adl_pattern *pattern,
                                      bool chain, struct adl_course **out, struct adl_err *err)
{
    enum adl_fidelity fidelity = t->options->fidelity;
    if (chain && fidelity == ADL_FIDELITY_MESSAGE)
        fidelity = ADL_FIDELITY_FLOW;
    return solve(t, pattern, 1, fidelity, false, out, err);
}

/* ---- an epoch's courses ---- */

static enum adl_status list_groups(const struct adl_transport *t, struct adl_task *const *tasks,
                                   int n, int **out, size_t *size, struct adl_err *err)
{
    size_t cap = (size_t)n + 1;
    for (int k = 0; k < n; k++)
        cap += (size_t)tasks[k]->n_workers;
    int *groups = malloc(cap * sizeof *groups);
    if (!groups)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the devices of %d trainers", n);
    *size = 0;
    for (int k = 0; k < n; k++) {
        int *count = groups + *size;
        *count = adl_sim_distinct_devices(t, tasks[k]->workers, tasks[k]->n_workers, -1, count + 1);
        *size += (size_t)*count + 1;
    }
    *out = groups;
    return ADL_OK;
}

static enum adl_status pattern_of(const struct adl_transport *t, int k,
                                  enum adl_collective collective, struct adl_pattern *out,
                                  struct adl_err *err)
{
    const int *group = t->courses.group[k];
    ADL_TRY(adl_pattern_allreduce(collective, &t->layout, group + 1, *group, out, err));
    return adl_pattern_shard(out, t->devices.gpus, err);
}

static enum adl_collective resolve(const struct adl_transport *t, int k, double bytes)
{
    const int *group = t->courses.group[k];
    return adl_collective_resolve(t->env.settings->collective, &t->layout, group + 1, *group,
                                  bytes / t->devices.gpus);
}

static enum adl_status solve_main(struct adl_transport *t, int n, struct adl_err *err)
{
    struct adl_pattern *patterns = calloc((size_t)n + 1, sizeof *patterns);
    enum adl_status status =
        patterns ? ADL_OK : adl_fail(err, ADL_ERR_NOMEM, "no memory for %d collectives", n);
    for (int k = 0; k < n && status == ADL_OK; k++)
        status = pattern_of(t, k, resolve(t, k, INFINITY), &patterns[k], err);
    if (status == ADL_OK)
        status = solve(t, patterns, n, t->options->fidelity, false, &t->courses.main, err);
    for (int k = 0; patterns && k < n; k++)
        adl_pattern_free(&patterns[k]);
    free(patterns);
    return status;
}

enum adl_status adl_sim_prepare_courses(struct adl_transport *t, struct adl_task *const *tasks,
                                        int n, struct adl_err *err)
{
    struct adl_courses *c = &t->courses;
    int *groups = NULL;
    size_t size = 0;
    ADL_TRY(list_groups(t, tasks, n, &groups, &size, err));
    if (c->main && c->n == n && c->n_groups == size &&
        memcmp(c->groups, groups, size * sizeof *groups) == 0) {
        free(groups);
        return ADL_OK;
    }
    adl_sim_courses_free(t);
    *c = (struct adl_courses){.groups = groups, .n_groups = size, .n = n};
    c->group = calloc((size_t)n + 1, sizeof *c->group);
    c->few = calloc(2 * (size_t)n + 1, sizeof *c->few);
    if (!c->group || !c->few)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for the collectives of %d trainers", n);
    for (int k = 0; k < n; k++, groups += *groups + 1)
        c->group[k] = groups;
    return solve_main(t, n, err);
}

enum adl_status adl_sim_course(struct adl_transport *t, int k, double bytes,
                               struct adl_course **out, struct adl_err *err)
{
    struct adl_courses *c = &t->courses;
    enum adl_collective collective = resolve(t, k, bytes);
    *out = &c->main[k];
    if (collective == resolve(t, k, INFINITY))
        return ADL_OK;
    struct adl_course **few = &c->few[2 * k + (collective == ADL_COLL_HALVING_DOUBLING)];
    if (!*few) {
        struct adl_pattern pattern;
        enum adl_status status = pattern_of(t, k, collective, &pattern, err);
        if (status == ADL_OK)
            status = solve(t, &pattern, 1, t->options->fidelity, !t->capacity, few, err);
        adl_pattern_free(&pattern);
        ADL_TRY(status);
    }
    *out = *few;
    return ADL_OK;
}
