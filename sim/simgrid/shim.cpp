/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/simgrid/shim.h"

#include <cmath>
#include <cstdio>
#include <exception>
#include <unordered_map>
#include <vector>

#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u.hpp>
#if __has_include(<simgrid/simcall.hpp>)
#include <simgrid/simcall.hpp>
#else
#include <simgrid/simix.hpp>
#endif

namespace s4u = simgrid::s4u;

/* The line that SimGrid's XML reader is at: a version has the one or the other. */
extern int surf_parse_lineno __attribute__((weak));
extern int simgrid_parse_lineno __attribute__((weak));

static int &line_read()
{
    static int neither;
    return &surf_parse_lineno      ? surf_parse_lineno
           : &simgrid_parse_lineno ? simgrid_parse_lineno
                                   : neither;
}

static int refuse(const std::exception &e, char *why, size_t size)
{
    snprintf(why, size, "%s", e.what());
    return -1;
}

int adl_shim_load(const char *path, char *why, size_t size, int *line)
{
    *line = 0;
    try {
        line_read() = 0;
        s4u::Engine::get_instance()->load_platform(path);
        line_read() = 0; /* what fails from here on is not at a line */
        s4u::Engine::get_instance()->run();
        return 0;
    } catch (const std::exception &e) {
        *line = line_read();
        return refuse(e, why, size);
    }
}

int adl_shim_run(char *why, size_t size)
{
    try {
        s4u::Engine::get_instance()->run();
        return 0;
    } catch (const std::exception &e) {
        return refuse(e, why, size);
    }
}

const char *adl_shim_zone_name(sg_host_t host)
{
    return host->get_englobing_zone()->get_cname();
}

const char *adl_shim_property(sg_host_t host, const char *key)
{
    if (const char *value = host->get_property(key))
        return value;
    const s4u::NetZone *root = s4u::Engine::get_instance()->get_netzone_root();
    for (const s4u::NetZone *zone = host->get_englobing_zone();; zone = zone->get_parent()) {
        if (const char *value = zone->get_property(key))
            return value;
        if (zone == root)
            return nullptr;
    }
}

int adl_shim_route(sg_host_t from, sg_host_t to, sg_link_t *links, int cap)
{
    static std::vector<s4u::Link *> route;
    route.clear();
    try {
        double latency = 0;
        from->route_to(to, route, &latency);
    } catch (const std::exception &) {
        return -1;
    }
    int n = static_cast<int>(route.size());
    for (int i = 0; i < n && i < cap; i++)
        links[i] = route[i];
    return n;
}

/* The caller holds one reference, dropped by adl_shim_wait. */
void *adl_shim_flow(sg_host_t from, sg_host_t to, double bytes)
{
    s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
    comm->set_payload_size(static_cast<uint64_t>(llround(bytes)));
    comm->start();
    comm->add_ref();
    return static_cast<s4u::Activity *>(comm.get());
}

static simgrid::kernel::resource::Model *network_model()
{
    for (auto *model : s4u::Engine::get_instance()->get_all_models())
        if (model->get_name().rfind("Network", 0) == 0)
            return model;
    return nullptr;
}

/* What has no bound any more is marked by the bound that a user could have set. */
static void unbind(simgrid::kernel::resource::Action &action)
{
    if (action.get_user_bound() < 0)
        return;
    action.set_bound(-1);
    action.set_user_bound(-1);
}

void adl_shim_unbind()
{
    static auto *const model = network_model();
    simgrid::kernel::actor::simcall_answered([] {
        for (auto &action : *model->get_started_action_set())
            unbind(action);
    });
}

void adl_shim_alarm(double at_s, adl_shim_event *fn, void *arg)
{
    simgrid::kernel::timer::Timer::set(at_s, [fn, arg] { fn(arg, s4u::Engine::get_clock()); });
}

struct moving {
    adl_shim_event *fn;
    void *arg;
};
static std::unordered_map<const simgrid::kernel::resource::Action *, moving> messages;

/* SimGrid tells of every change of every flow; its NetworkAction, whose headers it does not
 * install, begins with the Action. */
static void follow_messages()
{
    using simgrid::kernel::resource::Action;
    s4u::Link::on_communication_state_change_cb(
        [](simgrid::kernel::resource::NetworkAction &changed, Action::State) {
            auto *action = reinterpret_cast<Action *>(&changed);
            auto found = messages.find(action);
            if (found == messages.end() || action->get_state() != Action::State::FINISHED)
                return;
            moving message = found->second;
            messages.erase(found);
            message.fn(message.arg, s4u::Engine::get_clock());
        });
}

void adl_shim_message(sg_host_t from, sg_host_t to, double bytes, int unbound, adl_shim_event *fn,
                      void *arg)
{
    static auto *const model = network_model();
    static bool following = false;
    if (!following)
        follow_messages();
    following = true;
    s4u::CommPtr comm = s4u::Comm::sendto_init(from, to);
    comm->set_payload_size(static_cast<uint64_t>(llround(bytes)));
    comm->detach();
    auto &action = model->get_started_action_set()->back(); /* an alarm's call: nobody else's */
    messages[&action] = {fn, arg};
    if (unbound)
        unbind(action);
}

int adl_shim_wait(void *handle, double *finish, char *why, size_t size)
{
    s4u::ActivityPtr activity(static_cast<s4u::Activity *>(handle), false);
    try {
        activity->wait();
        *finish = activity->get_finish_time();
        return 0;
    } catch (const simgrid::Exception &e) {
        return refuse(e, why, size);
    }
}
