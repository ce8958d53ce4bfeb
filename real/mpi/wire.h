/* SPDX-License-Identifier: Apache-2.0 */
/* What the mpi transport needs of MPI, and no more: messages between processes that never block,
 * the library's own all-reduce, and an end in case of need. real/mpi/wire.c is the one file that
 * includes mpi.h. Any thread may call (MPI_THREAD_MULTIPLE). Errors of MPI itself end the job, as
 * MPI's default error handler has it. */
#ifndef ADL_REAL_MPI_WIRE_H
#define ADL_REAL_MPI_WIRE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/space.h"
#include "core/status.h"

/* Messages of one wire do not meet those of another. */
struct adl_mpi;

/* Starts MPI if that has not happened, which ends with the process; one dup of the world. All
 * processes together. ADL_ERR_UNSUPPORTED without MPI in the build, or where it does not let
 * several threads call. */
enum adl_status adl_mpi_open(struct adl_mpi **out, struct adl_err *err);
/* All processes together, nothing under way; NULL is fine. */
void adl_mpi_close(struct adl_mpi *wire);

int adl_mpi_rank(const struct adl_mpi *wire);
int adl_mpi_size(const struct adl_mpi *wire);

/* A message under way. All zero, or tested true: none. Its memory belongs to MPI until then. */
struct adl_mpi_request {
    bool active;
    void *own;
};
enum { ADL_MPI_MAX_BYTES = 1 << 30, ADL_MPI_ANY = -1 };
/* bytes <= ADL_MPI_MAX_BYTES; messages with one tag between the same two arrive in order. */
void adl_mpi_send(struct adl_mpi *wire, int to, int tag, const void *data, size_t bytes,
                  struct adl_mpi_request *out);
/* from: a process, or ADL_MPI_ANY. */
void adl_mpi_receive(struct adl_mpi *wire, int from, int tag, void *data, size_t bytes,
                     struct adl_mpi_request *out);
/* Whether it has arrived or gone; progress of all messages of the process on the way. */
bool adl_mpi_test(struct adl_mpi_request *request);
/* Calls a receive off. It still has to be tested until true: a message that is arriving
 * arrives. */
void adl_mpi_cancel(struct adl_mpi_request *request);
/* Takes one message that nobody asked for, and drops it. False: there is none. */
bool adl_mpi_drop(struct adl_mpi *wire);

/* The library's own all-reduce among some processes. These block: call them where all members
 * are known to be there. */
struct adl_mpi_group;
/* Members [n], ascending; the same order of creation on all of them. */
struct adl_mpi_group *adl_mpi_group_create(struct adl_mpi *wire, const int *members, int n);
void adl_mpi_group_free(struct adl_mpi_group *group); /* NULL is fine */
/* out = sum over the members of in; in may be out. */
void adl_mpi_group_sum(struct adl_mpi_group *group, const void *in, void *out, size_t count,
                       enum adl_dtype dtype);

/* What this process has sent on the wire so far, by messages asked for here. */
void adl_mpi_sent(const struct adl_mpi *wire, double *messages, double *bytes);

/* Ends all processes, with exit code 1, from any thread. */
void adl_mpi_abort(void);
/* From now on the process's exit ends all others: MPI cannot be left in peace any more. */
void adl_mpi_give_up(void);

#endif
