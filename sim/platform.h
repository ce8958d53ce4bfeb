/* SPDX-License-Identifier: Apache-2.0 */
/* What a platform file says, and the rules that make a SimGrid platform one of ours:
 *
 * - Every host is a device; its speed is the sustained flop/s. Devices are ordered by the number
 *   that ends their name (g0, g1, ...).
 * - The hosts of one zone are a node, or those with an equal property `node`; nodes hold equal
 *   numbers of devices, consecutive ones.
 * - Large platforms leave out the inside of nodes, which the engine would take long to load. With
 *   `node_size` N on the outermost zone each N consecutive hosts are a node; with `devices` N each
 *   host is a node and stands for N devices of its speed, numbered on from N times its number. In
 *   both, what a device sends within its node takes the route from its host to itself: the
 *   receiver's side of it costs nothing, and what the devices of one host send at once meets only
 *   where that route says.
 * - Nodes with an equal property `site` are a site; without one there is a single site.
 * - `nics`: network interfaces of a node, where there are several nodes.
 * - Facts of a device: `memory` (B), `memory_bandwidth` (B/s), `peak` (flop/s), `overhead` (s a
 *   micro-batch), `half_samples` (samples in flight at which a device is half as fast as it
 *   gets). Values may carry units: 80GB, 3.35TB/s, 989Tflop/s, 1ms.
 *
 * A property is looked up on the host, then on its zone, then on the zones around it, so that
 * what is common stands once. */
#ifndef ADL_SIM_PLATFORM_H
#define ADL_SIM_PLATFORM_H

#include "core/registry.h"
#include "sim/simgrid/engine.h"

struct adl_sim_device {
    int host;                /* the engine's */
    int node, site;          /* from 0, in order of devices */
    double speed_flops;      /* sustained */
    double peak_flops;       /* 0: unknown */
    double memory_bytes;     /* 0: unknown */
    double memory_bandwidth; /* bytes/s; 0: memory traffic takes no time */
    double overhead_s;
    double half_samples;
};

struct adl_sim_platform {
    int n_devices, devices_per_node, nodes_per_site, nics_per_node;
    int devices_per_host;           /* 1, or devices_per_node where hosts stand for nodes */
    bool inner_loopback;            /* within a node, routes lead from a host to itself */
    struct adl_sim_device *devices; /* [n_devices] */
};

/* Loads the file into this process's engine, checks it and collects what it says. */
enum adl_status adl_sim_platform_open(const struct adl_engine_ops *engine, const char *path,
                                      struct adl_sim_platform *out, struct adl_err *err);
/* The same for a file that the reader below has read: what it checked is not checked again. */
enum adl_status adl_sim_platform_reopen(const struct adl_engine_ops *engine, const char *path,
                                        struct adl_sim_platform *out, struct adl_err *err);
void adl_sim_platform_free(struct adl_sim_platform *platform);

/* The host at which what goes from one device to another ends, for the engine's routes and flows
 * from the first one's host. */
int adl_sim_platform_end(const struct adl_sim_platform *platform, int from, int to);

/* Links from one device to another, as engine->route. */
int adl_sim_platform_route(const struct adl_engine_ops *engine,
                           const struct adl_sim_platform *platform, int from, int to, int *links,
                           int cap);

/* Bandwidth of the thinnest link and sum of the latencies between two devices. */
struct adl_path_facts adl_sim_platform_path(const struct adl_engine_ops *engine,
                                            const struct adl_sim_platform *platform, int from,
                                            int to);

/* Reads and shows platforms in a child process; the engine of this process stays untouched. What
 * was read is remembered while the file stays as it is, and kept among the user's caches. */
extern const struct adl_platform_reader adl_sim_platform_reader;

/* The body of `show`: the platform just opened, as text. */
void adl_sim_platform_print(const struct adl_engine_ops *engine, const char *path,
                            const struct adl_sim_platform *platform, FILE *out);

/* The body of `picture`: the platform just opened, as SVG. */
enum adl_status adl_sim_platform_draw(const struct adl_engine_ops *engine,
                                      const struct adl_sim_platform *platform, FILE *out,
                                      struct adl_err *err);

#endif
