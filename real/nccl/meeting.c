/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "real/nccl/transport.h"

struct adl_nccl_word adl_nccl_own_word(struct adl_transport *t)
{
    struct adl_nccl_word w = {.clock_s = adl_crew_now_s(&t->crew)};
    if (adl_crew_failed(&t->crew)) {
        w.status = (int32_t)t->crew.failure.status;
        w.message_bytes = (uint32_t)strlen(t->crew.failure.message);
    }
    return w;
}

/* The furthest clock, and the first failure, which becomes this process's too. */
static enum adl_status hear_words(struct adl_transport *t, const struct adl_visit *visit,
                                  double *clock_s, struct adl_err *err)
{
    struct adl_err first = {.status = ADL_OK};
    for (int p = 0; p < t->n; p++) {
        struct adl_nccl_word w;
        size_t bytes;
        const char *part = adl_visit_part(visit, p, &bytes);
        if (part && bytes >= sizeof w)
            memcpy(&w, part, sizeof w);
        if (!part || bytes < sizeof w || bytes - sizeof w < w.message_bytes)
            return adl_fail(err, ADL_ERR_BUG, "rank %d came to a meeting with nothing to say", p);
        *clock_s = w.clock_s > *clock_s ? w.clock_s : *clock_s;
        if (w.status != ADL_OK)
            adl_fail(&first, (enum adl_status)w.status, "%.*s", (int)w.message_bytes,
                     part + bytes - w.message_bytes);
    }
    if (first.status == ADL_OK)
        return ADL_OK;
    adl_crew_fail(&t->crew, first.status, first.message, false);
    return adl_fail(err, first.status, "%s", first.message);
}

/* Goes in with what is brought and, where its word says so, the message. */
static enum adl_status enter(struct adl_transport *t, enum adl_room_kind kind, const void *mine,
                             size_t bytes, struct adl_visit *visit, struct adl_err *err)
{
    struct adl_nccl_word w;
    memcpy(&w, mine, sizeof w);
    if (w.message_bytes == 0)
        return adl_control_enter_all(t->control, visit, kind, mine, bytes, err);
    char *all = malloc(bytes + w.message_bytes);
    if (!all)
        return adl_fail(err, ADL_ERR_NOMEM, "no memory for a meeting");
    memcpy(all, mine, bytes);
    memcpy(all + bytes, t->crew.failure.message, w.message_bytes);
    enum adl_status status =
        adl_control_enter_all(t->control, visit, kind, all, bytes + w.message_bytes, err);
    free(all);
    return status;
}

enum adl_status adl_nccl_meet(struct adl_transport *t, enum adl_room_kind kind, const void *mine,
                              size_t bytes, struct adl_visit *visit, double *clock_s,
                              struct adl_err *err)
{
    *visit = (struct adl_visit){.done = false};
    *clock_s = adl_crew_now_s(&t->crew);
    ADL_TRY(enter(t, kind, mine, bytes, visit, err));
    ADL_TRY(adl_control_wait(t->control, visit, kind == ADL_ROOM_STUBBORN, err));
    enum adl_status status = hear_words(t, visit, clock_s, err);
    if (status != ADL_OK) {
        free(visit->answer);
        visit->answer = NULL;
    }
    return status;
}

enum adl_status adl_nccl_meet_all(struct adl_transport *t, enum adl_room_kind kind, double *clock_s,
                                  struct adl_err *err)
{
    struct adl_nccl_word mine = adl_nccl_own_word(t);
    struct adl_visit visit;
    *clock_s = mine.clock_s;
    ADL_TRY(adl_nccl_meet(t, kind, &mine, sizeof mine, &visit, clock_s, err));
    free(visit.answer);
    return ADL_OK;
}

enum adl_status adl_nccl_say_why(struct adl_transport *t, const struct adl_err *own,
                                 struct adl_err *err)
{
    adl_crew_fail(&t->crew, own->status, own->message, true);
    return adl_fail(err, t->crew.failure.status, "%s", t->crew.failure.message);
}
