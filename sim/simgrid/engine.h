/* SPDX-License-Identifier: Apache-2.0 */
/* The discrete-event engine as the simulator sees it: hosts, routes, flows, actors.
 * Hosts and links are dense indices. One engine per process: it cannot be closed, and a second
 * platform cannot be loaded, so runs in one process are runs on one platform, and a sweep forks.
 *
 * Sharing is max-min fair. Flows only move their bytes: latencies are the caller's to add. */
#ifndef ADL_SIM_SIMGRID_ENGINE_H
#define ADL_SIM_SIMGRID_ENGINE_H

#include <stdbool.h>

#include "core/status.h"

struct adl_activity; /* a flow in progress */
struct adl_engine_gate;

struct adl_engine_actor {
    void (*fn)(void *arg);
    void *arg;
};

/* A call that the engine makes between actors, on its own stack: it must not wait. */
struct adl_engine_event {
    void (*fn)(void *arg, double now_s);
    void *arg;
};

struct adl_engine_link {
    const char *name;
    double bandwidth; /* bytes/s */
    double latency_s;
    bool shared; /* false: every flow gets the full bandwidth */
};

struct adl_engine_ops {
    /* Loads a platform. Most errors come back as ADL_ERR_INPUT with file and line; some faults
     * of a platform abort the process, so that unchecked files are first loaded in a child
     * (sim/probe.h). A second call fails with ADL_ERR_RUNTIME. */
    enum adl_status (*open)(const char *path, struct adl_err *err);

    int (*n_hosts)(void);
    const char *(*host_name)(int host);
    double (*host_speed)(int host);     /* flop/s */
    const char *(*host_zone)(int host); /* name of the zone it stands in */
    /* Value of a property of the host, else of its zone, else of the zones around; NULL: none. */
    const char *(*property)(int host, const char *key);

    int (*n_links)(void);
    struct adl_engine_link (*link)(int link);
    /* Links from one host to another: writes up to cap indices, returns how many there are; 0:
     * no route, -1: the platform is broken there. */
    int (*route)(int from, int to, int *links, int cap);

    double (*clock_s)(void);
    /* Starts an actor on a host at the next run, on a stack of its own. Borrowed until then. */
    void (*spawn)(int host, const struct adl_engine_actor *actor);
    /* Runs until every actor is done. An actor that can never go on is ended. */
    enum adl_status (*run)(struct adl_err *err);

    /* The same for an actor that is ended when all others are done. */
    void (*spawn_servant)(int host, const struct adl_engine_actor *actor);

    /* Within an actor: */
    void (*sleep)(double duration_s);
    /* bytes > 0. A flow is never faster than its thinnest link was when it started. */
    struct adl_activity *(*flow)(int from, int to, double bytes);
    /* Waits for the end, frees the activity, tells when it ended. */
    enum adl_status (*wait)(struct adl_activity *activity, double *finish_s, struct adl_err *err);

    /* Calls at this time, which is not past. Borrowed until then. */
    void (*alarm)(double at_s, const struct adl_engine_event *event);
    /* Within an alarm: a flow that nobody waits for. `moved` is called when its bytes have moved,
     * and may only set alarms. unbound: it may get faster with its links, as after unbind. */
    void (*message)(int from, int to, double bytes, bool unbound,
                    const struct adl_engine_event *moved);

    /* A gate lets one through for each time it is opened. NULL: no memory. */
    struct adl_engine_gate *(*gate)(void);
    void (*open_gate)(struct adl_engine_gate *gate);
    void (*pass_gate)(struct adl_engine_gate *gate);
    void (*free_gate)(struct adl_engine_gate *gate); /* nobody waits at it; NULL is fine */

    void (*set_bandwidth)(int link, double bandwidth); /* bytes/s, > 0; from now on */
    /* All flows that were started so far may get faster with their links. */
    void (*unbind)(void);

    /* From now on the largest rate at which flows use the link is kept, if they share it. */
    void (*watch)(int link);
    double (*largest_rate)(int link); /* bytes/s; 0 where it is not watched */
};

/* The engine of this build; NULL where there is none. */
const struct adl_engine_ops *adl_engine(void);

#endif
