/* SPDX-License-Identifier: Apache-2.0 */
/* The engine over SimGrid 3.32. */
#include "sim/simgrid/engine.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/link.h>
#include <simgrid/plugins/load.h>
#include <simgrid/semaphore.h>

#include "sim/simgrid/shim.h"

/* CM02 without its corrections is the plain model: a max-min fair share of the bandwidth. Its TCP
 * corrections are off: they cap a wide-area flow by its window and slow a flow by traffic the other
 * way. Shares would still go by latencies, and by bandwidths elsewhere on the route, where there
 * are latencies: links have none in here. Actors run the controller and the model on stack-size
 * KiB each, of which they use less than 16. */
static char *arguments[] = {"adloco",
                            "--cfg=network/model:CM02",
                            "--cfg=network/crosstraffic:0",
                            "--cfg=network/TCP-gamma:0",
                            "--cfg=network/weight-S:0",
                            "--cfg=network/loopback-bw:450e9",
                            "--cfg=contexts/stack-size:256",
                            "--log=root.thres:critical",
                            NULL};

static struct {
    bool opened;
    sg_host_t *hosts;
    int n_hosts;
    sg_link_t *links;
    double *latencies_s; /* [n_links] */
    bool *watched;       /* [n_links] */
    int n_links;
} engine;

static enum adl_status open_platform(const char *path, struct adl_err *err)
{
    if (engine.opened)
        return adl_fail(err, ADL_ERR_RUNTIME,
                        "%s: a platform is loaded in this process already; "
                        "the simulator holds one per process",
                        path);
    engine.opened = true;
    int argc = sizeof arguments / sizeof *arguments - 1;
    simgrid_init(&argc, arguments);
    sg_link_load_plugin_init();
    char why[512];
    int line;
    if (adl_shim_load(path, why, sizeof why, &line) != 0) {
        const char *own = "Parse error at ";
        if (strncmp(why, own, strlen(own)) == 0)
            return adl_fail(err, ADL_ERR_INPUT, "%s", why + strlen(own));
        if (line > 0)
            return adl_fail(err, ADL_ERR_INPUT, "%s:%d: %s", path, line, why);
        return adl_fail(err, ADL_ERR_INPUT, "%s: %s", path, why);
    }
    engine.n_hosts = (int)sg_host_count();
    engine.hosts = engine.n_hosts ? sg_host_list() : NULL; /* aborts on none */
    engine.n_links = (int)sg_link_count();
    engine.links = sg_link_list();
    engine.watched = calloc((size_t)engine.n_links + 1, sizeof *engine.watched);
    engine.latencies_s = calloc((size_t)engine.n_links + 1, sizeof *engine.latencies_s);
    if (!engine.watched || !engine.latencies_s)
        return adl_fail(err, ADL_ERR_NOMEM, "%s: no memory for %d links", path, engine.n_links);
    for (int i = 0; i < engine.n_links; i++) {
        sg_link_set_data(engine.links[i], (void *)(intptr_t)i);
        engine.latencies_s[i] = sg_link_get_latency(engine.links[i]);
        if (engine.latencies_s[i] > 0)
            sg_link_set_latency(engine.links[i], 0);
    }
    return ADL_OK;
}

static int n_hosts(void)
{
    return engine.n_hosts;
}

static const char *host_name(int host)
{
    return sg_host_get_name(engine.hosts[host]);
}

static double host_speed(int host)
{
    return sg_host_get_speed(engine.hosts[host]);
}

static const char *host_zone(int host)
{
    return adl_shim_zone_name(engine.hosts[host]);
}

static const char *property(int host, const char *key)
{
    return adl_shim_property(engine.hosts[host], key);
}

static int n_links(void)
{
    return engine.n_links;
}

static struct adl_engine_link get_link(int link)
{
    sg_link_t l = engine.links[link];
    return (struct adl_engine_link){.name = sg_link_get_name(l),
                                    .bandwidth = sg_link_get_bandwidth(l),
                                    .latency_s = engine.latencies_s[link],
                                    .shared = sg_link_is_shared(l)};
}

static int route(int from, int to, int *links, int cap)
{
    sg_link_t found[64];
    int n = adl_shim_route(engine.hosts[from], engine.hosts[to], found, 64);
    if (n > 64)
        return -1;
    for (int i = 0; i < n && i < cap; i++)
        links[i] = (int)(intptr_t)sg_link_get_data(found[i]);
    return n;
}

static void actor_main(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const struct adl_engine_actor *actor = sg_actor_self_get_data();
    actor->fn(actor->arg);
}

static sg_actor_t start(int host, const struct adl_engine_actor *actor)
{
    sg_actor_t started = sg_actor_init("task", engine.hosts[host]);
    sg_actor_set_data(started, (void *)actor);
    sg_actor_start(started, actor_main, 0, NULL);
    return started;
}

static void spawn(int host, const struct adl_engine_actor *actor)
{
    start(host, actor);
}

static void spawn_servant(int host, const struct adl_engine_actor *actor)
{
    sg_actor_daemonize(start(host, actor));
}

static enum adl_status run(struct adl_err *err)
{
    char why[512];
    if (adl_shim_run(why, sizeof why) != 0)
        return adl_fail(err, ADL_ERR_RUNTIME, "simulation: %s", why);
    return ADL_OK;
}

static void sleep_for(double duration_s)
{
    sg_actor_sleep_for(duration_s);
}

static struct adl_activity *flow(int from, int to, double bytes)
{
    return adl_shim_flow(engine.hosts[from], engine.hosts[to], bytes);
}

static enum adl_status wait_for(struct adl_activity *activity, double *finish_s,
                                struct adl_err *err)
{
    char why[512];
    if (adl_shim_wait(activity, finish_s, why, sizeof why) != 0)
        return adl_fail(err, ADL_ERR_RUNTIME, "simulation: %s", why);
    return ADL_OK;
}

static void set_alarm(double at_s, const struct adl_engine_event *event)
{
    adl_shim_alarm(at_s, event->fn, event->arg);
}

static void message(int from, int to, double bytes, bool unbound,
                    const struct adl_engine_event *moved)
{
    adl_shim_message(engine.hosts[from], engine.hosts[to], bytes, unbound, moved->fn, moved->arg);
}

static struct adl_engine_gate *gate(void)
{
    return (struct adl_engine_gate *)sg_sem_init(0);
}

static void open_gate(struct adl_engine_gate *gate)
{
    sg_sem_release((sg_sem_t)gate);
}

static void pass_gate(struct adl_engine_gate *gate)
{
    sg_sem_acquire((sg_sem_t)gate);
}

static void free_gate(struct adl_engine_gate *gate)
{
    if (gate)
        sg_sem_destroy((sg_sem_t)gate);
}

static void set_bandwidth(int link, double bandwidth)
{
    sg_link_set_bandwidth(engine.links[link], bandwidth);
}

static void watch(int link)
{
    if (engine.watched[link] || !sg_link_is_shared(engine.links[link]))
        return;
    engine.watched[link] = true;
    sg_link_load_track(engine.links[link]);
}

static double largest_rate(int link)
{
    return engine.watched[link] ? sg_link_get_max_instantaneous_load(engine.links[link]) : 0;
}

extern const struct adl_engine_ops adl_engine_simgrid;
const struct adl_engine_ops adl_engine_simgrid = {
    .open = open_platform,
    .n_hosts = n_hosts,
    .host_name = host_name,
    .host_speed = host_speed,
    .host_zone = host_zone,
    .property = property,
    .n_links = n_links,
    .link = get_link,
    .route = route,
    .clock_s = simgrid_get_clock,
    .spawn = spawn,
    .run = run,
    .sleep = sleep_for,
    .flow = flow,
    .wait = wait_for,
    .alarm = set_alarm,
    .message = message,
    .spawn_servant = spawn_servant,
    .gate = gate,
    .open_gate = open_gate,
    .pass_gate = pass_gate,
    .free_gate = free_gate,
    .set_bandwidth = set_bandwidth,
    .unbind = adl_shim_unbind,
    .watch = watch,
    .largest_rate = largest_rate,
};
