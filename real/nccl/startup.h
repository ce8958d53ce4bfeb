/* SPDX-License-Identifier: Apache-2.0 */
/* How the processes of an nccl run find each other. Which process this is, of how many, says
 * real/launch.h. Where they meet says the first of
 *   a place that is given                         tcp://HOST:PORT, or a file that all see
 *   ADLOCO_RENDEZVOUS                             the same
 *   MPI, where mpirun started them and the build has it
 *   SLURM_STEP_NODELIST, SLURM_JOB_NODELIST       its first node, a port by the job's number
 *   MASTER_ADDR, MASTER_PORT                      the next port where torchrun has that itself
 * ADLOCO_TOKEN, of 16 characters or more, keeps strangers out; over tcp:// it must be there.
 * Slurm's jobs make one of their numbers without it, which keeps other jobs out, but nobody who
 * means ill. */
#ifndef ADL_REAL_NCCL_STARTUP_H
#define ADL_REAL_NCCL_STARTUP_H

#include "real/rendezvous.h"

enum adl_startup_way { ADL_STARTUP_ALONE, ADL_STARTUP_SOCKETS, ADL_STARTUP_MPI };

/* given: a place, "" or NULL: none. Fills rank, n, hosts, port, file and token. ADL_ERR_INPUT says
 * what is missing. */
enum adl_status adl_startup_find(const char *given, enum adl_startup_way *way,
                                 struct adl_rendezvous *out, struct adl_err *err);
/* Finds, and meets: sockets [n] as of adl_rendezvous_meet, the caller's to free; NULL where n = 1.
 * r: deadline_s, cancelled and arg are given, rank and n are found. */
enum adl_status adl_startup_meet(const char *given, struct adl_rendezvous *r, int **sockets,
                                 struct adl_err *err);
/* A process is lost: where MPI started them, it cannot be left in peace any more. */
void adl_startup_give_up(void);

#endif
