/* SPDX-License-Identifier: Apache-2.0 */
/* Computing: the time of a micro-batch, devices shared by several workers, slow devices, and
 * where every worker's time went. */
#include "tests/unit/sim_world.h"

#include "sim/device.h"

/* h100: 400 Tflop/s, 3.35 TB/s, 1 ms a micro-batch, half at 0.25 samples */
static const struct adl_cost cost = {4e12, 3.35e9, 6.7e9};

Test(sim_devices, a_block_takes_what_the_formula_says)
{
    struct world w = {.cost = cost, .options = {AS_PLATFORM}};
    world_open(&w, "nvswitch-8", 1, 1);
    struct script s = {.rounds = 1, .bytes = -1, .outer = true};
    s.work = (struct adl_work){.steps = 50, .micro_batches = 3, .samples = 7};
    world_run_one(&w, &s);
    double step_s = 3 * (1e-3 + 0.25 * 0.01) + 7 * 0.01 + 1e-3;
    near(s.compute_s[0], 50 * step_s, 1e-12, "compute");
    near(s.end_s[0], 50 * step_s + 2e-3, 1e-12, "with the outer step");
    world_close(&w, NULL);
}

/* Trainers of one worker each, all on one device, started together: 0.2 s of work a worker, and
 * half samples of 0.1 s more alone. */
static void run_shared(int workers, enum adl_sharing sharing, double half, double *ends_s)
{
    struct world w = {.cost = {4e12, 0, 0},
                      .options = {.sharing = (int)sharing, .overhead_s = 0, .half_samples = half}};
    world_open(&w, "nvswitch-8", workers, workers);
    struct script s[8];
    struct adl_task *tasks[8];
    for (int k = 0; k < workers; k++) {
        s[k] = (struct script){.world = &w,
                               .rounds = 1,
                               .bytes = 0,
                               .work = {.steps = 10, .micro_batches = 1, .samples = 2}};
        tasks[k] = world_task(&s[k], k, k, 1, 1);
    }
    enum adl_status status = adl_transport_sim.run(w.t, tasks, workers, world_body, NULL, &w.err);
    cr_assert(status == ADL_OK, "%s", w.err.message);
    for (int k = 0; k < workers; k++) {
        ends_s[k] = s[k].end_s[0];
        world_task_free(tasks[k]);
    }
    world_close(&w, NULL);
}

Test(sim_devices, a_full_device_is_shared)
{
    double ends_s[8];
    run_shared(4, ADL_SHARE_PROCESSOR, 0, ends_s);
    for (int k = 0; k < 4; k++)
        near(ends_s[k], 4 * 0.2, 1e-9, "four at a quarter of the speed");
}

/* Alone a worker takes 0.8 s, a quarter of which fills the device. */
Test(sim_devices, small_streams_overlap)
{
    double ends_s[8];
    run_shared(2, ADL_SHARE_PROCESSOR, 6, ends_s);
    near(ends_s[1], 0.8, 1e-9, "as if alone");
}

Test(sim_devices, streams_that_just_fit)
{
    double ends_s[8];
    run_shared(4, ADL_SHARE_PROCESSOR, 6, ends_s);
    for (int k = 0; k < 4; k++)
        near(ends_s[k], 0.8, 1e-9, "as if alone");
}

Test(sim_devices, more_streams_than_fit_share_the_device)
{
    double ends_s[8];
    run_shared(8, ADL_SHARE_PROCESSOR, 6, ends_s);
    for (int k = 0; k < 8; k++)
        near(ends_s[k], 8 * 0.2, 1e-9, "eight at an eighth");
}

Test(sim_devices, turns)
{
    double ends_s[8];
    run_shared(3, ADL_SHARE_TURNS, 6, ends_s);
    for (int k = 0; k < 3; k++)
        near(ends_s[k], (k + 1) * 0.8, 1e-9, "one after the other");
}

/* Worker 3 has twice the samples: the others wait for it. All of the time is somewhere. */
Test(sim_devices, time_is_attributed)
{
    struct world w = {.cost = cost, .options = {.overhead_s = 0, .half_samples = NAN}};
    world_open(&w, "nvswitch-8", 8, 1);
    struct script s = {.world = &w, .rounds = 3, .bytes = 1e9, .outer = true, .slower[3] = 2};
    s.work = (struct adl_work){.steps = 5, .micro_batches = 1, .samples = 8};
    struct adl_task *task = world_task(&s, 0, 0, 1, 6); /* workers 6 and 7 have no trainer */
    cr_assert(adl_transport_sim.run(w.t, &task, 1, world_body, NULL, &w.err) == ADL_OK);
    world_task_free(task);
    double moved[1] = {1};
    struct adl_move move = {.src = 0,
                            .dst = (int[]){6},
                            .n_dst = 1,
                            .data = moved,
                            .into = moved,
                            .bytes = sizeof moved,
                            .charged_bytes = 4.5e9};
    cr_assert(adl_transport_sim.move(w.t, &move, 1, &w.err) == ADL_OK);
    double end_s = adl_transport_sim.now_s(w.t);
    struct adl_book_totals totals;
    world_close(&w, &totals);
    double fast_s = 5 * (0.0825 + 1e-3), slow_s = 5 * (0.1625 + 1e-3);
    double ring_s = 10e-6 + 10.0 / 6 * 1e9 / 450e9, move_s = 1e-6 + 0.01;
    near(end_s, 3 * (slow_s + ring_s + 2e-3) + move_s, 1e-9, "end");
    near(totals.by_time_s[ADL_TIME_COMPUTE], 3 * (5 * fast_s + slow_s), 1e-9, "compute");
    near(totals.by_time_s[ADL_TIME_WAIT], 3 * 5 * (slow_s - fast_s), 1e-9, "wait");
    near(totals.by_time_s[ADL_TIME_TRANSFER], 6 * (3 * ring_s + move_s), 1e-9, "transfer");
    near(totals.by_time_s[ADL_TIME_OUTER], 6 * 3 * 2e-3, 1e-9, "outer step");
    near(totals.by_time_s[ADL_TIME_IDLE], 2 * end_s, 1e-9, "idle");
    cr_assert(totals.residual < 1e-9, "residual %g", totals.residual);
}

/* Two tasks of different length: the shorter one's workers wait for the epoch's end. */
Test(sim_devices, an_epoch_ends_for_all_at_once)
{
    struct world w = {.cost = cost, .options = {AS_PLATFORM}};
    world_open(&w, "nvswitch-8", 8, 1);
    struct script a = {.world = &w, .rounds = 2, .bytes = 1e6}, b = a;
    a.work = b.work = (struct adl_work){.steps = 5, .micro_batches = 1, .samples = 8};
    b.work.samples = 16;
    world_run_two(&w, world_task(&a, 0, 0, 1, 4), world_task(&b, 1, 4, 1, 4));
    near(adl_transport_sim.now_s(w.t), b.end_s[1], 1e-12, "end");
    struct adl_book_totals totals;
    world_close(&w, &totals);
    near(totals.by_time_s[ADL_TIME_WAIT], 4 * (b.end_s[1] - a.end_s[1]), 1e-6, "wait");
    cr_assert(totals.residual < 1e-9);
}

/* Shared devices under contention, several epochs: still nothing is lost or counted twice. */
Test(sim_devices, residual_of_multi_instance_training)
{
    struct world w = {.cost = cost, .options = {AS_PLATFORM, .spread = 0.1, .jitter = 0.2}};
    world_open(&w, "h100-64", 128, 2);
    struct script a = {.world = &w, .rounds = 3, .bytes = 1e9, .outer = true}, b = a;
    a.work = b.work = (struct adl_work){.steps = 50, .micro_batches = 1, .samples = 1};
    for (int epoch = 0; epoch < 3; epoch++)
        world_run_two(&w, world_task(&a, 0, 0, 2, 64), world_task(&b, 1, 1, 2, 64));
    struct adl_book_totals totals;
    world_close(&w, &totals);
    cr_assert(totals.residual < 1e-9, "residual %g", totals.residual);
    cr_assert(totals.by_time_s[ADL_TIME_WAIT] > 0);
}

Test(sim_devices, spread_makes_devices_differ)
{
    struct adl_sim_device device = {.speed_flops = 1e12};
    struct adl_sim_device devices[2] = {device, device};
    struct adl_sim_platform platform = {.n_devices = 2, .devices = devices};
    struct adl_sim_options options = {.overhead_s = 2, .half_samples = NAN, .spread = 0.1};
    adl_devices_adjust(&platform, &options, 1);
    double first = devices[0].speed_flops, second = devices[1].speed_flops;
    cr_assert(first != second && first > 0.5e12 && first < 2e12);
    cr_assert(devices[0].overhead_s == 2 && devices[0].half_samples == 0);
    devices[0] = devices[1] = device;
    adl_devices_adjust(&platform, &options, 1);
    cr_assert(devices[0].speed_flops == first && devices[1].speed_flops == second);
    devices[0] = devices[1] = device;
    adl_devices_adjust(&platform, &options, 2);
    cr_assert(devices[0].speed_flops != first);
}

/* Jitter belongs to a step: blocks that split the steps differently take equally long. Its mean
 * is 1: 100,000 steps stray from it by 0.2 / sqrt(1e5) = 0.06%. */
Test(sim_devices, jitter_is_keyed_by_step)
{
    struct adl_sim_device device = {.speed_flops = 1e12};
    struct adl_cost flops = {1e12, 0, 0};
    struct adl_work all = {.steps = 100000, .micro_batches = 1, .samples = 1}, head = all,
                    tail = all;
    head.steps = tail.step0 = 77;
    tail.steps = 99923;
    double all_s = adl_device_block(&device, &flops, &all, 0.2, 1, 5).solo_s;
    double head_s = adl_device_block(&device, &flops, &head, 0.2, 1, 5).solo_s;
    double tail_s = adl_device_block(&device, &flops, &tail, 0.2, 1, 5).solo_s;
    near(head_s + tail_s, all_s, 1e-12, "split");
    near(all_s, 100000, 3e-3, "mean");
    cr_assert(fabs(head_s - 77) > 1e-6);
    cr_assert(adl_device_block(&device, &flops, &head, 0.2, 2, 5).solo_s != head_s);
    cr_assert(adl_device_block(&device, &flops, &head, 0.2, 1, 6).solo_s != head_s);
}
