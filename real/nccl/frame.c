/* SPDX-License-Identifier: Apache-2.0 */
#include "real/nccl/frame.h"

#include <stdlib.h>
#include <sys/types.h>

#include "real/net.h"

enum adl_frame_news adl_frame_read(struct adl_frame_reader *r, int fd,
                                   bool (*sensible)(const struct adl_frame *head, int n), int n)
{
    const size_t head = sizeof r->head;
    bool in_head = r->got < head;
    char *to = in_head ? (char *)&r->head + r->got : r->body + (r->got - head);
    size_t bytes = in_head ? head - r->got : head + r->head.bytes - r->got;
    ssize_t got = adl_net_read(fd, to, bytes);
    if (got <= 0)
        return got < 0 ? ADL_FRAME_CLOSED : ADL_FRAME_NOTHING;
    r->got += (size_t)got;
    if (in_head && r->got == head) {
        if (!sensible(&r->head, n))
            return ADL_FRAME_NONSENSE;
        r->body = malloc((size_t)r->head.bytes + 1);
        if (!r->body)
            return ADL_FRAME_NO_MEMORY;
    }
    return r->got >= head && r->got == head + r->head.bytes ? ADL_FRAME_WHOLE : ADL_FRAME_PART;
}

char *adl_frame_next(struct adl_frame_reader *r)
{
    char *body = r->body;
    r->body = NULL;
    r->got = 0;
    return body;
}
