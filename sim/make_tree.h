/* SPDX-License-Identifier: Apache-2.0 */
/* A fat tree within a platform file: nodes in pods, pods under a spine. */
#ifndef ADL_SIM_MAKE_TREE_H
#define ADL_SIM_MAKE_TREE_H

#include "sim/make_common.h"

struct adl_make_tree {
    int64_t pod;
    double switch_latency, oversubscription;
    bool rail;
};

/* Rows that fill the member `tree` of struct T. */
#define ADL_MAKE_TREE_ROWS(T)                                                                      \
    {"pod",                                                                                        \
     ADL_TYPE_INT,                                                                                 \
     NULL,                                                                                         \
     "32",                                                                                         \
     1,                                                                                            \
     8192,                                                                                         \
     NULL,                                                                                         \
     "Nodes of a pod (under one leaf switch).",                                                    \
     .offset = offsetof(T, tree.pod)},                                                             \
        {"switch_latency",                                                                         \
         ADL_TYPE_REAL,                                                                            \
         "s",                                                                                      \
         "2us",                                                                                    \
         0,                                                                                        \
         1,                                                                                        \
         NULL,                                                                                     \
         "Latency that crossing the spine adds.",                                                  \
         .offset = offsetof(T, tree.switch_latency)},                                              \
        {"oversubscription",                                                                       \
         ADL_TYPE_REAL,                                                                            \
         NULL,                                                                                     \
         "1",                                                                                      \
         1,                                                                                        \
         64,                                                                                       \
         NULL,                                                                                     \
         "Bandwidth of a pod's interfaces over that of its uplink to the spine.",                  \
         .offset = offsetof(T, tree.oversubscription)},                                            \
    {                                                                                              \
        "rail", ADL_TYPE_BOOL, NULL, "false", 0, 0, NULL,                                          \
            "Rail-optimised: a leaf switch, with an uplink of its own, for the interfaces of "     \
            "equal number in a pod's nodes; what changes rails crosses the spine.",                \
            .offset = offsetof(T, tree.rail)                                                       \
    }

/* Which nodes [first, end) are the tree's, and the number of its first pod in the platform. */
struct adl_make_tree_part {
    int64_t first, end, first_pod;
    const char *spine; /* id of its spine */
    bool has_port;     /* whether others reach it through SPINE_port, even if it is one pod */
};

/* Chooses the detail that rails need. ADL_ERR_INPUT where another one was asked for. */
enum adl_status adl_make_tree_check(const struct adl_make_tree *tree, struct adl_make_nodes *nodes,
                                    struct adl_err *err);
int64_t adl_make_tree_pods(const struct adl_make_tree *tree, int64_t n_nodes);
/* Its links, in the zone of links. */
void adl_make_tree_links(const struct adl_make *make, const struct adl_make_tree *tree,
                         const struct adl_make_tree_part *part);
/* Its pods and spine, in a Floyd zone. */
enum adl_status adl_make_tree_zones(struct adl_make *make, const struct adl_make_tree *tree,
                                    const struct adl_make_tree_part *part, struct adl_err *err);

#endif
