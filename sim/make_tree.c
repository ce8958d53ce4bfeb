/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/make_tree.h"

enum adl_status adl_make_tree_check(const struct adl_make_tree *tree, struct adl_make_nodes *nodes,
                                    struct adl_err *err)
{
    if (!tree->rail)
        return ADL_OK;
    if (nodes->detail == ADL_DETAIL_FULL)
        return adl_fail(err, ADL_ERR_INPUT,
                        "rail: detail full has no rails; gpu and node have (node tells them apart "
                        "only by their bandwidth)");
    if (nodes->detail == ADL_DETAIL_AUTO && nodes->gpus <= ADL_MAKE_MAX_GPU)
        nodes->detail = ADL_DETAIL_GPU;
    return ADL_OK;
}

int64_t adl_make_tree_pods(const struct adl_make_tree *tree, int64_t n_nodes)
{
    return (n_nodes + tree->pod - 1) / tree->pod;
}

/* Leaf switches of a pod that the file tells apart. */
static int64_t rails(const struct adl_make *make, const struct adl_make_tree *tree)
{
    return tree->rail && make->c.detail == ADL_DETAIL_GPU ? make->c.nics : 1;
}

/* Leaf switch r of pod p, with the uplink ID_up. */
struct leaf {
    char id[64];
    struct adl_make_group group;
};

static struct leaf leaf_of(const struct adl_make *make, const struct adl_make_tree *tree,
                           const struct adl_make_tree_part *part, int64_t p, int64_t r)
{
    struct leaf leaf;
    bool railed = rails(make, tree) > 1;
    int64_t first = part->first + p * tree->pod;
    int64_t end = first + tree->pod < part->end ? first + tree->pod : part->end;
    long long number = (long long)(part->first_pod + p);
    if (railed)
        snprintf(leaf.id, sizeof leaf.id, "pod%lld_rail%lld", number, (long long)r);
    else
        snprintf(leaf.id, sizeof leaf.id, "pod%lld", number);
    leaf.group = (struct adl_make_group){NULL, first, end, railed ? r : -1};
    return leaf;
}

static bool has_spine(const struct adl_make *make, const struct adl_make_tree *tree,
                      const struct adl_make_tree_part *part)
{
    return part->has_port ||
           adl_make_tree_pods(tree, part->end - part->first) * rails(make, tree) > 1;
}

void adl_make_tree_links(const struct adl_make *make, const struct adl_make_tree *tree,
                         const struct adl_make_tree_part *part)
{
    int64_t pods = adl_make_tree_pods(tree, part->end - part->first), n = rails(make, tree);
    for (int64_t i = 0; i < pods * n; i++) {
        struct leaf leaf = leaf_of(make, tree, part, i / n, i % n);
        adl_make_group_link(make, leaf.id);
        if (!has_spine(make, tree, part))
            continue;
        char up[80];
        snprintf(up, sizeof up, "%s_up", leaf.id);
        double bandwidth =
            (double)(leaf.group.end - leaf.group.first) * adl_make_node_bandwidth(make) / (double)n;
        adl_make_link(make, up, bandwidth / tree->oversubscription, tree->switch_latency / 2,
                      ADL_MAKE_DUPLEX);
    }
}

enum adl_status adl_make_tree_zones(struct adl_make *make, const struct adl_make_tree *tree,
                                    const struct adl_make_tree_part *part, struct adl_err *err)
{
    int64_t pods = adl_make_tree_pods(tree, part->end - part->first), n = rails(make, tree);
    bool spine = has_spine(make, tree, part);
    if (spine)
        adl_make_switch(make, part->spine);
    for (int64_t i = 0; i < pods * n; i++) {
        struct leaf leaf = leaf_of(make, tree, part, i / n, i % n);
        leaf.group.id = leaf.id;
        ADL_TRY(adl_make_group(make, &leaf.group, err));
    }
    for (int64_t i = 0; i < pods * n && spine; i++) {
        struct leaf leaf = leaf_of(make, tree, part, i / n, i % n);
        adl_make_line(make,
                      "<zoneRoute src=\"%s\" dst=\"%s\" gw_src=\"%s_port\" gw_dst=\"%s_port\">"
                      "<link_ctn id=\"%s_up\" direction=\"UP\"/></zoneRoute>",
                      leaf.id, part->spine, leaf.id, part->spine, leaf.id);
    }
    return ADL_OK;
}
