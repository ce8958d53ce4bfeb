/* SPDX-License-Identifier: Apache-2.0 */
/* Computing: the time of a micro-batch, devices shared by several workers, slow devices, and
 * where every worker's time went. */
#include "tests/unit/sim_world.h"

#include "sim/device.h"

/* h100: 400 Tflop/s, 3.35 TB/s, 1 ms a micro-batch, half at 0.25 samples */
static const struct adl_cost cost = {
    .flops_per_sample = 4e12, .step_bytes = 3.35e9, .outer_bytes = 6.7e9};

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
    struct world w = {.cost = {.flops_per_sample = 4e12},
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

static const struct adl_sim_device gpu = {.speed_flops = 1e12, .memory_bandwidth = 1e9};

/* Devices of one GPU each. */
static struct adl_devices open_devices(const struct adl_sim_options *options, int n, int gpus,
                                       uint64_t seed)
{
    static struct adl_sim_device gpus_of[8];
    for (int d = 0; d < n; d++)
        gpus_of[d] = gpu;
    struct adl_sim_platform platform = {.n_devices = n, .devices = gpus_of};
    struct adl_devices devices;
    struct adl_err err = {0};
    cr_assert(adl_devices_open(NULL, &platform, options, gpus, seed, NULL, &devices, &err) ==
                  ADL_OK,
              "%s", err.message);
    return devices;
}

Test(sim_devices, spread_makes_devices_differ)
{
    struct adl_sim_options options = {.overhead_s = 2, .half_samples = NAN, .spread = 0.1};
    struct adl_devices devices = open_devices(&options, 2, 1, 1);
    double first = devices.v[0].speed_flops, second = devices.v[1].speed_flops;
    cr_assert(first != second && first > 0.5e12 && first < 2e12);
    cr_assert(devices.v[0].overhead_s == 2 && devices.v[0].half_samples == 0);
    adl_devices_close(&devices);
    devices = open_devices(&options, 2, 1, 1);
    cr_assert(devices.v[0].speed_flops == first && devices.v[1].speed_flops == second);
    adl_devices_close(&devices);
    devices = open_devices(&options, 2, 1, 2);
    cr_assert(devices.v[0].speed_flops != first);
    adl_devices_close(&devices);
}

static struct adl_block block(const struct adl_sim_options *options, double steps, uint64_t step0,
                              uint64_t seed, int device, int worker)
{
    struct adl_devices devices = open_devices(options, 8, 1, 1);
    struct adl_cost flops = {.flops_per_sample = 1e12};
    struct adl_work work = {.steps = steps, .micro_batches = 1, .samples = 1, .step0 = step0};
    struct adl_draws draws = {
        .options = options, .seed = seed, .round_steps = 10, .device = device, .worker = worker};
    struct adl_block b = adl_device_block(&devices.v[0], 1, &flops, &work, &draws);
    adl_devices_close(&devices);
    return b;
}

/* Jitter belongs to a step: blocks that split the steps differently take equally long. Its mean
 * is 1: 100,000 steps stray from it by sigma / sqrt(1e5), 0.06% and 0.3%. */
static void check_jitter(const struct adl_sim_options *options)
{
    double all_s = block(options, 100000, 0, 1, 0, 5).solo_s;
    double head_s = block(options, 77, 0, 1, 0, 5).solo_s;
    near(head_s + block(options, 99923, 77, 1, 0, 5).solo_s, all_s, 1e-12, "split");
    near(all_s, 100000, 1e-2, "mean");
    cr_assert(fabs(head_s - 77) > 1e-6);
    cr_assert(block(options, 77, 0, 2, 0, 5).solo_s != head_s, "another seed");
    cr_assert(block(options, 77, 0, 1, 0, 6).solo_s != head_s, "another worker");
    cr_assert(block(options, 77, 0, 1, 1, 5).solo_s == head_s, "another device");
}

Test(sim_devices, jitter_is_keyed_by_step)
{
    check_jitter(&(struct adl_sim_options){AS_PLATFORM, .jitter = 0.2});
    check_jitter(&(struct adl_sim_options){AS_PLATFORM, .jitter_law = ADL_JITTER_EXPONENTIAL});
}

/* Drift is a round's: all its steps share it, so that a round of many steps strays as one of few.
 */
Test(sim_devices, drift_is_keyed_by_round)
{
    struct adl_sim_options options = {AS_PLATFORM, .drift = 0.2};
    double round_s = block(&options, 10, 20, 1, 3, 5).solo_s, sum_s = 0;
    near(block(&options, 4, 20, 1, 3, 5).solo_s, 0.4 * round_s, 1e-12, "its first steps");
    near(block(&options, 6, 24, 1, 3, 9).solo_s, 0.6 * round_s, 1e-12,
         "its last, of another worker");
    cr_assert(fabs(block(&options, 10, 30, 1, 3, 5).solo_s / round_s - 1) > 1e-3, "next round");
    cr_assert(fabs(block(&options, 10, 20, 1, 4, 5).solo_s / round_s - 1) > 1e-3, "next device");
    for (uint64_t r = 0; r < 2000; r++)
        sum_s += block(&options, 10, 10 * r, 1, 3, 5).solo_s;
    near(sum_s, 20000, 0.02, "mean");
}

Test(sim_devices, stalls)
{
    struct adl_sim_options options = {AS_PLATFORM, .stall_probability = 0.01, .stall_s = 30};
    double all_s = block(&options, 40000, 0, 1, 0, 5).solo_s;
    near(all_s, 40000 + 0.01 * 40000 * 30, 0.1, "one step in a hundred");
    near(fmod(all_s, 30), fmod(40000, 30), 1e-9, "whole stalls");
    double head_s = block(&options, 1000, 0, 1, 0, 5).solo_s;
    near(head_s + block(&options, 39000, 1000, 1, 0, 5).solo_s, all_s, 1e-12, "keyed by step");
}

/* Four GPUs compute a batch together, and each holds a quarter of the state. */
Test(sim_devices, a_sharded_worker)
{
    struct adl_sim_options options = {
        .overhead_s = 0.5, .half_samples = 0.25, .shard_overlap = 0.25};
    struct adl_device device = {.speed_flops = 1e12,
                                .memory_bandwidth = 1e9,
                                .overhead_s = 0.5,
                                .half_samples = 0.25,
                                .gather_s_per_byte = 2e-9,
                                .gather_latency_s = 0.25};
    struct adl_cost work_cost = {
        .flops_per_sample = 1e12, .step_bytes = 8e9, .outer_bytes = 4e9, .vector_bytes = 1e9};
    struct adl_work work = {.steps = 3, .micro_batches = 2, .samples = 16};
    struct adl_draws draws = {.options = &options};
    struct adl_block b = adl_device_block(&device, 4, &work_cost, &work, &draws);
    double micro_s = 2 * (0.5 + 0.25) + 16 / 4;
    near(b.solo_s, 3 * (micro_s + 2), 1e-12, "compute");
    near(b.busy_s, 3 * (16 / 4 + 2), 1e-12, "busy");
    near(b.exposed_s, 3 * (2 * (2 + 0.25) - 0.25 * micro_s), 1e-12, "exposed transfer");
    near(b.backward_s, micro_s / 2 * 2 / 3, 1e-12, "backward");
    near(adl_device_memory_s(&device, 4, 4e9), 1, 1e-12, "outer step");
    options.shard_overlap = 1;
    cr_assert(adl_device_block(&device, 4, &work_cost, &work, &draws).exposed_s == 0, "hidden");
}
