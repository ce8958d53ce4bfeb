/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/simulation.h"

#include <math.h>

int adl_sim_device_of(const struct adl_transport *t, int worker)
{
    return worker / t->per_device;
}

int adl_sim_distinct_devices(const struct adl_transport *t, const int *workers, int n, int except,
                             int *devices)
{
    int count = 0;
    for (int i = 0; i < n; i++) {
        int device = adl_sim_device_of(t, workers[i]);
        if (device != except && (count == 0 || devices[count - 1] != device))
            devices[count++] = device;
    }
    return count;
}

/* The engine's clock follows the simulation's own times only to its precision of 1 ns, so sleeps
 * lead to absolute times and errors do not add up. */
void adl_sim_sleep_until(const struct adl_transport *t, double until_s)
{
    double left_s = t->direct ? 0 : until_s - t->engine->clock_s();
    if (left_s > 0)
        t->engine->sleep(left_s);
}

double adl_sim_slowest(const struct adl_sim_task *s)
{
    const struct adl_task *task = s->task;
    double slowest = 0;
    for (int i = 0; i < task->n_workers; i++)
        slowest = fmax(slowest, adl_book_cursor(s->t->env.book, task->workers[i]));
    return slowest;
}

double adl_sim_settle(struct adl_sim_task *s)
{
    double slowest = adl_sim_slowest(s);
    adl_sim_sleep_until(s->t, slowest);
    s->t->now_s = fmax(s->t->now_s, slowest);
    return slowest;
}
