/* SPDX-License-Identifier: Apache-2.0 */
/* `adloco platform make node`: one machine. */
#ifndef ADL_SIM_MAKE_NODE_H
#define ADL_SIM_MAKE_NODE_H

#include "core/registry.h"

extern const struct adl_platform_maker adl_make_node;

#endif
