/* SPDX-License-Identifier: Apache-2.0 */
/* What the makers of platforms share: the rows that describe nodes, and the parts of a file.
 *
 * A file is made for the engine to load fast, whatever the network above the nodes:
 * - All links that routes share stand in one zone in front, where looking one up does not visit
 *   every zone.
 * - A switch is a zone of its own or the router of a star, since a zone that holds zones must not
 *   hold its gateway.
 * - The devices under one switch are written in one of three details (sim/platform.h):
 *   full: each node is a zone in which two devices meet on NVLink, in both directions, and never on
 *     their interfaces.
 *   gpu: the devices under a switch are a star. What a device sends within its node takes its own
 *     NVLink; the receiver's side is left out, which no ring, chain, pairwise exchange, tree or
 *     star notices: there everyone receives as fast as one of the others sends.
 *   node: the nodes under a switch are a star of hosts that stand for their devices. One flow gets
 *     one interface's bandwidth, all of them together get all interfaces'; NVLink is not shared, so
 *     that no two trainers may meet on it: one worker a device, unless each takes the whole node.
 *
 * Loading 4096 devices in full, 16,384 as GPUs or 65,536 as nodes takes less than half a second. */
#ifndef ADL_SIM_MAKE_COMMON_H
#define ADL_SIM_MAKE_COMMON_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "core/registry.h"
#include "sim/gpu_presets.h"

enum adl_detail { ADL_DETAIL_AUTO, ADL_DETAIL_FULL, ADL_DETAIL_GPU, ADL_DETAIL_NODE };
/* Devices up to which `auto` writes in full, and as GPUs. */
enum { ADL_MAKE_MAX_FULL = 4096, ADL_MAKE_MAX_GPU = 16384 };

/* The values of ADL_MAKE_NODE_ROWS; first in a maker's struct. */
struct adl_make_nodes {
    int64_t gpus, node_size, nics; /* nics: ADL_UNSET_INT: one for each device */
    double nvlink;                 /* NAN: what the GPU has */
    double nvlink_latency, nic, nic_latency;
    const char *gpu;
    int detail; /* enum adl_detail */
};

#define ADL_MAKE_NODE_ROWS(MIN_GPUS)                                                               \
    {"gpus",                                                                                       \
     ADL_TYPE_INT,                                                                                 \
     NULL,                                                                                         \
     NULL,                                                                                         \
     MIN_GPUS,                                                                                     \
     65536,                                                                                        \
     NULL,                                                                                         \
     "Devices of the cluster, a multiple of node_size.",                                           \
     .offset = offsetof(struct adl_make_nodes, gpus)},                                             \
        {"node_size",                                                                              \
         ADL_TYPE_INT,                                                                             \
         NULL,                                                                                     \
         "8",                                                                                      \
         1,                                                                                        \
         64,                                                                                       \
         NULL,                                                                                     \
         "Devices of a node.",                                                                     \
         .offset = offsetof(struct adl_make_nodes, node_size)},                                    \
        {"nics",                                                                                   \
         ADL_TYPE_INT,                                                                             \
         NULL,                                                                                     \
         "",                                                                                       \
         1,                                                                                        \
         64,                                                                                       \
         NULL,                                                                                     \
         "Network interfaces of a node, a divisor of node_size; unset: one for each device.",      \
         .offset = offsetof(struct adl_make_nodes, nics)},                                         \
        {"nvlink",                                                                                 \
         ADL_TYPE_REAL,                                                                            \
         "B/s",                                                                                    \
         "",                                                                                       \
         1,                                                                                        \
         INFINITY,                                                                                 \
         NULL,                                                                                     \
         "Bandwidth of a device within its node, each direction; unset: what the GPU has.",        \
         .offset = offsetof(struct adl_make_nodes, nvlink)},                                       \
        {"nvlink_latency",                                                                         \
         ADL_TYPE_REAL,                                                                            \
         "s",                                                                                      \
         "1us",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "Latency between two devices of a node.",                                                 \
         .offset = offsetof(struct adl_make_nodes, nvlink_latency)},                               \
        {"nic",                                                                                    \
         ADL_TYPE_REAL,                                                                            \
         "B/s",                                                                                    \
         "50GB/s",                                                                                 \
         1,                                                                                        \
         INFINITY,                                                                                 \
         NULL,                                                                                     \
         "Bandwidth of a network interface, each direction.",                                      \
         .offset = offsetof(struct adl_make_nodes, nic)},                                          \
        {"nic_latency",                                                                            \
         ADL_TYPE_REAL,                                                                            \
         "s",                                                                                      \
         "4us",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "Latency between two nodes under one switch.",                                            \
         .offset = offsetof(struct adl_make_nodes, nic_latency)},                                  \
        {"gpu",                                                                                    \
         ADL_TYPE_TEXT,                                                                            \
         NULL,                                                                                     \
         "h100",                                                                                   \
         0,                                                                                        \
         0,                                                                                        \
         NULL,                                                                                     \
         "What the devices are: h100, h200, a100, mi300x or l40s; of several kinds, each with "    \
         "its number in order of devices: h100:48,a100:16.",                                       \
         .offset = offsetof(struct adl_make_nodes, gpu)},                                          \
    {                                                                                              \
        "detail", ADL_TYPE_CHOICE, NULL, "auto", 0, 0, "auto|full|gpu|node",                       \
            "How much of a node is written: all of it, devices with their interfaces, or nodes "   \
            "as a whole (one worker a device, or a worker a node); auto: the most that 4096 and "  \
            "16,384 devices allow.",                                                               \
            .offset = offsetof(struct adl_make_nodes, detail)                                      \
    }

/* A file in the making. */
struct adl_make {
    FILE *out;
    struct adl_make_nodes c; /* nics and detail resolved */
    int64_t n_nodes;
    struct adl_gpu_run runs[ADL_MAX_GPU_RUNS];
    int n_runs;
    int depth; /* of the zone being written, for indentation */
};

/* Checks and resolves the values. */
enum adl_status adl_make_open(const struct adl_make_nodes *c, FILE *out, struct adl_make *make,
                              struct adl_err *err);

/* A line at the present depth. */
void adl_make_line(const struct adl_make *make, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* Opens a zone; adl_make_close ends it. */
void adl_make_zone(struct adl_make *make, const char *id, const char *routing);
void adl_make_close(struct adl_make *make);
/* A zone that is a switch, with the router ID_port. */
void adl_make_switch(struct adl_make *make, const char *id);

/* The file up to its outermost zone and that zone's properties. about: what KIND made, one line. */
void adl_make_head(struct adl_make *make, const char *kind, const char *about, const char *routing);
/* Ends it. ADL_ERR_IO where the file could not be written. */
enum adl_status adl_make_end(struct adl_make *make, struct adl_err *err);

/* The zone of links stands between these two; begin writes the nodes' own. */
void adl_make_links_begin(struct adl_make *make);
void adl_make_links_end(struct adl_make *make);
enum adl_make_sharing { ADL_MAKE_SHARED, ADL_MAKE_DUPLEX, ADL_MAKE_UNSHARED };
void adl_make_link(const struct adl_make *make, const char *id, double bandwidth, double latency_s,
                   enum adl_make_sharing sharing);

/* What hangs on one switch: nodes [first, end), of which only the devices of interface `rail` if
 * that is not negative (details full and node: must be). Becomes the zone ID, with the gateway
 * ID_port; the link ID_leaf must have been written by adl_make_group_link. */
struct adl_make_group {
    const char *id;
    int64_t first, end;
    int64_t rail;
};
void adl_make_group_link(const struct adl_make *make, const char *id);
/* ADL_ERR_INPUT where the detail cannot tell the nodes apart. */
enum adl_status adl_make_group(struct adl_make *make, const struct adl_make_group *group,
                               struct adl_err *err);

/* Bytes/s of all interfaces of a node. */
double adl_make_node_bandwidth(const struct adl_make *make);

#endif
