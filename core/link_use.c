/* SPDX-License-Identifier: Apache-2.0 */
#include "core/link_use.h"

#include <stdio.h>

#include "core/json.h"

void adl_links_write(const struct adl_links *links, struct adl_json *j)
{
    adl_json_open(j, "links", '[');
    for (int i = 0; i < links->n_top; i++) {
        const struct adl_link_use *use = &links->top[i];
        adl_json_open(j, NULL, '{');
        adl_json_text(j, "name", use->name);
        adl_json_text(j, "class", adl_link_class_names[use->class]);
        adl_json_real(j, "bandwidth", use->bandwidth);
        adl_json_real(j, "bytes", use->bytes);
        adl_json_real(j, "utilization_mean", use->mean);
        adl_json_real(j, "utilization_peak", use->peak);
        adl_json_close(j, '}');
    }
    adl_json_close(j, ']');
}

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
