/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of many blocks: streams, and a vector's way from one process along others. */
#ifndef ADL_REAL_MPI_RELAY_H
#define ADL_REAL_MPI_RELAY_H

#include <stdint.h>

#include "real/mpi/watch.h"

enum { ADL_STREAM_WINDOW = 4 };

/* Messages to, or from, one process, a few under way at once; done in order. */
struct adl_stream {
    struct adl_mpi *wire;
    int peer, tag;
    int64_t posted, done;
    struct adl_mpi_request requests[ADL_STREAM_WINDOW];
};
/* Counts what is done; true: something more is. */
bool adl_stream_settle(struct adl_stream *stream);
bool adl_stream_has_room(const struct adl_stream *stream);
void adl_stream_send(struct adl_stream *stream, const void *data, size_t bytes);
void adl_stream_receive(struct adl_stream *stream, void *data, size_t bytes);

/* After a failure: nothing of theirs is under way any more when it returns, so that the memory is
 * the caller's again. Receives are called off; what others send to this process is dropped
 * meanwhile, so that they get as far as well. */
void adl_streams_call_off(struct adl_watch *watch, struct adl_mpi *wire,
                          struct adl_stream *const *receiving, int n_receiving,
                          struct adl_stream *const *sending, int n_sending);

/* data [bytes] of processes[0] into `into` of the others [1..n), who pass it on block by block;
 * called by all of them, returns at once for others. Distinct processes. */
enum adl_status adl_relay(struct adl_watch *watch, struct adl_mpi *wire, const int *processes,
                          int n, const void *data, void *into, size_t bytes, struct adl_err *err);

#endif
