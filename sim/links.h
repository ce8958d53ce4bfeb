/* SPDX-License-Identifier: Apache-2.0 */
/* What the platform's links carried. */
#ifndef ADL_SIM_LINKS_H
#define ADL_SIM_LINKS_H

#include "core/link_use.h"
#include "sim/network.h"

struct adl_link_book {
    const struct adl_engine_ops *engine;
    double *bandwidth;    /* [n_links] the platform's, whatever changes later */
    double *bytes, *peak; /* [n_links] peak: share of the bandwidth */
    double moving_s, latency_s;
};

/* Zeroed before: may be freed after a failure. */
enum adl_status adl_link_book_open(struct adl_link_book *book, const struct adl_engine_ops *engine,
                                   struct adl_err *err);
void adl_link_book_free(struct adl_link_book *book);

/* A collective of `bytes` has taken so long. */
void adl_link_book_note(struct adl_link_book *book, struct adl_course *course, double bytes,
                        double duration_s);
/* Puts down what courses [n] carried since the last time. */
void adl_link_book_take(struct adl_link_book *book, struct adl_course *courses, int n);

/* Sums up a run of time_s; what courses carried must have been taken. A link's class is the nearest
 * of the neighbours whose routes it is on: of a node, of a site, else WAN. */
enum adl_status adl_link_book_report(const struct adl_link_book *book,
                                     const struct adl_sim_platform *platform, double time_s,
                                     struct adl_links *out, struct adl_err *err);

#endif
