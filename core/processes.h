/* SPDX-License-Identifier: Apache-2.0 */
/* What the processes that share a world tell each other beside the algorithm: out of band, not
 * counted, no one's time. Everyone calls alike, between epochs; where one process hosts the world
 * nothing happens. Process 0 is the one that writes and prints. */
#ifndef ADL_CORE_PROCESSES_H
#define ADL_CORE_PROCESSES_H

#include "core/transport.h"

struct adl_processes {
    const struct adl_transport_ops *ops;
    struct adl_transport *transport;
    int rank, n; /* this one's number, of how many */
};
struct adl_processes adl_processes_of(const struct adl_transport_ops *ops,
                                      struct adl_transport *transport);
/* The process that hosts a worker. */
int adl_process_of(const struct adl_processes *p, int worker);

/* data [bytes], in host memory, of process `from` to process `to`, or to ADL_EVERY_PROCESS. */
enum adl_status adl_processes_pass(const struct adl_processes *p, int from, int to, void *data,
                                   size_t bytes, struct adl_err *err);
/* Everyone learns of the first failure: returns `status` where all are ADL_OK, else fails
 * everywhere, with the message of the process that failed. */
enum adl_status adl_processes_agree(const struct adl_processes *p, enum adl_status status,
                                    struct adl_err *err);
/* *x becomes the largest of all processes'. */
enum adl_status adl_processes_largest(const struct adl_processes *p, double *x,
                                      struct adl_err *err);
/* rows [n x bytes]: row i of process owners[i] becomes everyone's. */
enum adl_status adl_processes_share(const struct adl_processes *p, void *rows, size_t bytes, int n,
                                    const int *owners, struct adl_err *err);
/* Everyone plans what process 0 plans. ADL_ERR_INPUT where not. */
enum adl_status adl_processes_same_run(const struct adl_processes *p, const char run_id[17],
                                       struct adl_err *err);

#endif
