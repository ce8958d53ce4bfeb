/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/make_fat_tree.h"

#include "sim/make_tree.h"

struct fat_tree {
    struct adl_make_nodes nodes;
    struct adl_make_tree tree;
};

static const struct adl_field options[] = {
    ADL_MAKE_NODE_ROWS(8), ADL_MAKE_TREE_ROWS(struct fat_tree), {.key = NULL}};

static enum adl_status make(const void *config, FILE *out, struct adl_err *err)
{
    struct fat_tree c = *(const struct fat_tree *)config;
    struct adl_make m;
    ADL_TRY(adl_make_tree_check(&c.tree, &c.nodes, err));
    ADL_TRY(adl_make_open(&c.nodes, out, &m, err));
    struct adl_make_tree_part all = {.end = m.n_nodes, .spine = "spine"};
    char about[160];
    snprintf(about, sizeof about, "%lld pods of at most %lld nodes, over-subscription %g%s.",
             (long long)adl_make_tree_pods(&c.tree, m.n_nodes), (long long)c.tree.pod,
             c.tree.oversubscription, c.tree.rail ? ", rail-optimised" : "");
    adl_make_head(&m, "fat_tree", about, "Floyd");
    adl_make_links_begin(&m);
    adl_make_tree_links(&m, &c.tree, &all);
    adl_make_links_end(&m);
    ADL_TRY(adl_make_tree_zones(&m, &c.tree, &all, err));
    return adl_make_end(&m, err);
}

const struct adl_platform_maker adl_make_fat_tree = {
    "fat_tree", "NVSwitch nodes with network interfaces, in pods under a spine.", options,
    sizeof(struct fat_tree), make};
