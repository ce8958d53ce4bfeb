/* SPDX-License-Identifier: Apache-2.0 */
/* `adloco platform make fat_tree`: nodes of GPUs behind an NVSwitch, in pods, under a spine. */
#ifndef ADL_SIM_MAKE_FAT_TREE_H
#define ADL_SIM_MAKE_FAT_TREE_H

#include "core/registry.h"

extern const struct adl_platform_maker adl_make_fat_tree;

#endif
