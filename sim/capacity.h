/* SPDX-License-Identifier: Apache-2.0 */
/* Links whose bandwidth changes over time: by a profile (sim.profile) and by the traffic of others
 * (sim.background), which takes a fixed rate from every link of its route, whatever else there is.
 *
 * A line of a profile is `time link factor`; # starts a comment. From its time (s) on, links of
 * that name have factor (above 0, at most 1) times the platform's bandwidth; before the first line
 * of a link it has all of it. A name may hold * and ?, and that of a link of two directions stands
 * for both. */
#ifndef ADL_SIM_CAPACITY_H
#define ADL_SIM_CAPACITY_H

#include "sim/options.h"
#include "sim/platform.h"

struct adl_capacity;

/* Reads what the options say; *out is NULL where no link changes. A profile's path is relative to
 * base_dir (may be NULL). ADL_ERR_INPUT where a line, a name or a sum makes no sense. */
enum adl_status adl_capacity_open(const struct adl_engine_ops *engine,
                                  const struct adl_sim_options *options, const char *base_dir,
                                  struct adl_capacity **out, struct adl_err *err);
void adl_capacity_free(struct adl_capacity *capacity); /* NULL is fine */

/* bool [n_links]: which links change; NULL without a capacity. */
const bool *adl_capacity_changes(const struct adl_capacity *capacity);

/* Before each run of the engine: has the links change while it lasts. NULL is fine. */
void adl_capacity_follow(struct adl_capacity *capacity);

#endif
