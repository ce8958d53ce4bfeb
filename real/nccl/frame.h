/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over a control socket: heads, each with so many bytes behind it. All machines of a run
 * are of one kind: numbers go as they are in memory. */
#ifndef ADL_REAL_NCCL_FRAME_H
#define ADL_REAL_NCCL_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum adl_frame_kind {
    ADL_FRAME_ALIVE,  /* both ways: nothing new */
    ADL_FRAME_ENTER,  /* to the hub: into a room; its answer has what each brought */
    ADL_FRAME_ADD,    /* to the hub: into a room; its answer is the sum of all rows */
    ADL_FRAME_ANSWER, /* from the hub: all are in that room */
    ADL_FRAME_DATA,   /* by the hub, to a process: bytes */
    ADL_FRAME_TAKEN,  /* by the hub, back: it has taken them */
    ADL_FRAME_FAILED, /* by the hub, to all: a failure came up; bytes are its message */
    ADL_FRAME_LOST,   /* from the hub: a process is lost; bytes say which and why */
    ADL_FRAME_BYE,    /* by the hub, to all: a process leaves */
    ADL_N_FRAME_KINDS
};

struct adl_frame {
    uint32_t kind;  /* enum adl_frame_kind */
    uint32_t bytes; /* behind this head */
    int32_t peer;   /* to the hub: for whom, -1 all others; from it: of whom */
    int32_t number; /* ENTER, ADD: processes that the room waits for; FAILED: enum adl_status */
    uint32_t width; /* ADD: doubles of a row */
    uint32_t zero;
    uint64_t room;
};
_Static_assert(sizeof(struct adl_frame) == 32, "no gaps");

/* The most behind a head to the hub; from it, what all processes brought. */
#define ADL_FRAME_MOST  (UINT32_C(1) << 20)
#define ADL_ANSWER_MOST (UINT32_C(1) << 30)

/* One end of a socket, as far as it has read. */
struct adl_frame_reader {
    struct adl_frame head;
    size_t got; /* of head and body */
    char *body; /* [head.bytes], once the head is whole */
};

enum adl_frame_news {
    ADL_FRAME_NOTHING, /* for now */
    ADL_FRAME_PART,
    ADL_FRAME_WHOLE, /* go on with adl_frame_next */
    ADL_FRAME_CLOSED,
    ADL_FRAME_NONSENSE, /* its head is not sensible */
    ADL_FRAME_NO_MEMORY
};

/* Reads what there is of one frame, without waiting; n is passed on. After the last three the
 * reader is of no more use. */
enum adl_frame_news adl_frame_read(struct adl_frame_reader *reader, int fd,
                                   bool (*sensible)(const struct adl_frame *head, int n), int n);
/* Begins the next one: this one's body is the caller's to free, its head stays until the next read.
 */
char *adl_frame_next(struct adl_frame_reader *reader);

#endif
