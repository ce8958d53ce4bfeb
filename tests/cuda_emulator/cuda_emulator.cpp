/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers, blocks and launches of the emulator. */
#include "cuda_emulator.h"

#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#define START_SWITCH(save, stack, bytes) __sanitizer_start_switch_fiber(save, stack, bytes)
#define FINISH_SWITCH(save)              __sanitizer_finish_switch_fiber(save, nullptr, nullptr)
#else
#define START_SWITCH(save, stack, bytes) (void)(save), (void)(stack), (void)(bytes)
#define FINISH_SWITCH(save)              (void)(save)
#endif

namespace cuda_emulator
{

thread_local uint3 thread_index, block_index;
thread_local dim3 block_size, grid_size;
order run_order = order::ascending;

namespace
{

enum { WARP = 32, STACK_BYTES = 128 * 1024 };
enum { MAX_THREADS = 1024, STATIC_SHARED = 48 * 1024, ALL_SHARED = 227 * 1024 };

[[noreturn]] void fail(const char *what)
{
    fprintf(stderr, "cuda_emulator: thread (%u, %u, %u) of block (%u, %u, %u): %s\n",
            thread_index.x, thread_index.y, thread_index.z, block_index.x, block_index.y,
            block_index.z, what);
    abort();
}

enum class state { ready, at_barrier, at_exchange, done };

struct fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK_BYTES]};
    state at = state::ready;
    const char *file = nullptr; /* of the barrier that it waits at */
    int line = 0;
    void *fake_stack = nullptr;
};

struct warp {
    uint32_t arrived = 0;
    uint64_t in[WARP], out[WARP];
};

struct shared_free {
    void operator()(void *memory) const
    {
        ::operator delete(memory, std::align_val_t(16));
    }
};
using shared_memory = std::unique_ptr<void, shared_free>;

shared_memory shared_new(size_t bytes)
{
    shared_memory memory(::operator new(bytes, std::align_val_t(16)));
    memset(memory.get(), 0xFF, bytes); /* NaN: reading what nobody wrote shows */
    return memory;
}

struct block {
    std::vector<std::unique_ptr<fiber>> fibers;
    std::vector<warp> warps;
    std::map<const void *, std::pair<shared_memory, size_t>> shared;
    shared_memory at_launch;
    size_t shared_bytes = 0;
    const std::function<void()> *body = nullptr;
    size_t running = 0;
    ucontext_t scheduler;
    void *scheduler_fake_stack = nullptr;
    const void *scheduler_stack = nullptr;
    size_t scheduler_stack_bytes = 0;
};

thread_local block current;

uint3 index_of(size_t i, dim3 size)
{
    return {unsigned(i % size.x), unsigned(i / size.x % size.y), unsigned(i / size.x / size.y)};
}

/* The i-th of n to take its turn. */
size_t turn(size_t i, size_t n)
{
    switch (run_order) {
    case order::ascending:
        return i;
    case order::descending:
        return n - 1 - i;
    case order::scrambled:
        break;
    }
    size_t step = n / 2 + 1; /* near half, and coprime to n: visits all */
    auto coprime = [n](size_t a) {
        for (size_t b = n; b;) {
            size_t rest = a % b;
            a = b;
            b = rest;
        }
        return a == 1;
    };
    while (!coprime(step))
        step++;
    return i * step % n;
}

void fiber_main()
{
    block &b = current;
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &b.scheduler_stack, &b.scheduler_stack_bytes);
#endif
    (*b.body)();
    b.fibers[b.running]->at = state::done;
    START_SWITCH(nullptr, b.scheduler_stack, b.scheduler_stack_bytes);
    swapcontext(&b.fibers[b.running]->context, &b.scheduler);
}

/* Back to the scheduler until the fiber's turn comes again. */
void wait_as(state what)
{
    block &b = current;
    fiber &f = *b.fibers[b.running];
    f.at = what;
    START_SWITCH(&f.fake_stack, b.scheduler_stack, b.scheduler_stack_bytes);
    swapcontext(&f.context, &b.scheduler);
    FINISH_SWITCH(f.fake_stack);
}

void resume(size_t i)
{
    block &b = current;
    fiber &f = *b.fibers[i];
    b.running = i;
    thread_index = index_of(i, block_size);
    START_SWITCH(&b.scheduler_fake_stack, f.stack.get(), STACK_BYTES);
    swapcontext(&b.scheduler, &f.context);
    FINISH_SWITCH(b.scheduler_fake_stack);
}

/* Nobody can go on: all have arrived at one barrier, or the kernel is wrong. */
void open_barrier(size_t n)
{
    block &b = current;
    const fiber &first = *b.fibers[0];
    for (size_t i = 0; i < n; i++) {
        const fiber &f = *b.fibers[i];
        thread_index = index_of(i, block_size);
        if (f.at == state::at_exchange)
            fail("waits for lanes of its warp that do not come");
        if (f.at != first.at)
            fail("some threads wait at a barrier that others never reach");
        if (f.file != first.file || f.line != first.line)
            fail("threads wait at different barriers");
    }
    for (size_t i = 0; i < n; i++)
        b.fibers[i]->at = state::ready;
}

/* Runs a warp for as long as it can: the further it gets ahead of others, the more a missing
 * barrier shows. Returns how many of its threads ended. */
size_t run_warp(size_t first, size_t n)
{
    block &b = current;
    const size_t lanes = n - first < WARP ? n - first : size_t(WARP);
    size_t done = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < lanes; k++) {
            const size_t i = first + turn(k, lanes);
            if (b.fibers[i]->at != state::ready)
                continue;
            moved = true;
            resume(i);
            done += b.fibers[i]->at == state::done;
        }
    }
    return done;
}

void run_block(size_t n)
{
    block &b = current;
    for (size_t i = 0; i < n; i++) {
        fiber &f = *b.fibers[i];
        f.at = state::ready;
        getcontext(&f.context);
        f.context.uc_stack.ss_sp = f.stack.get();
        f.context.uc_stack.ss_size = STACK_BYTES;
        f.context.uc_link = nullptr;
        makecontext(&f.context, fiber_main, 0);
    }
    const size_t warps = b.warps.size();
    for (size_t done = 0; done < n;) {
        for (size_t k = 0; k < warps; k++)
            done += run_warp(turn(k, warps) * WARP, n);
        if (done < n)
            open_barrier(n);
    }
}

/* Shared memory that kernels may ask for at launch, once it was set. */
std::mutex limits_lock;
std::map<const void *, size_t> limits;

size_t shared_limit(const void *kernel)
{
    const std::lock_guard<std::mutex> hold(limits_lock);
    const auto found = limits.find(kernel);
    return found == limits.end() ? size_t(STATIC_SHARED) : found->second;
}

void check_launch(dim3 grid, dim3 block, size_t shared_bytes, const void *kernel)
{
    const size_t threads = size_t(block.x) * block.y * block.z;
    if (threads < 1 || threads > MAX_THREADS || block.z > 64)
        fail("a launch with a block size that devices refuse");
    if (grid.x < 1 || grid.x > 0x7FFFFFFFu || grid.y < 1 || grid.y > 65535 || grid.z < 1 ||
        grid.z > 65535)
        fail("a launch with a grid that devices refuse");
    if (shared_bytes > shared_limit(kernel))
        fail("a launch with more shared memory than it may have");
}

} // namespace

void launch(dim3 grid, dim3 size, size_t shared_bytes, const void *kernel,
            const std::function<void()> &body)
{
    check_launch(grid, size, shared_bytes, kernel);
    const device_access access;
    block &b = current;
    const size_t n = size_t(size.x) * size.y * size.z;
    while (b.fibers.size() < n)
        b.fibers.push_back(std::make_unique<fiber>());
    block_size = size;
    grid_size = grid;
    b.body = &body;
    const size_t blocks = size_t(grid.x) * grid.y * grid.z;
    for (size_t k = 0; k < blocks; k++) {
        block_index = index_of(turn(k, blocks), grid);
        b.warps.assign((n + WARP - 1) / WARP, warp());
        b.shared.clear();
        b.shared_bytes = 0;
        b.at_launch = shared_new(shared_bytes);
        run_block(n);
    }
    b.shared.clear();
    b.at_launch.reset();
    launched();
}

void barrier(const char *file, int line)
{
    fiber &f = *current.fibers[current.running];
    f.file = file;
    f.line = line;
    wait_as(state::at_barrier);
}

void *shared(const void *site, size_t bytes)
{
    block &b = current;
    auto &entry = b.shared[site];
    if (!entry.first) {
        b.shared_bytes += bytes;
        if (b.shared_bytes > STATIC_SHARED)
            fail("more shared memory than a kernel may declare");
        entry = {shared_new(bytes), bytes};
    }
    return entry.first.get();
}

void *shared_at_launch()
{
    return current.at_launch.get();
}

int lane()
{
    return int(current.running % WARP);
}

uint64_t exchange(uint32_t mask, uint64_t value, int from)
{
    block &b = current;
    warp &w = b.warps[b.running / WARP];
    const size_t first = b.running / WARP * WARP;
    const size_t threads = size_t(block_size.x) * block_size.y * block_size.z;
    if (mask != 0xFFFFFFFFu || first + WARP > threads)
        fail("a shuffle of a part of a warp");
    if (from < 0 || from >= WARP)
        fail("a shuffle from no lane of the warp");
    w.in[lane()] = value;
    w.arrived |= 1u << lane();
    if (w.arrived != mask) {
        wait_as(state::at_exchange);
    } else {
        w.arrived = 0;
        memcpy(w.out, w.in, sizeof w.out);
        for (size_t i = first; i < first + WARP; i++)
            if (b.fibers[i]->at == state::at_exchange)
                b.fibers[i]->at = state::ready;
    }
    return w.out[from];
}

} // namespace cuda_emulator

cudaError_t cuda_emulator_set_shared(const void *kernel, cudaFuncAttribute, int bytes)
{
    if (bytes < 0 || bytes > cuda_emulator::ALL_SHARED)
        return cudaErrorInvalidValue;
    const std::lock_guard<std::mutex> hold(cuda_emulator::limits_lock);
    cuda_emulator::limits[kernel] = size_t(bytes);
    return cudaSuccess;
}
