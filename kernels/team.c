/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct adl_team *team;
    pthread_t thread;
    int i;
};

struct adl_team {
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t begin, end;
    void (*fn)(void *arg, int i);
    void *arg;
    uint64_t call; /* number of the call that is on */
    int busy;      /* members that have not finished it */
    bool closing;
    int n_threads;
    struct member members[];
};

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct adl_team *team = member->team;
    pthread_mutex_lock(&team->mutex);
    for (uint64_t done = 0;;) {
        while (team->call == done && !team->closing)
            pthread_cond_wait(&team->begin, &team->mutex);
        if (team->closing)
            break;
        done = team->call;
        pthread_mutex_unlock(&team->mutex);
        team->fn(team->arg, member->i);
        pthread_mutex_lock(&team->mutex);
        if (--team->busy == 0)
            pthread_cond_signal(&team->end);
    }
    pthread_mutex_unlock(&team->mutex);
    return NULL;
}

enum adl_status adl_team_create(int n, struct adl_team **out, struct adl_err *err)
{
    struct adl_team *team = calloc(1, sizeof *team + (size_t)(n - 1) * sizeof *team->members);
    if (!team)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for %d threads", n);
    pthread_mutex_init(&team->mutex, NULL);
    pthread_cond_init(&team->begin, NULL);
    pthread_cond_init(&team->end, NULL);
    for (int i = 1; i < n; i++) {
        struct member *member = &team->members[team->n_threads];
        *member = (struct member){.team = team, .i = i};
        const int cause = pthread_create(&member->thread, NULL, member_main, member);
        if (cause) {
            adl_team_free(team);
            return adl_fail(err, ADL_ERR_RUNTIME, "cannot start thread %d of %d: %s", i + 1, n,
                            strerror(cause));
        }
        team->n_threads++;
    }
    *out = team;
    return ADL_OK;
}

void adl_team_free(struct adl_team *team)
{
    if (!team)
        return;
    pthread_mutex_lock(&team->mutex);
    team->closing = true;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->mutex);
    for (int i = 0; i < team->n_threads; i++)
        pthread_join(team->members[i].thread, NULL);
    pthread_cond_destroy(&team->begin);
    pthread_cond_destroy(&team->end);
    pthread_mutex_destroy(&team->mutex);
    free(team);
}

void adl_team_run(struct adl_team *team, void (*fn)(void *arg, int i), void *arg)
{
    pthread_mutex_lock(&team->mutex);
    team->fn = fn;
    team->arg = arg;
    team->busy = team->n_threads;
    team->call++;
    pthread_cond_broadcast(&team->begin);
    pthread_mutex_unlock(&team->mutex);
    fn(arg, 0);
    pthread_mutex_lock(&team->mutex);
    while (team->busy > 0)
        pthread_cond_wait(&team->end, &team->mutex);
    pthread_mutex_unlock(&team->mutex);
}
