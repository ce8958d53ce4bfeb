/* SPDX-License-Identifier: Apache-2.0 */
/* Who hosts what, where the world is spread over processes: contiguous blocks of whole devices, as
 * even as possible. */
#ifndef ADL_REAL_BLOCKS_H
#define ADL_REAL_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

struct adl_blocks {
    int n_workers, workers_per_device, n_devices;
    int n; /* processes */
};

static inline struct adl_blocks adl_blocks_make(int n_workers, int workers_per_device, int n)
{
    return (struct adl_blocks){n_workers, workers_per_device,
                               (n_workers + workers_per_device - 1) / workers_per_device, n};
}

static inline int adl_blocks_first_device(const struct adl_blocks *b, int process)
{
    return (int)((int64_t)process * b->n_devices / b->n);
}

/* process = n: the number of workers. */
static inline int adl_blocks_first_worker(const struct adl_blocks *b, int process)
{
    int worker = adl_blocks_first_device(b, process) * b->workers_per_device;
    return worker < b->n_workers ? worker : b->n_workers;
}

static inline int adl_blocks_process_of(const struct adl_blocks *b, int worker)
{
    int64_t device = worker / b->workers_per_device;
    int process = (int)(device * b->n / b->n_devices);
    while (adl_blocks_first_device(b, process + 1) <= device)
        process++;
    return process;
}

/* Processes that host workers [n], both ascending: their number; into out [at least that many]. */
static inline int adl_blocks_hosts(const struct adl_blocks *b, const int *workers, int n, int *out)
{
    int found = 0;
    for (int i = 0; i < n; i++) {
        int process = adl_blocks_process_of(b, workers[i]);
        if (found == 0 || out[found - 1] != process)
            out[found++] = process;
    }
    return found;
}

/* The way of a vector from worker src to workers dst [n], ascending: the process of src and then,
 * ascending, those of dst that are elsewhere: their number; into out [n + 1]. *near: src's process
 * hosts one of dst too. */
static inline int adl_blocks_chain(const struct adl_blocks *b, int src, const int *dst, int n,
                                   int *out, bool *near)
{
    int found = adl_blocks_hosts(b, dst, n, out + 1), kept = 1;
    out[0] = adl_blocks_process_of(b, src);
    for (int i = 1; i <= found; i++)
        if (out[i] != out[0])
            out[kept++] = out[i];
    *near = kept <= found;
    return kept;
}

#endif
