/* SPDX-License-Identifier: Apache-2.0 */
/* What the nccl transport needs of NCCL and of the CUDA runtime, and no more. It is a shared
 * library of its own, opened when the transport is, so that one program runs with and without GPUs.
 * real/nccl/nccl.c, the module's source, is the one file that includes their headers.
 *
 * No call waits for another process, but close. What it starts goes on by itself: ask state, or
 * done, whether it has come to its end. One thread at a time may use a communicator. */
#ifndef ADL_REAL_NCCL_MODULE_H
#define ADL_REAL_NCCL_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/status.h"

#define ADL_NCCL_MODULE_FILE "libadloco_nccl.so"
enum { ADL_NCCL_MODULE_VERSION = 2 }; /* of this struct */
enum { ADL_NCCL_ID_BYTES = 128 };

enum adl_nccl_state { ADL_NCCL_BUSY, ADL_NCCL_READY, ADL_NCCL_BROKEN };
enum adl_nccl_type { ADL_NCCL_F32, ADL_NCCL_F64, ADL_NCCL_BF16, ADL_NCCL_F16 };

struct adl_nccl; /* a communicator, with a stream of its own */

/* What comes from a rank, or goes to one. */
struct adl_nccl_part {
    void *data; /* [bytes] */
    size_t bytes;
    int rank;
};

/* What the module exports, as `adl_nccl_module`. */
struct adl_nccl_module {
    int version;
    /* Chooses this process's device, by core/local_rank.h. ADL_ERR_UNSUPPORTED where there is no
     * driver, no device, one older than compute capability 8.0, a library of another version
     * than built for, or NCCL_COMM_BLOCKING=1 in the environment. */
    enum adl_status (*open)(struct adl_err *err);
    /* Names a world that is to be: id [ADL_NCCL_ID_BYTES], for all its processes. */
    enum adl_status (*new_id)(void *id, struct adl_err *err);
    /* Begins to join it. */
    enum adl_status (*join)(const void *id, int rank, int n, struct adl_nccl **out,
                            struct adl_err *err);
    /* Begins to divide `parent`, by all its processes: those of one color (>= 0) get a communicator
     * in the order of their ranks, those without one (-1) get *out = NULL. ctas: the most blocks
     * of a kernel of it, 0: as NCCL has it. Then ask state(*out), or, where that is NULL,
     * state(parent). */
    enum adl_status (*split)(struct adl_nccl *parent, int color, int rank, int ctas,
                             struct adl_nccl **out, struct adl_err *err);
    /* Whether what was last asked of the communicator has begun; BROKEN: err says why. */
    enum adl_nccl_state (*state)(struct adl_nccl *c, struct adl_err *err);
    /* Whether all that has begun on its stream has ended. */
    enum adl_nccl_state (*done)(struct adl_nccl *c, struct adl_err *err);
    /* In good order, by all its processes; or at once: then nothing of it touches any memory. A
     * split under way is aborted after its parent. NULL is fine. */
    void (*close)(struct adl_nccl *c);
    void (*abort)(struct adl_nccl *c);

    /* On the communicator's stream; all memory is the device's. */
    enum adl_status (*sum)(struct adl_nccl *c, void *data, size_t count, enum adl_nccl_type type,
                           struct adl_err *err); /* in place */
    /* all [n x bytes]: what each has at `mine` [bytes] */
    enum adl_status (*collect)(struct adl_nccl *c, const void *mine, void *all, size_t bytes,
                               struct adl_err *err);
    /* Receives and sends at once; a part of no bytes is none. */
    enum adl_status (*relay)(struct adl_nccl *c, const struct adl_nccl_part *in,
                             const struct adl_nccl_part *out, struct adl_err *err);

    /* Memory of the device; NULL: none left. */
    void *(*alloc)(size_t bytes);
    void (*free)(void *x); /* NULL is fine */
    /* Between host and device, or within either, to its end. */
    enum adl_status (*copy)(void *to, const void *from, size_t bytes, struct adl_err *err);
};

/* Opens the module and the device, once a process; a failure stays one. ADL_ERR_UNSUPPORTED with
 * the loader's words where the module or a library that it needs is missing. */
enum adl_status adl_nccl_module_get(const struct adl_nccl_module **out, struct adl_err *err);

#endif
