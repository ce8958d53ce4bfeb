/* SPDX-License-Identifier: Apache-2.0 */
/* The thread pool: every item once, in order of start, failures, several callers at once. A
 * program of its own, so that ThreadSanitizer can watch it. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/pool.h"

enum { LANES = 3, ITEMS = 40, CALLERS = 4 };

static atomic_int n_failed;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            atomic_fetch_add(&n_failed, 1);                                                        \
            fprintf(stderr, "%s:%d: not %s\n", __FILE__, __LINE__, #condition);                    \
        }                                                                                          \
    } while (0)

struct items {
    atomic_int started, inside;  /* so far; at this moment */
    int calls[ITEMS];            /* written by one lane each */
    int fail_from;               /* this item and later ones fail */
    unsigned first_us, later_us; /* how long the first failure takes, and those after it */
};

static enum adl_status item(void *arg, int i, int lane, struct adl_err *err)
{
    struct items *items = arg;
    CHECK(lane >= 0 && lane < LANES);
    CHECK(atomic_fetch_add(&items->inside, 1) < LANES);
    CHECK(atomic_fetch_add(&items->started, 1) + LANES > i); /* none is far ahead of its turn */
    items->calls[i]++;
    if (i >= items->fail_from)
        usleep(i == items->fail_from ? items->first_us : items->later_us);
    atomic_fetch_sub(&items->inside, 1);
    return i < items->fail_from ? ADL_OK : adl_fail(err, ADL_ERR_RUNTIME, "item %d", i);
}

static void every_item_once(struct adl_pool *pool)
{
    struct items items = {.fail_from = ITEMS};
    struct adl_err err = {.status = ADL_OK};
    CHECK(adl_pool_run(pool, ITEMS, item, &items, &err) == ADL_OK && err.status == ADL_OK);
    for (int i = 0; i < ITEMS; i++)
        CHECK(items.calls[i] == 1);
    CHECK(adl_pool_run(pool, 0, item, &items, &err) == ADL_OK);
}

/* The first in order is told, whichever is the first in time; the rest is not begun. */
static void first_failure_is_told(struct adl_pool *pool, unsigned first_us, unsigned later_us)
{
    struct items items = {.fail_from = 7, .first_us = first_us, .later_us = later_us};
    struct adl_err err = {.status = ADL_OK};
    CHECK(adl_pool_run(pool, ITEMS, item, &items, &err) == ADL_ERR_RUNTIME);
    CHECK(strcmp(err.message, "item 7") == 0);
    CHECK(atomic_load(&items.inside) == 0);
    for (int i = 0; i <= 7; i++)
        CHECK(items.calls[i] == 1);
    for (int i = 7 + LANES; i < ITEMS; i++)
        CHECK(items.calls[i] == 0);
}

static void *caller(void *pool)
{
    for (int round = 0; round < 25; round++) {
        every_item_once(pool);
        first_failure_is_told(pool, 2000, 0);
        first_failure_is_told(pool, 1000, 3000);
    }
    return NULL;
}

static void several_callers(struct adl_pool *pool)
{
    pthread_t threads[CALLERS];
    for (int i = 0; i < CALLERS; i++)
        CHECK(pthread_create(&threads[i], NULL, caller, pool) == 0);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
}

int main(void)
{
    struct adl_pool *pool = NULL;
    alarm(120);
    CHECK(adl_pool_create(LANES, &pool, NULL) == ADL_OK);
    CHECK(adl_pool_n_lanes(pool) == LANES);
    every_item_once(pool);
    first_failure_is_told(pool, 2000, 0);
    first_failure_is_told(pool, 1000, 3000);
    several_callers(pool);
    adl_pool_free(pool);
    adl_pool_free(NULL);
    return atomic_load(&n_failed) ? 1 : 0;
}
