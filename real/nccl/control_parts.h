/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a process's end of the control network: control.c has its thread, control_calls.c
 * what the other threads ask of it. */
#ifndef ADL_REAL_NCCL_CONTROL_PARTS_H
#define ADL_REAL_NCCL_CONTROL_PARTS_H

#include <stdatomic.h>

#include "real/nccl/control.h"
#include "real/nccl/frame.h"

struct parcel { /* bytes that another process passes */
    int from;
    char *data;
    size_t bytes;
    struct parcel *next;
};

struct adl_control {
    struct adl_crew *crew;
    struct adl_hub *hub; /* rank 0's */
    int rank, n, fd;
    double deadline_s, beat_s, beat_due_s, heard_s, ticked_s;
    struct adl_clock clock;
    pthread_t thread;
    bool started;
    atomic_bool ending, lost;
    bool gone; /* there is nothing more to read */
    pthread_mutex_t writing;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t news;
    struct adl_visit *visits;
    struct parcel *parcels;
    uint64_t n_taken;   /* pieces that others have taken of this process's */
    int n_left;         /* others that have said goodbye */
    int one_left;       /* one of them */
    uint64_t counts[2]; /* rooms entered, by enum adl_room_kind */
    struct adl_frame_reader in;
};

/* Any thread; ADL_ERR_PEER where the hub is not listening any more. */
enum adl_status adl_control_send(struct adl_control *control, const struct adl_frame *head,
                                 const void *body, struct adl_err *err);

#endif
