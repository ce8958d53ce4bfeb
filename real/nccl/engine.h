/* SPDX-License-Identifier: Apache-2.0 */
/* This process's device, as far as NCCL uses it: communicators, and what runs on them, begun by one
 * thread in the order in which it was asked for. That thread is the watchdog too: it asks for
 * errors that come up by themselves, and aborts all communicators once the crew has failed, so
 * that no kernel waits for a process that will not come.
 *
 * No events go between streams: the host waits. Whoever asks has what it wrote finished (a space's
 * calls, and the finish of a queue, wait for their streams), and nobody touches the memory again
 * before wait, which asks NCCL's own stream.
 *
 * Where communicators are used at once, all processes must ask in one order: kernels that wait for
 * others' keep their place on the device. */
#ifndef ADL_REAL_NCCL_ENGINE_H
#define ADL_REAL_NCCL_ENGINE_H

#include "real/crew.h"
#include "real/nccl/module.h"

struct adl_engine; /* opaque */

/* What is to happen on a communicator. Owned by the caller, alive until wait has returned. */
struct adl_op {
    enum { ADL_OP_SUM, ADL_OP_COLLECT, ADL_OP_RELAY } kind;
    struct adl_nccl *comm;
    void *data;                   /* memory of the device; SUM: in place */
    void *all;                    /* COLLECT: [processes x count] */
    size_t count;                 /* SUM: elements; COLLECT: bytes */
    enum adl_nccl_type type;      /* SUM */
    struct adl_nccl_part in, out; /* RELAY: see module.h */
    /* The engine's: */
    enum { ADL_OP_ASKED, ADL_OP_BEGUN, ADL_OP_FAILED } state;
    double begun_s;
    struct adl_op *next;
};

/* The crew must outlive it. deadline_s: for one operation, once all processes are there. */
enum adl_status adl_engine_open(struct adl_crew *crew, const struct adl_nccl_module *module,
                                int rank, double deadline_s, struct adl_engine **out,
                                struct adl_err *err);
/* Closes what communicators there are: in good order, by all processes; after a failure at once.
 * NULL is fine. */
void adl_engine_close(struct adl_engine *engine);

/* Joins the world of this id within start_s. All processes together. */
enum adl_status adl_engine_join(struct adl_engine *engine, const void *id, int n, double start_s,
                                struct adl_err *err);
/* NULL after a failure. */
struct adl_nccl *adl_engine_world(struct adl_engine *engine);
/* All processes together, with colors >= 0, or -1 to get *out = NULL; see module.h. */
enum adl_status adl_engine_split(struct adl_engine *engine, int color, int ctas,
                                 struct adl_nccl **out, struct adl_err *err);
/* All its processes together; NULL is fine. */
void adl_engine_close_split(struct adl_engine *engine, struct adl_nccl *comm);

/* Asks for it, from any thread; returns at once. */
void adl_engine_ask(struct adl_engine *engine, struct adl_op *op);
/* Until it has ended. After a failure nothing of it touches memory any more. */
enum adl_status adl_engine_wait(struct adl_engine *engine, struct adl_op *op, struct adl_err *err);

#endif
