/* SPDX-License-Identifier: Apache-2.0 */
#include "core/link_use.h"

#include <stdio.h>

void adl_bottleneck(const struct adl_book_totals *times, const struct adl_links *links, char *out,
                    size_t size)
{
    static const char *const names[ADL_N_TIMES] = {[ADL_TIME_COMPUTE] = "compute",
                                                   [ADL_TIME_WAIT] = "slower workers",
                                                   [ADL_TIME_TRANSFER] = "transfer",
                                                   [ADL_TIME_OUTER] = "outer steps",
                                                   [ADL_TIME_IDLE] = "idle devices"};
    int most = ADL_TIME_COMPUTE;
    for (int i = 0; i < ADL_N_TIMES; i++)
        if (times->by_time_s[i] > times->by_time_s[most])
            most = i;
    if (most != ADL_TIME_TRANSFER || !links->known)
        snprintf(out, size, "%s", names[most]);
    else if (links->latency_s > links->moving_s || links->n_top == 0)
        snprintf(out, size, "latency");
    else
        snprintf(out, size, "link %s (%s)", links->top[0].name,
                 adl_link_class_names[links->top[0].class]);
}
