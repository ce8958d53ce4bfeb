/* SPDX-License-Identifier: Apache-2.0 */
/* A double of NCCL and of the CUDA runtime, for tests of what is built on them: several processes
 * of one machine, through shared files; device memory is the host's, or the emulator's. The
 * module's source, real/nccl/nccl.c, is compiled against it as it is.
 *
 * Like the real ones: communicators do not block, and whoever does not ask for their state gets
 * nowhere; splits and ends need all processes; streams run beside the caller, in order; exchanges
 * begin in the order in which they were given to the device, and wait for all processes until they
 * are aborted, whatever becomes of those; calls on a communicator that is not ready, has failed or
 * has ended are refused. Where processes mean different exchanges, and NCCL would hang or do harm,
 * the double fails. Unlike them, sums run in the order of ranks, and small
 * ones too are slow.
 *
 * The environment says what goes wrong:
 *   ADL_NCCL_DOUBLE=KIND:RANK[:N]   at the N-th time (1) that this rank of the world (-1: each)
 * gets there. Kinds: no-driver, no-device, old-device, old-nccl; join-error, join-hang;
 *       split-error, split-hang; start-error, start-hang (an exchange is given to NCCL); late-error
 *       (it comes up while an exchange runs), hang (it never ends), die (the process does);
 *       call-hang, abort-hang (those calls never return).
 *   ADL_NCCL_DOUBLE_RESIDENT=N      exchanges of a device that run at once; the next one waits.
 *   ADL_TEST_DIR=DIR                where shared files go (/tmp).
 *   ADL_NCCL_DOUBLE_LOG=FILE        a line for each call: WHAT NUMBER NUMBER, of world rank 0. */
#ifndef ADL_TESTS_DOUBLE_H
#define ADL_TESTS_DOUBLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "nccl.h"

bool double_fault(const char *kind);
void double_log(const char *what, long a, long b);
extern int double_rank; /* of the world; -1: not yet joined */

/* The device's memory to and from the host's. What is not of this cudaMalloc is the emulator's
 * (tests/cuda_emulator), which keeps the host out, where its module is loaded; else the host's. */
void double_get(void *host, const void *x, size_t bytes);
void double_put(void *x, const void *host, size_t bytes);

/* ---- streams (streams.c) */

struct job { /* freed by the stream */
    void (*run)(struct job *job);
    uint64_t ticket; /* the stream's */
    struct job *next;
    ncclComm_t comm;
    ncclDataType_t type;
    const void *in;
    void *out;
    size_t count;
    struct transfer {
        bool sends;
        void *data;
        size_t bytes;
        int peer;
    } * transfers; /* [n_transfers] */
    int n_transfers;
};
void double_enqueue(cudaStream_t stream, struct job *job);

#endif
