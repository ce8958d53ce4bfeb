/* SPDX-License-Identifier: Apache-2.0 */
/* What a network's links carried, as far as a transport knows its network. */
#ifndef ADL_CORE_LINK_USE_H
#define ADL_CORE_LINK_USE_H

#include "core/account.h"

enum { ADL_TOP_LINKS = 3 };

struct adl_link_use {
    char name[64];
    enum adl_link_class class;
    double bandwidth; /* bytes/s */
    double bytes;
    double mean, peak; /* utilization, 0..1, over the run and at its highest */
};

struct adl_links {
    bool known;
    /* Of the fullest link of a class, on the mean and at its highest; NAN: none carried anything. A
     * mean over links would say little: those with room to spare stand beside those without. */
    double mean[ADL_N_LINK_CLASSES], peak[ADL_N_LINK_CLASSES];
    struct adl_link_use top[ADL_TOP_LINKS]; /* [n_top] the fullest first */
    int n_top;
    double moving_s, latency_s; /* of all collectives: their bytes' time and their latencies */
};

/* A list of objects under the key "links". */
struct adl_json;
void adl_links_write(const struct adl_links *links, struct adl_json *j);

/* What holds a run up, from where its workers' time went: "compute", "slower workers", "outer
 * steps", "idle devices", "latency", "link NAME (CLASS)", or "transfer" where the links are not
 * known. */
void adl_bottleneck(const struct adl_book_totals *times, const struct adl_links *links, char *out,
                    size_t size);

#endif
