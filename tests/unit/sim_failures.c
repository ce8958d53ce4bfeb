/* SPDX-License-Identifier: Apache-2.0 */
/* What fails, and that nobody is left waiting. */
#include "tests/unit/sim_world.h"

static bool cancel_at_fourth(void *arg)
{
    int *asked = arg;
    return ++*asked > 3;
}

struct failing {
    struct script script;
    bool in_worker, pending;
    enum adl_status status; /* of a call after the failure of another */
};

static enum adl_status fail_worker(struct adl_task *task, int i, int lane, void *arg,
                                   struct adl_err *err)
{
    (void)task, (void)lane, (void)arg;
    return i == 2 ? adl_fail(err, ADL_ERR_RUNTIME, "worker 2 broke") : ADL_OK;
}

/* Trainer 1 fails after its first round: in a worker, or with a sum still under way. */
static enum adl_status failing_body(struct adl_task *task, void *arg)
{
    struct script *s = task->user;
    struct adl_transport *t = s->world->t;
    struct failing *f = arg;
    if (task->trainer == 1) {
        ADL_TRY(world_sum(task, s));
        if (f->in_worker)
            return adl_transport_sim.for_each(t, task, fail_worker, NULL, NULL, NULL);
        double out;
        struct adl_reduction r = {.out = &out, .charged_bytes = 1e9, .cause = ADL_CAUSE_OUTER};
        struct adl_pending *pending;
        if (f->pending)
            ADL_TRY(adl_transport_sim.allreduce_start(t, task, &r, &pending));
        return adl_fail(&task->err, ADL_ERR_RUNTIME, "trainer 1 broke");
    }
    enum adl_status status = ADL_OK;
    for (int k = 0; k < 1000 && status == ADL_OK; k++)
        status = world_sum(task, s);
    f->status = status;
    return status;
}

static void expect(bool in_worker, bool pending, const char *message)
{
    struct world w = {.options = {AS_PLATFORM}};
    world_open(&w, "h100-64-eth", 64, 1);
    struct failing f = {.in_worker = in_worker, .pending = pending};
    struct script a = {.world = &w, .bytes = 1e9}, b = a;
    /* both use the interfaces of nodes 0 and 1: real flows */
    struct adl_task *tasks[] = {world_task(&a, 0, 0, 4, 4), world_task(&b, 1, 1, 4, 4)};
    enum adl_status status = adl_transport_sim.run(w.t, tasks, 2, failing_body, &f, &w.err);
    cr_assert(status == ADL_ERR_RUNTIME, "status %d", status);
    cr_assert_str_eq(w.err.message, message);
    cr_assert(f.status == ADL_ERR_PEER, "the other trainer got %d", f.status);
    world_task_free(tasks[0]);
    world_task_free(tasks[1]);
    world_close(&w, NULL);
}

Test(sim_failures, a_worker_fails)
{
    expect(true, false, "worker 2 broke");
}

Test(sim_failures, a_trainer_fails)
{
    expect(false, false, "trainer 1 broke");
}

Test(sim_failures, a_trainer_fails_during_its_own_sum)
{
    expect(false, true, "trainer 1 broke");
}

Test(sim_failures, cancelled)
{
    int asked = 0;
    struct world w = {
        .options = {AS_PLATFORM}, .cancelled = cancel_at_fourth, .cancelled_arg = &asked};
    world_open(&w, "nvswitch-8", 8, 1);
    struct script s = {.world = &w, .rounds = 10, .bytes = 1e6};
    struct adl_task *task = world_task(&s, 0, 0, 1, 8);
    cr_assert(adl_transport_sim.run(w.t, &task, 1, world_body, NULL, &w.err) == ADL_ERR_CANCELLED);
    cr_assert(s.end_s[0] > 0 && s.end_s[9] == 0);
    world_task_free(task);
    world_close(&w, NULL);
}

Test(sim_failures, one_engine_per_process)
{
    struct world w = {.options = {AS_PLATFORM}}, other = {.options = {AS_PLATFORM}};
    world_open(&w, "nvswitch-8", 8, 1);
    other.settings = w.settings;
    other.options = w.options;
    world_platform(&other, "nvswitch-8");
    cr_assert(world_try(&other) == ADL_ERR_RUNTIME);
    cr_assert(strstr(other.err.message, "one per process") != NULL, "%s", other.err.message);
    world_close(&w, NULL);
}

Test(sim_failures, too_few_devices)
{
    struct world w = {.settings.cluster = {.workers = 17, .workers_per_device = 2},
                      .options = {AS_PLATFORM}};
    world_platform(&w, "nvswitch-8");
    w.book = adl_book_create(17, 2);
    cr_assert(world_try(&w) == ADL_ERR_INPUT);
    cr_assert(strstr(w.err.message, "17 workers at 2 a device need 9 devices") != NULL, "%s",
              w.err.message);
    adl_book_free(w.book);
}

Test(sim_failures, no_platform)
{
    struct world w = {.settings.cluster = {.workers = 2, .workers_per_device = 1},
                      .options = {AS_PLATFORM}};
    snprintf(w.path, sizeof w.path, "%s/platforms", ADL_SOURCE_DIR);
    cr_assert(world_try(&w) == ADL_ERR_INPUT);
    cr_assert(strstr(w.err.message, "directory") != NULL, "%s", w.err.message);
}
