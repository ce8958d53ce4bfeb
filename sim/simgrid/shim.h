/* SPDX-License-Identifier: Apache-2.0 */
/* The calls that SimGrid's C API lacks, or that would abort where they can throw. */
#ifndef ADL_SIM_SIMGRID_SHIM_H
#define ADL_SIM_SIMGRID_SHIM_H

#include <simgrid/forward.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Loads a platform and seals its routes. 0, or -1 with the reason and the line (0: unknown). */
int adl_shim_load(const char *path, char *why, size_t size, int *line);
/* Runs the simulation; 0, or -1 with the reason. */
int adl_shim_run(char *why, size_t size);

const char *adl_shim_zone_name(sg_host_t host);
const char *adl_shim_property(sg_host_t host, const char *key);
/* Number of links, -1 where SimGrid finds the platform broken. */
int adl_shim_route(sg_host_t from, sg_host_t to, sg_link_t *links, int cap);

void *adl_shim_flow(sg_host_t from, sg_host_t to, double bytes);
/* As the engine's alarm and message (sim/simgrid/engine.h). */
typedef void adl_shim_event(void *arg, double now_s);
void adl_shim_alarm(double at_s, adl_shim_event *fn, void *arg);
void adl_shim_message(sg_host_t from, sg_host_t to, double bytes, int unbound, adl_shim_event *fn,
                      void *arg);
/* Takes away the bound of flows: the bandwidth of their thinnest link when they started. */
void adl_shim_unbind(void);
/* Waits, then drops the activity. 0, or -1 with the reason. */
int adl_shim_wait(void *activity, double *finish, char *why, size_t size);

#ifdef __cplusplus
}
#endif

#endif
